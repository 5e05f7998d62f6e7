/* Keeps the sums of call stacks, and which sampled addresses are in use. */
#include "capture/heap/heap_book.h"

enum { WEIGHT_BITS = 40 }; /* a terabyte; the rest is the site */
_Static_assert(HEAP_SITES_MAX <= 1 << (64 - WEIGHT_BITS), "a site and a weight are one number");

/* Before a site changes: what it has was so when the process kept most, unless it has changed since then. */
static void begin_change(struct heap_book *b, struct heap_site *s)
{
    if (s->changed <= b->most_at) {
        s->at_most = s->allocated - s->freed;
        s->n_at_most = s->allocations - s->frees;
    }
    s->changed = ++b->changes;
    s->told = false;
}

static struct heap_site *site_of(struct heap_book *b, uint64_t callstack)
{
    bool added;
    uint64_t *at =
        b->sites.n < HEAP_SITES_MAX ? u64map_put(&b->site_of, callstack, &added) : u64map_get(&b->site_of, callstack);
    if (!at)
        return NULL;
    if (b->sites.n < HEAP_SITES_MAX && added) {
        *at = b->sites.n;
        if (!vec_push(&b->sites, (struct heap_site){.callstack = callstack})) {
            u64map_del(&b->site_of, callstack);
            return NULL;
        }
    }
    return &b->sites.p[*at];
}

static void end_live(struct heap_book *b, uint64_t value)
{
    struct heap_site *s = &b->sites.p[value >> WEIGHT_BITS];
    uint64_t weight = value & ((UINT64_C(1) << WEIGHT_BITS) - 1);
    begin_change(b, s);
    s->freed += weight;
    s->frees++;
    b->kept -= weight;
}

bool heap_book_allocated(struct heap_book *b, uint64_t callstack, uint64_t address, uint64_t weight)
{
    heap_book_freed(b, address);
    struct heap_site *s = weight >> WEIGHT_BITS || b->live.n >= HEAP_LIVE_MAX ? NULL : site_of(b, callstack);
    if (!s || !u64map_set(&b->live, address, (uint64_t)(s - b->sites.p) << WEIGHT_BITS | weight))
        return false;
    begin_change(b, s);
    s->allocated += weight;
    s->allocations++;
    b->kept += weight;
    if (b->kept > b->most) {
        b->most = b->kept;
        b->most_at = b->changes;
    }
    return true;
}

void heap_book_freed(struct heap_book *b, uint64_t address)
{
    const uint64_t *value = u64map_get(&b->live, address);
    if (!value)
        return;
    end_live(b, *value);
    u64map_del(&b->live, address);
}

void heap_book_free_all(struct heap_book *b)
{
    size_t it = 0;
    for (struct u64map_slot *s; (s = u64map_next(&b->live, &it)) != NULL;)
        end_live(b, s->value);
    u64map_free(&b->live);
}

void heap_book_tell_anew(struct heap_book *b)
{
    for (size_t i = 0; i < b->sites.n; i++)
        b->sites.p[i].told = false;
}

uint64_t heap_book_at_most(const struct heap_book *b, const struct heap_site *s, uint64_t *n)
{
    bool same = s->changed <= b->most_at;
    *n = same ? s->allocations - s->frees : s->n_at_most;
    return same ? s->allocated - s->freed : s->at_most;
}

void heap_book_close(struct heap_book *b)
{
    u64map_free(&b->site_of);
    u64map_free(&b->live);
    vec_free(&b->sites);
    *b = (struct heap_book){0};
}
