/* Keeps the addresses that were sampled, without locks: an address is in it once at most while it is allocated, and
 * whoever frees it does so after it was handed out. */
#include "capture/heap/client/heap_client.h"

static _Atomic uintptr_t *set_of(const struct heap_state *s, uintptr_t address, unsigned which)
{
    uint64_t h = (uint64_t)(address >> 4) * (which ? UINT64_C(0xd6e8feb86659fd93) : UINT64_C(0xc2b2ae3d27d4eb4f));
    return (_Atomic uintptr_t *)(uintptr_t)s->sets[h >> 48];
}
_Static_assert(HEAP_SETS == 1 << 16, "the shift gives as many");

/* Puts `to` into a slot that holds `from`. */
static bool replace(struct heap_state *s, uintptr_t address, uintptr_t from, uintptr_t to)
{
    for (unsigned which = 0; which < 2; which++) {
        _Atomic uintptr_t *set = set_of(s, address, which);
        for (unsigned i = 0; i < HEAP_SET_SLOTS; i++) {
            uintptr_t is = from;
            if (atomic_load_explicit(&set[i], memory_order_relaxed) == from &&
                atomic_compare_exchange_strong(&set[i], &is, to))
                return true;
        }
    }
    return false;
}

bool heap_set_add(struct heap_state *s, uintptr_t address)
{
    if (!replace(s, address, 0, address))
        return false;
    atomic_fetch_add(&s->filter[heap_filter_of(address)], 1);
    return true;
}

bool heap_set_has(const struct heap_state *s, uintptr_t address)
{
    for (unsigned which = 0; which < 2; which++) {
        _Atomic uintptr_t *set = set_of(s, address, which);
        for (unsigned i = 0; i < HEAP_SET_SLOTS; i++)
            if (atomic_load_explicit(&set[i], memory_order_relaxed) == address)
                return true;
    }
    return false;
}

bool heap_set_remove(struct heap_state *s, uintptr_t address)
{
    if (!replace(s, address, address, 0))
        return false;
    atomic_fetch_sub(&s->filter[heap_filter_of(address)], 1);
    return true;
}
