/* Splits compact sched switches and wakings of a bundle into events of their queues. */
#include "importer/ftrace/bundle_split.h"

enum { COLUMNS = 5 };

/* The columns of one kind of event, read in step: timestamp first. */
struct rows {
    struct pb_cursor column[COLUMNS];
    uint64_t value[COLUMNS];
    uint32_t comm; /* which of them is the number of a name, */
    uint32_t n_comms;
    const struct compact_time *time;
    int64_t raw;  /* timestamp of the row at hand */
    int64_t ts;   /* in trace time */
    bool damaged; /* a column ended before the others, or in the midst of a value, or an index is wrong */
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

/* The next row, in trace time; false at the end, and when a time has no conversion. */
static inline bool next_row(struct rows *r)
{
    if (!read_row(r))
        return false;
    if (r->value[r->comm] >= r->n_comms) {
        r->damaged = true;
        return false;
    }
    r->ts = r->raw;
    return !r->time->convert || r->time->convert(r->time->ctx, r->raw, &r->ts);
}

/* The word `a` of an event. */
static inline uint64_t comm_and_pid(const struct rows *r, uint32_t first_comm, uint64_t pid)
{
    return (first_comm + r->value[r->comm]) << 32 | (uint32_t)pid;
}

bool compact_switches(const struct compact *c, uint32_t first_comm, const struct compact_time *time,
                      struct ftrace_gather *g)
{
    enum { STATE = 1, PID, PRIO, COMM };
    struct rows r = {.column = {c->columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_TIMESTAMP],
                                c->columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_PREV_STATE],
                                c->columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_NEXT_PID],
                                c->columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_NEXT_PRIO],
                                c->columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_NEXT_COMM_INDEX]},
                     .comm = COMM,
                     .n_comms = c->n_comms,
                     .time = time};
    while (next_row(&r))
        ftrace_gather(g, (struct sort_event){.ts = r.ts,
                                             .a = comm_and_pid(&r, first_comm, r.value[PID]),
                                             .b = r.value[STATE] << 16 | (uint16_t)r.value[PRIO]});
    ftrace_gather_flush(g);
    return !r.damaged;
}

bool compact_wakings(const struct compact *c, uint32_t first_comm, const struct compact_time *time,
                     struct ftrace_gather *g)
{
    enum { PID = 1, TARGET_CPU, PRIO, COMM };
    struct rows r = {.column = {c->columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_TIMESTAMP],
                                c->columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_PID],
                                c->columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_TARGET_CPU],
                                c->columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_PRIO],
                                c->columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_COMM_INDEX]},
                     .comm = COMM,
                     .n_comms = c->n_comms,
                     .time = time};
    struct pb_cursor flag_column = c->columns[FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_COMMON_FLAGS];
    while (next_row(&r)) {
        uint64_t flags;
        if (!pb_varint(&flag_column.p, flag_column.end, &flags)) /* older recorders did not write them */
            flags = 0;
        ftrace_gather(g, (struct sort_event){.ts = r.ts,
                                             .a = comm_and_pid(&r, first_comm, r.value[PID]),
                                             .b = (uint64_t)(uint16_t)r.value[TARGET_CPU] << 32 |
                                                  (uint64_t)(uint16_t)r.value[PRIO] << 16 | (uint16_t)flags});
    }
    ftrace_gather_flush(g);
    return !r.damaged;
}

bool compact_read(struct slice bytes, struct compact *c)
{
    struct pb_cursor cursor = pb_cursor(bytes);
    struct pb_field field;
    *c = (struct compact){0};
    while (pb_next(&cursor, &field)) {
        if (field.wire != PB_BYTES)
            continue;
        if (field.id == FTRACE_EVENT_BUNDLE_COMPACT_SCHED_INTERN_TABLE)
            c->n_comms++;
        else if (field.id < COMPACT_FIELDS)
            c->columns[field.id] = pb_sub(&field);
    }
    return !cursor.bad;
}
