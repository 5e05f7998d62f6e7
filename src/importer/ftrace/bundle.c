/* Splits ftrace bundles into events of per-cpu queues. */
#include "importer/core/metadata.h"
#include "importer/ftrace/bundles_ahead.h"
#include "importer/ftrace/ftrace_internal.h"
#include "wire/fields.h"

/* The clock that the bundle's timestamps are in; false when it cannot be known. A pair of readings that comes with it
 * becomes a snapshot. */
static bool bundle_clock(struct packet *p, const struct bundle_head *b, struct clock_id *clock)
{
    struct ftrace_machine *f = p->m->ftrace;
    const struct trace_input *input = &p->m->im->input;
    struct clock_id boot = packet_clock(p, CLOCK_ID_BOOTTIME);
    *clock = input->has_ftrace_clock ? input->ftrace_clock : boot;
    if (!b->has_clock || b->clock == FTRACE_CLOCK_UNSPECIFIED)
        return true;
    switch (b->clock) {
    case FTRACE_CLOCK_MONO_RAW:
        *clock = packet_clock(p, CLOCK_ID_MONOTONIC_RAW);
        break;
    case FTRACE_CLOCK_GLOBAL:
    case FTRACE_CLOCK_LOCAL: /* of one cpu each, but close enough together to be one clock of this sequence */
        *clock = packet_clock(p, CLOCK_ID_FIRST_SEQUENCE);
        break;
    default:
        importer_fail(p->m->im, -MRD_EFORMAT, "packet at byte %lld: ftrace bundle with an unknown clock (%u)",
                      (long long)p->byte_offset, b->clock);
        return false;
    }
    if (b->has_ftrace_ts && b->has_boot_ts && b->ftrace_ts != f->last_clock_snapshot) {
        struct clock_reading pair[] = {{.clock = *clock, .value = b->ftrace_ts}, {.clock = boot, .value = b->boot_ts}};
        struct clock_graph *clocks = p->m->im->clocks;
        clock_graph_write_rows(clocks, pair, 2, clock_graph_add_snapshot(clocks, pair, 2));
        f->last_clock_snapshot = b->ftrace_ts;
    }
    return true;
}

bool ftrace_clock_is_trace_time(const struct packet *p, struct clock_id clock)
{
    struct clock_id trace = clock_graph_trace_clock(p->m->im->clocks);
    int64_t ns;
    return trace.id == clock.id && trace.sequence == clock.sequence && trace.machine == clock.machine &&
           trace.file == clock.file && clock_graph_to_trace_time(p->m->im->clocks, clock, 1, &ns) == 0 && ns == 1;
}

/* The trace time of a time of the bundle; false (noted) when it has none. */
static bool to_trace_time(struct packet *p, struct clock_id clock, int64_t raw, int64_t *ts)
{
    if (clock_graph_to_trace_time(p->m->im->clocks, clock, raw, ts) == 0)
        return true;
    clock_graph_record_failure(p->m->im->clocks, clock, raw, p->byte_offset);
    return false;
}

static void push_event(struct packet *p, struct ftrace_cpu *c, const struct clock_id *clock, struct slice event,
                       struct ftrace_gather *g)
{
    struct sort_event e;
    uint32_t id;
    enum event_start start = ftrace_event_start(event, &e, &id);
    if (start != EVENT_READ) {
        stats_add(&p->m->st->stats, p->m->id,
                  start == EVENT_WITHOUT_TIME ? STAT_ftrace_bundle_tokenizer_errors : STAT_ftrace_missing_event_id, 1);
        return;
    }
    if (clock && !to_trace_time(p, *clock, e.ts, &e.ts))
        return;
    if (__builtin_expect(id >= FIRST_EVENT_THAT_WAITS, 0)) {
        ftrace_gather_flush(g); /* what is re-timed goes to the same queue, and keeps its place among equal times */
        if (ftrace_retime(p, c, e.ts, id, event))
            return;
    }
    e.b |= p->gen->index << 8;
    if (__builtin_expect(p->m->im->input.ftrace_rows_only, 0))
        e.b |= EVENT_ROW_ONLY;
    ftrace_gather(g, e);
}

/* The names that a bundle's compact events count: *first is the number of the first one. */
static bool intern_comms(struct ftrace_machine *f, struct slice compact, uint32_t *first)
{
    struct pb_cursor c = pb_cursor(compact);
    struct pb_field field;
    *first = (uint32_t)f->comms.n;
    while (pb_next(&c, &field))
        if (field.id == FTRACE_EVENT_BUNDLE_COMPACT_SCHED_INTERN_TABLE && field.wire == PB_BYTES &&
            (f->comms.n == UINT32_MAX || !vec_push(&f->comms, import_slice(f->im, pb_bytes(&field))))) {
            f->im->failed = true;
            return false;
        }
    return true;
}

struct bundle_clock {
    struct packet *p;
    struct clock_id id;
};

static bool convert_compact(void *ctx, int64_t raw, int64_t *ts)
{
    const struct bundle_clock *c = ctx;
    return to_trace_time(c->p, c->id, raw, ts);
}

static void push_compact(struct packet *p, const struct ftrace_cpu *c, const struct clock_id *clock,
                         struct slice compact, struct ftrace_gather *g)
{
    struct sorter *sorter = p->m->im->sorter;
    struct bundle_clock from = {.p = p};
    struct compact_time time = {0};
    struct compact parts;
    uint32_t first;
    int64_t damaged = !compact_read(compact, &parts);
    if (clock) {
        from.id = *clock;
        time = (struct compact_time){convert_compact, &from};
    }
    if (!intern_comms(c->f, compact, &first))
        return;
    ftrace_gather_begin(g, sorter, c->queue_switch);
    damaged += !compact_switches(&parts, first, &time, g);
    ftrace_gather_begin(g, sorter, c->queue_waking);
    damaged += !compact_wakings(&parts, first, &time, g);
    if (damaged)
        stats_add(&p->m->st->stats, p->m->id, STAT_compact_sched_has_parse_errors, damaged);
}

/* Event by event; `clock` NULL: their times are trace time. */
static void push_events(struct packet *p, struct ftrace_cpu *c, const struct clock_id *clock, struct slice compact)
{
    struct pb_cursor cursor = pb_cursor(p->field);
    struct pb_field field;
    struct ftrace_gather g;
    if (compact.len)
        push_compact(p, c, clock, compact, &g);
    ftrace_gather_begin(&g, p->m->im->sorter, c->queue_events);
    while (pb_next(&cursor, &field))
        if (field.id == FTRACE_EVENT_BUNDLE_EVENT && field.wire == PB_BYTES)
            push_event(p, c, clock, pb_bytes(&field), &g);
    ftrace_gather_flush(&g);
    if (cursor.bad)
        stats_add(&p->m->st->stats, p->m->id, STAT_ftrace_bundle_tokenizer_errors, 1);
}

/* As blocks that are ready. */
static void push_split(struct packet *p, const struct ftrace_cpu *c, struct bundle_split *s)
{
    const uint32_t queues[BUNDLE_PARTS] = {c->queue_events, c->queue_switch, c->queue_waking};
    uint32_t first_comm;
    if (!intern_comms(c->f, s->head.compact, &first_comm))
        return;
    for (unsigned part = 0; part < BUNDLE_PARTS; part++)
        for (size_t i = 0; i < s->blocks[part].n; i++) {
            bool compact = part != PART_EVENTS;
            struct sort_block *b = &s->blocks[part].p[i];
            sort_block_add(b, compact ? (uint64_t)first_comm << 32 : 0, compact ? 0 : p->gen->index << 8);
            sorter_push_block(p->m->im->sorter, queues[part], b);
        }
}

/* Ring buffers of different cpus reach back to different times. What all of them cover begins at the latest of the
 * starts that the first bundle of each cpu tells. */
static void note_start(struct packet *p, struct ftrace_cpu *c, const struct bundle_head *b, struct clock_id clock)
{
    int64_t ts;
    if (c->seen_bundle)
        return;
    c->seen_bundle = true;
    if (!b->has_start || p->m->im->input.has_ftrace_clock) /* recorders of others start all cpus before the events */
        return;
    if (!to_trace_time(p, clock, b->start, &ts))
        return;
    int64_t latest = metadata_get_int(p->m->im, p->m, METADATA_ftrace_latest_data_start_ns);
    if (latest == COL_NULL || ts > latest)
        metadata_int(p->m->im, p->m, METADATA_ftrace_latest_data_start_ns, ts);
}

void ftrace_describe_event(struct machine_ctx *m, struct slice bytes)
{
    enum { FIELD_ID = 1, EVENT_DESCRIPTOR = 2 };
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    uint32_t id = 0;
    struct slice descriptor = {0};
    while (pb_next(&c, &f)) {
        if (f.id == FIELD_ID)
            id = pb_u32(&f);
        else if (f.id == EVENT_DESCRIPTOR)
            descriptor = pb_bytes(&f);
    }
    generic_events_add_descriptor(m->ftrace->generic, id, descriptor);
}

static void add_descriptors(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == FTRACE_EVENT_BUNDLE_GENERIC_EVENT_DESCRIPTORS)
            ftrace_describe_event(p->m, pb_bytes(&f));
}

/* Whether splitting was of use, lately: bundles of another clock, and those of events that wait, are not worth it. */
static void note_split(struct ftrace_machine *f, bool used)
{
    if (!used)
        f->split_misses += 2;
    else if (f->split_misses)
        f->split_misses--;
}

static void tokenize(struct packet *p, struct bundle_split *split)
{
    struct ftrace_machine *f = p->m->ftrace;
    struct stats *stats = &p->m->st->stats;
    struct bundle_head b;
    struct clock_id clock;
    if (split && split->usable)
        b = split->head;
    else
        bundle_head_read(p->field, &b);
    if (!b.has_cpu) {
        stats_add(stats, p->m->id, STAT_ftrace_bundle_tokenizer_errors, 1);
        return;
    }
    if (b.cpu >= FTRACE_MAX_CPUS) {
        importer_fail(p->m->im, -MRD_EFORMAT, "packet at byte %lld: ftrace bundle of cpu %u: invalid cpu number",
                      (long long)p->byte_offset, b.cpu);
        return;
    }
    struct ftrace_cpu *c = ftrace_cpu(f, b.cpu);
    if (!c)
        return;
    if (b.lost)
        stats_set_idx(stats, p->m->id, STAT_ftrace_cpu_has_data_loss, (int32_t)b.cpu, 1);
    if (!bundle_clock(p, &b, &clock))
        return;
    bool is_trace_ns = ftrace_clock_is_trace_time(p, clock);
    bool use_split = split && split->usable && is_trace_ns && !p->m->im->input.ftrace_rows_only;
    if (use_split)
        push_split(p, c, split);
    else
        push_events(p, c, is_trace_ns ? NULL : &clock, b.compact);
    if (split)
        note_split(f, use_split);
    if (b.has_descriptors)
        add_descriptors(p);
    note_start(p, c, &b, clock);
}

enum tokenize_result ftrace_tokenize_bundle(struct packet *p)
{
    enum { MISSES = 32 };
    struct bundle_split *split = NULL;
    if (p->field.len >= BUNDLE_WORTH_BLOCKS && p->m->ftrace->split_misses < MISSES)
        split = bundles_ahead_take(p);
    tokenize(p, split);
    if (split)
        bundles_ahead_drop(p->m->im, split);
    return TOKENIZE_DONE;
}
