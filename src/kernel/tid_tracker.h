/* Which threads a session has met in its events: one bit a thread id, and a list of those met since the last look.
 *
 * The page parser calls tid_tracker_saw() for each event, so the common case (known already) is one load and a test. */
#ifndef MERIDIAN_KERNEL_TID_TRACKER_H
#define MERIDIAN_KERNEL_TID_TRACKER_H

#include "base/vec.h"

#include <stdint.h>

enum { TID_LIMIT = 1 << 22 }; /* PID_MAX_LIMIT of the kernel */

struct tid_tracker {
    uint64_t *known; /* TID_LIMIT bits, touched as needed */
    VEC(int32_t)
    fresh;
    VEC(int32_t)
    stale;
    uint32_t last; /* the thread of the last event */
};

/* False when out of memory. */
bool tid_tracker_init(struct tid_tracker *t);
void tid_tracker_free(struct tid_tracker *t);

void tid_tracker_add(struct tid_tracker *t, uint32_t tid); /* slow half */

static inline void tid_tracker_saw(struct tid_tracker *t, uint32_t tid)
{
    if (tid >= TID_LIMIT || (t->known[tid / 64] >> (tid % 64) & 1))
        return;
    tid_tracker_add(t, tid);
}

/* The thread was renamed or is gone: the next event of that id is news again. */
void tid_tracker_forget(struct tid_tracker *t, uint32_t tid);
void tid_tracker_forget_all(struct tid_tracker *t);

#endif
