/* Guards mapped files against shrinking: the SIGBUS handler, and the ranges that it looks at. */
#include "base/map_guard.h"

#include "base/alloc.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The handler walks the list without a lock: guards are used again and never freed. `begin` is 0 while unused, and is
 * written last, so that a range that is seen is whole. */
struct map_guard {
    _Atomic(uintptr_t) begin;
    _Atomic(uintptr_t) end;
    atomic_bool hit;
    struct map_guard *next; /* as it was when the guard was put in front */
};

/* Signals belong to the process, and so do these. */
static _Atomic(struct map_guard *) guards;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t in_use;
static struct sigaction before;
static size_t page_bytes;

static struct map_guard *guard_of(uintptr_t address)
{
    for (struct map_guard *g = atomic_load(&guards); g; g = g->next) {
        uintptr_t begin = atomic_load(&g->begin);
        if (begin && address >= begin && address < atomic_load(&g->end))
            return g;
    }
    return NULL;
}

static void on_bus_error(int sig, siginfo_t *info, void *context)
{
    int saved = errno;
    uintptr_t address = (uintptr_t)info->si_addr, page = address & ~(uintptr_t)(page_bytes - 1);
    struct map_guard *g = guard_of(address);
    if (g && mmap((void *)page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
        atomic_store(&g->hit, true);
        errno = saved;
        return;
    }
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(sig, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(sig);
    else {
        sigaction(sig, &before, NULL); /* the access is tried again, and ends the process */
        if (info->si_code <= 0)        /* somebody sent it: there is no access */
            raise(sig);
    }
    errno = saved;
}

static bool install(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &before) == 0;
}

/* Puts back what was there, unless somebody has set a handler of his own since. */
static void uninstall(void)
{
    struct sigaction now;
    if (sigaction(SIGBUS, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_bus_error)
        sigaction(SIGBUS, &before, NULL);
}

static struct map_guard *unused(void)
{
    struct map_guard *g = atomic_load(&guards);
    while (g && atomic_load(&g->begin))
        g = g->next;
    if (g || !(g = mem_zalloc(sizeof *g)))
        return g;
    g->next = atomic_load(&guards);
    atomic_store(&guards, g);
    return g;
}

struct map_guard *map_guard_add(const void *map, size_t len)
{
    pthread_mutex_lock(&lock);
    struct map_guard *g = unused();
    if (g && in_use == 0 && !install())
        g = NULL;
    if (g) {
        in_use++;
        atomic_store(&g->hit, false);
        atomic_store(&g->end, (uintptr_t)map + len);
        atomic_store(&g->begin, (uintptr_t)map);
    }
    pthread_mutex_unlock(&lock);
    return g;
}

bool map_guard_hit(const struct map_guard *g)
{
    return g && atomic_load(&g->hit);
}

void map_guard_remove(struct map_guard *g)
{
    if (!g)
        return;
    pthread_mutex_lock(&lock);
    atomic_store(&g->begin, 0);
    if (--in_use == 0)
        uninstall();
    pthread_mutex_unlock(&lock);
}
