/* Reads files behind maps: which file it is, its build id, its unwind tables. */
#include "capture/perf/perf_loader.h"

#include "base/alloc.h"
#include "base/file.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 8, LEAVE_MS = 500 };

struct perf_loader {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    struct perf_load *queue, **queue_end, *finished;
    unsigned threads, idle;
    unsigned on_their_way; /* in the queue or with a thread */
    bool quit, left;       /* left: by its owner; the last thread frees it */
};

/* ---- one file ---- */

/* Opens a path when it is the file that is mapped; nothing else is opened for reading. */
static int open_same(const char *path, uint64_t inode, struct perf_file_identity *is)
{
    struct stat st;
    int fd = -1, at = open(path, O_PATH | O_CLOEXEC);
    if (at < 0)
        return -1;
    if (fstat(at, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == inode) {
        fd = file_open_again(at);
        *is = (struct perf_file_identity){st.st_dev, st.st_ino, (uint64_t)st.st_size,
                                          (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec};
    }
    close(at);
    return fd;
}

/* The kernel's own link to what is mapped comes first: it leads to files that were deleted or replaced, and into other
 * mount namespaces. */
static int open_mapped(struct perf_load *l)
{
    char path[4224];
    snprintf(path, sizeof path, "/proc/%d/map_files/%lx-%lx", l->pid, (unsigned long)l->map_start,
             (unsigned long)l->map_end);
    int fd = open_same(path, l->inode, &l->is);
    if (fd < 0 && snprintf(path, sizeof path, "/proc/%d/root%s", l->pid, l->path) < (int)sizeof path)
        fd = open_same(path, l->inode, &l->is);
    return fd < 0 ? open_same(l->path, l->inode, &l->is) : fd;
}

static bool same_identity(const struct perf_file_identity *a, const struct perf_file_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size && a->changed_ns == b->changed_ns;
}

void perf_load_run(struct perf_load *l)
{
    if (l->jit) {
        perf_jit_read(l->jit);
        return;
    }
    int fd = open_mapped(l);
    l->opened = fd >= 0;
    if (fd < 0)
        return;
    l->same = same_identity(&l->is, &l->had);
    if (!l->same) {
        perf_elf_read(&l->elf, fd);
        if (l->wants_tables)
            unwind_file_read(&l->tables, fd, l->max_bytes, &l->why);
    }
    close(fd);
}

void perf_load_free(struct perf_load *l)
{
    if (!l)
        return;
    unwind_file_free(l->tables);
    mem_free(l->path);
    mem_free(l);
}

/* ---- threads ---- */

static void free_all(struct perf_loader *l)
{
    for (struct perf_load *x; (x = l->queue) != NULL;) {
        l->queue = x->next;
        perf_load_free(x);
    }
    for (struct perf_load *x; (x = l->finished) != NULL;) {
        l->finished = x->next;
        perf_load_free(x);
    }
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->done);
    pthread_mutex_destroy(&l->lock);
    mem_free(l);
}

static void *run_thread(void *arg)
{
    struct perf_loader *l = arg;
    pthread_mutex_lock(&l->lock);
    while (!l->quit) {
        struct perf_load *x = l->queue;
        if (!x) {
            l->idle++;
            pthread_cond_wait(&l->work, &l->lock);
            l->idle--;
            continue;
        }
        l->queue = x->next;
        if (!l->queue)
            l->queue_end = &l->queue;
        pthread_mutex_unlock(&l->lock);
        perf_load_run(x);
        pthread_mutex_lock(&l->lock);
        x->next = l->finished;
        l->finished = x;
        l->on_their_way--;
        pthread_cond_broadcast(&l->done);
    }
    l->threads--;
    bool last = !l->threads && l->left;
    pthread_cond_broadcast(&l->done);
    pthread_mutex_unlock(&l->lock);
    if (last)
        free_all(l);
    return NULL;
}

struct perf_loader *perf_loader_new(void)
{
    pthread_condattr_t attr;
    struct perf_loader *l = mem_zalloc(sizeof *l);
    if (!l)
        return NULL;
    l->queue_end = &l->queue;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->done, &attr);
    pthread_condattr_destroy(&attr);
    return l;
}

static struct timespec in_ms(uint32_t ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

bool perf_loader_free(struct perf_loader *l)
{
    if (!l)
        return true;
    struct timespec until = in_ms(LEAVE_MS);
    pthread_mutex_lock(&l->lock);
    l->quit = true;
    pthread_cond_broadcast(&l->work);
    while (l->threads && pthread_cond_timedwait(&l->done, &l->lock, &until) == 0)
        continue;
    bool left = l->left = l->threads != 0;
    pthread_mutex_unlock(&l->lock);
    if (!left)
        free_all(l);
    return !left;
}

/* With the lock held. Signals are for the loop's thread. */
static bool start_thread(struct perf_loader *l)
{
    pthread_t thread;
    sigset_t all, was;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &was);
    bool started = pthread_create(&thread, NULL, run_thread, l) == 0;
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    if (started) {
        pthread_detach(thread);
        l->threads++;
    }
    return started;
}

bool perf_loader_add(struct perf_loader *l, struct perf_load *x)
{
    pthread_mutex_lock(&l->lock);
    bool taken = true;
    if (l->idle <= l->on_their_way && l->threads < MAX_THREADS)
        taken = start_thread(l) || l->threads;
    if (taken) {
        x->next = NULL;
        *l->queue_end = x;
        l->queue_end = &x->next;
        l->on_their_way++;
        pthread_cond_signal(&l->work);
    }
    pthread_mutex_unlock(&l->lock);
    return taken;
}

struct perf_load *perf_loader_take(struct perf_loader *l, uint32_t wait_ms)
{
    struct timespec until = in_ms(wait_ms);
    pthread_mutex_lock(&l->lock);
    while (wait_ms && !l->finished && l->on_their_way && pthread_cond_timedwait(&l->done, &l->lock, &until) == 0)
        continue;
    struct perf_load *x = l->finished;
    if (x)
        l->finished = x->next;
    pthread_mutex_unlock(&l->lock);
    return x;
}
