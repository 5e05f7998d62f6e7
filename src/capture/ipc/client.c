/* Binds to a service and matches answers to requests. */
#include "capture/ipc/client.h"

#include "base/alloc.h"
#include "base/vec.h"
#include "capture/ipc/addr.h"
#include "capture/ipc/frame.h"

#include <string.h>
#include <unistd.h>

#define MAX_METHODS 32

struct pending {
    uint64_t request_id;
    ipc_reply_fn fn;
    void *ctx;
};

struct ipc_client {
    struct ipc_conn *conn;
    const struct ipc_service_desc *service;
    const struct ipc_client_ops *ops;
    void *ctx;
    uint64_t next_request_id;
    uint64_t bind_request_id;
    uint32_t service_id;
    uint32_t method_ids[MAX_METHODS]; /* 0: the service does not have it */
    bool bound, dead, closed;
    int busy; /* callbacks on the stack: freeing waits for them */
    VEC(struct pending) pending;
    struct pb_writer scratch;
};

static void release(struct ipc_client *c)
{
    if (!c->closed || c->busy)
        return;
    ipc_conn_close(c->conn);
    vec_free(&c->pending);
    pb_writer_free(&c->scratch);
    mem_free(c);
}

void ipc_client_close(struct ipc_client *c)
{
    if (!c)
        return;
    c->closed = true;
    release(c);
}

static void give_up(struct ipc_client *c, const char *why)
{
    if (c->dead || c->closed)
        return;
    c->dead = true;
    c->busy++;
    c->ops->disconnected(c->ctx, why);
    c->busy--;
    release(c);
}

static void on_closed(void *ctx, const char *why)
{
    struct ipc_client *c = ctx;
    c->conn = NULL;
    give_up(c, why);
}

static void on_bind_reply(struct ipc_client *c, const struct ipc_frame *f)
{
    if (f->request_id != c->bind_request_id || c->bound)
        return;
    if (!f->success) {
        give_up(c, "no connection to the service");
        return;
    }
    c->service_id = f->service_id;
    struct slice at = f->payload, name;
    uint32_t id;
    while (ipc_frame_next_method(&at, &id, &name))
        for (unsigned i = 0; i < c->service->n_methods; i++)
            if (slice_eq_str(name, c->service->methods[i]))
                c->method_ids[i] = id;
    c->bound = true;
    c->ops->bound(c->ctx);
}

static void on_reply(struct ipc_client *c, const struct ipc_frame *f)
{
    for (size_t i = 0; i < c->pending.n; i++) {
        if (c->pending.p[i].request_id != f->request_id)
            continue;
        struct pending p = c->pending.p[i];
        if (!f->has_more || !f->success) {
            memmove(&c->pending.p[i], &c->pending.p[i + 1], (c->pending.n - i - 1) * sizeof p);
            c->pending.n--;
        }
        p.fn(p.ctx, f->success, f->has_more && f->success, f->payload);
        return;
    }
}

static void on_frame(void *ctx, struct slice bytes)
{
    struct ipc_client *c = ctx;
    struct ipc_frame f;
    if (c->closed || c->dead || !ipc_frame_decode(bytes, &f))
        return;
    c->busy++;
    if (f.kind == IPC_BIND_REPLY)
        on_bind_reply(c, &f);
    else if (f.kind == IPC_INVOKE_REPLY)
        on_reply(c, &f);
    c->busy--;
    release(c);
}

static void on_drained(void *ctx)
{
    struct ipc_client *c = ctx;
    if (c->bound && !c->dead && !c->closed && c->ops->drained)
        c->ops->drained(c->ctx);
}

static const struct ipc_conn_ops conn_ops = {.frame = on_frame, .closed = on_closed, .drained = on_drained};

static bool send_scratch(struct ipc_client *c, int fd)
{
    bool ok = !c->scratch.failed && c->conn && ipc_conn_send(c->conn, pb_written(&c->scratch), fd);
    c->scratch.failed = false;
    pb_writer_clear(&c->scratch);
    return ok;
}

int ipc_client_attach(struct ipc_client **out, uv_loop_t *loop, int fd, bool connecting,
                      const struct ipc_service_desc *service, const struct slice *identity,
                      const struct ipc_client_ops *ops, void *ctx, struct error *err)
{
    static const struct ipc_conn_limits limits = {.send_timeout_ms = 30000, .queue_max_bytes = 64u << 20};
    if (service->n_methods > MAX_METHODS) {
        close(fd);
        return error_set(err, -MRD_EINVALID, "service with too many methods");
    }
    struct ipc_client *c = mem_zalloc(sizeof *c);
    if (c)
        c->conn = ipc_conn_new(loop, fd, connecting, &conn_ops, &limits, c);
    if (!c || !c->conn) {
        if (!c)
            close(fd);
        mem_free(c);
        return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    c->service = service;
    c->ops = ops;
    c->ctx = ctx;
    if (identity)
        ipc_conn_send(c->conn, *identity, -1);
    c->bind_request_id = ++c->next_request_id;
    ipc_put_bind(&c->scratch, c->bind_request_id, service->name);
    send_scratch(c, -1);
    *out = c;
    return 0;
}

int ipc_client_open(struct ipc_client **out, uv_loop_t *loop, const char *address,
                    const struct ipc_service_desc *service, const struct slice *identity,
                    const struct ipc_client_ops *ops, void *ctx, struct error *err)
{
    bool connecting;
    int fd = ipc_addr_connect(address, &connecting, NULL, err);
    return fd < 0 ? fd : ipc_client_attach(out, loop, fd, connecting, service, identity, ops, ctx, err);
}

bool ipc_client_invoke(struct ipc_client *c, unsigned method, struct slice args, int fd, ipc_reply_fn fn, void *ctx)
{
    if (!c->bound || c->dead || c->closed || !c->method_ids[method])
        return false;
    uint64_t id = ++c->next_request_id;
    if (fn && !vec_push(&c->pending, (struct pending){id, fn, ctx}))
        return false;
    ipc_put_invoke(&c->scratch, id, c->service_id, c->method_ids[method], args, fn == NULL);
    if (send_scratch(c, fd))
        return true;
    if (fn)
        c->pending.n--;
    return false;
}

bool ipc_client_drain(struct ipc_client *c, unsigned timeout_ms)
{
    return !c->conn || ipc_conn_drain(c->conn, timeout_ms);
}
size_t ipc_client_queued(const struct ipc_client *c)
{
    return c->conn ? ipc_conn_queued(c->conn) : 0;
}
int ipc_client_take_fd(struct ipc_client *c)
{
    return c->conn ? ipc_conn_take_fd(c->conn) : -1;
}
bool ipc_client_has_method(const struct ipc_client *c, unsigned method)
{
    return c->bound && c->method_ids[method];
}
int ipc_client_socket(const struct ipc_client *c)
{
    return c->conn ? ipc_conn_fd(c->conn) : -1;
}
void ipc_client_time_receipts(struct ipc_client *c)
{
    if (c->conn)
        ipc_conn_time_receipts(c->conn);
}
uint64_t ipc_client_receipt_age_ns(const struct ipc_client *c)
{
    return c->conn ? ipc_conn_receipt_age_ns(c->conn) : 0;
}
