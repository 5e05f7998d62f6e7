/* The allocator's functions under their own names: each calls the next one of its name, the C library's or that of the
 * allocator that the program was linked with. */
#include "capture/heap/client/heap_client.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define SHOWN __attribute__((visibility("default")))

static struct {
#define ALLOCATOR(name, type, parameters) type(*name) parameters;
#include "capture/heap/client/heap_functions.def"
#undef ALLOCATOR
} next;

/* ---- before they are found ---- */

/* Looking for a function may allocate. What it gets is from here, and is never given back. */
enum { EARLY_BYTES = 1 << 16, EARLY_HEAD = 16 };
static _Alignas(16) uint8_t early[EARLY_BYTES];
static _Atomic size_t early_used;
static _Atomic int finding; /* 1: being looked for, 2: found */

static bool is_early(const void *p)
{
    return (const uint8_t *)p >= early && (const uint8_t *)p < early + EARLY_BYTES;
}

static void *early_allocate(size_t size)
{
    if (size > EARLY_BYTES - 2 * EARLY_HEAD)
        return NULL;
    size_t need = EARLY_HEAD + ((size + 15) & ~(size_t)15), at = atomic_fetch_add(&early_used, need);
    if (at > EARLY_BYTES - need)
        return NULL;
    memcpy(early + at, &size, sizeof size);
    return early + at + EARLY_HEAD;
}

/* False: they are being looked for, by this very thread. */
static bool find(void)
{
    int expected = 0;
    if (atomic_load_explicit(&finding, memory_order_acquire) == 2)
        return true;
    if (!atomic_compare_exchange_strong(&finding, &expected, 1))
        return expected == 2;
#define ALLOCATOR(name, type, parameters) *(void **)(void *)&next.name = dlsym(RTLD_NEXT, #name);
#include "capture/heap/client/heap_functions.def"
#undef ALLOCATOR
    atomic_store_explicit(&finding, 2, memory_order_release);
    return true;
}

/* Before each allocation. */
static inline bool ready(void)
{
    if (__builtin_expect(!heap_begun, 0)) {
        if (!find())
            return false;
        heap_begin();
    }
    return true;
}

/* A program that has not allocated yet. */
__attribute__((constructor)) static void begin(void)
{
    (void)ready();
}

/* ---- allocating ---- */

SHOWN void *malloc(size_t size)
{
    if (!ready())
        return early_allocate(size);
    return heap_allocated(next.malloc(size), size);
}

SHOWN void *calloc(size_t n, size_t size)
{
    size_t all;
    if (!ready()) /* memory of before is zeros */
        return __builtin_mul_overflow(n, size, &all) ? NULL : early_allocate(all);
    return heap_allocated(next.calloc(n, size), n * size);
}

SHOWN void *aligned_alloc(size_t alignment, size_t size)
{
    return heap_allocated(ready() && next.aligned_alloc ? next.aligned_alloc(alignment, size) : NULL, size);
}

SHOWN void *memalign(size_t alignment, size_t size)
{
    return heap_allocated(ready() && next.memalign ? next.memalign(alignment, size) : NULL, size);
}

SHOWN int posix_memalign(void **at, size_t alignment, size_t size)
{
    int rc = ready() && next.posix_memalign ? next.posix_memalign(at, alignment, size) : ENOMEM;
    if (rc == 0)
        heap_allocated(*at, size);
    return rc;
}

SHOWN void *valloc(size_t size)
{
    return heap_allocated(ready() && next.valloc ? next.valloc(size) : NULL, size);
}

SHOWN void *pvalloc(size_t size)
{
    return heap_allocated(ready() && next.pvalloc ? next.pvalloc(size) : NULL, size);
}

/* ---- freeing ---- */

static void say_freed(struct heap_state *s, void *p)
{
    struct heap_thread *t = &heap_thread;
    int kept = errno;
    bool inside = t->inside;
    t->inside = true;
    if (s->ring && heap_set_remove(s, (uintptr_t)p))
        heap_say_freed(s, (uintptr_t)p);
    t->inside = inside;
    errno = kept;
}

SHOWN void free(void *p)
{
    struct heap_state *s = atomic_load_explicit(&heap_state, memory_order_acquire);
    if (!p || is_early(p) || (__builtin_expect(!heap_begun, 0) && !find()))
        return;
    if (heap_may_be_sampled(s, p))
        say_freed(s, p);
    next.free(p);
}

/* A sampled block: its end is reserved before another thread can get its address, and told when it is sure. */
static void *move_sampled(struct heap_state *s, void *p, size_t size)
{
    uint32_t generation = s->control ? s->control->generation : 0;
    uintptr_t address = (uintptr_t)p;
    struct heap_head *h = generation & 1 ? heap_reserve(s, sizeof *h, HEAP_FREED, address, generation) : NULL;
    void *q = next.realloc(p, size);
    bool gone = q || size == 0;
    int kept = errno;
    if (gone)
        heap_set_remove(s, address);
    if (h)
        heap_finish(h, sizeof *h, !gone);
    errno = kept;
    return q;
}

SHOWN void *realloc(void *p, size_t size)
{
    if (is_early(p)) {
        size_t had;
        memcpy(&had, (uint8_t *)p - EARLY_HEAD, sizeof had);
        void *q = malloc(size);
        if (q)
            memcpy(q, p, had < size ? had : size);
        return q;
    }
    if (!ready())
        return p ? NULL : early_allocate(size);
    struct heap_state *s = heap_state;
    bool sampled = p && heap_may_be_sampled(s, p) && s->ring && heap_set_has(s, (uintptr_t)p);
    return heap_allocated(sampled ? move_sampled(s, p, size) : next.realloc(p, size), size);
}

SHOWN void *reallocarray(void *p, size_t n, size_t size)
{
    size_t all;
    if (__builtin_mul_overflow(n, size, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(p, all);
}
