/* Owns ClockSnapshot and RemoteClockSync packets: their readings go to the clock graph and the clock_snapshot table. */
#include "importer/clock/remote_sync.h"
#include "importer/metadata.h"
#include "importer/proto/sequence.h"
#include "importer/proto/special_packets.h"

/* One Clock of a ClockSnapshot. */
static struct clock_reading read_clock(const struct packet *p, struct slice message)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    struct clock_reading r = {.multiplier = 1};
    uint32_t id = 0;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case 1:
            id = pb_u32(&f);
            break;
        case 2:
            r.value = pb_i64(&f);
            break;
        case 3:
            r.incremental = pb_bool(&f);
            break;
        case 4:
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
        if (f.id == 2) {
            primary = pb_u32(&f);
        } else if (f.id == 1) {
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
    if (primary) {
        p->m->sequences->default_clock = primary;
        struct clock_id clock = packet_clock(p, primary);
        if (p->m->id == 0 && clock_graph_set_trace_clock(im->clocks, clock) != 0) {
            stats_add(&im->st->stats, 0, STAT_invalid_clock_snapshots, 1);
        } else {
            struct clock_id now = clock_graph_trace_clock(im->clocks);
            if (now.id == primary && now.machine == p->m->id)
                metadata_int(im, p->m, METADATA_trace_time_clock_id, primary);
        }
    }
    uint32_t snapshot = clock_graph_add_snapshot(im->clocks, readings.p, readings.n);
    clock_graph_write_rows(im->clocks, readings.p, readings.n, snapshot);
    vec_free(&readings);
}

/* One side of a round: clocks of a ClockSnapshot. */
static size_t read_side(const struct packet *p, uint32_t machine, struct slice snapshot, struct clock_reading *out,
                        size_t max)
{
    struct pb_cursor c = pb_cursor(snapshot);
    struct pb_field f;
    size_t n = 0;
    while (pb_next(&c, &f)) {
        if (f.id != 1 || n == max)
            continue;
        out[n] = read_clock(p, pb_bytes(&f));
        out[n++].clock.machine = machine;
    }
    return n;
}

void remote_clock_sync_packet(struct packet *p)
{
    struct importer *im = p->m->im;
    struct clock_rounds rounds = {0};
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    if (p->m->id == 0)
        return; /* nothing to relate: the packet names no machine, or the only one there is */
    while (pb_next(&c, &f)) {
        if (f.id != 1)
            continue;
        struct clock_round *r = vec_add(&rounds);
        if (!r) {
            im->failed = true;
            break;
        }
        struct pb_cursor round = pb_sub(&f);
        struct pb_field side;
        while (pb_next(&round, &side)) {
            if (side.id == 2)
                r->n_client = read_side(p, p->m->id, pb_bytes(&side), r->client, CLOCK_ROUND_MAX);
            else if (side.id == 3)
                r->n_host = read_side(p, 0, pb_bytes(&side), r->host, CLOCK_ROUND_MAX);
        }
    }
    remote_sync_compatible(im, p->m->id, &rounds);
    vec_free(&rounds);
}
