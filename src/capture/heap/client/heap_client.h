/* The library that is loaded into a profiled program (LD_PRELOAD): it stands in front of the allocator, takes a sample
 * of what is allocated, and says when what it sampled is freed.
 *
 * It lives inside of somebody else's program: it allocates nothing, holds no lock, keeps errno, and does nothing but
 * count while nobody samples. All it knows is in one mapping that the kernel empties in the child of a fork
 * (MADV_WIPEONFORK), so that a child begins anew and never writes in the name of its parent. */
#ifndef MERIDIAN_CAPTURE_HEAP_CLIENT_HEAP_CLIENT_H
#define MERIDIAN_CAPTURE_HEAP_CLIENT_HEAP_CLIENT_H

#include "capture/heap/heap_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum heap_link { HEAP_UNLINKED, HEAP_LINKING, HEAP_LINKED, HEAP_GIVEN_UP };

/* Addresses that were sampled: sets of SET_SLOTS. In front of them, how many there are by another hash: a free that is
 * none of them looks at one number, in 64 KiB. */
enum { HEAP_FILTER = 1 << 15, HEAP_SETS = 1 << 16, HEAP_SET_SLOTS = 16 };

struct heap_state {
    const struct heap_control *_Atomic control; /* NULL: not connected */
    struct heap_ring_header *_Atomic ring;      /* NULL: none yet; its memory stays */
    uint8_t *data;                              /* of the ring */
    uint64_t ring_bytes;
    _Atomic int link; /* enum heap_link */
    _Atomic int ring_link;
    int socket;
    uint64_t socket_device, socket_inode;
    _Atomic uint16_t filter[HEAP_FILTER];
    _Atomic uintptr_t sets[HEAP_SETS][HEAP_SET_SLOTS];
};

/* Of a thread. */
struct heap_thread {
    bool inside;         /* it is in this library: what that allocates is not sampled */
    uint32_t generation; /* for which the following was drawn */
    uint64_t interval;
    double log_keep;     /* ln(1 - 1/interval) */
    int64_t left;        /* bytes to the next sample; while there is no daemon, to the next look for one */
    uint64_t random;     /* 0: not seeded */
    uintptr_t low, high; /* its stack; 0: not looked up */
};

extern struct heap_state *_Atomic heap_state; /* NULL: not begun, or nobody listens */
extern bool heap_begun;                       /* it will not be begun again */
extern __thread struct heap_thread heap_thread __attribute__((tls_model("initial-exec")));

/* heap_link.c: connects, when the environment says where; once. */
void heap_begin(void);
/* Nobody listened there, but this thread has allocated something since. Gives back what was allocated: so it is the
 * last thing that an allocation calls, and no register need be kept for it. */
void *heap_look(void *p);
/* In the child of a fork, on its first allocation. */
void heap_link_again(struct heap_state *s);
/* Maps the ring that the daemon has sent; false: there is none. */
bool heap_map_ring(struct heap_state *s);
/* The daemon has gone. */
bool heap_is_orphan(const struct heap_state *s);

/* heap_sample.c: an allocation that may be due, which it gives back as heap_look() does. */
void *heap_sample(struct heap_state *s, void *p, size_t size, uint32_t generation);

/* heap_set.c: addresses that were sampled. */
bool heap_set_add(struct heap_state *s, uintptr_t address); /* false: no room */
bool heap_set_has(const struct heap_state *s, uintptr_t address);
bool heap_set_remove(struct heap_state *s, uintptr_t address);

static inline size_t heap_filter_of(uintptr_t address)
{
    return (size_t)((uint64_t)(address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 49);
}
_Static_assert(HEAP_FILTER == 1 << (64 - 49), "the shift gives as many");

/* heap_ring.c: room in the ring; NULL: none. A record that was reserved must be finished. */
struct heap_head *heap_reserve(struct heap_state *s, size_t bytes, uint32_t kind, uintptr_t address,
                               uint32_t generation);
void heap_finish(struct heap_head *h, size_t bytes, bool is_void);
void heap_say_freed(struct heap_state *s, uintptr_t address);

/* ---- what every allocation and every free passes ---- */

/* Gives back `p`. */
static inline void *heap_allocated(void *p, size_t size)
{
    struct heap_state *s = atomic_load_explicit(&heap_state, memory_order_acquire);
    struct heap_thread *t = &heap_thread;
    if (!s)
        return (t->left -= (int64_t)size) < 0 ? heap_look(p) : p;
    if (!p)
        return p;
    const struct heap_control *c = atomic_load_explicit(&s->control, memory_order_acquire);
    if (!c) {
        if (atomic_load_explicit(&s->link, memory_order_relaxed) == HEAP_UNLINKED && !t->inside)
            heap_link_again(s);
        return p;
    }
    uint32_t generation = atomic_load_explicit(&c->generation, memory_order_acquire);
    if (!(generation & 1))
        return p;
    if (t->generation == generation && size < t->interval && (t->left -= (int64_t)size) > 0)
        return p;
    return heap_sample(s, p, size, generation);
}

static inline bool heap_may_be_sampled(const struct heap_state *s, const void *p)
{
    return s && atomic_load_explicit(&s->filter[heap_filter_of((uintptr_t)p)], memory_order_relaxed) != 0;
}

#endif
