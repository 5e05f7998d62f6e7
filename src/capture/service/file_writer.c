/* The queue of a trace file, and the thread that writes it. */
#include "capture/service/file_writer.h"

#include "base/alloc.h"
#include "base/file.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 100 };

struct block {
    struct block *next;
    struct pb_writer bytes;
    bool sync;
};

struct file_writer {
    uv_async_t wake; /* the loop */
    uv_thread_t thread;
    uv_mutex_t lock;
    uv_cond_t work;
    int fd; /* the thread's */
    bool is_regular;
    void (*progress)(void *ctx); /* NULL: nobody asks any more */
    void *ctx;
    atomic_bool abandoned;
    /* under the lock */
    struct block *head, **tail;
    size_t queued;
    uint64_t written;
    bool finishing, ended; /* ended: the thread has closed the file */
    struct error err;
};

/* ---- the thread ---- */

/* Where the last packet ends that is whole in the first `n` bytes. */
static size_t whole_packets(const uint8_t *p, size_t n)
{
    size_t end = 0;
    for (;;) {
        const uint8_t *at = p + end, *to = p + n;
        uint64_t len;
        if (at == to || *at++ != (TRACE_PACKET << 3 | PB_BYTES) || !pb_varint(&at, to, &len) ||
            len > (uint64_t)(to - at))
            return end;
        end = (size_t)(at - p) + (size_t)len;
    }
}

static uint64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Waits until the descriptor takes something; false: too long, or nobody wants it any more. */
static bool wait_writable(struct file_writer *w)
{
    uint64_t until = now_ms() + FILE_STALL_MS;
    while (!atomic_load(&w->abandoned) && now_ms() < until) {
        struct pollfd pfd = {.fd = w->fd, .events = POLLOUT};
        if (poll(&pfd, 1, POLL_MS) > 0)
            return true;
    }
    errno = ETIMEDOUT;
    return false;
}

/* A packet that is half in the file would hide that the file ends before its recording. */
static size_t cut_back(struct file_writer *w, const struct block *b, size_t done)
{
    size_t whole = whole_packets(b->bytes.p, done);
    off_t at = w->is_regular ? lseek(w->fd, 0, SEEK_CUR) : -1;
    struct stat st;
    if (at < 0 || fstat(w->fd, &st) != 0 || st.st_size != at || ftruncate(w->fd, at - (off_t)(done - whole)) != 0)
        return done;
    return whole;
}

static int write_block(struct file_writer *w, const struct block *b, size_t *done, struct error *err)
{
    while (*done < b->bytes.n) {
        ssize_t n = file_write(w->fd, b->bytes.p + *done, b->bytes.n - *done);
        if (n < 0 && errno == EAGAIN && wait_writable(w))
            continue;
        if (n <= 0) {
            error_set_errno(err, n ? errno : EIO, "the service cannot write the trace file");
            *done = cut_back(w, b, *done);
            return err->code;
        }
        *done += (size_t)n;
    }
    if (b->sync && fdatasync(w->fd) != 0 && errno != EINVAL && errno != EROFS) /* those: nothing to sync */
        return error_set_errno(err, errno, "the service cannot write the trace file");
    return 0;
}

static void free_block(struct block *b)
{
    pb_writer_free(&b->bytes);
    mem_free(b);
}

static void run(void *ctx)
{
    struct file_writer *w = ctx;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL); /* signals are the loop's */
    uv_mutex_lock(&w->lock);
    while (!w->err.code && !atomic_load(&w->abandoned)) {
        struct block *b = w->head;
        if (!b && w->finishing)
            break;
        if (!b) {
            uv_cond_wait(&w->work, &w->lock);
            continue;
        }
        w->head = b->next;
        if (!w->head)
            w->tail = &w->head;
        uv_mutex_unlock(&w->lock);
        struct error err = {0};
        size_t done = 0;
        write_block(w, b, &done, &err);
        uv_mutex_lock(&w->lock);
        w->queued -= b->bytes.n;
        w->written += done;
        w->err = err;
        free_block(b);
        uv_async_send(&w->wake);
    }
    uv_mutex_unlock(&w->lock);
    int rc = close(w->fd); /* may say what did not reach the disk, and may block as well */
    uv_mutex_lock(&w->lock);
    if (rc != 0 && errno != EINTR && !w->err.code)
        error_set_errno(&w->err, errno, "the service cannot write the trace file");
    w->ended = true;
    uv_async_send(&w->wake);
    uv_mutex_unlock(&w->lock);
}

/* ---- the loop ---- */

static void on_closed(uv_handle_t *h)
{
    struct file_writer *w = h->data;
    while (w->head) {
        struct block *b = w->head;
        w->head = b->next;
        free_block(b);
    }
    uv_cond_destroy(&w->work);
    uv_mutex_destroy(&w->lock);
    mem_free(w);
}

static void on_wake(uv_async_t *a)
{
    struct file_writer *w = a->data;
    uv_mutex_lock(&w->lock);
    bool ended = w->ended;
    uv_mutex_unlock(&w->lock);
    if (!atomic_load(&w->abandoned)) {
        w->progress(w->ctx);
    } else if (ended && !uv_is_closing((uv_handle_t *)a)) {
        uv_thread_join(&w->thread);
        uv_close((uv_handle_t *)a, on_closed);
    }
}

/* What its sender cannot make blocking again behind our back: an open file of our own, where there is a way to one. */
static int non_blocking(int fd)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (own < 0) {
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        return fd;
    }
    close(fd);
    return own;
}

struct file_writer *file_writer_open(uv_loop_t *loop, int fd, void (*progress)(void *ctx), void *ctx, struct error *err)
{
    struct stat st;
    struct file_writer *w = mem_zalloc(sizeof *w);
    if (!w || uv_mutex_init(&w->lock) != 0) {
        close(fd);
        mem_free(w);
        error_set(err, -MRD_ENOMEM, "out of memory");
        return NULL;
    }
    w->is_regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    w->fd = w->is_regular ? fd : non_blocking(fd);
    w->progress = progress;
    w->ctx = ctx;
    w->tail = &w->head;
    uv_cond_init(&w->work);
    uv_async_init(loop, &w->wake, on_wake);
    w->wake.data = w;
    if (uv_thread_create(&w->thread, run, w) != 0) {
        close(w->fd);
        uv_close((uv_handle_t *)&w->wake, on_closed);
        error_set(err, -MRD_ENOMEM, "cannot start the thread that writes the trace file");
        return NULL;
    }
    return w;
}

static bool add_block(struct file_writer *w, struct pb_writer *bytes, bool sync)
{
    struct block *b = mem_zalloc(sizeof *b);
    if (!b)
        return false;
    b->sync = sync;
    if (bytes) {
        b->bytes = *bytes;
        *bytes = (struct pb_writer){0};
    }
    uv_mutex_lock(&w->lock);
    *w->tail = b;
    w->tail = &b->next;
    w->queued += b->bytes.n;
    uv_cond_signal(&w->work);
    uv_mutex_unlock(&w->lock);
    return true;
}

bool file_writer_push(struct file_writer *w, struct pb_writer *bytes)
{
    return add_block(w, bytes, false);
}

void file_writer_sync(struct file_writer *w)
{
    add_block(w, NULL, true); /* out of memory: the next one will do */
}

void file_writer_finish(struct file_writer *w)
{
    uv_mutex_lock(&w->lock);
    w->finishing = true;
    uv_cond_signal(&w->work);
    uv_mutex_unlock(&w->lock);
}

size_t file_writer_queued(struct file_writer *w)
{
    uv_mutex_lock(&w->lock);
    size_t n = w->queued;
    uv_mutex_unlock(&w->lock);
    return n;
}

bool file_writer_done(struct file_writer *w)
{
    uv_mutex_lock(&w->lock);
    bool done = w->ended;
    uv_mutex_unlock(&w->lock);
    return done;
}

struct error file_writer_error(struct file_writer *w)
{
    uv_mutex_lock(&w->lock);
    struct error err = w->err;
    uv_mutex_unlock(&w->lock);
    return err;
}

uint64_t file_writer_written(struct file_writer *w)
{
    uv_mutex_lock(&w->lock);
    uint64_t n = w->written;
    uv_mutex_unlock(&w->lock);
    return n;
}

void file_writer_close(struct file_writer *w)
{
    if (!w)
        return;
    uv_mutex_lock(&w->lock);
    atomic_store(&w->abandoned, true);
    if (!w->ended)
        uv_unref((uv_handle_t *)&w->wake); /* a thread that the kernel holds must not hold the loop */
    uv_cond_signal(&w->work);
    uv_mutex_unlock(&w->lock);
    uv_async_send(&w->wake);
}
