/* Events that tell when they really happened: they become a row at the time of recording, and are parsed at their own
 * time. */
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

/* The adreno GPU's timer: 19.2 MHz. */
enum { ADRENO_HZ = 19200000, NS = 1000000000 };

static int64_t adreno_ns(int64_t ticks)
{
    return (int64_t)((__int128)ticks * NS / ADRENO_HZ);
}

static void push_row(struct ftrace_cpu *c, int64_t ts, const uint8_t *event, size_t len, uint32_t gen)
{
    sorter_push(c->f->im->sorter, c->queue_events,
                (struct sort_event){.ts = ts,
                                    .a = (uintptr_t)event,
                                    .b = (uint64_t)len << 32 | gen << 8 | EVENT_FROM_START | EVENT_ROW_ONLY});
}

static void push_at(struct ftrace_cpu *c, int64_t ts, const struct ftrace_retimed *r)
{
    struct ftrace_machine *f = c->f;
    if (!vec_push(&f->retimed, *r)) {
        f->im->failed = true;
        return;
    }
    sorter_push(f->im->sorter, c->queue_events,
                (struct sort_event){.ts = ts, .a = f->retimed.n - 1, .b = EVENT_RETIMED});
}

/* The bytes are copied: an event may wait for another longer than its block of input lives. */
static bool keep(struct packet *p, struct slice event, int64_t raw_ts, struct ftrace_retimed *r)
{
    struct ftrace_machine *f = p->m->ftrace;
    uint8_t *copy = arena_alloc_bytes(&f->arena, event.len);
    if (!copy) {
        f->im->failed = true;
        return false;
    }
    memcpy(copy, event.p, event.len);
    *r = (struct ftrace_retimed){raw_ts, copy, (uint32_t)event.len, p->gen->index};
    return true;
}

static void adreno_sync(struct packet *p, int64_t ts, const struct fields *f)
{
    struct ftrace_machine *m = p->m->ftrace;
    uint32_t key = field_u32(f, FTRACE_KGSL_ADRENO_CMDBATCH_SYNC_TIMESTAMP);
    uint64_t *waiting = u64map_get(&m->gpu_pending, key);
    if (waiting) { /* it was retired before we saw this */
        struct gpu_retired *r = &m->gpu_retired.p[*waiting];
        struct ftrace_cpu *c = m->cpus.p[r->cpu].cpu;
        push_row(c, r->at.raw_ts, r->at.bytes, r->at.len, r->at.gen);
        push_at(c, ts + adreno_ns((int64_t)(r->start - field_u64(f, FTRACE_KGSL_ADRENO_CMDBATCH_SYNC_TICKS))), &r->at);
        u64map_del(&m->gpu_pending, key);
        return;
    }
    if (!vec_push(&m->gpu_sync_points,
                  ((struct gpu_sync_point){ts, field_u64(f, FTRACE_KGSL_ADRENO_CMDBATCH_SYNC_TICKS)})) ||
        !u64map_set(&m->gpu_sync, key, m->gpu_sync_points.n - 1))
        m->im->failed = true;
}

static void adreno_retired(struct packet *p, struct ftrace_cpu *c, int64_t ts, const struct fields *f,
                           struct slice event)
{
    struct ftrace_machine *m = p->m->ftrace;
    struct ftrace_retimed r;
    uint32_t key = field_u32(f, FTRACE_KGSL_ADRENO_CMDBATCH_RETIRED_TIMESTAMP);
    uint64_t start = field_u64(f, FTRACE_KGSL_ADRENO_CMDBATCH_RETIRED_START);
    if (!keep(p, event, ts, &r))
        return;
    push_row(c, ts, event.p, event.len, r.gen);
    const uint64_t *sync = u64map_get(&m->gpu_sync, key);
    if (sync) {
        struct gpu_sync_point s = m->gpu_sync_points.p[*sync];
        push_at(c, s.ts + adreno_ns((int64_t)(start - s.ticks)), &r);
        u64map_del(&m->gpu_sync, key);
        return;
    }
    if (!vec_push(&m->gpu_retired, ((struct gpu_retired){r, c->cpu, start})) ||
        !u64map_set(&m->gpu_pending, key, m->gpu_retired.n - 1))
        m->im->failed = true;
}

/* Which field holds the time, and in which clock it is (0: trace time). */
static const struct {
    uint32_t id;
    uint8_t field;
    uint8_t clock;
} kinds[] = {
    {FTRACE_EVENT_GPU_WORK_PERIOD, FTRACE_GPU_WORK_PERIOD_START_TIME_NS, CLOCK_ID_MONOTONIC_RAW},
    {FTRACE_EVENT_THERMAL_EXYNOS_ACPM_BULK, FTRACE_THERMAL_EXYNOS_ACPM_BULK_TIMESTAMP, 0},
    {FTRACE_EVENT_PARAM_SET_VALUE_CPM, FTRACE_PARAM_SET_VALUE_CPM_TIMESTAMP, 0},
    {FTRACE_EVENT_FWTP_PERFETTO_COUNTER, FTRACE_FWTP_PERFETTO_COUNTER_TIMESTAMP, 0},
    {FTRACE_EVENT_FWTP_PERFETTO_SLICE, FTRACE_FWTP_PERFETTO_SLICE_TIMESTAMP, 0},
    {FTRACE_EVENT_KGSL_ADRENO_CMDBATCH_SYNC, 0, 0},
    {FTRACE_EVENT_KGSL_ADRENO_CMDBATCH_RETIRED, 0, 0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static size_t kind_of(uint32_t id)
{
    size_t k = 0;
    while (k < KINDS && kinds[k].id != id)
        k++;
    return k;
}

bool ftrace_event_waits(uint32_t id)
{
    return kind_of(id) < KINDS;
}

bool ftrace_retime(struct packet *p, struct ftrace_cpu *c, int64_t ts, uint32_t id, struct slice event)
{
    size_t k = kind_of(id);
    if (k == KINDS)
        return false;
    struct pb_field own;
    struct fields f;
    struct ftrace_retimed r;
    if (!pb_find(event, id, &own)) {
        stats_add(&p->m->st->stats, p->m->id, STAT_ftrace_bundle_tokenizer_errors, 1);
        return true;
    }
    fields_read(pb_bytes(&own), &f);
    if (id == FTRACE_EVENT_KGSL_ADRENO_CMDBATCH_SYNC) {
        adreno_sync(p, ts, &f);
        return false;
    }
    if (id == FTRACE_EVENT_KGSL_ADRENO_CMDBATCH_RETIRED) {
        adreno_retired(p, c, ts, &f, event);
        return true;
    }
    if (!field_has(&f, kinds[k].field)) {
        stats_add(&p->m->st->stats, p->m->id, STAT_ftrace_bundle_tokenizer_errors, 1);
        return true;
    }
    int64_t at = field_i64(&f, kinds[k].field);
    if (kinds[k].clock) {
        struct clock_id clock = packet_clock(p, kinds[k].clock);
        int64_t raw = at;
        if (clock_graph_to_trace_time(p->m->im->clocks, clock, raw, &at) != 0) {
            clock_graph_record_failure(p->m->im->clocks, clock, raw, p->byte_offset);
            return true;
        }
    }
    if (!keep(p, event, ts, &r))
        return true;
    push_row(c, ts, event.p, event.len, r.gen);
    push_at(c, at, &r);
    return true;
}
