/* The states of threads: rows of thread_state and spurious_sched_wakeup, made by the sched tracker. */
#ifndef MERIDIAN_IMPORTER_TRACK_THREAD_STATE_H
#define MERIDIAN_IMPORTER_TRACK_THREAD_STATE_H

#include "base/by_id.h"
#include "importer/core/context.h"

struct thread_last {
    int64_t ts;       /* of the last row */
    uint32_t row;     /* last row + 1; 0: none */
    uint32_t blocked; /* last row that was neither running nor runnable, + 1; 0: none since it ran */
    strid state;      /* of the last row */
};

struct thread_states {
    struct machine_ctx *m;
    strid running;                  /* "Running" */
    strid runnable;                 /* "R" */
    uint32_t idle;                  /* the idle thread has no states */
    BY_ID(struct thread_last) last; /* by utid */
};

void thread_states_init(struct thread_states *s, struct machine_ctx *m);
void thread_states_free(struct thread_states *s);

/* What scheduling events do to the states of the threads that they name: each ends a state and begins the next. */
void thread_states_switch(struct thread_states *s, int64_t ts, int64_t ucpu, uint32_t prev, strid prev_state,
                          uint32_t next);
void thread_states_waking(struct thread_states *s, int64_t ts, uint32_t wakee, uint32_t waker, uint32_t common_flags);
void thread_states_new_task(struct thread_states *s, int64_t ts, uint32_t utid, uint32_t parent);
void thread_states_blocked_reason(struct thread_states *s, uint32_t utid, bool io_wait, strid function);
void thread_states_set(struct thread_states *s, int64_t ts, uint32_t utid, strid state, int64_t ucpu);

#endif
