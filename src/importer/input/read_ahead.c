/* The thread that maps pages ahead of the reader, in steps, and gives back what lies behind it. */
#include "importer/input/read_ahead.h"

#include "base/alloc.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    STEP_BYTES = 1 << 20,
    AHEAD_BYTES = 12 << 20, /* three of the reader's pieces */
};

struct read_ahead {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    pthread_t thread;
    struct slice file;
    size_t at; /* of the reader */
    bool stop;
};

void read_ahead_give_back(const uint8_t *p, size_t len)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)p + page - 1) & -page, end = ((uintptr_t)p + len) & -page;
    if (first < end)
        madvise((void *)first, end - first, MADV_DONTNEED); /* only ever read: nothing is lost; failing is harmless */
}

/* False when the kernel cannot: then nothing is mapped ahead. Pages that are gone are the reader's to find out. */
static bool map_ahead(const uint8_t *p, size_t len)
{
#ifdef MADV_POPULATE_READ
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)p & -page;
    return madvise((void *)first, (uintptr_t)p + len - first, MADV_POPULATE_READ) == 0;
#else
    (void)p, (void)len;
    return false;
#endif
}

static void *run(void *ctx)
{
    struct read_ahead *r = ctx;
    size_t mapped = 0, given_back = 0;
    bool maps = true;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        size_t at = r->at;
        bool stop = r->stop;
        mapped = mapped < at ? at : mapped; /* the reader was faster */
        size_t left = r->file.len - mapped, step = left < STEP_BYTES ? left : STEP_BYTES;
        bool wanted = !stop && maps && step && mapped < at + AHEAD_BYTES;
        if (!wanted && given_back == at) {
            if (stop)
                break;
            pthread_cond_wait(&r->moved, &r->lock);
            continue;
        }
        pthread_mutex_unlock(&r->lock);
        if (given_back < at)
            read_ahead_give_back(r->file.p + given_back, at - given_back);
        given_back = at;
        if (wanted) {
            maps = map_ahead(r->file.p + mapped, step);
            mapped += step;
        }
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

struct read_ahead *read_ahead_open(struct slice file)
{
    struct read_ahead *r = mem_zalloc(sizeof *r);
    if (!r)
        return NULL;
    r->file = file;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->moved, NULL);
    if (pthread_create(&r->thread, NULL, run, r) == 0)
        return r;
    pthread_cond_destroy(&r->moved);
    pthread_mutex_destroy(&r->lock);
    mem_free(r);
    return NULL;
}

void read_ahead_moved(struct read_ahead *r, size_t at)
{
    pthread_mutex_lock(&r->lock);
    r->at = at;
    pthread_cond_signal(&r->moved);
    pthread_mutex_unlock(&r->lock);
}

void read_ahead_close(struct read_ahead *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_signal(&r->moved);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    pthread_cond_destroy(&r->moved);
    pthread_mutex_destroy(&r->lock);
    mem_free(r);
}
