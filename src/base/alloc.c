/* The allocation hook, and the pages of the heap's end. */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { PAGE = 4096, POPULATE_BYTES = 512 * 1024 };

/* The heap's pages below it are there, or are left to faults; UINTPTR_MAX: all of them. */
static _Atomic uintptr_t populated = UINTPTR_MAX;

static _Atomic(alloc_gate) gate_fn; /* tests set it while threads allocate */
static _Atomic(void *) gate_ctx;

void alloc_set_gate(alloc_gate gate, void *ctx)
{
    atomic_store_explicit(&gate_fn, NULL, memory_order_relaxed);
    atomic_store_explicit(&gate_ctx, ctx, memory_order_relaxed);
    atomic_store_explicit(&gate_fn, gate, memory_order_release);
}

bool alloc_allowed(size_t size)
{
    alloc_gate gate = atomic_load_explicit(&gate_fn, memory_order_acquire);
    return __builtin_expect(!gate, 1) || gate(atomic_load_explicit(&gate_ctx, memory_order_relaxed), size);
}

/* Of threads that come to the same end one makes its pages; the others do not wait for it. */
static void populate(uintptr_t end)
{
    uintptr_t top = (uintptr_t)sbrk(0) & ~(uintptr_t)(PAGE - 1), from = (end + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    uintptr_t before = atomic_load_explicit(&populated, memory_order_relaxed);
    if (from >= top || end <= before) /* not of the heap, or its last page */
        return;
    uintptr_t to = top - from > POPULATE_BYTES ? from + POPULATE_BYTES : top;
    if (atomic_compare_exchange_strong_explicit(&populated, &before, to, memory_order_relaxed, memory_order_relaxed) &&
        madvise((void *)from, to - from, MADV_POPULATE_WRITE) != 0)
        atomic_store_explicit(&populated, UINTPTR_MAX, memory_order_relaxed);
}

void alloc_populate_heap(void)
{
    atomic_store_explicit(&populated, (uintptr_t)sbrk(0), memory_order_relaxed);
}

static inline void *note_end(void *p, size_t size)
{
    uintptr_t end = (uintptr_t)p + size;
    if (__builtin_expect(end > atomic_load_explicit(&populated, memory_order_relaxed), 0))
        populate(end);
    return p;
}

void *mem_alloc(size_t size)
{
    return alloc_allowed(size) ? note_end(malloc(size), size) : NULL;
}

void *mem_zalloc(size_t size)
{
    return alloc_allowed(size) ? calloc(1, size) : NULL;
}

void *mem_realloc(void *p, size_t size)
{
    return alloc_allowed(size) ? note_end(realloc(p, size), size) : NULL;
}

void mem_free(void *p)
{
    free(p);
}

char *mem_strndup(const char *s, size_t len)
{
    char *copy = mem_alloc(len + 1);
    if (!copy)
        return NULL;
    if (len) /* an empty view may have no bytes at all */
        memcpy(copy, s, len);
    copy[len] = 0;
    return copy;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}
