/* Imports ClockSnapshot and RemoteClockSync packets: their readings go to the clock graph and the clock_snapshot table.
 */
#include "importer/clock/remote_sync.h"
#include "importer/core/metadata.h"
#include "importer/core/sequence.h"
#include "importer/proto/special_packets.h"
#include "wire/fields.h"

/* One Clock of a ClockSnapshot. */
static struct clock_reading read_clock(const struct packet *p, struct slice message)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    struct clock_reading r = {.multiplier = 1};
    uint32_t id = 0;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case CLOCK_SNAPSHOT_CLOCK_CLOCK_ID:
            id = pb_u32(&f);
            break;
        case CLOCK_SNAPSHOT_CLOCK_TIMESTAMP:
            r.value = pb_i64(&f);
            break;
        case CLOCK_SNAPSHOT_CLOCK_IS_INCREMENTAL:
            r.incremental = pb_bool(&f);
            break;
        case CLOCK_SNAPSHOT_CLOCK_UNIT_MULTIPLIER_NS:
            r.multiplier = pb_i64(&f);
            break;
        }
    }
    r.clock = packet_clock(p, id);
    return r;
}

void clock_snapshot_packet(struct packet *p)
{
    struct importer *im = p->m->im;
    VEC(struct clock_reading)
    readings = {0};
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    uint32_t primary = 0;
    bool has_boottime = false, has_trace_file = false;
    while (pb_next(&c, &f)) {
        if (f.id == CLOCK_SNAPSHOT_PRIMARY_TRACE_CLOCK) {
            primary = pb_u32(&f);
        } else if (f.id == CLOCK_SNAPSHOT_CLOCKS) {
            struct clock_reading r = read_clock(p, pb_bytes(&f));
            if (r.clock.id >= CLOCK_ID_FIRST_SEQUENCE && r.clock.id <= CLOCK_ID_LAST_SEQUENCE && !p->gen->seq->id) {
                importer_fail(im, -MRD_EFORMAT,
                              "packet at byte %lld: ClockSnapshot of a sequence-scoped clock without a sequence id",
                              (long long)p->byte_offset);
                continue;
            }
            has_boottime |= r.clock.id == CLOCK_ID_BOOTTIME;
            has_trace_file |= r.clock.id == CLOCK_ID_TRACE_FILE;
            if (!vec_push(&readings, r))
                im->failed = true;
        }
    }
    if (!primary && has_boottime && !has_trace_file)
        primary = CLOCK_ID_BOOTTIME;
    if (im->input.pinned)
        importer_fail(im, -MRD_EFORMAT, "perfetto_manifest: clock overrides require the trace to use a single clock");
    if (primary) {
        p->m->sequences->default_clock = primary;
        struct clock_id clock = packet_clock(p, primary);
        if (p->m->id == im->input.base_machine && clock_graph_set_trace_clock(im->clocks, clock) != 0) {
            stats_add(&im->st->stats, 0, STAT_invalid_clock_snapshots, 1);
        } else {
            struct clock_id now = clock_graph_trace_clock(im->clocks);
            if (now.id == primary && now.machine == p->m->id && now.file == p->gen->clock_file)
                metadata_int(im, p->m, METADATA_trace_time_clock_id, primary);
        }
    }
    uint32_t snapshot = clock_graph_add_snapshot(im->clocks, readings.p, readings.n);
    clock_graph_write_rows(im->clocks, readings.p, readings.n, snapshot);
    vec_free(&readings);
}

void remote_clock_sync_packet(struct packet *p)
{
    remote_sync_packet(p->m->im->remote, p->m, p->field);
}
