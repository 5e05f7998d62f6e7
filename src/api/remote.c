/* The client's side of the protocol: connections and messages. */
#include "api/remote_internal.h"

#include <string.h>
#include <sys/socket.h>

static void link_free(struct link *l)
{
    if (l)
        link_close(l);
    mem_free(l);
}

void remote_close(struct remote *r)
{
    if (!r)
        return;
    link_free(r->idle);
    mem_free(r->address);
    mem_free(r->error);
    mem_free(r);
}

void remote_interrupt(struct remote *r)
{
    int fd = atomic_load(&r->waiting_fd);
    atomic_store(&r->interrupted, true);
    if (fd >= 0)
        shutdown(fd, SHUT_RDWR);
}

const char *remote_error(const struct remote *r)
{
    return r->error ? r->error : "";
}

int remote_failed(struct remote *r, struct slice text, struct error *err)
{
    mem_free(r->error);
    r->error = mem_strndup((const char *)text.p, text.len);
    bool interrupted = slice_eq_str(text, "interrupted");
    return error_set(err, interrupted ? -MRD_ECANCELLED : -MRD_ESQL, "%.*s", (int)text.len, (const char *)text.p);
}

/* ---- exchanges ---- */

/* The idle connection, or a new one. */
static struct link *take_link(struct remote *r, struct error *err)
{
    struct link *l = r->idle;
    r->idle = NULL;
    if (l)
        return l;
    l = mem_zalloc(sizeof *l);
    if (!l) {
        error_set(err, -MRD_ENOMEM, "out of memory");
        return NULL;
    }
    if (link_open(l, r->address, err) < 0) {
        link_free(l);
        return NULL;
    }
    return l;
}

static void wait_on(struct remote *r, const struct link *l)
{
    atomic_store(&r->waiting_fd, l ? l->fd : -1);
}

/* A failure of the connection: by the user's wish, or not. */
static int failed(struct remote *r, int rc, struct error *err)
{
    if (atomic_load(&r->interrupted))
        return error_set(err, -MRD_ECANCELLED, "interrupted");
    return rc < 0 ? error_prefix(err, "%s", r->address)
                  : error_set(err, -MRD_ECLOSED, "%s: the server closed the connection before the end of its reply",
                              r->address);
}

int exchange_begin(struct exchange *x, struct remote *r, int method, struct slice args, struct error *err)
{
    struct pb_writer request = {0};
    *x = (struct exchange){.remote = r};
    atomic_store(&r->interrupted, false);
    mem_free(r->error);
    r->error = NULL;
    size_t mark = pb_begin(&request, STREAM_MSG);
    pb_put_varint(&request, RPC_REQUEST, (uint64_t)method);
    pb_put_raw(&request, args.p, args.len);
    pb_end(&request, mark);
    int rc = request.failed ? error_set(err, -MRD_ENOMEM, "out of memory") : -1;
    for (int tries = 0; tries < 2 && !request.failed && rc < 0; tries++) {
        bool kept = r->idle != NULL; /* the server may have closed it meanwhile: then once more, on a new one */
        x->link = take_link(r, err);
        if (!x->link) {
            rc = err ? err->code : -MRD_EIO;
            break;
        }
        wait_on(r, x->link);
        rc = link_send(x->link, pb_written(&request), err);
        wait_on(r, NULL);
        if (rc < 0)
            exchange_end(x, false);
        if (!kept || atomic_load(&r->interrupted))
            break;
    }
    pb_writer_free(&request);
    return rc < 0 ? failed(r, rc, err) : 0;
}

int exchange_next(struct exchange *x, struct rpc_message *message, struct error *err)
{
    for (;;) {
        switch (framer_next(&x->framer, &x->in, message)) {
        case FRAMER_MESSAGE:
            return 0;
        case FRAMER_MORE:
            break;
        case FRAMER_BROKEN:
            return error_set(err, -MRD_EFORMAT, "%s: not the protocol of a trace processor", x->remote->address);
        case FRAMER_NOMEM:
            return error_set(err, -MRD_ENOMEM, "out of memory");
        }
        wait_on(x->remote, x->link);
        int rc = link_read(x->link, &x->in, err);
        wait_on(x->remote, NULL);
        if (rc != 1)
            return failed(x->remote, rc == -MRD_ECLOSED ? 0 : rc, err);
    }
}

void exchange_end(struct exchange *x, bool whole)
{
    struct slice rest;
    if (!x->link)
        return;
    wait_on(x->remote, x->link);
    while (whole && x->link->http && link_read(x->link, &rest, NULL) == 1)
        ; /* what is behind the last message: the end of the chunks */
    wait_on(x->remote, NULL);
    if (whole && !x->remote->idle)
        x->remote->idle = x->link;
    else
        link_free(x->link);
    x->link = NULL;
    framer_free(&x->framer);
}

/* ---- calls ---- */

/* Does the message answer `method`? A server that does not know it says so. */
static int check_answer(const struct rpc_message *m, int method, struct error *err)
{
    struct pb_field f;
    struct slice bytes = slice_of(m->p, m->len);
    if (pb_find(bytes, RPC_FATAL_ERROR, &f))
        return error_set(err, -MRD_EIO, "the server: %.*s", (int)pb_bytes(&f).len, (const char *)pb_bytes(&f).p);
    if (pb_find(bytes, RPC_INVALID_REQUEST, &f) || !pb_find(bytes, RPC_RESPONSE, &f) || pb_i32(&f) != method)
        return error_set(err, -MRD_EUNSUPPORTED, "the server does not know the request (method %d)", method);
    return 0;
}

int remote_ask(struct remote *r, int method, struct slice args, uint32_t result, uint8_t **message, struct slice *out,
               struct error *err)
{
    struct exchange x;
    struct rpc_message m = {0};
    struct pb_field f;
    *message = NULL;
    *out = slice_of(NULL, 0);
    int rc = exchange_begin(&x, r, method, args, err);
    if (rc < 0)
        return rc;
    rc = exchange_next(&x, &m, err);
    if (rc == 0)
        rc = check_answer(&m, method, err);
    if (rc == 0 && result && pb_find(slice_of(m.p, m.len), result, &f))
        *out = pb_bytes(&f);
    exchange_end(&x, rc == 0);
    *message = m.p;
    return rc;
}

int remote_call(struct remote *r, int method, struct error *err)
{
    uint8_t *message;
    struct slice nothing;
    int rc = remote_ask(r, method, slice_of(NULL, 0), 0, &message, &nothing, err);
    mem_free(message);
    return rc;
}

int remote_open(struct remote **out, const char *address, struct error *err)
{
    struct remote *r = mem_zalloc(sizeof *r);
    int rc = r ? 0 : -MRD_ENOMEM;
    if (r) {
        atomic_init(&r->waiting_fd, -1);
        r->address = mem_strdup(address);
        rc = r->address ? remote_call(r, RPC_GET_STATUS, err) : -MRD_ENOMEM;
    }
    if (rc < 0)
        remote_close(r);
    *out = rc < 0 ? NULL : r;
    return rc == -MRD_ENOMEM ? error_set(err, rc, "out of memory") : rc;
}
