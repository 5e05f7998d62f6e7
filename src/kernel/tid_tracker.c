/* The set of threads that a session has met. */
#include "kernel/tid_tracker.h"

#include <sys/mman.h>

bool tid_tracker_init(struct tid_tracker *t)
{
    memset(t, 0, sizeof *t);
    /* mapped rather than allocated: 512 KiB of which a machine with few threads touches one page */
    void *bits = mmap(NULL, TID_LIMIT / 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    t->known = bits == MAP_FAILED ? NULL : bits;
    return t->known != NULL;
}

void tid_tracker_free(struct tid_tracker *t)
{
    if (t->known)
        munmap(t->known, TID_LIMIT / 8);
    t->known = NULL;
    vec_free(&t->fresh);
    vec_free(&t->stale);
}

void tid_tracker_add(struct tid_tracker *t, uint32_t tid)
{
    /* out of memory: the bit stays clear, so the next event tries again */
    if (tid && !vec_push(&t->fresh, (int32_t)tid))
        return;
    t->known[tid / 64] |= 1ull << (tid % 64);
}

void tid_tracker_forget(struct tid_tracker *t, uint32_t tid)
{
    if (tid >= TID_LIMIT || !(t->known[tid / 64] >> (tid % 64) & 1))
        return;
    t->known[tid / 64] &= ~(1ull << (tid % 64));
    (void)!vec_push(&t->stale, (int32_t)tid);
}

void tid_tracker_forget_all(struct tid_tracker *t)
{
    madvise(t->known, TID_LIMIT / 8, MADV_DONTNEED);
}
