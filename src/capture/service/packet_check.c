/* Walks the top level of a packet that may be in pieces. */
#include "capture/service/packet_check.h"

#include "wire/fields.h"
#include "wire/pb_cursor.h"

#define MAX_LENGTH ((1u << 28) - 1)

/* trusted_uid, trusted_packet_sequence_id, trace_config, trace_stats, synchronization_marker, compressed_packets,
 * service_event, trusted_pid, machine_id, trace_provenance, protovms, zstd_compressed_packets */
static bool is_reserved(uint64_t field)
{
    switch (field) {
    case TRACE_PACKET_TRUSTED_UID:
    case TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID:
    case TRACE_PACKET_TRACE_CONFIG:
    case TRACE_PACKET_TRACE_STATS:
    case TRACE_PACKET_SYNCHRONIZATION_MARKER:
    case TRACE_PACKET_COMPRESSED_PACKETS:
    case TRACE_PACKET_SERVICE_EVENT:
    case TRACE_PACKET_TRUSTED_PID:
    case TRACE_PACKET_MACHINE_ID:
    case TRACE_PACKET_TRACE_PROVENANCE:
    case TRACE_PACKET_PROTOVMS:
    case TRACE_PACKET_ZSTD_COMPRESSED_PACKETS:
        return true;
    default:
        return false;
    }
}

struct piece_cursor {
    const struct slice *piece, *end;
    size_t at; /* in *piece */
};

static bool at_end(struct piece_cursor *w)
{
    while (w->piece < w->end && w->at == w->piece->len) {
        w->piece++;
        w->at = 0;
    }
    return w->piece == w->end;
}

static bool take_varint(struct piece_cursor *w, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (at_end(w))
            return false;
        uint8_t b = w->piece->p[w->at++];
        if (shift < 64)
            *v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80)
            return true;
    }
    return false;
}

static bool skip(struct piece_cursor *w, uint64_t n)
{
    while (n) {
        if (at_end(w))
            return false;
        size_t left = w->piece->len - w->at, step = n < left ? (size_t)n : left;
        w->at += step;
        n -= step;
    }
    return true;
}

static bool check_one(struct slice s) /* the usual case */
{
    struct pb_cursor c = pb_cursor(s);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (is_reserved(f.id) || (f.wire == PB_BYTES && f.u > MAX_LENGTH))
            return false;
    return !c.bad;
}

bool packet_check(const struct slice *pieces, size_t n)
{
    if (n == 1)
        return check_one(*pieces);
    struct piece_cursor w = {pieces, pieces + n, 0};
    while (!at_end(&w)) {
        uint64_t tag, v;
        if (!take_varint(&w, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff || is_reserved(tag >> 3))
            return false;
        bool ok = false;
        switch (tag & 7) {
        case PB_VARINT:
            ok = take_varint(&w, &v);
            break;
        case PB_FIXED64:
            ok = skip(&w, 8);
            break;
        case PB_BYTES:
            ok = take_varint(&w, &v) && v <= MAX_LENGTH && skip(&w, v);
            break;
        case PB_FIXED32:
            ok = skip(&w, 4);
            break;
        }
        if (!ok)
            return false;
    }
    return true;
}
