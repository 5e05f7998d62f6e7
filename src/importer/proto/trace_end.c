/* Tells whether a trace has its end. */
#include "importer/proto/trace_end.h"

#include "importer/core/context.h"
#include "importer/proto/packet_scan.h"
#include "wire/fields.h"

static void service_event(struct trace_end *t, struct slice event)
{
    struct pb_cursor c = pb_cursor(event);
    struct pb_field f;
    t->tells_life = true;
    while (pb_next(&c, &f)) {
        t->disabled |= f.id == TRACING_SERVICE_EVENT_TRACING_DISABLED;
        t->cloned |= f.id == TRACING_SERVICE_EVENT_CLONE_STARTED || f.id == TRACING_SERVICE_EVENT_BUFFER_CLONED;
    }
}

/* What others append to a trace that is complete: names for what is in it. */
static bool is_appended(struct slice packet)
{
    struct pb_field f;
    return pb_find(packet, TRACE_PACKET_MODULE_SYMBOLS, &f) || pb_find(packet, TRACE_PACKET_DEOBFUSCATION_MAPPING, &f);
}

void trace_end_packet(struct trace_end *t, struct slice packet, uint32_t sequence_id, bool trusted)
{
    if (t->stats_last && is_appended(packet))
        return;
    t->stats_last = false;
    if (sequence_id != PACKET_SERVICE_SEQUENCE || !trusted)
        return;
    struct pb_cursor c = pb_cursor(packet);
    struct pb_field f, g;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case TRACE_PACKET_TRACE_CONFIG:
            t->by_service = true;
            t->streams |= pb_find(pb_bytes(&f), TRACE_CONFIG_WRITE_INTO_FILE, &g) && pb_bool(&g);
            break;
        case TRACE_PACKET_SERVICE_EVENT:
            t->by_service = true;
            service_event(t, pb_bytes(&f));
            break;
        case TRACE_PACKET_TRACE_STATS:
            t->by_service = t->stats_last = true;
            break;
        case TRACE_PACKET_SYNCHRONIZATION_MARKER:
        case TRACE_PACKET_TRACE_UUID:
        case TRACE_PACKET_TIMESTAMP_CLOCK_ID: /* what services since version 58 say in all their packets */
            t->by_service = true;
            break;
        }
    }
}

void trace_end_file(struct trace_end *t, struct importer *im)
{
    struct stats *stats = &im->st->stats;
    int32_t file = (int32_t)im->trace_file;
    bool whole = t->stats_last && (t->disabled || t->cloned || !t->streams || !t->tells_life);
    bool missing = t->by_service && !whole;
    if (im->input.still_written && (missing || t->cut_bytes))
        stats_set_idx(stats, 0, STAT_trace_still_written, file, 1);
    else if (t->cut_bytes)
        stats_set_idx(stats, 0, STAT_trace_cut_bytes, file, (int64_t)t->cut_bytes);
    else if (missing)
        stats_set_idx(stats, 0, STAT_trace_end_missing, file, 1);
    *t = (struct trace_end){0};
}
