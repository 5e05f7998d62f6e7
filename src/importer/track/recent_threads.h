/* Who a tid was found to mean not long ago, as long as no thread or process begins, ends or is told which it belongs
 * to: then all are forgotten. Most events are of the same few threads. */
#ifndef MERIDIAN_IMPORTER_TRACK_RECENT_THREADS_H
#define MERIDIAN_IMPORTER_TRACK_RECENT_THREADS_H

#include "base/alloc.h"
#include "base/strpool.h"

#include <string.h>

enum { RECENT_THREADS = 256, NO_PID = -1 };

struct recent_thread {
    int64_t tid;
    int64_t pid; /* of its process, where it was found by that, too; else NO_PID */
    uint32_t utid;
    uint32_t epoch; /* when it was found; 0: never */
    strid name;     /* that kernel events gave it last, if nobody has named it since; else 0 */
    bool fixed;     /* others have named it who know better: those of kernel events change nothing (idle threads) */
};

struct recent_threads {
    struct recent_thread *p; /* RECENT_THREADS by the tid's low bits; NULL until there is one to note */
    uint32_t epoch;          /* what is older may mean another thread now */
};

/* NULL when it may mean another thread since, or nobody knows. */
static inline struct recent_thread *recent_find(const struct recent_threads *r, int64_t tid)
{
    struct recent_thread *at = r->p ? &r->p[(uint64_t)tid % RECENT_THREADS] : NULL;
    return at && at->tid == tid && at->epoch == r->epoch ? at : NULL;
}

static inline void recent_note(struct recent_threads *r, int64_t tid, int64_t pid, uint32_t utid)
{
    if (r->p)
        r->p[(uint64_t)tid % RECENT_THREADS] = (struct recent_thread){tid, pid, utid, r->epoch, 0, false};
    else if ((r->p = mem_zalloc(RECENT_THREADS * sizeof *r->p)))
        r->epoch = 1;
}

static inline void recent_forget(struct recent_threads *r)
{
    if (r->p && ++r->epoch == 0) {
        memset(r->p, 0, RECENT_THREADS * sizeof *r->p);
        r->epoch = 1;
    }
}

#endif
