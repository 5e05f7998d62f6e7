/* Forwards producer connections. */
#include "capture/relay/proxy.h"

#include "base/alloc.h"
#include "capture/ipc/addr.h"
#include "capture/ipc/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* One direction: bytes read from one socket wait in the pipe until the other takes them. */
struct flow {
    int pipe[2];
    size_t held;     /* bytes in the pipe */
    size_t capacity; /* of the pipe */
    bool ended;      /* the source has said its last */
    bool dropped;    /* nobody takes its bytes any more */
};

enum side { LOCAL, REMOTE };

struct link {
    struct relay_proxy *proxy;
    struct link *next, **prev;
    int fd[2]; /* by enum side */
    uv_poll_t poll[2];
    uv_timer_t linger;   /* running once the end is near */
    uint64_t left;       /* bytes on their way up when it ran last */
    int events[2];       /* what each poll waits for now */
    struct flow from[2]; /* bytes that came from a side */
    bool connecting;     /* the connection to the host is under way */
    bool remote_gone;    /* the host's side has ended, not the producer's */
    bool hung_up[2];     /* a side has left; told once */
    bool host_finished;  /* the host has got all there was, and been told so */
    bool closing;
    int open_handles, polls;
};

/* Closing with input unread makes the kernel reset a connection, and what is on its way is lost. So the host is told
 * the end first (half of the connection is closed) and has its time to take the rest and end its half: as long as bytes
 * still move, and so long without. */
enum { LINGER_MS = 2000 };

struct relay_proxy {
    uv_loop_t *loop;
    struct relay_proxy_options options;
    int listen_fd;
    uv_poll_t listen_poll;
    struct link *links;
    unsigned open_links;
    uint8_t *buffer; /* what is being moved, RELAY_WINDOW_BYTES */
    bool closing;
    bool listen_closed;
};

static void free_proxy_when_done(struct relay_proxy *p)
{
    if (!p->closing || !p->listen_closed || p->links)
        return;
    mem_free(p->buffer);
    mem_free(p);
}

static void free_link(struct link *l)
{
    struct relay_proxy *p = l->proxy;
    *l->prev = l->next;
    if (l->next)
        l->next->prev = l->prev;
    for (int side = 0; side < 2; side++) {
        if (l->fd[side] >= 0)
            close(l->fd[side]);
        for (int end = 0; end < 2; end++)
            if (l->from[side].pipe[end] >= 0)
                close(l->from[side].pipe[end]);
    }
    p->open_links--;
    mem_free(l);
    free_proxy_when_done(p);
}

static void on_handle_closed(uv_handle_t *h)
{
    struct link *l = h->data;
    if (--l->open_handles == 0)
        free_link(l);
}

/* What the producer has sent and the host has not got yet: in its socket, in the pipe, in flight. */
static uint64_t bytes_left(const struct link *l)
{
    int waiting = 0, unacknowledged = 0;
    ioctl(l->fd[LOCAL], SIOCINQ, &waiting);
    if (l->fd[REMOTE] >= 0)
        ioctl(l->fd[REMOTE], SIOCOUTQ, &unacknowledged);
    return (uint64_t)waiting + (uint64_t)unacknowledged + l->from[LOCAL].held;
}

static void close_link(struct link *l)
{
    if (l->closing)
        return;
    l->closing = true;
    uint64_t lost = l->remote_gone && !l->proxy->closing ? bytes_left(l) : 0;
    if (lost && l->proxy->options.lost)
        l->proxy->options.lost(l->proxy->options.ctx, lost);
    if (!l->open_handles) {
        free_link(l);
        return;
    }
    uv_close((uv_handle_t *)&l->linger, on_handle_closed);
    for (int side = 0; side < l->polls; side++) {
        uv_poll_stop(&l->poll[side]);
        uv_close((uv_handle_t *)&l->poll[side], on_handle_closed);
    }
}

static void on_linger(uv_timer_t *t)
{
    struct link *l = t->data;
    uint64_t left = bytes_left(l);
    l->remote_gone |= left > 0 && left >= l->left; /* it takes nothing more: what is left is lost */
    if (left == 0 || left >= l->left)
        close_link(l);
    l->left = left;
}

static void start_linger(struct link *l)
{
    l->left = bytes_left(l);
    uv_timer_start(&l->linger, on_linger, LINGER_MS, LINGER_MS);
}

/* The producer has ended and the host has got all: it hears so, and ends its half in its own time. */
static void end_uplink(struct link *l)
{
    l->host_finished = true;
    shutdown(l->fd[REMOTE], SHUT_WR);
    start_linger(l);
}

/* The producer does not listen any more. That is not a reason to stop hearing it out. */
static void drop_answers(struct link *l)
{
    struct flow *f = &l->from[REMOTE];
    f->dropped = true;
    while (f->held) {
        ssize_t n = read(f->pipe[0], l->proxy->buffer, RELAY_WINDOW_BYTES);
        f->held -= n > 0 && (size_t)n < f->held ? (size_t)n : f->held;
    }
}

static bool again(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* Bytes that the other side did not take before. False when the link is over. */
static bool drain(struct link *l, enum side s, bool *moved)
{
    struct flow *f = &l->from[s];
    ssize_t n = splice(f->pipe[0], NULL, l->fd[!s], NULL, f->held, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (n > 0) {
        f->held -= (size_t)n;
        *moved = true;
    } else if (n < 0 && !again(errno)) {
        l->remote_gone |= s == LOCAL;
        if (s == LOCAL)
            return false;
        drop_answers(l);
    }
    return true;
}

/* Reads and writes on at once; what the other side does not take waits in the pipe. */
static bool copy(struct link *l, enum side s, bool *moved)
{
    struct flow *f = &l->from[s];
    uint8_t *buffer = l->proxy->buffer;
    ssize_t n =
        recv(l->fd[s], buffer, f->capacity < RELAY_WINDOW_BYTES ? f->capacity : RELAY_WINDOW_BYTES, MSG_DONTWAIT);
    if (n == 0) {
        f->ended = true;
        l->remote_gone |= s == REMOTE;
        return true;
    }
    if (n < 0) {
        l->remote_gone |= s == REMOTE && !again(errno);
        f->ended = s == LOCAL && !again(errno);
        return again(errno) || s == LOCAL;
    }
    *moved = true;
    if (f->dropped)
        return true;
    ssize_t w = send(l->fd[!s], buffer, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (w < 0 && !again(errno)) {
        if (s == REMOTE) {
            drop_answers(l);
            return true;
        }
        l->remote_gone = true;
        f->held = (size_t)n; /* lost */
        return false;
    }
    w = w < 0 ? 0 : w;
    if (w < n && write(f->pipe[1], buffer + w, (size_t)(n - w)) != n - w)
        return false;
    f->held = (size_t)(n - w);
    return true;
}

/* Moves what can be moved now from side `s` to the other one. False when the link is over. */
static bool pump(struct link *l, enum side s)
{
    struct flow *f = &l->from[s];
    if (l->connecting)
        return true;
    for (bool moved = true; moved;) {
        moved = false;
        if (f->held && !drain(l, s, &moved))
            return false;
        if (!f->held && !f->ended && !copy(l, s, &moved))
            return false;
    }
    if (!f->ended || f->held)
        return true;
    if (s == LOCAL && !l->host_finished)
        end_uplink(l);
    return s == LOCAL; /* the host's end takes the link with it, once its last bytes are through */
}

static void on_event(uv_poll_t *h, int status, int events);

/* What a side is asked for. Its end is told once: a closed socket would report that for ever. */
static int wanted(const struct link *l, enum side s)
{
    const struct flow *in = &l->from[s], *out = &l->from[!s];
    if (s == REMOTE && l->connecting)
        return UV_WRITABLE;
    return (in->ended || in->held || l->connecting ? 0 : UV_READABLE) | (out->held ? UV_WRITABLE : 0) |
           (in->ended || l->hung_up[s] ? 0 : UV_DISCONNECT);
}

static void watch(struct link *l)
{
    for (int s = 0; s < 2; s++) {
        int want = wanted(l, s);
        if (want == l->events[s])
            continue;
        l->events[s] = want;
        if (want)
            uv_poll_start(&l->poll[s], want, on_event);
        else
            uv_poll_stop(&l->poll[s]);
    }
}

static bool finish_connect(struct link *l)
{
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(l->fd[REMOTE], SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0) {
        if (relay_may_say(l->proxy->options.host.log))
            fprintf(stderr, "traced_relay: cannot reach the host at %s: %s\n", l->proxy->options.host.host,
                    strerror(error));
        return false;
    }
    l->connecting = false;
    return true;
}

static void on_event(uv_poll_t *h, int status, int events)
{
    struct link *l = h->data;
    if (l->closing)
        return;
    enum side side = h == &l->poll[REMOTE] ? REMOTE : LOCAL; /* what is ready pump() finds out by itself */
    if (status < 0)                                          /* the loop has stopped watching */
        l->events[side] = 0;
    l->hung_up[side] |= status < 0 || events & UV_DISCONNECT;
    bool ok = status == 0 || status == UV_EBADF;
    if (ok && l->connecting && side == REMOTE)
        ok = finish_connect(l);
    bool up = ok && pump(l, LOCAL), down = ok && pump(l, REMOTE);
    if (!up || !down)
        close_link(l);
    else
        watch(l);
}

static bool open_pipe(struct flow *f)
{
    if (pipe2(f->pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    int size = fcntl(f->pipe[1], F_SETPIPE_SZ, RELAY_WINDOW_BYTES);
    if (size < 0)
        size = fcntl(f->pipe[1], F_GETPIPE_SZ);
    f->capacity = size > 0 ? (size_t)size : 4096;
    return true;
}

/* The first bytes on the way up: the frame that names the producer. */
static bool put_identity(struct link *l)
{
    struct ucred cred = {.pid = -1, .uid = (uid_t)-1};
    socklen_t len = sizeof cred;
    getsockopt(l->fd[LOCAL], SOL_SOCKET, SO_PEERCRED, &cred, &len);
    struct pb_writer w = {0};
    uint32_t size = 0;
    pb_put_raw(&w, &size, IPC_HEADER_SIZE);
    ipc_put_peer_identity(&w, cred.pid, (int32_t)cred.uid, l->proxy->options.machine_id_hint,
                          l->proxy->options.machine_name);
    bool ok = !w.failed;
    if (ok) {
        size = (uint32_t)(w.n - IPC_HEADER_SIZE); /* little-endian on the wire */
        for (unsigned i = 0; i < IPC_HEADER_SIZE; i++)
            w.p[i] = (uint8_t)(size >> (8 * i));
        ok = write(l->from[LOCAL].pipe[1], w.p, w.n) == (ssize_t)w.n;
        l->from[LOCAL].held = w.n;
    }
    pb_writer_free(&w);
    return ok;
}

static bool start_polls(struct link *l)
{
    uv_timer_init(l->proxy->loop, &l->linger);
    l->linger.data = l;
    l->open_handles++;
    for (int s = 0; s < 2; s++) {
        if (uv_poll_init(l->proxy->loop, &l->poll[s], l->fd[s]) != 0)
            return false;
        l->poll[s].data = l;
        l->polls++;
        l->open_handles++;
    }
    watch(l);
    return true;
}

static void open_link(struct relay_proxy *p, int local)
{
    struct link *l = mem_zalloc(sizeof *l);
    if (!l) {
        close(local);
        return;
    }
    *l = (struct link){.proxy = p, .fd = {local, -1}, .from = {{.pipe = {-1, -1}}, {.pipe = {-1, -1}}}};
    l->next = p->links;
    l->prev = &p->links;
    if (l->next)
        l->next->prev = &l->next;
    p->links = l;
    p->open_links++;
    struct error err = {0};
    bool too_many = p->open_links > p->options.max_connections;
    bool ok = !too_many && open_pipe(&l->from[LOCAL]) && open_pipe(&l->from[REMOTE]) && put_identity(l);
    if (ok) {
        l->fd[REMOTE] = relay_uplink_connect(&p->options.host, &l->connecting, &err);
        ok = l->fd[REMOTE] >= 0 && start_polls(l);
    }
    if (!ok) {
        if (relay_may_say(p->options.host.log))
            fprintf(stderr, "traced_relay: refused a producer: %s\n",
                    err.code   ? err.text
                    : too_many ? "too many connections"
                               : "no descriptors or memory left");
        close_link(l);
    }
}

static void on_accept(uv_poll_t *h, int status, int events)
{
    struct relay_proxy *p = h->data;
    (void)events;
    if (status < 0)
        return;
    for (;;) {
        int fd = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return; /* EAGAIN, or a peer that gave up; out of descriptors: the backlog waits */
        open_link(p, fd);
    }
}

int relay_proxy_open(struct relay_proxy **out, uv_loop_t *loop, const struct relay_proxy_options *options,
                     struct error *err)
{
    struct relay_proxy *p = mem_zalloc(sizeof *p);
    if (!p)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    p->loop = loop;
    p->options = *options;
    if (!p->options.max_connections)
        p->options.max_connections = RELAY_MAX_CONNECTIONS;
    struct ipc_addr addr;
    p->buffer = mem_alloc(RELAY_WINDOW_BYTES);
    p->listen_fd =
        p->buffer ? ipc_addr_listen(options->listen, &addr, err) : error_set(err, -MRD_ENOMEM, "out of memory");
    if (p->listen_fd < 0) {
        int rc = p->listen_fd;
        mem_free(p->buffer);
        mem_free(p);
        return rc;
    }
    if (uv_poll_init(loop, &p->listen_poll, p->listen_fd) != 0) {
        close(p->listen_fd);
        mem_free(p->buffer);
        mem_free(p);
        return error_set(err, -MRD_EIO, "%s: cannot be polled", options->listen);
    }
    p->listen_poll.data = p;
    uv_poll_start(&p->listen_poll, UV_READABLE, on_accept);
    *out = p;
    return 0;
}

static void on_listen_closed(uv_handle_t *h)
{
    struct relay_proxy *p = h->data;
    close(p->listen_fd);
    p->listen_closed = true;
    free_proxy_when_done(p);
}

void relay_proxy_close(struct relay_proxy *p)
{
    if (!p || p->closing)
        return;
    p->closing = true;
    for (struct link *l = p->links, *next; l; l = next) {
        next = l->next;
        shutdown(l->fd[LOCAL], SHUT_RD); /* what it has said is still sent, more it cannot say */
        if (!l->open_handles)
            close_link(l);
        else if (!l->host_finished)
            start_linger(l);
    }
    uv_poll_stop(&p->listen_poll);
    uv_close((uv_handle_t *)&p->listen_poll, on_listen_closed);
}
