/* Looks at each field of a TracePacket once. */
#include "importer/proto/packet_scan.h"

#include "wire/fields.h"

#include <string.h>

static struct packet_rare *rare(struct packet_scan *s)
{
    if (!s->has_rare)
        s->rare = (struct packet_rare){0};
    s->has_rare = true;
    return &s->rare;
}

/* Most packets begin with it. */
static inline void take_first_timestamp(struct pb_cursor *c, struct packet_scan *s)
{
    uint64_t word;
    if (c->end - c->p <= (ptrdiff_t)sizeof word || *c->p != (TRACE_PACKET_TIMESTAMP << 3 | PB_VARINT))
        return;
    memcpy(&word, c->p + 1, sizeof word);
    unsigned n = pb_word_value(word, &s->timestamp);
    s->has_timestamp = n > 0;
    c->p += n ? n + 1 : 0;
}

static inline bool is_plain(const struct packet_scan *s)
{
    return s->n_handled == 1 && s->sequence_id && !(s->flags & PACKET_FLAG_CLEARED) &&
           !(s->sequence_id == PACKET_SERVICE_SEQUENCE && s->trusted_uid_given);
}

/* Long: one case a field, in the one pass over a packet. */
void packet_scan_read(const struct packet_fields *fields, struct slice bytes, struct packet_scan *s)
{
    memset(s, 0, offsetof(struct packet_scan, rare));
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    take_first_timestamp(&c, s);
    for (const uint8_t *tag = c.p; pb_next(&c, &f); tag = c.p) {
        switch (f.id) {
        case TRACE_PACKET_TRUSTED_UID:
            s->trusted_uid = pb_u32(&f);
            s->trusted_uid_given = true;
            break;
        case TRACE_PACKET_TIMESTAMP:
            s->timestamp = pb_u64(&f);
            s->has_timestamp = true;
            break;
        case TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID:
            s->sequence_id = pb_u32(&f);
            break;
        case TRACE_PACKET_SEQUENCE_FLAGS:
            s->flags = pb_u32(&f);
            break;
        case TRACE_PACKET_SYNCHRONIZATION_MARKER:
            s->sync_marker = true;
            break;
        case TRACE_PACKET_INCREMENTAL_STATE_CLEARED:
            s->cleared = pb_bool(&f);
            break;
        case TRACE_PACKET_FIRST_PACKET_ON_SEQUENCE:
            s->first_on_sequence = pb_bool(&f);
            break;
        case TRACE_PACKET_PREVIOUS_PACKET_DROPPED:
            s->dropped = pb_u32(&f);
            break;
        case TRACE_PACKET_TIMESTAMP_CLOCK_ID:
            s->clock_id = pb_u32(&f);
            break;
        case TRACE_PACKET_TRUSTED_PID:
            s->trusted_pid = pb_u32(&f);
            break;
        case TRACE_PACKET_MACHINE_ID:
            s->machine_id = pb_u32(&f);
            break;
        case TRACE_PACKET_CLOCK_SNAPSHOT:
            rare(s)->clock_snapshot = pb_bytes(&f);
            break;
        case TRACE_PACKET_TRACE_STATS:
            rare(s)->trace_stats = pb_bytes(&f);
            break;
        case TRACE_PACKET_REMOTE_CLOCK_SYNC:
            rare(s)->remote_clock_sync = pb_bytes(&f);
            break;
        case TRACE_PACKET_SERVICE_EVENT:
            rare(s)->service_event = pb_bytes(&f);
            break;
        case TRACE_PACKET_TRACE_PACKET_DEFAULTS:
            rare(s)->defaults = pb_bytes(&f);
            break;
        case TRACE_PACKET_INTERNED_DATA:
            rare(s)->interned = pb_bytes(&f);
            break;
        case TRACE_PACKET_TRACE_ATTRIBUTES:
            rare(s)->attributes = pb_bytes(&f);
            break;
        case TRACE_PACKET_COMPRESSED_PACKETS:
        case TRACE_PACKET_ZSTD_COMPRESSED_PACKETS:
            rare(s)->compressed = pb_bytes(&f);
            s->zstd = f.id == TRACE_PACKET_ZSTD_COMPRESSED_PACKETS;
            break;
        default:
            s->track_event |= f.id == TRACE_PACKET_TRACK_EVENT;
            s->chrome |= f.id == TRACE_PACKET_CHROME_EVENTS || f.id == TRACE_PACKET_CHROME_METADATA;
            if (f.id >= PACKET_DIRECT_FIELDS || !fields->handler[f.id])
                break;
            if (fields->handler[f.id] >= fields->first_early)
                rare(s)->early = f;
            else if (s->n_handled < PACKET_MAX_HANDLED) {
                s->first_handled = s->n_handled ? s->first_handled : tag;
                s->handled[s->n_handled++] = f;
            }
        }
    }
    s->bad = c.bad;
    s->plain = is_plain(s) && !(s->bad | s->has_rare | s->sync_marker | s->cleared | s->first_on_sequence) &&
               !(s->machine_id | s->dropped);
}
