/* Samples of every profiler: the sample's row, and the rows of what it was taken of and where. */
#include "importer/profiling/profiling_internal.h"

#include "base/hash.h"
#include "importer/track/track_tracker.h"

/* The row that `key` stands for in `map`; *added when the caller is to make it. NULL when out of memory. */
static uint64_t *context_slot(struct profiling_machine *s, struct u64map *map, uint64_t key, bool *added)
{
    uint64_t *slot = u64map_put(map, key, added);
    if (!slot)
        s->m->im->failed = true;
    return slot;
}

static int64_t known(uint32_t id)
{
    return id == UINT32_MAX ? COL_NULL : (int64_t)id;
}

uint32_t sample_session(struct profiling_machine *s, const struct sequence *seq, strid source, strid unit)
{
    bool fresh;
    uint64_t *row = context_slot(s, &s->sessions, (uint64_t)(uintptr_t)seq, &fresh);
    if (!row)
        return 0;
    if (fresh)
        *row =
            profiler_session_insert(s->m->st, &(struct profiler_session_row){.source = source, .timebase_unit = unit});
    return (uint32_t)*row;
}

int64_t sample_task(struct profiling_machine *s, const struct sample *x)
{
    bool added;
    if (x->utid == UTID_NONE && x->upid == UPID_NONE && x->async_context == COL_NULL)
        return COL_NULL;
    struct recent_task *r = &s->recent_tasks[x->utid % RECENT_CONTEXTS];
    if (r->row_plus_one && r->utid == x->utid && r->upid == x->upid && r->async_context == x->async_context)
        return r->row_plus_one - 1;
    uint64_t key = hash_combine(hash_keyed(s->secret, x->upid, x->utid), (uint64_t)x->async_context);
    uint64_t *row = context_slot(s, &s->tasks, key, &added);
    if (row && added)
        *row = profiler_task_context_insert(
            s->m->st, &(struct profiler_task_context_row){
                          .upid = known(x->upid), .utid = known(x->utid), .async_context_id = x->async_context});
    if (row)
        *r = (struct recent_task){x->async_context, x->utid, x->upid, (uint32_t)*row + 1};
    return row ? (int64_t)*row : COL_NULL;
}

int64_t sample_execution(struct profiling_machine *s, int64_t cpu, strid mode)
{
    bool added;
    struct machine_ctx *m = s->m;
    int64_t ucpu = cpu == COL_NULL ? COL_NULL : (int64_t)machine_ucpu(m, (uint32_t)cpu);
    if (ucpu == COL_NULL && !mode)
        return COL_NULL;
    struct recent_execution *r = &s->recent_executions[((uint64_t)ucpu * 8 + mode) % RECENT_CONTEXTS];
    if (r->row_plus_one && r->ucpu == ucpu && r->mode == mode)
        return r->row_plus_one - 1;
    uint64_t key = hash_keyed(s->secret, (uint64_t)ucpu, mode);
    uint64_t *row = context_slot(s, &s->executions, key, &added);
    if (row && added)
        *row = profiler_execution_context_insert(
            m->st, &(struct profiler_execution_context_row){.ucpu = ucpu, .cpu_mode = mode});
    if (row)
        *r = (struct recent_execution){ucpu, mode, (uint32_t)*row + 1};
    return row ? (int64_t)*row : COL_NULL;
}

uint32_t sample_insert(struct profiling_machine *s, const struct sample *x)
{
    return sample_insert_at(s, x, sample_execution(s, x->cpu, x->mode));
}

uint32_t sample_insert_at(struct profiling_machine *s, const struct sample *x, int64_t execution)
{
    return profiler_sample_insert(s->m->st, &(struct profiler_sample_row){
                                                .ts = x->ts,
                                                .source = x->source,
                                                .task_context_id = sample_task(s, x),
                                                .execution_context_id = execution,
                                                .callsite_id = known(x->callsite),
                                                .unwind_error = x->unwind_error,
                                                .session_id = x->session,
                                                .counter_set_id = x->counter_set,
                                            });
}

void sample_counter(struct profiling_machine *s, int64_t *set, int64_t ts, uint32_t track, double value)
{
    struct storage *st = s->m->st;
    if (*set == COL_NULL)
        *set = st->t[T_profiler_counter_set].n_rows;
    profiler_counter_set_insert(
        st, &(struct profiler_counter_set_row){.counter_set_id = *set, .counter_id = st->t[T_counter].n_rows});
    counter_push(s->m->im, ts, track, value);
}
