/* Packets as recorders write them most often: a time, a track event, and numbers that say who wrote it. */
#ifndef MERIDIAN_IMPORTER_PROTO_PLAIN_PACKET_H
#define MERIDIAN_IMPORTER_PROTO_PLAIN_PACKET_H

#include "importer/proto/packet_scan.h"
#include "wire/fields.h"
#include "wire/pb_short.h"

struct plain_packet {
    uint64_t timestamp;
    struct slice event;
    uint32_t clock_id, sequence_id, flags, trusted_uid, trusted_pid;
    bool trusted_uid_given;
};

/* The number behind a tag of one byte: the bytes of both, when the number has up to 4 bytes, else 0. Recorders write
 * lengths in 4 bytes, before they know them. */
static inline unsigned plain_number(uint64_t word, uint64_t *value)
{
    *value = word >> 8 & 0x7f;
    return word & 0x8000 ? pb_word_varint(word & ~(uint64_t)0xff, 0, value) : 2;
}

/* The same behind a tag of two bytes. */
static inline unsigned plain_number_2(uint64_t word, uint64_t *value)
{
    unsigned n = plain_number(word >> 8, value);
    return n ? n + 1 : 0;
}

/* Of a tag of two bytes, the first and the second. */
#define PLAIN_TAG_LOW(field, wire) (((field) << 3 & 0x7f) | (wire) | 0x80)
#define PLAIN_TAG_HIGH(field)      ((field) >> 4)

/* Reads a packet of these fields alone. False for any other, which packet_scan_read() reads: also for one that changes
 * what others mean, and one of the service. */
static inline bool plain_packet_read(struct slice bytes, struct plain_packet *s)
{
    const uint8_t *p = bytes.p, *end = bytes.p + bytes.len;
    uint64_t word, value;
    if (bytes.len <= sizeof word || *p != PB_SHORT_TAG(TRACE_PACKET_TIMESTAMP, PB_VARINT))
        return false;
    memcpy(&word, p + 1, sizeof word);
    size_t n = pb_word_value(word, &s->timestamp);
    if (!n)
        return false;
    s->event = slice_of(NULL, 0);
    s->clock_id = s->sequence_id = s->flags = s->trusted_uid = s->trusted_pid = 0;
    s->trusted_uid_given = false;
    for (p += n + 1; p < end; p += n) {
        size_t left = (size_t)(end - p);
        word = pb_word(p, end);
        n = plain_number(word, &value);
        switch ((uint8_t)word) {
        case PB_SHORT_TAG(TRACE_PACKET_TRACK_EVENT, PB_BYTES):
            if (s->event.p || !n || n > left || value > left - n)
                return false;
            s->event = slice_of(p + n, (size_t)value);
            n += value;
            continue;
        case PB_SHORT_TAG(TRACE_PACKET_SEQUENCE_FLAGS, PB_VARINT):
            s->flags = (uint32_t)value;
            break;
        case PB_SHORT_TAG(TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, PB_VARINT):
            s->sequence_id = (uint32_t)value;
            break;
        case PB_SHORT_TAG(TRACE_PACKET_TRUSTED_UID, PB_VARINT):
            s->trusted_uid = (uint32_t)value;
            s->trusted_uid_given = true;
            break;
        case PLAIN_TAG_LOW(TRACE_PACKET_TRUSTED_PID, PB_VARINT):
            if ((word >> 8 & 0xff) != PLAIN_TAG_HIGH(TRACE_PACKET_TRUSTED_PID))
                return false;
            n = plain_number_2(word, &value);
            s->trusted_pid = (uint32_t)value;
            break;
        case PLAIN_TAG_LOW(TRACE_PACKET_TIMESTAMP_CLOCK_ID, PB_VARINT):
            if ((word >> 8 & 0xff) != PLAIN_TAG_HIGH(TRACE_PACKET_TIMESTAMP_CLOCK_ID))
                return false;
            n = plain_number_2(word, &value);
            s->clock_id = (uint32_t)value;
            break;
        default:
            return false;
        }
        if (!n || n > left)
            return false;
    }
    return s->event.p && s->sequence_id && !(s->flags & PACKET_FLAG_CLEARED) &&
           !(s->sequence_id == PACKET_SERVICE_SEQUENCE && s->trusted_uid_given);
}

#endif
