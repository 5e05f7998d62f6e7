/* Events of a Fuchsia trace as rows: slices, counters, flows, what ran where, logs. */
#include "importer/fuchsia/fuchsia_private.h"

#include "base/saturate.h"
#include "importer/sort/sorter.h"
#include "importer/track/flow_tracker.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_compressor.h"

/* States of threads, by their numbers, in the letters of thread_state. */
static const char *const thread_states[] = {"R", "R", "T", "S", "Z", "X"};

static uint32_t thread_track(struct fxt *f, uint32_t utid)
{
    return track_intern_int(f->im->tracks, f->m->id, "thread_execution", TRACK_SLICE, "utid", utid, 0);
}

/* As Chrome's asynchronous events with ids of the whole trace, and told as such: tools look for these. */
static uint32_t async_set(struct fxt *f, const struct fxt_event *e)
{
    struct args *args = &f->im->st->args;
    struct arg_list source = {0};
    struct track_dim dims[] = {{"scope", DIM_STR, 0}, {"name", DIM_STR, e->name}};
    struct track_spec spec = {.type = "legacy_async_global_slice",
                              .event_type = TRACK_SLICE,
                              .name = e->name,
                              .parent = UINT32_MAX,
                              .dims = dims,
                              .n_dims = sizeof dims / sizeof *dims};
    arg_list_str(args, &source, "source", import_str(f->im, "chrome"));
    arg_list_bool(args, &source, "trace_id_is_process_scoped", false);
    arg_list_int(args, &source, "upid", e->upid);
    arg_list_str(args, &source, "source_scope", 0);
    spec.source_args = args_intern(args, source.p, source.n);
    arg_list_free(&source);
    return track_set_intern(f->im->tracks, f->m->id, &spec);
}

static void add_args(struct fxt *f, uint32_t slice, argset set)
{
    struct arg_list list = {0};
    if (slice == SLICE_NONE || argset_is_none(set))
        return;
    args_values(&f->im->st->args, set, &list);
    slice_add_args(f->im->slices, slice, &list);
    arg_list_free(&list);
}

static void parse_async(struct fxt *f, int64_t ts, const struct fxt_event *e)
{
    struct slice_tracker *slices = f->im->slices;
    uint32_t set = async_set(f, e), track;
    switch (e->type) {
    case FXT_ASYNC_BEGIN:
        track = track_set_begin(f->im->tracks, set, (int64_t)e->id);
        slice_begin(slices, f->m->id, ts, track, e->category, e->name, e->args);
        break;
    case FXT_ASYNC_INSTANT: /* on the track of its slice, which goes on */
        track = track_set_begin(f->im->tracks, set, (int64_t)e->id);
        slice_scoped(slices, f->m->id, ts, track, e->category, e->name, 0, e->args);
        track_set_end(f->im->tracks, set, (int64_t)e->id);
        break;
    default:
        track = track_set_end(f->im->tracks, set, (int64_t)e->id);
        add_args(f, slice_end(slices, f->m->id, ts, track, e->category, e->name, NULL), e->args);
        break;
    }
}

static void parse_flow(struct fxt *f, const struct fxt_event *e)
{
    uint32_t track = thread_track(f, e->utid);
    if (e->type == FXT_FLOW_BEGIN)
        flow_begin(f->im->flows, f->m->id, track, e->id);
    else if (e->type == FXT_FLOW_STEP)
        flow_step(f->im->flows, f->m->id, track, e->id);
    else
        flow_end(f->im->flows, f->m->id, track, e->id, true, true);
}

static void parse_counter(struct fxt *f, int64_t ts, const struct fxt_event *e)
{
    struct track_dim dims[] = {{"upid", DIM_INT, e->upid}, {"name", DIM_STR, e->name}};
    struct track_spec spec = {.type = "fuchsia_counter",
                              .event_type = TRACK_COUNTER,
                              .name = e->name,
                              .parent = UINT32_MAX,
                              .dims = dims,
                              .n_dims = 2};
    uint32_t track = track_intern(f->im->tracks, f->m->id, &spec);
    if (track != UINT32_MAX)
        counter_push(f->im, ts, track, e->value);
}

/* ---- scheduling ---- */

/* Ends the open state of a thread; `state` 0: it was told to end, and nothing follows. */
static void set_state(struct fxt *f, int64_t ts, uint32_t utid, strid state, int64_t ucpu)
{
    struct storage *st = f->im->st;
    uint64_t *open = u64map_put(&f->states, utid, NULL);
    if (!open) {
        f->im->failed = true;
        return;
    }
    if (*open)
        ROW_SET(st, thread_state, dur, *open - 1, saturating_sub(ts, ROW_GET(st, thread_state, ts, *open - 1)));
    *open = 0;
    if (!state)
        return;
    uint32_t row = thread_state_insert(st, &(struct thread_state_row){.ts = ts,
                                                                      .dur = -1,
                                                                      .utid = utid,
                                                                      .state = state,
                                                                      .io_wait = COL_NULL,
                                                                      .waker_utid = COL_NULL,
                                                                      .waker_id = COL_NULL,
                                                                      .irq_context = COL_NULL,
                                                                      .ucpu = ucpu});
    *open = row == UINT32_MAX ? 0 : (uint64_t)row + 1;
}

static struct fxt_cpu *cpu_of(struct fxt *f, uint16_t cpu)
{
    while (f->cpus.n <= cpu)
        if (!vec_push(&f->cpus, (struct fxt_cpu){0})) {
            f->im->failed = true;
            return NULL;
        }
    return &f->cpus.p[cpu];
}

static void parse_switch(struct fxt *f, int64_t ts, const struct fxt_event *e)
{
    struct storage *st = f->im->st;
    struct fxt_cpu *cpu = cpu_of(f, e->cpu);
    bool known = e->state < sizeof thread_states / sizeof *thread_states;
    strid state = known ? import_str(f->im, thread_states[e->state]) : 0;
    int64_t ucpu = machine_ucpu(f->m, e->cpu);
    if (!cpu)
        return;
    if (cpu->row) {
        ROW_SET(st, sched_slice, dur, cpu->row - 1, saturating_sub(ts, ROW_GET(st, sched_slice, ts, cpu->row - 1)));
        if (cpu->utid == e->utid && state)
            ROW_SET(st, sched_slice, end_state, cpu->row - 1, state);
    }
    cpu->row = 0;
    if (e->utid != UINT32_MAX)
        set_state(f, ts, e->utid, state, ucpu);
    if (e->next == UINT32_MAX)
        return;
    uint32_t row = sched_slice_insert(
        st, &(struct sched_slice_row){
                .ts = ts, .dur = -1, .utid = e->next, .priority = e->priority, .ucpu = (uint32_t)ucpu});
    *cpu = (struct fxt_cpu){row == UINT32_MAX ? 0 : row + 1, e->next};
    set_state(f, ts, e->next, import_str(f->im, "Running"), ucpu);
}

/* ---- all of them ---- */

static void parse_log(struct fxt *f, int64_t ts, const struct fxt_event *e)
{
    logs_insert(f->im->st, &(struct logs_row){.ts = ts, .utid = e->utid, .msg = e->name});
}

static void parse_event(struct fxt *f, int64_t ts, const struct fxt_event *e)
{
    struct slice_tracker *slices = f->im->slices;
    switch (e->type) {
    case FXT_INSTANT:
        slice_scoped(slices, f->m->id, ts, thread_track(f, e->utid), e->category, e->name, 0, e->args);
        break;
    case FXT_COUNTER:
        parse_counter(f, ts, e);
        break;
    case FXT_BEGIN:
        slice_begin(slices, f->m->id, ts, thread_track(f, e->utid), e->category, e->name, e->args);
        break;
    case FXT_END:
        /* Whatever its name: of slices that end at one time the inner one is to end first. */
        add_args(f, slice_end(slices, f->m->id, ts, thread_track(f, e->utid), 0, 0, NULL), e->args);
        break;
    case FXT_COMPLETE:
        if (e->end < ts)
            stats_add(&f->im->st->stats, f->m->id, STAT_fuchsia_invalid_event, 1);
        else
            slice_scoped(slices, f->m->id, ts, thread_track(f, e->utid), e->category, e->name,
                         saturating_sub(e->end, ts), e->args);
        break;
    case FXT_ASYNC_BEGIN:
    case FXT_ASYNC_INSTANT:
    case FXT_ASYNC_END:
        parse_async(f, ts, e);
        break;
    case FXT_FLOW_BEGIN:
    case FXT_FLOW_STEP:
    case FXT_FLOW_END:
        parse_flow(f, e);
        break;
    case FXT_SWITCH:
        parse_switch(f, ts, e);
        break;
    case FXT_WAKEUP:
        set_state(f, ts, e->utid, import_str(f->im, "W"), machine_ucpu(f->m, e->cpu));
        break;
    case FXT_LOG:
        parse_log(f, ts, e);
        break;
    default:
        break;
    }
}

void fxt_parse_events(void *owner, const struct sort_event *events, size_t n)
{
    struct fxt *f = owner;
    for (size_t i = 0; i < n; i++)
        parse_event(f, events[i].ts, &f->events.p[events[i].a]);
}
