/* The bounds of the trace: the earliest start and the latest end of what was imported. */
#include "importer/core/bounds.h"

struct bounds {
    int64_t start;
    int64_t end;
};

static void widen(struct bounds *b, int64_t start, int64_t end)
{
    if (start < b->start)
        b->start = start;
    if (end > b->end)
        b->end = end;
}

/* The smallest and largest value of rows [first, first + n) of one chunk. */
static void range_of(const struct column *c, uint32_t chunk, uint32_t n, int64_t *min, int64_t *max)
{
    if (chunk < c->n_chunks) {
        *min = c->chunks[chunk].min;
        *max = c->chunks[chunk].max;
        return;
    }
    *min = INT64_MAX;
    *max = INT64_MIN;
    for (uint32_t i = 0; i < n; i++) {
        int64_t v = c->tail[i];
        if (v == COL_NULL)
            continue;
        *min = v < *min ? v : *min;
        *max = v > *max ? v : *max;
    }
}

/* The latest end of rows [first, first + n). What ends beyond the last time there is tells nothing about the end of the
 * trace. */
static void add_ends(struct bounds *b, const struct table *t, const struct column *ts, uint32_t dur_col, uint32_t first,
                     uint32_t n)
{
    for (uint32_t row = first; row < first + n; row++) {
        int64_t start = column_get(ts, row), dur = table_get(t, dur_col, row), end = start;
        if (start == COL_NULL || (dur != COL_NULL && __builtin_add_overflow(start, dur, &end)))
            continue;
        widen(b, start, start > end ? start : end);
    }
}

/* Rows last from ts to ts + dur; `dur_col` < 0: they are moments. */
static void add_table(struct bounds *b, const struct table *t, uint32_t ts_col, int dur_col)
{
    const struct column *ts = &t->columns[ts_col];
    for (uint32_t first = 0; first < t->n_rows; first += COL_CHUNK_ROWS) {
        uint32_t chunk = first >> COL_CHUNK_SHIFT;
        uint32_t n = t->n_rows - first < COL_CHUNK_ROWS ? t->n_rows - first : COL_CHUNK_ROWS;
        int64_t min, max, dur_min = INT64_MAX, dur_max = INT64_MIN, latest = 0;
        range_of(ts, chunk, n, &min, &max);
        if (min > max)
            continue; /* no row has a time */
        if (dur_col >= 0)
            range_of(&t->columns[dur_col], chunk, n, &dur_min, &dur_max);
        bool lasts = dur_min <= dur_max && dur_max > 0, beyond = lasts && __builtin_add_overflow(max, dur_max, &latest);
        widen(b, min, beyond ? min : max);
        if (lasts && (beyond || latest > b->end)) /* else no row of this chunk can end later than what is known */
            add_ends(b, t, ts, (uint32_t)dur_col, first, n);
    }
}

void trace_bounds_compute(struct storage *st)
{
    struct bounds b = {INT64_MAX, 0}; /* events before 0 only: the trace ends at 0 */
    add_table(&b, &st->t[T_ftrace_event], ftrace_event_c_ts, -1);
    add_table(&b, &st->t[T_sched_slice], sched_slice_c_ts, sched_slice_c_dur);
    add_table(&b, &st->t[T_counter], counter_c_ts, -1);
    add_table(&b, &st->t[T_slice], slice_c_ts, slice_c_dur);
    add_table(&b, &st->t[T_thread_state], thread_state_c_ts, thread_state_c_dur);
    add_table(&b, &st->t[T_state], state_c_ts, state_c_dur);
    add_table(&b, &st->t[T_logs], logs_c_ts, -1);
    add_table(&b, &st->t[T_heap_profile_allocation], heap_profile_allocation_c_ts, -1);
    add_table(&b, &st->t[T_heap_graph_object], heap_graph_object_c_graph_sample_ts, -1);
    add_table(&b, &st->t[T_heap_graph], heap_graph_c_ts, -1);
    add_table(&b, &st->t[T_profiler_smaps], profiler_smaps_c_ts, -1);
    add_table(&b, &st->t[T_profiler_sample], profiler_sample_c_ts, -1);
    if (b.start == INT64_MAX)
        b = (struct bounds){0, 0};
    else if (b.start == b.end && b.end < INT64_MAX)
        b.end++; /* a trace of one moment still has a length */
    st->trace_start_ns = b.start;
    st->trace_end_ns = b.end;
}
