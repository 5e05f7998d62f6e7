/* One client's connection: reading, writing, closing; what the bytes mean is the protocols' affair. */
#include "server/loop.h"
#include "server/websocket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

struct conn_write {
    uv_write_t request;
    struct conn *conn;
    struct reply *reply;
    char texts[]; /* head and tail */
};

/* ---- closing ---- */

static void on_closed(uv_handle_t *handle)
{
    struct conn *c = handle->data;
    struct server *s = c->server;
    if (c->prev)
        c->prev->next = c->next;
    else
        s->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
    if (--s->n_conns == 0) {
        s->orphaned_ms = uv_now(&s->loop);
        if (s->config->transport == SERVER_STDIO)
            server_stop(s); /* they were its only client */
    }
    websocket_close(c->websocket);
    mem_free(c);
}

void conn_close(struct conn *c)
{
    if (c->closing)
        return;
    c->closing = true;
    conn_drop_request(c);
    if (c->session)
        session_leave(c->session);
    c->session = NULL;
    uv_close(&c->uv.handle, on_closed);
}

/* All is written: says so, and waits a moment for the client to go first. Closing with bytes unread would make the
 * kernel reset the connection, and the client lose our last words. */
static void linger(struct conn *c)
{
    if (c->ended || (!c->shut && uv_shutdown(&c->shutdown, &c->uv.stream, NULL) < 0))
        conn_close(c);
    c->shut = true;
}

void conn_part(struct conn *c)
{
    c->close_when_written = true;
    conn_read(c, true); /* its bytes are not looked at */
    if (c->writes == 0 && !c->closing)
        linger(c);
}

/* ---- writing ---- */

static void on_written(uv_write_t *request, int status)
{
    struct conn_write *w = (struct conn_write *)request;
    struct conn *c = w->conn;
    c->writes--;
    c->last_write_ms = uv_now(&c->server->loop);
    if (w->reply && c->session)
        session_sent(c->session, w->reply);
    else if (w->reply)
        reply_free(w->reply);
    mem_free(w);
    if (status < 0)
        conn_close(c);
    else if (c->writes || c->closing)
        return;
    else if (c->close_when_written)
        linger(c);
    else if (c->protocol == CONN_HTTP)
        conn_http_written(c);
}

void conn_write(struct conn *c, struct slice head, struct reply *reply, struct slice tail)
{
    struct conn_write *w = c->closing ? NULL : mem_alloc(sizeof *w + head.len + tail.len);
    if (!w) {
        if (reply)
            reply_free(reply);
        conn_close(c);
        return;
    }
    w->conn = c;
    w->reply = reply;
    if (head.len)
        memcpy(w->texts, head.p, head.len);
    if (tail.len)
        memcpy(w->texts + head.len, tail.p, tail.len);
    uv_buf_t bufs[] = {
        uv_buf_init(w->texts, (unsigned)head.len),
        uv_buf_init(reply ? (char *)reply->p : NULL, reply ? (unsigned)reply->len : 0),
        uv_buf_init(w->texts + head.len, (unsigned)tail.len),
    };
    if (c->writes == 0)
        c->last_write_ms = uv_now(&c->server->loop);
    c->writes++;
    int rc = uv_write(&w->request, &c->uv.stream, bufs, 3, on_written);
    if (rc < 0)
        on_written(&w->request, rc);
}

static void send_reply(struct conn *c, struct reply *r)
{
    switch (c->protocol) {
    case CONN_HTTP:
        conn_http_send(c, r);
        return;
    case CONN_WEBSOCKET:
        conn_websocket_send(c, r);
        return;
    case CONN_STREAM:
        break;
    }
    if (r->kind == REPLY_BYTES) {
        conn_write(c, slice_of(NULL, 0), r, slice_of(NULL, 0));
        return;
    }
    session_sent(c->session, r);
    conn_part(c);
}

void conn_flush(struct conn *c)
{
    struct reply *r;
    while (!c->closing && !c->close_when_written && (r = session_take_reply(c->session)))
        send_reply(c, r);
    if (!c->closing && session_is_cut(c->session))
        conn_close(c);
    if (!c->closing && !c->reading && c->protocol != CONN_HTTP && !session_is_full(c->session))
        conn_read(c, true);
}

/* ---- reading ---- */

bool conn_is_half_sent(const struct conn *c)
{
    if (c->protocol == CONN_HTTP)
        return (c->http.stage == STAGE_HEAD && (c->in.n || c->requests == 0)) || c->http.stage == STAGE_BODY;
    return c->framer.head_len != 0;
}

/* Drops the half request that has been coming for longest. Whoever sends a byte now and then is never late, and must
 * not keep what all requests may hold. */
static bool drop_oldest_half(struct server *s, const struct conn *than)
{
    uint64_t now = uv_now(&s->loop), patience = request_timeout_ms(s->config) / 3;
    struct conn *oldest = NULL;
    for (struct conn *c = s->conns; c; c = c->next)
        if (c != than && c->held && !c->closing && !c->close_when_written && conn_is_half_sent(c) &&
            now - c->held_since_ms >= patience && (!oldest || c->held_since_ms < oldest->held_since_ms))
            oldest = c;
    if (oldest)
        conn_close(oldest);
    return oldest != NULL;
}

bool conn_hold(struct conn *c)
{
    struct worker *w = &c->server->worker;
    size_t bytes = framer_held(&c->framer) + c->http.body.cap + c->in.cap;
    while (bytes > c->held && !worker_hold(w, bytes - c->held))
        if (!drop_oldest_half(c->server, c))
            return false;
    if (bytes < c->held)
        worker_release(w, c->held - bytes);
    if (!c->held)
        c->held_since_ms = uv_now(&c->server->loop);
    c->held = bytes;
    return true;
}

bool conn_push(struct conn *c, enum request_kind kind, const struct route *route, uint8_t *p, size_t len)
{
    while (!worker_has_room(&c->server->worker, request_cost(len)))
        if (!drop_oldest_half(c->server, c))
            break;
    return session_push(c->session, kind, route, p, len);
}

void conn_drop_request(struct conn *c)
{
    framer_free(&c->framer);
    vec_free(&c->http.body);
    vec_free(&c->in);
    conn_hold(c);
}

static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct conn *c = handle->data;
    *buf = uv_buf_init(c->server->read_buf, READ_BYTES); /* one for all: it is used up before the next read */
}

static void take_stream(struct conn *c, struct slice bytes)
{
    if (!conn_take_messages(c, bytes))
        conn_close(c);
}

/* No more requests: parts when those that have come are answered and their answers written. */
static void on_end(struct conn *c)
{
    conn_read(c, false);
    c->ended = true;
    if (c->close_when_written && c->writes == 0)
        linger(c);
    else if (!c->close_when_written && !conn_push(c, REQUEST_END, NULL, NULL, 0))
        conn_close(c);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    static void (*const take[])(struct conn *, struct slice) = {
        [CONN_HTTP] = conn_http_take,
        [CONN_WEBSOCKET] = conn_websocket_take,
        [CONN_STREAM] = take_stream,
    };
    struct conn *c = stream->data;
    if (n == UV_EOF && c->answers_eof) {
        on_end(c);
        return;
    }
    if (n < 0) {
        conn_close(c);
        return;
    }
    c->last_read_ms = uv_now(&c->server->loop);
    if (!c->close_when_written && n > 0)
        take[c->protocol](c, slice_of(buf->base, (size_t)n));
    if (!c->closing && !c->close_when_written && c->protocol != CONN_HTTP && session_is_full(c->session))
        conn_read(c, false);
}

void conn_read(struct conn *c, bool on)
{
    if (c->closing || c->ended || c->reading == on)
        return;
    c->reading = on;
    c->last_read_ms = uv_now(&c->server->loop); /* what waited for us is not late */
    if (!on)
        uv_read_stop(&c->uv.stream);
    else if (uv_read_start(&c->uv.stream, give_buffer, on_read) < 0)
        conn_close(c);
}

/* ---- opening ---- */

static struct conn *conn_new(struct server *s, enum conn_protocol protocol)
{
    struct conn *c = mem_zalloc(sizeof *c);
    if (!c)
        return NULL;
    c->server = s;
    c->protocol = protocol;
    c->last_read_ms = c->last_write_ms = uv_now(&s->loop);
    int rc = s->config->transport == SERVER_HTTP ? uv_tcp_init(&s->loop, &c->uv.tcp)
                                                 : uv_pipe_init(&s->loop, &c->uv.pipe, 0);
    if (rc < 0) {
        mem_free(c);
        return NULL;
    }
    c->uv.handle.data = c;
    c->next = s->conns;
    if (c->next)
        c->next->prev = c;
    s->conns = c;
    s->n_conns++;
    return c;
}

static void begin(struct conn *c)
{
    c->session = session_open(&c->server->worker, c);
    if (!c->session) {
        conn_close(c);
        return;
    }
    c->session->stream = c->protocol == CONN_STREAM;
    conn_read(c, true);
}

/* A page may be idle for hours. One whose machine has gone without a word (a lid that was closed, a network that was
 * left) must not keep its tables for ever: it is noticed within two minutes. */
static void notice_death(const struct conn *c)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_KEEPIDLE, 60},
        {IPPROTO_TCP, TCP_KEEPINTVL, 15},
        {IPPROTO_TCP, TCP_KEEPCNT, 4},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
    };
    int fd;
    if (uv_fileno(&c->uv.handle, &fd) < 0)
        return;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof options[i].value);
}

enum { ROOM_AFTER_MS = 250 }; /* a client that has just come is about to ask */

/* Makes room for one more: the client goes that asks nothing for the longest time, before its first request or in the
 * middle of one. Crowds of half requests must not lock others out; a page (WebSocket) stays. */
static bool make_room(struct server *s)
{
    const uint64_t now = uv_now(&s->loop);
    struct conn *oldest = NULL;
    for (struct conn *c = s->conns; c; c = c->next)
        if (c->protocol == CONN_HTTP && c->http.stage != STAGE_REPLY && !c->writes && !c->closing &&
            now - c->last_read_ms >= ROOM_AFTER_MS && (!oldest || c->last_read_ms < oldest->last_read_ms))
            oldest = c;
    if (oldest)
        conn_close(oldest);
    return oldest != NULL;
}

void conn_accept(struct server *s, uv_stream_t *from)
{
    enum conn_protocol protocol = s->config->transport == SERVER_HTTP ? CONN_HTTP : CONN_STREAM;
    bool room = s->n_conns < s->max_conns || make_room(s);
    struct conn *c = conn_new(s, protocol);
    if (!c) {
        s->accept_later = true; /* a listener whose client is not taken does not call again */
        return;
    }
    if (uv_accept(from, &c->uv.stream) < 0 || s->stopping || !room) {
        conn_close(c);
        return;
    }
    if (protocol == CONN_HTTP) {
        uv_tcp_nodelay(&c->uv.tcp, 1);
        notice_death(c);
    }
    begin(c);
}

int conn_open_fd(struct server *s, int fd, struct error *err)
{
    struct conn *c = conn_new(s, CONN_STREAM);
    if (!c)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    int rc = uv_pipe_open(&c->uv.pipe, fd);
    if (rc < 0) {
        conn_close(c);
        return error_set(err, -MRD_EIO, "%s", uv_strerror(rc));
    }
    c->answers_eof = true;
    begin(c);
    return 0;
}
