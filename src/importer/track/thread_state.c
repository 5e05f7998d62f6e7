/* The rows of thread_state and spurious_sched_wakeup. */
#include "importer/track/thread_state.h"

#include "base/saturate.h"

#include "importer/track/process_tracker.h"
#include "importer/track/sched_tracker.h"

/* TRACE_FLAG_HARDIRQ | TRACE_FLAG_SOFTIRQ of the kernel's common_flags. */
enum { FLAGS_IN_INTERRUPT = 0x18 };

void thread_states_init(struct thread_states *s, struct machine_ctx *m)
{
    *s = (struct thread_states){.m = m};
    s->running = import_str(m->im, "Running");
    s->runnable = import_str(m->im, "R");
    s->idle = UTID_NONE;
}

void thread_states_free(struct thread_states *s)
{
    by_id_free(&s->last);
}

/* NULL when out of memory. */
static inline struct thread_last *last_of(struct thread_states *s, uint32_t utid)
{
    struct thread_last *l = utid == UTID_NONE ? NULL : by_id_make(&s->last, utid);
    s->m->im->failed |= !l;
    return l;
}

static inline bool is_idle(struct thread_states *s, uint32_t utid)
{
    if (__builtin_expect(s->idle == UTID_NONE, 0))
        s->idle = process_tracker_idle_utid(s->m->processes);
    return utid == s->idle;
}

static inline bool is_blocked(const struct thread_states *s, strid state)
{
    return state != s->running && state != s->runnable;
}

static inline void close_state(struct thread_states *s, const struct thread_last *l, int64_t ts)
{
    if (l->row)
        ROW_SET(s->m->st, thread_state, dur, l->row - 1, saturating_sub(ts, l->ts));
}

struct waker {
    int64_t utid; /* COL_NULL: none */
    int64_t row;
    int64_t irq_context;
};

static const struct waker no_waker = {COL_NULL, COL_NULL, COL_NULL};

static inline void open_state(struct thread_states *s, struct thread_last *l, int64_t ts, uint32_t utid, strid state,
                              int64_t ucpu, const struct waker *w)
{
    uint32_t row = thread_state_insert(s->m->st, &(struct thread_state_row){.ts = ts,
                                                                            .dur = -1,
                                                                            .utid = utid,
                                                                            .state = state,
                                                                            .io_wait = COL_NULL,
                                                                            .waker_utid = w->utid,
                                                                            .waker_id = w->row,
                                                                            .irq_context = w->irq_context,
                                                                            .ucpu = ucpu});
    if (row == UINT32_MAX)
        return;
    l->row = row + 1;
    l->ts = ts;
    l->state = state;
    if (state == s->running)
        l->blocked = 0;
    else if (state != s->runnable)
        l->blocked = row + 1;
}

static int64_t irq_context(uint32_t common_flags)
{
    return common_flags == SCHED_FLAGS_UNKNOWN ? COL_NULL : (common_flags & FLAGS_IN_INTERRUPT) != 0;
}

/* The waker counts as a row only when it runs: else its cpu has no data yet, or some were lost. */
static struct waker waker_of(struct thread_states *s, uint32_t utid, uint32_t common_flags)
{
    struct waker w = {utid, COL_NULL, irq_context(common_flags)};
    const struct thread_last *l = by_id_find(&s->last, utid);
    if (l && l->row && l->state == s->running)
        w.row = l->row - 1;
    return w;
}

void thread_states_switch(struct thread_states *s, int64_t ts, int64_t ucpu, uint32_t prev, strid prev_state,
                          uint32_t next)
{
    struct thread_last *l;
    if (!is_idle(s, prev) && (l = last_of(s, prev))) {
        if (l->state == s->running || !l->row) /* else data was lost: how long it was so is unknown */
            close_state(s, l, ts);
        open_state(s, l, ts, prev, prev_state, COL_NULL, &no_waker);
    }
    /* A thread may seem to run on two cpus at once when it was moved by force; its old state ends here all the same. */
    if (!is_idle(s, next) && (l = last_of(s, next))) {
        close_state(s, l, ts);
        open_state(s, l, ts, next, s->running, ucpu, &no_waker);
    }
}

void thread_states_waking(struct thread_states *s, int64_t ts, uint32_t wakee, uint32_t waker, uint32_t common_flags)
{
    struct thread_last *l;
    if (is_idle(s, wakee) || !(l = last_of(s, wakee)))
        return;
    if (l->row && !is_blocked(s, l->state)) {
        spurious_sched_wakeup_insert(s->m->st, &(struct spurious_sched_wakeup_row){
                                                   .ts = ts,
                                                   .thread_state_id = l->row - 1,
                                                   .irq_context = irq_context(common_flags),
                                                   .utid = wakee,
                                                   .waker_utid = waker,
                                               });
        return;
    }
    struct waker w = waker_of(s, waker, common_flags);
    close_state(s, l, ts);
    open_state(s, l, ts, wakee, s->runnable, COL_NULL, &w);
}

void thread_states_new_task(struct thread_states *s, int64_t ts, uint32_t utid, uint32_t parent)
{
    struct thread_last *l;
    if (is_idle(s, utid) || !(l = last_of(s, utid)))
        return;
    struct waker w = waker_of(s, parent, 0);
    open_state(s, l, ts, utid, s->runnable, COL_NULL, &w);
}

void thread_states_blocked_reason(struct thread_states *s, uint32_t utid, bool io_wait, strid function)
{
    const struct thread_last *l = by_id_find(&s->last, utid);
    if (!l || !l->blocked)
        return;
    uint32_t row = l->blocked - 1;
    ROW_SET(s->m->st, thread_state, io_wait, row, io_wait);
    if (function)
        ROW_SET(s->m->st, thread_state, blocked_function, row, (int64_t)function);
}

void thread_states_set(struct thread_states *s, int64_t ts, uint32_t utid, strid state, int64_t ucpu)
{
    struct thread_last *l;
    if (is_idle(s, utid) || !(l = last_of(s, utid)))
        return;
    close_state(s, l, ts);
    open_state(s, l, ts, utid, state, ucpu, &no_waker);
}
