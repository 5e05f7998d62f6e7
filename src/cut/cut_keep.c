/* Tells which events outside of the window stay. */
#include "cut/cut_internal.h"

#include "base/bisect.h"
#include "base/hash.h"
#include "wire/fields.h"

bool cut_wants(const struct cut_window *w, int64_t ts)
{
    if (ts >= w->from && ts < w->to)
        return true;
    size_t at = w->n_kept;
    BISECT(at, mid, w->kept[mid] < ts);
    return at < w->n_kept && w->kept[at] == ts;
}

bool cut_comm_changed(struct cut *c, uint32_t machine, uint32_t cpu, int32_t pid, struct slice comm)
{
    bool added;
    uint64_t key = (uint64_t)machine << 48 ^ (uint64_t)cpu << 32 ^ (uint32_t)pid,
             hash = hash_bytes_seeded(comm.p, comm.len, c->secret);
    uint64_t *last = u64map_put(&c->comms, key, &added);
    if (!last || (!added && *last == hash))
        return !last;
    *last = hash;
    return true;
}

/* A pid and a name in an event. */
static bool names_anew(struct cut *c, const struct cut_event *e, uint32_t pid, uint32_t comm)
{
    struct pb_field p, n;
    return pb_find(e->payload, pid, &p) && pb_find(e->payload, comm, &n) &&
           cut_comm_changed(c, e->machine, e->cpu, pb_i32(&p), pb_bytes(&n));
}

/* Later events tell the mm_id alone. */
static bool tells_mm(struct cut *c, const struct cut_event *e)
{
    struct pb_field current, id;
    bool added;
    if (!pb_find(e->payload, FTRACE_RSS_STAT_CURR, &current) || !pb_bool(&current) ||
        !pb_find(e->payload, FTRACE_RSS_STAT_MM_ID, &id))
        return false;
    uint64_t *pid = u64map_put(&c->mms, (uint64_t)e->machine << 48 ^ (uint64_t)e->cpu << 32 ^ pb_u32(&id), &added);
    bool stays = !pid || added || *pid != (uint32_t)e->pid;
    if (pid)
        *pid = (uint32_t)e->pid;
    return stays;
}

bool cut_keeps_event(struct cut *c, const struct cut_event *e)
{
    bool prev, next;
    switch (e->id) {
    case FTRACE_EVENT_SCHED_SWITCH:
        prev = names_anew(c, e, FTRACE_SCHED_SWITCH_PREV_PID, FTRACE_SCHED_SWITCH_PREV_COMM);
        next = names_anew(c, e, FTRACE_SCHED_SWITCH_NEXT_PID, FTRACE_SCHED_SWITCH_NEXT_COMM);
        return prev || next;
    case FTRACE_EVENT_SCHED_WAKING:
        return names_anew(c, e, FTRACE_SCHED_WAKING_PID, FTRACE_SCHED_WAKING_COMM);
    case FTRACE_EVENT_RSS_STAT:
        return tells_mm(c, e);
    /* lives and names of threads */
    case FTRACE_EVENT_TASK_NEWTASK:
    case FTRACE_EVENT_TASK_RENAME:
    case FTRACE_EVENT_SCHED_PROCESS_EXEC:
    case FTRACE_EVENT_SCHED_PROCESS_EXIT:
    case FTRACE_EVENT_SCHED_PROCESS_FORK:
    case FTRACE_EVENT_SCHED_PROCESS_FREE:
    /* comes later than the state that it belongs to began */
    case FTRACE_EVENT_SCHED_BLOCKED_REASON:
    /* running totals */
    case FTRACE_EVENT_NET_DEV_XMIT:
    case FTRACE_EVENT_NETIF_RECEIVE_SKB:
    case FTRACE_EVENT_KFREE_SKB:
    case FTRACE_EVENT_INET_SOCK_SET_STATE:
    /* they tell times other than their own, and names of those that follow */
    case FTRACE_EVENT_GPU_WORK_PERIOD:
    case FTRACE_EVENT_THERMAL_EXYNOS_ACPM_BULK:
    case FTRACE_EVENT_PARAM_SET_VALUE_CPM:
    case FTRACE_EVENT_FWTP_PERFETTO_COUNTER:
    case FTRACE_EVENT_FWTP_PERFETTO_SLICE:
    case FTRACE_EVENT_KGSL_ADRENO_CMDBATCH_QUEUED:
    case FTRACE_EVENT_KGSL_ADRENO_CMDBATCH_SUBMITTED:
    case FTRACE_EVENT_KGSL_ADRENO_CMDBATCH_SYNC:
    case FTRACE_EVENT_KGSL_ADRENO_CMDBATCH_RETIRED:
        return true;
    default:
        return false;
    }
}

bool cut_is_step(const struct cut *c, struct slice track_event)
{
    struct pb_cursor cursor = pb_cursor(track_event);
    struct pb_field f;
    while (pb_next(&cursor, &f)) {
        switch (f.id) {
        case TRACK_EVENT_TIMESTAMP_DELTA_US:
        case TRACK_EVENT_TIMESTAMP_ABSOLUTE_US:
        case TRACK_EVENT_THREAD_TIME_DELTA_US:
        case TRACK_EVENT_THREAD_INSTRUCTION_COUNT_DELTA:
            return true;
        case TRACK_EVENT_COUNTER_VALUE:
        case TRACK_EVENT_EXTRA_COUNTER_VALUES:
        case TRACK_EVENT_DOUBLE_COUNTER_VALUE:
        case TRACK_EVENT_EXTRA_DOUBLE_COUNTER_VALUES:
            if (c->counter_steps)
                return true;
            break;
        }
    }
    return false;
}
