/* Accepts processes, gives them what they need to write, and notices their end. */
#include "capture/heap/heap_peer.h"

#include "base/alloc.h"
#include "capture/ipc/addr.h"
#include "capture/perf/perf_process.h"
#include "capture/probes/common/data_source.h"
#include "capture/probes/proc_text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WATCH_MS = 100, ACCEPT_AT_ONCE = 1024, CALLERS_MAX = 1024, GREET_AT_ONCE = 32, EVERYBODY = 0666 };

/* ---- one process ---- */

static bool send_fds(int socket, const int *fds, size_t n, uint64_t ring_bytes)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(HEAP_HELLO_FDS * sizeof(int))];
    } control = {0};
    struct heap_hello hello = {HEAP_MAGIC, HEAP_VERSION, ring_bytes};
    struct iovec part = {&hello, sizeof hello};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CMSG_SPACE(n * sizeof *fds)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(n * sizeof *fds);
    memcpy(CMSG_DATA(c), fds, n * sizeof *fds);
    return sendmsg(socket, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof hello;
}

/* The page that we write and the process reads. What it might do to it changes nothing here. */
static bool make_control(struct heap_peer *p)
{
    int fd = memfd_create("meridian-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return false;
    void *at = MAP_FAILED;
    if (ftruncate(fd, HEAP_CONTROL_BYTES) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        at = mmap(NULL, HEAP_CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    p->control = at == MAP_FAILED ? NULL : at;
    p->first[0] = fd;
    return p->control != NULL;
}

/* The process has waited for it, and runs on: who samples it does so already. */
static void send_first(struct heap_peer *p)
{
    if (!send_fds(p->socket, p->first, p->first[1] >= 0 ? 2 : 1, p->ring.bytes))
        p->profile.lost++; /* it did not wait as long */
    for (size_t i = 0; i < HEAP_HELLO_FDS; i++) {
        if (p->first[i] >= 0)
            close(p->first[i]);
        p->first[i] = -1;
    }
}

static void free_peer(struct heap_hub *h, struct heap_peer *p)
{
    if (p->socket >= 0)
        close(p->socket);
    for (size_t i = 0; i < HEAP_HELLO_FDS; i++)
        if (p->first[i] >= 0)
            close(p->first[i]);
    if (p->control)
        munmap(p->control, HEAP_CONTROL_BYTES);
    h->ring_bytes -= p->ring.bytes;
    heap_reader_close(&p->ring);
    heap_book_close(&p->profile.book);
    mem_free(p);
}

static int give_ring(struct heap_hub *h, struct heap_peer *p, uint64_t bytes, struct error *err)
{
    int fd;
    if (p->socket < 0)
        return error_set(err, -MRD_ECLOSED, "process %d has closed its socket", p->pid);
    if (h->ring_bytes + bytes > HEAP_RINGS_MAX_BYTES)
        return error_set(err, -MRD_ELIMIT, "process %d is left out: rings of all processes would take more than 2 GiB",
                         p->pid);
    int rc = heap_reader_open(&p->ring, bytes, &fd, err);
    if (rc)
        return rc;
    h->ring_bytes += bytes;
    if (p->first[0] >= 0) {
        p->first[1] = fd;
        return 0;
    }
    if (!send_fds(p->socket, &fd, 1, bytes))
        rc = error_set(err, -MRD_EIO, "process %d takes no ring", p->pid);
    close(fd);
    if (rc) {
        h->ring_bytes -= bytes;
        heap_reader_close(&p->ring);
    }
    return rc;
}

int heap_peer_start(struct heap_hub *h, struct heap_peer *p, const struct heap_start *s, struct error *err)
{
    int rc = p->ring.header ? 0 : give_ring(h, p, s->ring_bytes, err); /* it stays as it was first made */
    if (rc)
        return rc;
    p->control->interval = s->interval;
    p->control->block = s->block;
    p->control->block_us = s->block_us;
    atomic_store_explicit(&p->ring.header->timed_out, 0, memory_order_release);
    p->profile.first_generation = atomic_load(&p->control->generation) | 1;
    atomic_store_explicit(&p->control->generation, p->profile.first_generation, memory_order_release);
    return 0;
}

void heap_peer_set_interval(struct heap_peer *p, uint64_t interval)
{
    p->control->interval = interval;
    atomic_fetch_add(&p->control->generation, 2);
}

void heap_peer_stop(struct heap_peer *p)
{
    uint32_t is = atomic_load(&p->control->generation);
    atomic_store(&p->control->generation, is + (is & 1));
}

/* ---- coming ---- */

static struct heap_peer *find(const struct heap_hub *h, int32_t pid)
{
    for (size_t i = 0; i < h->peers.n; i++)
        if (h->peers.p[i]->pid == pid)
            return h->peers.p[i];
    return NULL;
}

static void remove_peer(struct heap_hub *h, struct heap_peer *p, struct heap_peer *next)
{
    for (size_t i = 0; i < h->peers.n; i++)
        if (h->peers.p[i] == p)
            h->peers.p[i] = h->peers.p[--h->peers.n];
    if (p->user)
        p->user->left(p->user, p, next);
    free_peer(h, p);
}

static bool has_room(const struct heap_hub *h, uint32_t uid)
{
    size_t n = 0;
    for (size_t i = 0; i < h->peers.n; i++)
        n += h->peers.p[i]->uid == uid;
    return h->peers.n < HEAP_PEERS_MAX && (uid == 0 || n < HEAP_PEERS_OF_USER_MAX);
}

static void welcome(struct heap_hub *h, struct heap_peer *p)
{
    struct heap_peer *old = find(h, p->pid);
    bool same = old && old->began == p->began; /* it has become another program */
    bool good = has_room(h, p->uid) && make_control(p) && vec_reserve(&h->peers, h->peers.n + 1);
    if (old)
        remove_peer(h, old, good && same ? p : NULL);
    if (!good) {
        free_peer(h, p);
        return;
    }
    h->peers.p[h->peers.n++] = p;
    for (size_t i = 0; i < h->users.n; i++)
        h->users.p[i]->came(h->users.p[i], p);
    send_first(p);
}

/* It did not wait. That costs next to nothing here, as anybody can connect and hang up in no time. */
static bool has_hung_up(int fd)
{
    char c;
    return recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void miss(struct heap_hub *h, int32_t pid)
{
    struct heap_peer p = {.pid = pid};
    int32_t *told = &h->missed[(uint32_t)pid % HEAP_MISSED];
    if (*told == pid || (p.began = perf_process_began(pid)) == UINT64_MAX)
        return;
    *told = pid;
    for (size_t i = 0; i < h->users.n; i++)
        h->users.p[i]->missed(h->users.p[i], &p);
}

/* The last connection of a process is the one that counts: before it was another program. So nobody is many. */
static void add_caller(struct heap_hub *h, int fd, const struct ucred *who)
{
    for (size_t i = 0; i < h->callers.n; i++)
        if (h->callers.p[i].pid == who->pid) {
            close(h->callers.p[i].socket);
            h->callers.p[i].socket = fd;
            h->callers.p[i].uid = who->uid;
            return;
        }
    if (!vec_push(&h->callers, (struct heap_caller){fd, who->pid, who->uid}))
        close(fd);
}

/* False: nobody is waiting. */
static bool accept_one(struct heap_hub *h)
{
    struct ucred who;
    socklen_t len = sizeof who;
    int fd = accept4(h->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return false;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && who.pid > 0 &&
        (geteuid() == 0 || who.uid == geteuid()))
        add_caller(h, fd, &who);
    else
        close(fd);
    return true;
}

static void greet(struct heap_hub *h, const struct heap_caller *c)
{
    bool gone = has_hung_up(c->socket);
    uint64_t began = gone ? UINT64_MAX : perf_process_began(c->pid);
    struct heap_peer *p = began == UINT64_MAX ? NULL : mem_zalloc(sizeof *p);
    if (gone)
        miss(h, c->pid);
    if (!p) {
        close(c->socket);
        return;
    }
    p->socket = c->socket;
    p->first[0] = p->first[1] = -1;
    p->pid = c->pid;
    p->uid = c->uid;
    p->began = began;
    welcome(h, p);
}

static void on_watch(uv_timer_t *timer);

/* Some of those who wait; the others when rings have been read. */
static void greet_some(struct heap_hub *h)
{
    size_t n = h->callers.n < GREET_AT_ONCE ? h->callers.n : GREET_AT_ONCE;
    for (size_t i = 0; i < n; i++)
        greet(h, &h->callers.p[i]);
    h->callers.n -= n;
    if (!h->callers.n)
        return;
    memmove(h->callers.p, h->callers.p + n, h->callers.n * sizeof *h->callers.p);
    uv_timer_start(h->watch, on_watch, 0, WATCH_MS);
}

static void on_accept(uv_poll_t *poll, int status, int events)
{
    struct heap_hub *h = poll->data;
    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPT_AT_ONCE && h->callers.n < CALLERS_MAX && accept_one(h); i++)
        continue;
    greet_some(h);
}

/* ---- going ---- */

/* Its number is there, with the same beginning. One that nobody has waited for yet has ended all the same; so has its
 * main thread alone, but then its socket is open. */
static bool is_alive(const struct heap_peer *p)
{
    char path[48], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", p->pid);
    if (text_read_once(path, text, sizeof text) <= 0)
        return false;
    const char *at = strrchr(text, ')');
    if (p->socket < 0 && at && at[1] == ' ' && (at[2] == 'Z' || at[2] == 'X'))
        return false;
    return perf_process_began(p->pid) == p->began;
}

/* True: it has closed its end. The one thing that it says is that it cannot map what it was given. */
static bool hangs_up(struct heap_peer *p)
{
    char word[256];
    ssize_t n = recv(p->socket, word, sizeof word, MSG_DONTWAIT);
    if (n > 0)
        p->profile.lost++;
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

void heap_hub_look(struct heap_hub *h)
{
    for (size_t i = h->peers.n; i-- > 0;) {
        struct heap_peer *p = h->peers.p[i];
        if (p->socket >= 0 && hangs_up(p)) {
            close(p->socket);
            p->socket = -1;
        }
        if (p->socket < 0 && !is_alive(p))
            remove_peer(h, p, NULL);
    }
}

static void on_watch(uv_timer_t *timer)
{
    heap_hub_look(timer->data);
    greet_some(timer->data);
}

/* ---- life ---- */

int heap_hub_listen(struct heap_hub *h, const char *address, struct error *err)
{
    struct ipc_addr a;
    const char *env = getenv(HEAP_SOCKET_ENV);
    *h = (struct heap_hub){.listening = -1};
    if (!address)
        address = env && *env ? env : HEAP_SOCKET_PLACE;
    int rc = ipc_addr_parse(&a, address, err);
    if (!rc && a.family != AF_UNIX)
        rc = error_set(err, -MRD_EINVALID, "%s: processes are met on a unix socket", address);
    int fd = rc ? rc : ipc_addr_listen(address, &a, err);
    if (fd < 0)
        return fd;
    h->listening = fd;
    if (a.is_path && geteuid() == 0 && chmod(address, EVERYBODY) != 0)
        return error_set_errno(err, errno, "%s", address);
    return 0;
}

int heap_hub_start(struct heap_hub *h, uv_loop_t *loop, struct error *err)
{
    h->loop = loop;
    h->watch = probes_timer_new(loop, h);
    h->accept = mem_zalloc(sizeof *h->accept);
    if (!h->watch || !h->accept || uv_poll_init(loop, h->accept, h->listening) != 0)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    h->accept->data = h;
    uv_poll_start(h->accept, UV_READABLE, on_accept);
    uv_timer_start(h->watch, on_watch, WATCH_MS, WATCH_MS);
    return 0;
}

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

void heap_hub_stop(struct heap_hub *h)
{
    probes_timer_free(h->watch);
    if (h->accept)
        uv_close((uv_handle_t *)h->accept, free_handle);
    h->watch = NULL;
    h->accept = NULL;
}

void heap_hub_close(struct heap_hub *h)
{
    while (h->peers.n)
        free_peer(h, h->peers.p[--h->peers.n]);
    for (size_t i = 0; i < h->callers.n; i++)
        close(h->callers.p[i].socket);
    vec_free(&h->callers);
    vec_free(&h->peers);
    vec_free(&h->users);
    if (h->listening >= 0)
        close(h->listening);
    h->listening = -1;
}

bool heap_hub_add_user(struct heap_hub *h, struct heap_user *u)
{
    return vec_push(&h->users, u);
}

void heap_hub_remove_user(struct heap_hub *h, struct heap_user *u)
{
    for (size_t i = 0; i < h->users.n; i++)
        if (h->users.p[i] == u)
            h->users.p[i] = h->users.p[--h->users.n];
}
