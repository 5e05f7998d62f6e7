/* Splits compact sched switches and wakings of a bundle into events of their queues (facts: service section 9). */
#include "importer/ftrace/ftrace_internal.h"

/* Fields of CompactSched: parallel packed arrays, timestamps as differences within the bundle. */
enum {
    SWITCH_TIMESTAMP = 1,
    SWITCH_PREV_STATE = 2,
    SWITCH_NEXT_PID = 3,
    SWITCH_NEXT_PRIO = 4,
    INTERN_TABLE = 5,
    SWITCH_COMM_INDEX = 6,
    WAKING_TIMESTAMP = 7,
    WAKING_PID = 8,
    WAKING_TARGET_CPU = 9,
    WAKING_PRIO = 10,
    WAKING_COMM_INDEX = 11,
    WAKING_COMMON_FLAGS = 12,
    COMPACT_FIELDS
};

/* Reads one value of each of `n` columns; false at the end of any, which must be the end of all. */
static bool next_row(struct pb_cursor *columns, uint32_t first, uint32_t n, uint64_t *row, bool *uneven)
{
    uint32_t ended = 0;
    for (uint32_t i = 0; i < n; i++)
        ended += columns[first + i].p >= columns[first + i].end;
    if (ended) {
        *uneven |= ended != n;
        return false;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!pb_next_packed(&columns[first + i], &row[i])) {
            *uneven = true;
            return false;
        }
    return true;
}

static bool to_trace_time(struct packet *p, struct clock_id clock, int64_t raw, int64_t *ts)
{
    if (clock_graph_to_trace_time(p->m->im->clocks, clock, raw, ts) == 0)
        return true;
    clock_graph_record_failure(p->m->im->clocks, clock, raw, p->byte_offset);
    return false;
}

static void push_switches(struct packet *p, struct ftrace_cpu *c, struct clock_id clock, struct pb_cursor *columns)
{
    /* In the order of the array below. */
    struct pb_cursor in[] = {columns[SWITCH_TIMESTAMP], columns[SWITCH_PREV_STATE], columns[SWITCH_NEXT_PID],
                             columns[SWITCH_NEXT_PRIO], columns[SWITCH_COMM_INDEX]};
    struct ftrace_machine *f = c->f;
    uint64_t row[5];
    int64_t raw = 0, ts;
    bool damaged = false;
    while (next_row(in, 0, 5, row, &damaged)) {
        raw = (int64_t)((uint64_t)raw + row[0]);
        if (row[4] >= f->comms.n) {
            damaged = true;
            break;
        }
        if (!to_trace_time(p, clock, raw, &ts))
            return;
        sorter_push(f->im->sorter, c->queue_switch,
                    (struct sort_event){.ts = ts,
                                        .a = (uint64_t)f->comms.p[row[4]] << 32 | (uint32_t)row[2],
                                        .b = row[1] << 16 | (uint16_t)row[3]});
    }
    if (damaged)
        stats_add(&p->m->st->stats, p->m->id, STAT_compact_sched_has_parse_errors, 1);
}

static void push_wakings(struct packet *p, struct ftrace_cpu *c, struct clock_id clock, struct pb_cursor *columns)
{
    struct pb_cursor in[] = {columns[WAKING_TIMESTAMP], columns[WAKING_PID], columns[WAKING_TARGET_CPU],
                             columns[WAKING_PRIO], columns[WAKING_COMM_INDEX]};
    struct ftrace_machine *f = c->f;
    uint64_t row[5], flags;
    int64_t raw = 0, ts;
    bool damaged = false;
    while (next_row(in, 0, 5, row, &damaged)) {
        raw = (int64_t)((uint64_t)raw + row[0]);
        if (row[4] >= f->comms.n) {
            damaged = true;
            break;
        }
        if (!pb_next_packed(&columns[WAKING_COMMON_FLAGS], &flags)) /* older recorders did not write them */
            flags = 0;
        if (!to_trace_time(p, clock, raw, &ts))
            return;
        sorter_push(f->im->sorter, c->queue_waking,
                    (struct sort_event){.ts = ts,
                                        .a = (uint64_t)f->comms.p[row[4]] << 32 | (uint32_t)row[1],
                                        .b = (uint64_t)(uint16_t)row[2] << 32 | (uint64_t)(uint16_t)row[3] << 16 |
                                             (uint16_t)flags});
    }
    if (damaged)
        stats_add(&p->m->st->stats, p->m->id, STAT_compact_sched_has_parse_errors, 1);
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
        if (field.id == INTERN_TABLE) {
            if (!vec_push(&f->comms, import_slice(f->im, pb_bytes(&field))))
                f->im->failed = true;
        } else if (field.id < COMPACT_FIELDS) {
            columns[field.id] = pb_sub(&field);
        }
    }
    push_switches(p, c, clock, columns);
    push_wakings(p, c, clock, columns);
    if (cursor.bad)
        stats_add(&p->m->st->stats, p->m->id, STAT_compact_sched_has_parse_errors, 1);
}
