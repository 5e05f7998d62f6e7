/* Chooses which allocations are samples, and writes them down with the stack that asked for them.
 *
 * Every byte is a sample with the same probability, 1 / interval, whatever was sampled before (a Poisson process, in
 * whole bytes). An allocation that is hit stands for interval bytes, as often as it is hit; one that is as large as the
 * interval stands for itself. So what samples stand for is right in the mean, whatever the sizes are. */
#include "capture/heap/client/heap_client.h"
#include "capture/heap/client/heap_random.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

__thread struct heap_thread heap_thread __attribute__((tls_model("initial-exec")));

/* ---- when ---- */

static void draw(struct heap_thread *t)
{
    t->left += heap_random_gap(heap_random_next(&t->random), t->log_keep);
}

static void seed(struct heap_thread *t)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    t->random = heap_random_mix((uint64_t)(uintptr_t)t ^ (uint64_t)now.tv_nsec << 20 ^ (uint64_t)now.tv_sec ^
                                (uint64_t)getpid() << 44) |
                1;
}

/* Bytes that an allocation stands for; 0: it is no sample. */
static uint64_t weigh(struct heap_thread *t, const struct heap_control *c, size_t size, uint32_t generation)
{
    uint64_t weight = 0;
    if (t->generation != generation) {
        t->interval = c->interval ? c->interval : 1;
        t->log_keep = heap_random_log_keep(t->interval);
        t->generation = generation;
        seed(t);
        t->left = 0;
        draw(t);
        if (size < t->interval)
            t->left -= (int64_t)size;
    }
    if (size >= t->interval)
        return size;
    while (t->left <= 0) {
        weight += t->interval;
        draw(t);
    }
    return weight;
}

/* ---- from where ---- */

#if defined(__x86_64__)
enum { STACK_POINTER = 7 };
#define SAVE_REGISTERS(regs)                                                                                           \
    __asm__ volatile("movq %%rbx, 8(%0)\n\tmovq %%rbp, 48(%0)\n\tmovq %%rsp, 56(%0)\n\tleaq 0f(%%rip), %%rcx\n\t"      \
                     "movq %%rcx, 64(%0)\n\tmovq %%r12, 128(%0)\n\tmovq %%r13, 136(%0)\n\tmovq %%r14, 144(%0)\n\t"     \
                     "movq %%r15, 152(%0)\n0:"                                                                         \
                     :                                                                                                 \
                     : "r"(regs)                                                                                       \
                     : "rcx", "memory")
#elif defined(__aarch64__)
enum { STACK_POINTER = 31 };
#define SAVE_REGISTERS(regs)                                                                                           \
    __asm__ volatile("stp x19, x20, [%0, #152]\n\tstp x21, x22, [%0, #168]\n\tstp x23, x24, [%0, #184]\n\t"            \
                     "stp x25, x26, [%0, #200]\n\tstp x27, x28, [%0, #216]\n\tstp x29, x30, [%0, #232]\n\t"            \
                     "mov x9, sp\n\tstr x9, [%0, #248]\n\tadr x9, 0f\n\tstr x9, [%0, #256]\n0:"                        \
                     :                                                                                                 \
                     : "r"(regs)                                                                                       \
                     : "x9", "memory")
#endif

/* The stack of a thread. The main thread's is known from the beginning. */
static void find_stack(struct heap_thread *t)
{
    pthread_attr_t attr;
    void *low = NULL;
    size_t size = 0;
    t->high = 1;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return;
    if (pthread_attr_getstack(&attr, &low, &size) == 0) {
        t->low = (uintptr_t)low;
        t->high = t->low + size;
    }
    pthread_attr_destroy(&attr);
}

/* How much may be read from the stack pointer on: to the end of the thread's stack, or, on a stack of somebody's own
 * (of a signal handler, of a coroutine), to the end of its page. */
static size_t readable(struct heap_thread *t, uintptr_t sp, uint64_t ring_bytes)
{
    enum { PAGE = 4096 };
    if (!t->high)
        find_stack(t);
    size_t n = sp >= t->low && sp < t->high ? t->high - sp : PAGE - sp % PAGE;
    size_t most = ring_bytes / 8 < HEAP_STACK_MAX ? (size_t)ring_bytes / 8 : HEAP_STACK_MAX;
    return (n < most ? n : most) & ~(size_t)7;
}

/* The copy is of a stack that is in use, of whatever it holds. */
__attribute__((no_sanitize("address"))) static void copy_stack(uint64_t *to, uintptr_t from, size_t bytes)
{
    memcpy(to, (const void *)from, bytes);
}

__attribute__((noinline)) static bool write_sample(struct heap_state *s, struct heap_thread *t, uintptr_t address,
                                                   uint64_t weight, uint32_t generation)
{
    uint64_t regs[HEAP_REGS + 1] = {0};
    size_t stack = 0;
#ifdef SAVE_REGISTERS
    SAVE_REGISTERS(regs);
    stack = readable(t, (uintptr_t)regs[STACK_POINTER], s->ring_bytes);
#else
    (void)t;
#endif
    size_t bytes = sizeof(struct heap_sample) + stack;
    struct heap_sample *x = (struct heap_sample *)(void *)heap_reserve(s, bytes, HEAP_ALLOCATED, address, generation);
    if (!x)
        return false;
    x->weight = weight;
    x->stack_bytes = stack;
#ifdef SAVE_REGISTERS
    memcpy(x->regs, regs, sizeof x->regs);
    copy_stack((uint64_t *)(void *)(x + 1), (uintptr_t)regs[STACK_POINTER], stack);
#endif
    heap_finish(&x->head, bytes, false);
    return true;
}

/* ---- both ---- */

static void take_sample(struct heap_state *s, struct heap_thread *t, void *p, uint64_t weight, uint32_t generation)
{
    struct heap_ring_header *r = s->ring;
    if (!r && !heap_map_ring(s))
        return;
    r = s->ring;
    if (atomic_load_explicit(&r->timed_out, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&r->lost_samples, 1, memory_order_relaxed);
    } else if (!heap_set_add(s, (uintptr_t)p)) {
        atomic_fetch_add_explicit(&r->lost_samples, 1, memory_order_relaxed);
    } else if (!write_sample(s, t, (uintptr_t)p, weight, generation)) {
        heap_set_remove(s, (uintptr_t)p);
    }
}

void *heap_sample(struct heap_state *s, void *p, size_t size, uint32_t generation)
{
    struct heap_thread *t = &heap_thread;
    const struct heap_control *c = s->control;
    int kept = errno;
    if (t->inside || !c)
        return p;
    t->inside = true;
    uint64_t weight = weigh(t, c, size, generation);
    if (weight)
        take_sample(s, t, p, weight, generation);
    t->inside = false;
    errno = kept;
    return p;
}
