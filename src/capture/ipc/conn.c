/* Frames over a non-blocking socket. */
#include "capture/ipc/conn.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "capture/ipc/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BLOCK_SIZE    (64u * 1024)
#define HALF_FRAME_MS 30000 /* without a byte of a message that has begun: its memory is not held for ever */
#define PAGE          4096u
#define INPUT_KEPT    (16u * 1024) /* of the input, between messages */
#define LAST_READS    256          /* of a peer that has gone: more than a socket holds */

/* A piece of the send queue. A frame with a descriptor starts a block of its own, so that the descriptor travels with
 * its first byte. */
struct block {
    struct block *next;
    size_t n, cap, sent;
    int fd; /* to be passed with the first byte, or -1 */
    uint8_t data[];
};

struct ipc_conn {
    uv_poll_t poll;
    uv_timer_t stall; /* running while the queue is not empty */
    uv_timer_t half;  /* running while a frame has begun and is not whole */
    int open_handles; /* handles whose close callback is outstanding */
    int fd;
    const struct ipc_conn_ops *ops;
    struct ipc_conn_limits limits;
    void *ctx;
    bool connecting;
    bool closing;
    const char *broken; /* why nothing more can be sent: reported from the loop */
    bool want_write, paused;
    int received_fd;
    bool time_receipts;
    struct timespec received_at; /* CLOCK_REALTIME of the kernel; 0: unknown */
    uint8_t *in;                 /* IPC_FRAME_MAX bytes */
    size_t in_n;
    size_t in_touched; /* so many of them may have memory behind them */
    bool reading;      /* frames are handed out that stand in `in` */
    struct ipc_half half_held;
    struct block *head, *tail;
    size_t queued;
};

static const char write_error[] = "write error";

static void on_poll(uv_poll_t *h, int status, int events);
static void on_stall(uv_timer_t *t);

/* Mapped, so that what peers have filled goes back to the system with them. */
static bool get_input(struct ipc_conn *c)
{
    void *p = mmap(NULL, IPC_FRAME_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    c->in = p == MAP_FAILED ? NULL : p;
    return c->in != NULL;
}

static void free_input(struct ipc_conn *c)
{
    if (c->in)
        munmap(c->in, IPC_FRAME_MAX);
    c->in = NULL;
}

/* What large messages have left behind goes back to the system, so that idle connections hold little. What has begun
 * counts among those of all; false when it has to go. */
static bool settle_input(struct ipc_conn *c, bool anew)
{
    struct ipc_halves *h = c->limits.halves;
    size_t held = (c->in_n + PAGE - 1) & ~(size_t)(PAGE - 1);
    bool tight = h && h->bytes > h->max / 2;
    size_t keep = held > INPUT_KEPT ? held : INPUT_KEPT;
    if (c->in_touched > keep && (!c->in_n || tight)) {
        madvise(c->in + keep, IPC_FRAME_MAX - keep, MADV_DONTNEED);
        c->in_touched = keep;
    }
    return !h || ipc_half_hold(h, &c->half_held, c->in_n ? c->in_touched : 0, anew);
}

static void on_handle_closed(uv_handle_t *h)
{
    struct ipc_conn *c = h->data;
    if (--c->open_handles > 0)
        return;
    close(c->fd);
    if (c->received_fd >= 0)
        close(c->received_fd);
    while (c->head) {
        struct block *b = c->head;
        c->head = b->next;
        if (b->fd >= 0)
            close(b->fd);
        mem_free(b);
    }
    free_input(c);
    mem_free(c);
}

void ipc_conn_close(struct ipc_conn *c)
{
    if (!c || c->closing)
        return;
    c->closing = true;
    if (c->limits.halves)
        ipc_half_hold(c->limits.halves, &c->half_held, 0, false);
    if (!c->reading) /* at once: memory may be short */
        free_input(c);
    shutdown(c->fd, SHUT_RDWR); /* the peer learns at once, also when the loop does not run again */
    uv_close((uv_handle_t *)&c->poll, on_handle_closed);
    uv_close((uv_handle_t *)&c->stall, on_handle_closed);
    uv_close((uv_handle_t *)&c->half, on_handle_closed);
}

static void fail(struct ipc_conn *c, const char *why)
{
    if (c->closing)
        return;
    ipc_conn_close(c);
    c->ops->closed(c->ctx, why);
}

static void on_dropped(struct ipc_half *v)
{
    fail((struct ipc_conn *)((char *)v - offsetof(struct ipc_conn, half_held)),
         "too many messages have begun, and this one is the oldest of the user with most");
}

static void watch(struct ipc_conn *c)
{
    int events = (c->paused ? 0 : UV_READABLE) | (c->want_write ? UV_WRITABLE : 0);
    uv_poll_start(&c->poll, events ? events : UV_DISCONNECT, on_poll);
}

static void update_poll(struct ipc_conn *c)
{
    bool want = c->connecting || c->head;
    if (want == c->want_write || c->closing || c->broken)
        return;
    c->want_write = want;
    watch(c);
    if (want)
        uv_timer_start(&c->stall, on_stall, c->limits.send_timeout_ms, 0);
    else
        uv_timer_stop(&c->stall);
}

/* Nothing more can be sent; the owner hears of it from the loop, never from inside its own call. */
static void break_off(struct ipc_conn *c, const char *why)
{
    c->broken = why;
    uv_timer_start(&c->stall, on_stall, 0, 0);
}

struct ipc_conn *ipc_conn_new(uv_loop_t *loop, int fd, bool connecting, const struct ipc_conn_ops *ops,
                              const struct ipc_conn_limits *limits, void *ctx)
{
    struct ipc_conn *c = mem_zalloc(sizeof *c);
    if (!c || !get_input(c) || uv_poll_init(loop, &c->poll, fd) != 0) {
        if (c)
            free_input(c);
        mem_free(c);
        close(fd);
        return NULL;
    }
    uv_timer_init(loop, &c->stall);
    uv_timer_init(loop, &c->half);
    c->poll.data = c->stall.data = c->half.data = c;
    c->open_handles = 3;
    c->fd = fd;
    c->ops = ops;
    c->limits = *limits;
    if (!c->limits.half_frame_ms)
        c->limits.half_frame_ms = HALF_FRAME_MS;
    c->ctx = ctx;
    c->half_held = (struct ipc_half){.drop = on_dropped, .user_id = limits->user};
    c->connecting = connecting;
    c->received_fd = -1;
    uv_poll_start(&c->poll, UV_READABLE, on_poll);
    update_poll(c);
    return c;
}

/* One sendmsg() that passes `pass_fd` (or -1) along; bytes written, 0 when the socket is full, -1 when it is dead. */
static ssize_t send_some(struct ipc_conn *c, struct iovec *iov, int n_iov, int pass_fd)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = (size_t)n_iov};
    if (pass_fd >= 0) {
        memset(&control, 0, sizeof control);
        m.msg_control = control.buf;
        m.msg_controllen = sizeof control.buf;
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(h), &pass_fd, sizeof(int));
    }
    for (;;) {
        ssize_t r = sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (r >= 0)
            return r;
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
            return 0;
        if (errno != EINTR)
            return -1;
    }
}

/* Writes what the socket takes. */
static void flush_queue(struct ipc_conn *c)
{
    bool progress = false;
    while (c->head && !c->broken && !c->connecting) {
        struct block *b = c->head;
        struct iovec iov = {b->data + b->sent, b->n - b->sent};
        ssize_t r = send_some(c, &iov, 1, b->sent == 0 ? b->fd : -1);
        if (r < 0)
            break_off(c, write_error);
        if (r <= 0)
            break;
        progress = true;
        b->sent += (size_t)r;
        c->queued -= (size_t)r;
        if (b->sent < b->n)
            continue;
        c->head = b->next;
        if (!c->head)
            c->tail = NULL;
        if (b->fd >= 0)
            close(b->fd);
        mem_free(b);
    }
    if (progress && c->head && c->want_write)
        uv_timer_start(&c->stall, on_stall, c->limits.send_timeout_ms, 0);
    update_poll(c);
}

static bool enqueue(struct ipc_conn *c, struct slice bytes, int fd)
{
    struct block *b = c->tail;
    if (!b || fd >= 0 || b->cap - b->n < bytes.len) {
        size_t cap = bytes.len > BLOCK_SIZE ? bytes.len : BLOCK_SIZE;
        b = mem_alloc(sizeof *b + cap);
        if (!b)
            return false;
        *b = (struct block){.cap = cap, .fd = fd};
        if (c->tail)
            c->tail->next = b;
        else
            c->head = b;
        c->tail = b;
    }
    if (bytes.len)
        memcpy(b->data + b->n, bytes.p, bytes.len);
    b->n += bytes.len;
    c->queued += bytes.len;
    return true;
}

bool ipc_conn_send(struct ipc_conn *c, struct slice frame, int fd)
{
    if (c->closing || c->broken)
        return true; /* the owner hears of it from the loop */
    if (frame.len + IPC_HEADER_SIZE > IPC_FRAME_MAX)
        return false;
    uint8_t head[IPC_HEADER_SIZE] = {(uint8_t)frame.len, (uint8_t)(frame.len >> 8), (uint8_t)(frame.len >> 16),
                                     (uint8_t)(frame.len >> 24)};
    size_t total = frame.len + sizeof head, done = 0;
    if (!c->head && !c->connecting) { /* the usual case: straight into the socket */
        struct iovec iov[2] = {{head, sizeof head}, {(void *)(uintptr_t)frame.p, frame.len}};
        ssize_t r = send_some(c, iov, 2, fd);
        if (r < 0)
            break_off(c, write_error);
        if (r > 0) {
            done = (size_t)r;
            fd = -1;
        }
        if (done == total || c->broken)
            return true;
    }
    int own = -1;
    if (fd >= 0 && (own = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0) {
        break_off(c, "out of file descriptors"); /* without its descriptor the frame means something else */
        return true;
    }
    if (c->queued + total > c->limits.queue_max_bytes) {
        break_off(c, "too many unsent bytes");
        if (own >= 0)
            close(own);
        return true;
    }
    bool ok = done >= sizeof head || enqueue(c, slice_of(head + done, sizeof head - done), own);
    if (!ok && own >= 0)
        close(own);
    size_t skip = done > sizeof head ? done - sizeof head : 0;
    if (!ok || !enqueue(c, slice_of(frame.p + skip, frame.len - skip), -1))
        break_off(c, "out of memory"); /* half a frame cannot be taken back */
    update_poll(c);
    return true;
}

size_t ipc_conn_queued(const struct ipc_conn *c)
{
    return c->queued;
}

bool ipc_conn_drain(struct ipc_conn *c, unsigned timeout_ms)
{
    uint64_t until = uv_hrtime() / 1000000 + timeout_ms;
    for (;;) {
        if (!c->closing)
            flush_queue(c);
        if (!c->head || c->closing || c->broken)
            return !c->head;
        uint64_t now = uv_hrtime() / 1000000;
        if (now >= until)
            return false;
        struct pollfd p = {.fd = c->fd, .events = POLLOUT};
        poll(&p, 1, (int)(until - now));
    }
}

void ipc_conn_pause(struct ipc_conn *c, bool paused)
{
    c->paused = paused;
    if (!c->closing && !c->broken)
        watch(c);
}

bool ipc_conn_is_paused(const struct ipc_conn *c)
{
    return c->paused;
}

int ipc_conn_take_fd(struct ipc_conn *c)
{
    int fd = c->received_fd;
    c->received_fd = -1;
    return fd;
}

size_t ipc_conn_unfinished(const struct ipc_conn *c)
{
    return c->in_n;
}

void ipc_conn_time_receipts(struct ipc_conn *c)
{
    int on = 1;
    c->time_receipts = setsockopt(c->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) == 0;
}

uint64_t ipc_conn_receipt_age_ns(const struct ipc_conn *c)
{
    static const int64_t plausible_ns = 1000000000; /* more: the clock was set meanwhile */
    int64_t age = clock_now_ns(CLOCK_REALTIME) - timespec_ns(&c->received_at);
    return c->received_at.tv_sec && age > 0 && age < plausible_ns ? (uint64_t)age : 0;
}

int ipc_conn_fd(const struct ipc_conn *c)
{
    return c->fd;
}

/* Descriptors, and the time of receipt. */
static void keep_control(struct ipc_conn *c, struct msghdr *m)
{
    c->received_at = (struct timespec){0};
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_TIMESTAMPNS)
            memcpy(&c->received_at, CMSG_DATA(h), sizeof c->received_at);
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof fd);
            if (c->received_fd >= 0)
                close(c->received_fd);
            c->received_fd = fd;
        }
    }
}

static void on_half(uv_timer_t *t)
{
    struct ipc_conn *c = t->data;
    if (c->paused) /* the rest may be there, and we do not look */
        uv_timer_start(t, on_half, c->limits.half_frame_ms, 0);
    else
        fail(c, "timed out in the middle of a message");
}

/* Hands out the frames that are whole, and moves what is left to the front; NULL, or why the connection must end. */
static const char *hand_out(struct ipc_conn *c)
{
    size_t at = 0;
    c->reading = true;
    while (c->in_n - at >= IPC_HEADER_SIZE) {
        const uint8_t *h = c->in + at;
        size_t len = h[0] | (size_t)h[1] << 8 | (size_t)h[2] << 16 | (size_t)h[3] << 24;
        if (len + IPC_HEADER_SIZE > IPC_FRAME_MAX)
            return "frame too large";
        if (c->in_n - at - IPC_HEADER_SIZE < len)
            break;
        at += IPC_HEADER_SIZE + len;
        if (len)
            c->ops->frame(c->ctx, slice_of(h + IPC_HEADER_SIZE, len));
        if (c->closing)
            return NULL;
    }
    c->reading = false;
    c->in_n -= at;
    if (at && c->in_n)
        memmove(c->in, c->in + at, c->in_n);
    return settle_input(c, at > 0) ? NULL : "too many messages have begun";
}

/* Reads once; returns NULL or why the connection must end. */
static const char *read_frames(struct ipc_conn *c)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct timespec))];
    } control;
    struct iovec iov = {c->in + c->in_n, IPC_FRAME_MAX - c->in_n};
    struct msghdr m = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.buf,
        .msg_controllen = c->time_receipts ? sizeof control.buf : CMSG_SPACE(sizeof(int)),
    };
    ssize_t r = recvmsg(c->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (r < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? NULL : "read error";
    keep_control(c, &m);
    if (m.msg_flags & MSG_CTRUNC)
        return "too many descriptors in one message";
    if (r == 0)
        return "closed by the peer";
    c->in_n += (size_t)r;
    if (c->in_n > c->in_touched)
        c->in_touched = c->in_n;
    const char *why = hand_out(c);
    if (why || c->closing)
        return why;
    if (c->in_n) /* begun anew with every piece */
        uv_timer_start(&c->half, on_half, c->limits.half_frame_ms, 0);
    else if (uv_is_active((uv_handle_t *)&c->half))
        uv_timer_stop(&c->half);
    return NULL;
}

/* The peer has gone, which a write was the first to notice: what it had sent before is in the socket. */
static void read_the_rest(struct ipc_conn *c)
{
    for (unsigned i = 0; i < LAST_READS && !c->closing; i++)
        if (read_frames(c))
            break;
}

static void on_stall(uv_timer_t *t)
{
    struct ipc_conn *c = t->data;
    if (c->broken == write_error)
        read_the_rest(c);
    fail(c, c->broken ? c->broken : c->connecting ? "connect timed out" : "the peer does not read");
}

/* The loop stops watching a socket with an error; when it is only the kernel's note of a send time that came late
 * (relay/send_time.h), there is none. */
static void resume_poll(struct ipc_conn *c)
{
    char control[512];
    struct msghdr m;
    do {
        m = (struct msghdr){.msg_control = control, .msg_controllen = sizeof control};
    } while (recvmsg(c->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0 && m.msg_flags & MSG_ERRQUEUE);
    watch(c);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
    struct ipc_conn *c = h->data;
    if (c->connecting && (status < 0 || events & UV_WRITABLE)) {
        int e = 0;
        socklen_t n = sizeof e;
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &e, &n);
        if (e) {
            fail(c, strerror(e));
            return;
        }
        c->connecting = false;
        if (c->ops->connected)
            c->ops->connected(c->ctx);
        if (c->closing)
            return;
        update_poll(c);
    }
    if (events & UV_WRITABLE && c->head) {
        flush_queue(c);
        if (!c->head && c->ops->drained)
            c->ops->drained(c->ctx);
        if (c->closing)
            return;
    }
    if (status < 0 || events & (UV_READABLE | UV_DISCONNECT)) { /* also when paused: what is left ends soon */
        const char *why = read_frames(c);
        if (why)
            fail(c, why);
        else if (status < 0 && !c->closing)
            resume_poll(c);
    }
}
