/* The service's own scheduling priority: raised while a session asks for it (TraceConfig.priority_boost). */
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>

enum { POLICY_OTHER = 1, POLICY_FIFO = 2, MAX_NICE = 20, MAX_FIFO = 99 };

int priority_check(const PriorityBoost *b, struct error *err)
{
    unsigned policy = b ? (unsigned)b->policy : 0;
    if (!b)
        return 0;
    if (policy != POLICY_OTHER && policy != POLICY_FIFO)
        return error_set(err, -MRD_EINVALID, "priority_boost: policy must be POLICY_SCHED_OTHER or POLICY_SCHED_FIFO");
    unsigned max = policy == POLICY_FIFO ? MAX_FIFO : MAX_NICE, min = policy == POLICY_FIFO;
    if (b->priority < min || b->priority > max)
        return error_set(err, -MRD_EINVALID, "priority_boost: priority %u is not between %u and %u", b->priority, min,
                         max);
    return 0;
}

/* Real time comes before niceness, then the number counts. */
static unsigned rank(const PriorityBoost *b)
{
    return b ? (unsigned)b->policy * 100 + b->priority : 0;
}

int priority_update(struct service *svc, struct error *err)
{
    const PriorityBoost *best = NULL;
    for (size_t i = 0; i < svc->sessions.n; i++) {
        const struct session *s = svc->sessions.p[i];
        bool active = s->state == SESSION_CONFIGURED || s->state == SESSION_STARTED || s->state == SESSION_STOPPING;
        if (active && !s->closing && s->config && rank(s->config->priority_boost) > rank(best))
            best = s->config->priority_boost;
    }
    if (rank(best) == svc->boost_rank)
        return 0;
    bool fifo = best && (unsigned)best->policy == POLICY_FIFO;
    struct sched_param p = {.sched_priority = fifo ? (int)best->priority : 0};
    int niceness = best && !fifo ? -(int)best->priority : svc->usual_niceness;
    if (sched_setscheduler(0, fifo ? SCHED_FIFO : SCHED_OTHER, &p) != 0 || setpriority(PRIO_PROCESS, 0, niceness) != 0)
        return error_set_errno(err, errno, "priority_boost");
    svc->boost_rank = rank(best);
    return 0;
}
