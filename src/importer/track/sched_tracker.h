/* Scheduling of one machine: sched_slice, thread_state, spurious_sched_wakeup (facts: importer section 4). */
#ifndef MERIDIAN_IMPORTER_TRACK_SCHED_TRACKER_H
#define MERIDIAN_IMPORTER_TRACK_SCHED_TRACKER_H

#include "importer/context.h"

struct sched_tracker *sched_tracker_open(struct machine_ctx *m);
void sched_tracker_close(struct sched_tracker *t);
void sched_tracker_finish(struct sched_tracker *t);

/* A full sched_switch event. */
void sched_tracker_switch(struct sched_tracker *t, uint32_t cpu, int64_t ts, int32_t prev_pid, strid prev_comm,
                          int32_t prev_prio, int64_t prev_state, int32_t next_pid, strid next_comm, int32_t next_prio);
/* A compact one; prev is what ran on the cpu before. Returns false when it only primed the cpu (counted). */
bool sched_tracker_switch_compact(struct sched_tracker *t, uint32_t cpu, int64_t ts, int64_t prev_state,
                                  int32_t next_pid, int32_t next_prio, strid next_comm);
void sched_tracker_waking(struct sched_tracker *t, uint32_t cpu, int64_t ts, uint32_t wakee_utid, uint32_t waker_utid,
                          uint32_t common_flags);
void sched_tracker_new_task(struct sched_tracker *t, int64_t ts, uint32_t utid, uint32_t parent_utid);
void sched_tracker_blocked_reason(struct sched_tracker *t, uint32_t utid, bool io_wait, strid blocked_function);

/* What runs on a cpu as far as known: pid, prio, comm of the last switch; false before the first. */
bool sched_tracker_current(const struct sched_tracker *t, uint32_t cpu, int32_t *pid, int32_t *prio, strid *comm);

/* "S", "D", "R+", … for a prev_state of this machine's kernel; 0 when invalid (counted in task_state_invalid). */
strid sched_tracker_state(struct sched_tracker *t, int64_t prev_state);

#endif
