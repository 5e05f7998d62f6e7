/* Splits ftrace bundles into events of per-cpu queues. */
#include "importer/core/metadata.h"
#include "importer/ftrace/ftrace_internal.h"
#include "wire/fields.h"

/* What a bundle says about itself: everything but its events. */
struct bundle {
    uint32_t cpu;
    uint32_t clock;
    bool has_cpu, lost, has_clock, has_ftrace_ts, has_boot_ts, has_start;
    bool has_descriptors;
    int64_t ftrace_ts, boot_ts, start;
    struct slice compact;
};

/* Passes over the events that come next: nearly all that a bundle holds. */
static inline void pass_events(struct pb_cursor *c)
{
    uint64_t len;
    while (c->p < c->end && *c->p == (FTRACE_EVENT_BUNDLE_EVENT << 3 | PB_BYTES)) {
        const uint8_t *p = c->p + 1;
        if (!pb_varint(&p, c->end, &len) || len > (uint64_t)(c->end - p))
            return; /* pb_next() says what is wrong with it */
        c->p = p + len;
    }
}

static void read_head(struct slice bytes, struct bundle *b)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    bool has_previous_end = false;
    *b = (struct bundle){0};
    while (pass_events(&c), pb_next(&c, &f)) {
        switch (f.id) {
        case FTRACE_EVENT_BUNDLE_CPU:
            b->has_cpu = true;
            b->cpu = pb_u32(&f);
            break;
        case FTRACE_EVENT_BUNDLE_LOST_EVENTS:
            b->lost = pb_bool(&f);
            break;
        case FTRACE_EVENT_BUNDLE_COMPACT_SCHED:
            b->compact = pb_bytes(&f);
            break;
        case FTRACE_EVENT_BUNDLE_FTRACE_CLOCK:
            b->has_clock = true;
            b->clock = pb_u32(&f);
            break;
        case FTRACE_EVENT_BUNDLE_FTRACE_TIMESTAMP:
            b->has_ftrace_ts = true;
            b->ftrace_ts = pb_i64(&f);
            break;
        case FTRACE_EVENT_BUNDLE_BOOT_TIMESTAMP:
            b->has_boot_ts = true;
            b->boot_ts = pb_i64(&f);
            break;
        case FTRACE_EVENT_BUNDLE_LAST_READ_EVENT_TIMESTAMP:
            if (!has_previous_end)
                b->start = pb_i64(&f);
            b->has_start = true;
            break;
        case FTRACE_EVENT_BUNDLE_PREVIOUS_BUNDLE_END_TIMESTAMP:
            b->start = pb_i64(&f);
            b->has_start = has_previous_end = true;
            break;
        case FTRACE_EVENT_BUNDLE_GENERIC_EVENT_DESCRIPTORS:
            b->has_descriptors = true;
            break;
        }
    }
}

/* The clock that the bundle's timestamps are in; false when it cannot be known. A pair of readings that comes with it
 * becomes a snapshot. */
static bool bundle_clock(struct packet *p, const struct bundle *b, struct clock_id *clock)
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

/* The number of the event's own field: the first that is length-delimited; 0 when there is none. */
static uint32_t event_id(struct slice event)
{
    struct pb_cursor c = pb_cursor(event);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.wire == PB_BYTES)
            return f.id;
    return 0;
}

bool ftrace_clock_is_trace_time(const struct packet *p, struct clock_id clock)
{
    struct clock_id trace = clock_graph_trace_clock(p->m->im->clocks);
    int64_t ns;
    return trace.id == clock.id && trace.sequence == clock.sequence && trace.machine == clock.machine &&
           trace.file == clock.file && clock_graph_to_trace_time(p->m->im->clocks, clock, 1, &ns) == 0 && ns == 1;
}

static void push_event(struct packet *p, struct ftrace_cpu *c, struct clock_id clock, bool is_trace_ns, uint32_t gen,
                       struct slice event, struct ftrace_gather *g)
{
    const uint8_t *q = event.p, *end = event.p + event.len;
    uint64_t raw = 0, pid, tag;
    uint32_t id = 0, flags = EVENT_FROM_START;
    /* Nearly all events are timestamp, pid, event, in this order. */
    if (event.len > 2 && *q == (FTRACE_EVENT_TIMESTAMP << 3 | PB_VARINT) && (++q, pb_varint(&q, end, &raw))) {
        const uint8_t *after_ts = q;
        if (q < end && *q == (FTRACE_EVENT_PID << 3 | PB_VARINT) && (++q, pb_varint(&q, end, &pid)) &&
            pb_varint(&q, end, &tag) && (tag & 7) == PB_BYTES && tag >> 3 <= UINT32_MAX) {
            id = (uint32_t)(tag >> 3);
            flags = 0;
            q = after_ts;
        }
    } else {
        struct pb_field f;
        if (!pb_find(event, FTRACE_EVENT_TIMESTAMP, &f)) {
            stats_add(&p->m->st->stats, p->m->id, STAT_ftrace_bundle_tokenizer_errors, 1);
            return;
        }
        raw = pb_u64(&f);
    }
    if (id == 0 && (id = event_id(event)) == 0) {
        stats_add(&p->m->st->stats, p->m->id, STAT_ftrace_missing_event_id, 1);
        return;
    }
    int64_t ts = (int64_t)raw;
    if (!is_trace_ns && clock_graph_to_trace_time(p->m->im->clocks, clock, (int64_t)raw, &ts) != 0) {
        clock_graph_record_failure(p->m->im->clocks, clock, (int64_t)raw, p->byte_offset);
        return;
    }
    if (__builtin_expect(id > 480, 0)) {
        ftrace_gather_flush(g); /* what is re-timed goes to the same queue, and keeps its place among equal times */
        if (ftrace_retime(p, c, ts, id, event))
            return;
    }
    if (flags)
        q = event.p;
    if (__builtin_expect(p->m->im->input.ftrace_rows_only, 0))
        flags |= EVENT_ROW_ONLY;
    ftrace_gather(g,
                  (struct sort_event){.ts = ts, .a = (uintptr_t)q, .b = (uint64_t)(end - q) << 32 | gen << 8 | flags});
}

/* Ring buffers of different cpus reach back to different times. What all of them cover begins at the latest of the
 * starts that the first bundle of each cpu tells. */
static void note_start(struct packet *p, struct ftrace_cpu *c, const struct bundle *b, struct clock_id clock)
{
    int64_t ts;
    if (c->seen_bundle)
        return;
    c->seen_bundle = true;
    if (!b->has_start || p->m->im->input.has_ftrace_clock) /* recorders of others start all cpus before the events */
        return;
    if (clock_graph_to_trace_time(p->m->im->clocks, clock, b->start, &ts) != 0) {
        clock_graph_record_failure(p->m->im->clocks, clock, b->start, p->byte_offset);
        return;
    }
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

enum tokenize_result ftrace_tokenize_bundle(struct packet *p)
{
    struct ftrace_machine *f = p->m->ftrace;
    struct stats *stats = &p->m->st->stats;
    struct bundle b;
    struct clock_id clock;
    read_head(p->field, &b);
    if (!b.has_cpu) {
        stats_add(stats, p->m->id, STAT_ftrace_bundle_tokenizer_errors, 1);
        return TOKENIZE_DONE;
    }
    if (b.cpu >= FTRACE_MAX_CPUS) {
        importer_fail(p->m->im, -MRD_EFORMAT, "packet at byte %lld: ftrace bundle of cpu %u: invalid cpu number",
                      (long long)p->byte_offset, b.cpu);
        return TOKENIZE_DONE;
    }
    struct ftrace_cpu *c = ftrace_cpu(f, b.cpu);
    if (!c)
        return TOKENIZE_DONE;
    if (b.lost)
        stats_set_idx(stats, p->m->id, STAT_ftrace_cpu_has_data_loss, (int32_t)b.cpu, 1);
    if (!bundle_clock(p, &b, &clock))
        return TOKENIZE_DONE;
    if (b.compact.len)
        ftrace_tokenize_compact(p, c, clock, b.compact);
    uint32_t gen = p->gen->index;
    bool is_trace_ns = ftrace_clock_is_trace_time(p, clock);
    struct pb_cursor cursor = pb_cursor(p->field);
    struct pb_field field;
    struct ftrace_gather g;
    ftrace_gather_begin(&g, p->m->im->sorter, c->queue_events);
    while (pb_next(&cursor, &field))
        if (field.id == FTRACE_EVENT_BUNDLE_EVENT && field.wire == PB_BYTES)
            push_event(p, c, clock, is_trace_ns, gen, pb_bytes(&field), &g);
    ftrace_gather_flush(&g);
    if (cursor.bad)
        stats_add(stats, p->m->id, STAT_ftrace_bundle_tokenizer_errors, 1);
    if (b.has_descriptors)
        add_descriptors(p);
    note_start(p, c, &b, clock);
    return TOKENIZE_DONE;
}
