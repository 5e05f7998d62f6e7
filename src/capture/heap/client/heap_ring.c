/* Writes records into the ring. */
#include "capture/heap/client/heap_client.h"

#include <time.h>

enum { WAIT_FIRST_NS = 50000, WAIT_MOST_NS = 2000000 };

static uint64_t now_us(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static struct heap_head *try_reserve(struct heap_state *s, struct heap_ring_header *r, size_t bytes, uint64_t limit)
{
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    do {
        if (head + bytes - atomic_load_explicit(&r->tail, memory_order_acquire) > limit)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&r->head, &head, head + bytes, memory_order_acq_rel,
                                                    memory_order_relaxed));
    return (struct heap_head *)(void *)(s->data + (head & (s->ring_bytes - 1)));
}

/* Waits for the daemon to make room, as long as the config lets it. */
static struct heap_head *wait_for_room(struct heap_state *s, struct heap_ring_header *r, size_t bytes, uint64_t limit,
                                       uint32_t generation)
{
    const struct heap_control *c = s->control;
    struct heap_head *h = NULL;
    uint64_t begin = now_us(), waited = 0;
    long nap = WAIT_FIRST_NS;
    while (!h && c->generation == generation && (waited = now_us() - begin) < c->block_us && !heap_is_orphan(s)) {
        nanosleep(&(struct timespec){.tv_nsec = nap}, NULL);
        nap = nap * 2 < WAIT_MOST_NS ? nap * 2 : WAIT_MOST_NS;
        h = try_reserve(s, r, bytes, limit);
    }
    atomic_fetch_add_explicit(&r->blocked_us, now_us() - begin, memory_order_relaxed);
    if (!h && c->generation == generation) /* nobody else is to wait as long */
        atomic_store_explicit(&r->timed_out, 1, memory_order_release);
    return h;
}

struct heap_head *heap_reserve(struct heap_state *s, size_t bytes, uint32_t kind, uintptr_t address,
                               uint32_t generation)
{
    struct heap_ring_header *r = s->ring;
    uint64_t limit = kind == HEAP_FREED ? s->ring_bytes : HEAP_ROOM_FOR_SAMPLES(s->ring_bytes);
    struct heap_head *h = try_reserve(s, r, bytes, limit);
    if (!h && s->control->block && !atomic_load_explicit(&r->timed_out, memory_order_acquire))
        h = wait_for_room(s, r, bytes, limit, generation);
    if (!h) {
        atomic_fetch_add_explicit(kind == HEAP_FREED ? &r->lost_frees : &r->lost_samples, 1, memory_order_relaxed);
        return NULL;
    }
    h->kind = kind;
    h->generation = generation;
    h->address = address;
    atomic_store_explicit(&h->size, bytes, memory_order_release);
    return h;
}

void heap_finish(struct heap_head *h, size_t bytes, bool is_void)
{
    atomic_store_explicit(&h->size, bytes | HEAP_WRITTEN | (is_void ? HEAP_VOID : 0u), memory_order_release);
}

void heap_say_freed(struct heap_state *s, uintptr_t address)
{
    uint32_t generation = s->control ? s->control->generation : 0;
    struct heap_head *h = generation & 1 ? heap_reserve(s, sizeof *h, HEAP_FREED, address, generation) : NULL;
    if (h)
        heap_finish(h, sizeof *h, false);
}
