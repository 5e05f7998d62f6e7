/* Scheduling of one machine: sched_slice, thread_state, spurious_sched_wakeup. */
#ifndef MERIDIAN_IMPORTER_TRACK_SCHED_TRACKER_H
#define MERIDIAN_IMPORTER_TRACK_SCHED_TRACKER_H

#include "importer/core/context.h"

struct sched_tracker *sched_tracker_open(struct machine_ctx *m);
void sched_tracker_close(struct sched_tracker *t);
/* Unfinished slices and states keep dur = -1. */
void sched_tracker_finish(struct sched_tracker *t);

/* What runs on a cpu. */
struct sched_cpu {
    bool met;
    uint32_t cpu;
    int64_t start_ts;   /* of the open slice */
    uint32_t slice_row; /* UINT32_MAX: none open */
    uint32_t utid;      /* UINT32_MAX before the first switch */
    int32_t pid;
    int32_t prio;
    int64_t ucpu;
};

/* That of a cpu, made when it is new; it stays where it is as long as the tracker. Whoever has many events of one cpu
 * keeps it: finding it takes four loads, each of which waits for the one before. NULL when there can be no such cpu
 * (counted) or memory runs out. */
struct sched_cpu *sched_tracker_cpu(struct sched_tracker *t, uint32_t cpu);

/* What ran on a cpu until a switch. */
struct sched_prev {
    uint32_t utid;
    int32_t pid;
    int32_t prio;
    strid comm; /* the thread's name now; 0 when it has none */
};

/* The switches that come are those away from some threads only: of others nobody knows when they went. */
void sched_tracker_of_some_threads(struct sched_tracker *t);

/* A full sched_switch event; returns the utid of prev. */
uint32_t sched_tracker_switch(struct sched_tracker *t, uint32_t cpu, int64_t ts, int32_t prev_pid, strid prev_comm,
                              int64_t prev_state, int32_t next_pid, strid next_comm, int32_t next_prio);

/* The same on a cpu that was found; NULL: none. */
uint32_t sched_tracker_switch_on(struct sched_tracker *t, struct sched_cpu *c, int64_t ts, int32_t prev_pid,
                                 strid prev_comm, int64_t prev_state, int32_t next_pid, strid next_comm,
                                 int32_t next_prio);

/* A compact one: prev is what ran on the cpu before, and is told in *prev. `only_note`: the event lies before the time
 * for which all cpus have data; then no slice and no state begins or ends. False when it only primed the cpu (the first
 * one there, counted). */
bool sched_tracker_switch_compact(struct sched_tracker *t, struct sched_cpu *c, int64_t ts, int64_t prev_state,
                                  int32_t next_pid, int32_t next_prio, strid next_comm, bool only_note,
                                  struct sched_prev *prev);

/* A switch between threads already known, from events that are not ftrace's. `end_state` may be 0. */
void sched_tracker_switch_threads(struct sched_tracker *t, uint32_t cpu, int64_t ts, uint32_t prev_utid,
                                  strid end_state, uint32_t next_utid, int32_t next_prio);

/* Sources that tell of single threads only: `utid` begins to run on a cpu, and leaves it; what runs there in between is
 * not known. */
void sched_tracker_run(struct sched_tracker *t, uint32_t cpu, int64_t ts, uint32_t utid);
void sched_tracker_leave(struct sched_tracker *t, uint32_t cpu, int64_t ts, uint32_t utid, strid end_state);

#define SCHED_FLAGS_UNKNOWN UINT32_MAX /* irq_context is NULL then */
void sched_tracker_waking(struct sched_tracker *t, int64_t ts, uint32_t wakee_utid, uint32_t waker_utid,
                          uint32_t common_flags);
void sched_tracker_new_task(struct sched_tracker *t, int64_t ts, uint32_t utid, uint32_t parent_utid);
/* blocked_function: 0 when unknown. */
void sched_tracker_blocked_reason(struct sched_tracker *t, uint32_t utid, bool io_wait, strid blocked_function);

/* Closes the open state of a thread and opens another (`ucpu` COL_NULL: none), as sources without switches give it. */
void sched_tracker_set_state(struct sched_tracker *t, int64_t ts, uint32_t utid, strid state, int64_t ucpu);

/* The thread that runs on a cpu as far as known, UINT32_MAX before the first switch there. */
uint32_t sched_tracker_running(const struct sched_tracker *t, uint32_t cpu);

/* "S", "D", "R+", … for a prev_state of this machine's kernel; 0 when invalid (counted in task_state_invalid). */
strid sched_tracker_state(struct sched_tracker *t, int64_t prev_state);

#endif
