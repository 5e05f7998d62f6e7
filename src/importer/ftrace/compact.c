/* Splits compact sched switches and wakings of a bundle into events of their queues. */
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

/* CompactSched has parallel packed arrays, timestamps as differences within the bundle. */
enum { COMPACT_FIELDS = FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_COMMON_FLAGS + 1 };

enum { COLUMNS = 5 };

/* The columns of one kind of event, read in step: timestamp first. */
struct rows {
    struct pb_cursor column[COLUMNS];
    uint64_t value[COLUMNS];
    int64_t raw;      /* timestamp of the row at hand */
    int64_t ts;       /* in trace time */
    bool is_trace_ns; /* timestamps are trace time already */
    bool damaged;     /* a column ended before the others, or in the midst of a value, or an index is wrong */
};

static bool at_end(const struct pb_cursor *c)
{
    return c->p >= c->end;
}

static inline bool read_row(struct rows *r)
{
    for (uint32_t i = 0; i < COLUMNS; i++)
        if (!pb_varint(&r->column[i].p, r->column[i].end, &r->value[i])) {
            r->damaged = i > 0;
            for (uint32_t k = 0; k < COLUMNS; k++)
                r->damaged |= !at_end(&r->column[k]);
            return false;
        }
    r->raw = (int64_t)((uint64_t)r->raw + r->value[0]);
    return true;
}

/* The next row, in trace time; false at the end, and when a time has no conversion (counted). */
static inline bool next_row(struct packet *p, struct clock_id clock, uint32_t comm, struct rows *r)
{
    if (!read_row(r))
        return false;
    if (r->value[comm] >= p->m->ftrace->comms.n) {
        r->damaged = true;
        return false;
    }
    r->ts = r->raw;
    if (r->is_trace_ns || clock_graph_to_trace_time(p->m->im->clocks, clock, r->raw, &r->ts) == 0)
        return true;
    clock_graph_record_failure(p->m->im->clocks, clock, r->raw, p->byte_offset);
    return false;
}

static void finish(struct packet *p, const struct rows *r, struct ftrace_gather *g)
{
    ftrace_gather_flush(g);
    if (r->damaged)
        stats_add(&p->m->st->stats, p->m->id, STAT_compact_sched_has_parse_errors, 1);
}

static void push_switches(struct packet *p, struct ftrace_cpu *c, struct clock_id clock, bool is_trace_ns,
                          struct pb_cursor *columns)
{
    enum { STATE = 1, PID, PRIO, COMM };
    struct rows r = {.column = {columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_TIMESTAMP],
                                columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_PREV_STATE],
                                columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_NEXT_PID],
                                columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_NEXT_PRIO],
                                columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_NEXT_COMM_INDEX]},
                     .is_trace_ns = is_trace_ns};
    const strid *comms = c->f->comms.p;
    struct ftrace_gather g;
    ftrace_gather_begin(&g, c->f->im->sorter, c->queue_switch);
    while (next_row(p, clock, COMM, &r))
        ftrace_gather(&g, (struct sort_event){.ts = r.ts,
                                              .a = (uint64_t)comms[r.value[COMM]] << 32 | (uint32_t)r.value[PID],
                                              .b = r.value[STATE] << 16 | (uint16_t)r.value[PRIO]});
    finish(p, &r, &g);
}

static void push_wakings(struct packet *p, struct ftrace_cpu *c, struct clock_id clock, bool is_trace_ns,
                         struct pb_cursor *columns)
{
    enum { PID = 1, TARGET_CPU, PRIO, COMM };
    struct rows r = {.column = {columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_TIMESTAMP],
                                columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_PID],
                                columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_TARGET_CPU],
                                columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_PRIO],
                                columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_COMM_INDEX]},
                     .is_trace_ns = is_trace_ns};
    struct pb_cursor *flag_column = &columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_COMMON_FLAGS];
    const strid *comms = c->f->comms.p;
    struct ftrace_gather g;
    ftrace_gather_begin(&g, c->f->im->sorter, c->queue_waking);
    while (next_row(p, clock, COMM, &r)) {
        uint64_t flags;
        if (!pb_varint(&flag_column->p, flag_column->end, &flags)) /* older recorders did not write them */
            flags = 0;
        ftrace_gather(&g, (struct sort_event){.ts = r.ts,
                                              .a = (uint64_t)comms[r.value[COMM]] << 32 | (uint32_t)r.value[PID],
                                              .b = (uint64_t)(uint16_t)r.value[TARGET_CPU] << 32 |
                                                   (uint64_t)(uint16_t)r.value[PRIO] << 16 | (uint16_t)flags});
    }
    finish(p, &r, &g);
}

void ftrace_tokenize_compact(struct packet *p, struct ftrace_cpu *c, struct clock_id clock, struct slice compact)
{
    struct pb_cursor columns[COMPACT_FIELDS] = {0};
    struct pb_cursor cursor = pb_cursor(compact);
    struct pb_field field;
    struct ftrace_machine *f = c->f;
    vec_clear(&f->comms);
    while (pb_next(&cursor, &field)) {
        if (field.wire != PB_BYTES)
            continue;
        if (field.id == FTRACE_EVENT_BUNDLE_COMPACT_SCHED_INTERN_TABLE) {
            if (!vec_push(&f->comms, import_slice(f->im, pb_bytes(&field))))
                f->im->failed = true;
        } else if (field.id < COMPACT_FIELDS) {
            columns[field.id] = pb_sub(&field);
        }
    }
    bool is_trace_ns = ftrace_clock_is_trace_time(p, clock);
    push_switches(p, c, clock, is_trace_ns, columns);
    push_wakings(p, c, clock, is_trace_ns, columns);
    if (cursor.bad)
        stats_add(&p->m->st->stats, p->m->id, STAT_compact_sched_has_parse_errors, 1);
}
