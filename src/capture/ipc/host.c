/* Accepts peers and dispatches their requests. */
#include "capture/ipc/host.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "capture/common/machine.h"
#include "capture/ipc/addr.h"
#include "capture/ipc/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/vm_sockets.h> /* after sys/socket.h */

enum { REPLY_HEAD_MAX = 64 }; /* what is around an answer in its frame */

struct ipc_peer {
    struct ipc_peer *next, *prev;
    struct ipc_host *host;
    struct ipc_conn *conn;
    struct ipc_identity id;
    void *data[IPC_HOST_MAX_SERVICES];
    bool bound[IPC_HOST_MAX_SERVICES];
    bool kicked;
    uv_idle_t kick; /* ends the connection from the loop */
    const char *kick_why;
    void (*drained)(void *ctx);
    void *drained_ctx;
    char name[96];
    char certified[TLS_NAME_MAX];    /* the name that its certificate proves; "" without TLS */
    struct ipc_guarded_conn guarded; /* of another machine */
};

enum { ADDRESS_BYTES = 16, HALVES_MAX = 64 << 20 }; /* of all messages that have begun */

/* A connection whose TLS handshake is under way, or that TLS carries. */
struct tls_peer {
    struct tls_peer *next, **prev;
    struct ipc_host *host;
    struct tls_link *link;
    int plain; /* until it is a peer's */
    uint8_t from[ADDRESS_BYTES];
    char name[96];
};

struct ipc_host {
    uv_poll_t poll;
    uv_loop_t *loop;
    int fd;
    int spare_fd; /* given up to answer, and refuse, a peer when descriptors have run out */
    struct ipc_addr addr;
    struct ipc_service services[IPC_HOST_MAX_SERVICES];
    unsigned n_services;
    struct ipc_conn_limits limits;
    struct ipc_halves halves;
    const char *log_name;
    unsigned max_peers, n_peers;
    struct ipc_peer *peers;
    struct pb_writer scratch; /* the frame being built */
    struct log_limit log_limit;
    bool closing, poll_closed;
    struct tls_keys *tls;
    struct tls_peer *tls_peers;
    unsigned n_handshakes;
    struct ipc_guard *guard;
    bool is_guarded; /* nobody is served who did not say which machine it is */
};

static void maybe_free(struct ipc_host *h)
{
    if (!h->closing || !h->poll_closed || h->n_peers)
        return;
    pb_writer_free(&h->scratch);
    mem_free(h);
}

static void on_kick_closed(uv_handle_t *handle)
{
    struct ipc_peer *p = handle->data;
    struct ipc_host *h = p->host;
    mem_free(p);
    h->n_peers--;
    maybe_free(h);
}

static void peer_gone(struct ipc_peer *p, const char *why)
{
    struct ipc_host *h = p->host;
    if (p->prev)
        p->prev->next = p->next;
    else
        h->peers = p->next;
    if (p->next)
        p->next->prev = p->prev;
    unsigned dropped;
    if (why && strcmp(why, "closed by the peer") != 0 && log_allowed(&h->log_limit, 20, &dropped))
        log_line("traced: %s: dropped %s: %s", h->log_name, p->name, why);
    p->kicked = true;
    p->drained = NULL;
    ipc_guard_leave(&p->guarded);
    for (unsigned i = 0; i < h->n_services; i++)
        if (p->bound[i] && h->services[i].disconnected)
            h->services[i].disconnected(h->services[i].ctx, p);
    uv_close((uv_handle_t *)&p->kick, on_kick_closed);
}

static void on_closed(void *ctx, const char *why)
{
    peer_gone(ctx, why);
}

static void on_kick(uv_idle_t *idle)
{
    struct ipc_peer *p = idle->data;
    uv_idle_stop(idle);
    ipc_conn_close(p->conn);
    peer_gone(p, p->kick_why);
}

void ipc_peer_kick(struct ipc_peer *p, const char *why)
{
    if (p->kicked)
        return;
    p->kicked = true;
    p->kick_why = why;
    uv_idle_start(&p->kick, on_kick);
}

static void send_scratch(struct ipc_peer *p, int fd)
{
    struct pb_writer *w = &p->host->scratch;
    if (w->failed || !ipc_conn_send(p->conn, pb_written(w), fd))
        ipc_peer_kick(p, w->failed ? "out of memory" : "reply too large");
    w->failed = false;
    pb_writer_clear(w);
}

void ipc_reply(const struct ipc_call *call, bool success, bool has_more, struct slice reply, int fd)
{
    struct ipc_peer *p = call->peer;
    if (!p || call->drop_reply || p->kicked)
        return;
    bool fits = reply.len + REPLY_HEAD_MAX <= IPC_FRAME_MAX;
    if (!fits) /* nobody loses a session because of a long answer */
        log_line("traced: %s: the reply to %s has %zu bytes; that does not fit a message", p->host->log_name, p->name,
                 reply.len);
    ipc_put_invoke_reply(&p->host->scratch, call->request_id, success && fits, has_more && fits,
                         fits ? reply : slice_of(NULL, 0));
    send_scratch(p, fd);
}

static void copy_name(char *to, size_t size, struct slice from)
{
    size_t n = from.len < size - 1 ? from.len : size - 1;
    if (n) /* a name that was not given is NULL */
        memcpy(to, from.p, n);
    to[n] = 0;
}

static void on_identity(struct ipc_peer *p, const struct ipc_frame *f)
{
    if (p->id.local || p->id.frozen)
        return;
    char local[128];
    struct slice hint = f->name;
    if (!hint.len) {
        ipc_addr_local_name(ipc_conn_fd(p->conn), local, sizeof local);
        hint = slice_str(local);
    }
    p->id.pid = f->pid;
    p->id.uid = f->uid < 0 ? 0 : (uint32_t)f->uid;
    /* A machine with a certificate is who its certificate says, whatever id it claims */
    char certified[TLS_NAME_MAX + 8];
    int n = snprintf(certified, sizeof certified, "tls:%s", p->certified);
    p->id.machine_id =
        *p->certified ? machine_id_of_hint(certified, (size_t)n) : machine_id_of_hint((const char *)hint.p, hint.len);
    copy_name(p->id.machine_name, sizeof p->id.machine_name, f->name2);
    p->id.frozen = true;
    const char *refused = ipc_guard_admit(p->host->guard, &p->guarded, p->id.machine_id, p->id.machine_name,
                                          p->host->tls ? p->certified : NULL);
    if (refused) {
        log_line("traced: %s: refused %s, machine \"%s\": %s", p->host->log_name, p->name, p->id.machine_name, refused);
        ipc_peer_kick(p, refused);
        return;
    }
    log_line("traced: %s: %s is pid %d uid %u of machine %u \"%s\"", p->host->log_name, p->name, p->id.pid, p->id.uid,
             p->id.machine_id, p->id.machine_name);
}

static void on_bind(struct ipc_peer *p, const struct ipc_frame *f)
{
    struct ipc_host *h = p->host;
    for (unsigned i = 0; i < h->n_services; i++) {
        const struct ipc_service_desc *d = h->services[i].desc;
        if (!slice_eq_str(f->name, d->name))
            continue;
        p->bound[i] = true;
        ipc_put_bind_reply(&h->scratch, f->request_id, i + 1, d->methods, d->n_methods);
        send_scratch(p, -1);
        return;
    }
    unsigned dropped;
    if (log_allowed(&h->log_limit, 20, &dropped))
        log_line("traced: %s: %s asked for an unknown service: %.*s", h->log_name, p->name,
                 (int)(f->name.len < 64 ? f->name.len : 64), (const char *)f->name.p);
    ipc_put_bind_reply(&h->scratch, f->request_id, 0, NULL, 0);
    send_scratch(p, -1);
}

static void on_invoke(struct ipc_peer *p, const struct ipc_frame *f)
{
    struct ipc_host *h = p->host;
    struct ipc_call call = {p, f->request_id, f->drop_reply};
    unsigned s = f->service_id - 1, m = f->method_id - 1;
    if (s >= h->n_services || !p->bound[s] || m >= h->services[s].desc->n_methods) {
        ipc_reply(&call, false, false, slice_of(NULL, 0), -1);
        return;
    }
    h->services[s].invoke(h->services[s].ctx, m, call, f->payload);
}

static void on_frame(void *ctx, struct slice bytes)
{
    struct ipc_peer *p = ctx;
    struct ipc_frame f;
    ipc_guard_count(&p->guarded, bytes.len);
    if (p->kicked || !ipc_frame_decode(bytes, &f))
        return; /* what cannot be decoded is dropped: the protocol has no answer to it */
    if (p->host->is_guarded && !p->id.frozen && f.kind != IPC_PEER_IDENTITY) {
        ipc_peer_kick(p, "it did not send its machine name");
        return;
    }
    switch (f.kind) {
    case IPC_BIND:
        on_bind(p, &f);
        break;
    case IPC_INVOKE:
        on_invoke(p, &f);
        break;
    case IPC_PEER_IDENTITY:
        on_identity(p, &f);
        break;
    default:
        ipc_put_request_error(&p->host->scratch, f.request_id, "unknown request");
        send_scratch(p, -1);
    }
}

static void on_drained(void *ctx)
{
    struct ipc_peer *p = ctx;
    if (p->drained)
        p->drained(p->drained_ctx);
}

static const struct ipc_conn_ops conn_ops = {.frame = on_frame, .closed = on_closed, .drained = on_drained};

static void pause_conn(struct ipc_guarded_conn *v, bool paused)
{
    struct ipc_peer *p = (struct ipc_peer *)((char *)v - offsetof(struct ipc_peer, guarded));
    ipc_conn_pause(p->conn, paused);
}

static void address_of(int fd, uint8_t from[ADDRESS_BYTES])
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_vm vm;
    } a = {0};
    socklen_t len = sizeof a;
    memset(from, 0, ADDRESS_BYTES);
    if (getpeername(fd, &a.any, &len) != 0)
        return;
    if (a.any.sa_family == AF_INET6)
        memcpy(from, &a.v6.sin6_addr, ADDRESS_BYTES);
    else if (a.any.sa_family == AF_INET)
        memcpy(from, &a.v4.sin_addr, sizeof a.v4.sin_addr);
    else if (a.any.sa_family == AF_VSOCK)
        memcpy(from, &a.vm.svm_cid, sizeof a.vm.svm_cid);
}

/* Who has to answer for what a connection holds: the user, or the address; whoever has one of IPv6 has 2^64. */
static uint64_t user_of(const struct ipc_identity *id, const uint8_t from[ADDRESS_BYTES])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}; /* of IPv4 */
    bool is_v6 = memcmp(from + 8, (uint8_t[8]){0}, 8) != 0 && memcmp(from, mapped, sizeof mapped) != 0;
    return id->local ? id->uid : hash_bytes_seeded(from, is_v6 ? 8 : ADDRESS_BYTES, hash_secret());
}

static void add_peer(struct ipc_host *h, int fd, const struct tls_peer *tls, const char *certified)
{
    unsigned dropped;
    struct ipc_peer *p = mem_zalloc(sizeof *p);
    if (!p || (h->max_peers && h->n_peers >= h->max_peers)) {
        if (log_allowed(&h->log_limit, 20, &dropped))
            log_line("traced: %s: refused a connection: %s", h->log_name, p ? "too many peers" : "out of memory");
        mem_free(p);
        close(fd);
        return;
    }
    if (tls)
        snprintf(p->name, sizeof p->name, "%s", tls->name);
    else
        ipc_addr_peer_name(fd, p->name, sizeof p->name);
    snprintf(p->certified, sizeof p->certified, "%s", certified);
    p->guarded.pause = pause_conn;
    p->host = h;
    p->id.pid = -1;
    p->id.local = h->addr.family == AF_UNIX;
    if (p->id.local) {
        struct ucred cred;
        socklen_t n = sizeof cred;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0) {
            p->id.uid = cred.uid;
            p->id.pid = cred.pid;
        }
    }
    uint8_t from[ADDRESS_BYTES];
    address_of(fd, from);
    struct ipc_conn_limits limits = h->limits;
    limits.halves = &h->halves;
    limits.user = user_of(&p->id, tls ? tls->from : from);
    p->conn = ipc_conn_new(h->loop, fd, false, &conn_ops, &limits, p);
    if (!p->conn) {
        mem_free(p);
        return;
    }
    uv_idle_init(h->loop, &p->kick);
    p->kick.data = p;
    p->next = h->peers;
    if (h->peers)
        h->peers->prev = p;
    h->peers = p;
    h->n_peers++;
}

/* ---- TLS ---- */

enum { HANDSHAKES_MAX = 256 }; /* at once, of everybody who can reach the port */

static void free_tls_peer(struct tls_peer *t)
{
    if (t->plain >= 0) {
        close(t->plain);
        t->host->n_handshakes--;
    }
    *t->prev = t->next;
    if (t->next)
        t->next->prev = t->prev;
    mem_free(t);
}

static void on_tls_established(void *ctx, struct tls_link *l, const char *name)
{
    struct tls_peer *t = ctx;
    (void)l;
    t->host->n_handshakes--;
    add_peer(t->host, t->plain, t, name);
    t->plain = -1;
}

static void on_tls_closed(void *ctx, struct tls_link *l, const char *why)
{
    struct tls_peer *t = ctx;
    unsigned dropped;
    (void)l;
    if (why && log_allowed(&t->host->log_limit, 20, &dropped))
        log_line("traced: %s: refused %s: TLS: %s", t->host->log_name, t->name, why);
    free_tls_peer(t);
}

/* Whoever only connects must not keep others out: the oldest handshake of the address with the most of them goes. */
static void end_idle_handshake(struct ipc_host *h)
{
    struct tls_peer *worst = NULL;
    unsigned most = 0;
    for (struct tls_peer *t = h->tls_peers; t; t = t->next) {
        unsigned n = 0;
        for (struct tls_peer *o = h->tls_peers; t->plain >= 0 && o; o = o->next)
            n += o->plain >= 0 && memcmp(o->from, t->from, ADDRESS_BYTES) == 0;
        if (n && n >= most) { /* the list has the oldest last */
            most = n;
            worst = t;
        }
    }
    if (!worst)
        return;
    tls_link_close(worst->link);
    free_tls_peer(worst);
}

static void start_tls(struct ipc_host *h, int fd)
{
    static const struct tls_link_ops ops = {.established = on_tls_established, .closed = on_tls_closed};
    struct error err = {0};
    if (h->n_handshakes >= HANDSHAKES_MAX)
        end_idle_handshake(h);
    struct tls_peer *t = h->n_handshakes < HANDSHAKES_MAX ? mem_zalloc(sizeof *t) : NULL;
    if (!t) {
        close(fd);
        return;
    }
    t->host = h;
    ipc_addr_peer_name(fd, t->name, sizeof t->name);
    address_of(fd, t->from);
    if (tls_link_open(&t->link, h->loop, h->tls, fd, true, &ops, t, &t->plain, &err) != 0) {
        mem_free(t);
        return;
    }
    h->n_handshakes++;
    t->next = h->tls_peers;
    t->prev = &h->tls_peers;
    if (t->next)
        t->next->prev = &t->next;
    h->tls_peers = t;
}

static void on_acceptable(uv_poll_t *poll, int status, int events)
{
    struct ipc_host *h = poll->data;
    (void)status;
    (void)events;
    for (int i = 0; i < 16; i++) { /* a storm of connects must not keep the others waiting */
        int fd = accept4(h->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            if (h->tls)
                start_tls(h, fd);
            else
                add_peer(h, fd, NULL, "");
            continue;
        }
        if (errno != EMFILE && errno != ENFILE)
            return;
        unsigned dropped;
        if (log_allowed(&h->log_limit, 20, &dropped))
            log_line("traced: %s: refused a connection: out of file descriptors", h->log_name);
        if (h->spare_fd < 0)
            return;
        close(h->spare_fd);
        fd = accept4(h->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            close(fd);
        h->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
}

int ipc_host_open(struct ipc_host **out, uv_loop_t *loop, const char *address, const struct ipc_host_options *o,
                  struct error *err)
{
    struct ipc_host *h = mem_zalloc(sizeof *h);
    if (!h)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    h->fd = ipc_addr_listen(address, &h->addr, err);
    if (h->fd < 0) {
        int rc = h->fd;
        mem_free(h);
        return rc;
    }
    if (o->silent_ms && (h->addr.family == AF_INET || h->addr.family == AF_INET6))
        ipc_addr_notice_death(h->fd, o->silent_ms);
    h->loop = loop;
    h->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    memcpy(h->services, o->services, o->n_services * sizeof *o->services);
    h->n_services = o->n_services;
    h->limits = o->limits;
    h->halves.max = HALVES_MAX;
    h->log_name = o->log_name;
    h->max_peers = o->max_peers;
    h->tls = o->tls;
    h->guard = o->guard;
    h->is_guarded = o->tls || ipc_guard_needs_name(o->guard);
    uv_poll_init(loop, &h->poll, h->fd);
    h->poll.data = h;
    uv_poll_start(&h->poll, UV_READABLE, on_acceptable);
    *out = h;
    return 0;
}

static void on_host_closed(uv_handle_t *handle)
{
    struct ipc_host *h = handle->data;
    h->poll_closed = true;
    maybe_free(h);
}

void ipc_host_close(struct ipc_host *h)
{
    if (!h || h->closing)
        return;
    h->closing = true;
    while (h->peers) {
        struct ipc_peer *p = h->peers;
        ipc_conn_close(p->conn);
        peer_gone(p, NULL);
    }
    while (h->tls_peers) {
        tls_link_close(h->tls_peers->link);
        free_tls_peer(h->tls_peers);
    }
    uv_close((uv_handle_t *)&h->poll, on_host_closed);
    close(h->fd);
    if (h->spare_fd >= 0)
        close(h->spare_fd);
}

bool ipc_host_is_local(const struct ipc_host *h)
{
    return h->addr.family == AF_UNIX;
}

const struct ipc_identity *ipc_peer_identity(const struct ipc_peer *p)
{
    return &p->id;
}
struct ipc_host *ipc_peer_host(const struct ipc_peer *p)
{
    return p->host;
}
const char *ipc_peer_name(const struct ipc_peer *p)
{
    return p->name;
}

static int slot_of(const struct ipc_peer *p, const struct ipc_service_desc *service)
{
    for (unsigned i = 0; i < p->host->n_services; i++)
        if (p->host->services[i].desc == service)
            return (int)i;
    return -1;
}

void *ipc_peer_data(const struct ipc_peer *p, const struct ipc_service_desc *service)
{
    int i = slot_of(p, service);
    return i < 0 ? NULL : p->data[i];
}

void ipc_peer_set_data(struct ipc_peer *p, const struct ipc_service_desc *service, void *data)
{
    int i = slot_of(p, service);
    if (i >= 0)
        p->data[i] = data;
}

int ipc_peer_take_fd(struct ipc_peer *p)
{
    return ipc_conn_take_fd(p->conn);
}
size_t ipc_peer_queued(const struct ipc_peer *p)
{
    return p->kicked ? 0 : ipc_conn_queued(p->conn);
}

bool ipc_peer_is_paused(const struct ipc_peer *p)
{
    return ipc_conn_is_paused(p->conn);
}

size_t ipc_peer_unfinished(const struct ipc_peer *p)
{
    return ipc_conn_unfinished(p->conn);
}

void ipc_peer_time_receipts(struct ipc_peer *p)
{
    ipc_conn_time_receipts(p->conn);
}
uint64_t ipc_peer_receipt_age_ns(const struct ipc_peer *p)
{
    return ipc_conn_receipt_age_ns(p->conn);
}

void ipc_peer_on_drained(struct ipc_peer *p, void (*fn)(void *ctx), void *ctx)
{
    p->drained = fn;
    p->drained_ctx = ctx;
}
