/* A connection that speaks HTTP: one request at a time, its answer, the next. */
#include "server/loop.h"
#include "server/routes.h"
#include "server/websocket.h"

#include <stdio.h>

enum { MAX_BEHIND = 64 << 10 }; /* bytes that may come behind a request that waits for its answer */

bool origin_allowed(const struct server_config *config, struct slice origin)
{
    static const char *const built_in[] = {"https://ui.perfetto.dev", "http://localhost:10000",
                                           "http://127.0.0.1:10000"};
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
        if (slice_eq_str(origin, built_in[i]))
            return true;
    for (size_t i = 0; i < config->n_origins; i++)
        if (slice_eq_str(origin, config->origins[i]))
            return true;
    return false;
}

/* "https://name:port" stands for the Host "name:port", too: who lets a page ask may have the server behind that name.
 */
static bool host_of_origins(const struct server_config *config, struct slice host)
{
    for (size_t i = 0; i < config->n_origins; i++) {
        const char *name = strstr(config->origins[i], "://");
        if (name && slice_eq_str(host, name + 3))
            return true;
    }
    size_t n = config->host ? strlen(config->host) : 0;
    return n && host.len >= n && memcmp(host.p, config->host, n) == 0 && (host.len == n || host.p[n] == ':');
}

/* ---- answers ---- */

static void write_head(struct conn *c, int status, const char *type, int64_t length, bool preflight)
{
    struct http_conn *h = &c->http;
    char head[HTTP_MAX_RESPONSE_HEAD];
    if (length == HTTP_CHUNKED && h->request.http_1_0) {
        length = HTTP_NO_BODY; /* ends with the connection */
        h->request.keep_alive = false;
    }
    h->head_sent = true;
    h->chunking = length == HTTP_CHUNKED;
    struct http_response response = {
        .status = status,
        .type = type,
        .length = length,
        .origin = h->request.origin,
        .keep_alive = h->request.keep_alive,
        .preflight = preflight,
    };
    size_t n = http_write_head(&response, head, sizeof head);
    conn_write(c, slice_of(head, n), NULL, slice_of(NULL, 0));
}

/* A small answer that the loop gives itself. */
static void answer(struct conn *c, int status, const char *type, struct slice body)
{
    write_head(c, status, type, (int64_t)body.len, status == 204);
    if (body.len && !c->closing)
        conn_write(c, body, NULL, slice_of(NULL, 0));
}

/* Answers what cannot be served, and parts: the rest of the request is not read. */
static void refuse(struct conn *c, int status)
{
    char text[128];
    if (c->http.head_sent) { /* too late for another status */
        conn_close(c);
        return;
    }
    int n = snprintf(text, sizeof text, "%s\n", http_reason(status));
    c->http.request.keep_alive = false;
    conn_drop_request(c);
    answer(c, status, TYPE_TEXT, slice_of(text, (size_t)n));
    if (!c->closing)
        conn_part(c);
}

static void answer_status(struct conn *c)
{
    struct pb_writer out = {0};
    trace_put_status(&c->server->trace, &out);
    answer(c, 200, TYPE_PROTOBUF, pb_written(&out));
    pb_writer_free(&out);
}

static void answer_help(struct conn *c)
{
    char text[4096];
    int n = snprintf(text, sizeof text,
                     "Meridian v%s serves a trace here. Open https://ui.perfetto.dev and choose \"use loaded trace\",\n"
                     "or ask from scripts:\n\n",
                     MERIDIAN_VERSION);
    for (size_t i = 0; i < n_routes && n < (int)sizeof text; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "  %-30s %s\n", routes[i].path, routes[i].help);
    answer(c, 200, TYPE_TEXT, slice_of(text, strlen(text)));
}

/* The answer is complete: the next request. */
static void next_request(struct conn *c)
{
    if (c->closing)
        return;
    if (!c->http.request.keep_alive) {
        conn_part(c);
        return;
    }
    c->http.answered = c->writes >= ENOUGH_WRITES;
    if (c->http.answered) { /* whoever asks on without reading would fill our memory with answers */
        c->http.stage = STAGE_REPLY;
        return;
    }
    c->http.stage = STAGE_HEAD;
    c->http.head_sent = false;
    conn_read(c, true);
    if (c->in.n == 0 || c->closing)
        return;
    uint8_t *behind = c->in.p;
    size_t n = c->in.n;
    c->in.p = NULL;
    c->in.n = c->in.cap = 0;
    conn_hold(c);
    conn_http_take(c, slice_of(behind, n));
    mem_free(behind);
}

void conn_http_written(struct conn *c)
{
    if (c->http.answered)
        next_request(c);
}

static void send_piece(struct conn *c, struct reply *r)
{
    char size[24];
    if (!c->http.head_sent)
        write_head(c, 200, TYPE_PROTOBUF, HTTP_CHUNKED, false); /* of /rpc */
    if (!c->http.chunking) {
        conn_write(c, slice_of(NULL, 0), r, slice_of(NULL, 0));
        return;
    }
    int n = snprintf(size, sizeof size, "%zx\r\n", r->len);
    conn_write(c, slice_of(size, (size_t)n), r, slice_of("\r\n", 2));
}

static void send_end(struct conn *c)
{
    if (!c->http.head_sent)
        write_head(c, 200, TYPE_PROTOBUF, HTTP_CHUNKED, false);
    if (c->http.chunking && !c->closing)
        conn_write(c, slice_of("0\r\n\r\n", 5), NULL, slice_of(NULL, 0));
}

void conn_http_send(struct conn *c, struct reply *r)
{
    if (r->kind == REPLY_BYTES) {
        send_piece(c, r);
        return;
    }
    if (r->kind == REPLY_HEAD) {
        write_head(c, r->status, r->type, r->length, false);
    } else if (r->kind == REPLY_END) {
        send_end(c);
    } else if (c->http.route->kind == ROUTE_RPC) { /* the last message said why: it is to be read */
        c->http.request.keep_alive = false;
        send_end(c);
    }
    enum reply_kind kind = r->kind;
    if (c->session)
        session_sent(c->session, r);
    else
        reply_free(r);
    if (c->closing)
        return;
    if (kind == REPLY_END)
        next_request(c);
    else if (kind == REPLY_PART)
        conn_part(c);
}

/* ---- requests ---- */

/* The body is complete. */
static void run_request(struct conn *c)
{
    struct http_conn *h = &c->http;
    bool pushed = true;
    h->stage = STAGE_REPLY;
    c->requests++;
    switch (h->route->kind) {
    case ROUTE_HELP:
        answer_help(c);
        next_request(c);
        return;
    case ROUTE_STATUS:
        answer_status(c);
        next_request(c);
        return;
    case ROUTE_RPC:
        pushed = conn_push(c, REQUEST_END, NULL, NULL, 0);
        break;
    default: {
        uint8_t *body = h->body.p;
        size_t n = h->body.n;
        h->body.p = NULL;
        h->body.n = h->body.cap = 0;
        conn_hold(c); /* the request accounts for it now */
        pushed = conn_push(c, REQUEST_ROUTE, h->route, body, n);
    }
    }
    if (!pushed)
        refuse(c, 503);
}

/* A piece of the body. False: refused. */
static bool take_body(struct conn *c, struct slice bytes)
{
    struct http_conn *h = &c->http;
    h->body_taken += bytes.len;
    int status = 0;
    if (h->body_taken > HTTP_MAX_BODY)
        status = 413;
    else if (h->route->kind == ROUTE_RPC)
        status = conn_take_messages(c, bytes) ? 0 : 503;
    else if (h->route->kind != ROUTE_HELP && h->route->kind != ROUTE_STATUS) { /* these use no body */
        bool room = vec_reserve(&h->body, h->body.n + bytes.len) && conn_hold(c);
        if (room && bytes.len)
            memcpy(h->body.p + h->body.n, bytes.p, bytes.len);
        h->body.n += room ? bytes.len : 0;
        status = room ? 0 : 503;
    }
    if (status)
        refuse(c, status);
    return status == 0;
}

/* A WebSocket begins: 0, or the status to refuse it with. */
static int check_websocket(const struct http_request *r)
{
    if (!r->origin.p)
        return 403;
    if (r->method != HTTP_GET || !r->upgrade_websocket || r->websocket_key.len != WEBSOCKET_KEY_LEN)
        return 400;
    return slice_eq_str(r->websocket_version, "13") ? 0 : 505;
}

/* Keeps what is needed of the head once its bytes are gone. */
static void keep(struct http_conn *h, const struct http_request *r)
{
    h->request = *r;
    if (r->origin.p) {
        memcpy(h->origin, r->origin.p, r->origin.len);
        h->request.origin = slice_of(h->origin, r->origin.len);
    }
    h->chunks = (struct http_chunks){0};
    h->body_left = r->content_length;
    h->body_taken = 0;
    h->head_sent = false;
}

/* The head is whole. */
static void take_head(struct conn *c, const struct http_request *r)
{
    struct http_conn *h = &c->http;
    bool body = r->chunked || r->content_length;
    if (r->origin.p && (r->origin.len >= HTTP_MAX_ORIGIN || !origin_allowed(c->server->config, r->origin))) {
        refuse(c, 403);
        return;
    }
    if (r->host.p && !http_host_is_ours(r->host, c->server->own_name) && !host_of_origins(c->server->config, r->host)) {
        refuse(c, 403); /* a page whose name was made to point here */
        return;
    }
    keep(h, r);
    h->route = route_find(r->path);
    if (r->method == HTTP_OPTIONS && !body) {
        answer(c, 204, NULL, slice_of(NULL, 0));
        next_request(c);
    } else if (r->method == HTTP_OTHER) {
        refuse(c, 405);
    } else if (!h->route) {
        refuse(c, 404);
    } else if (r->cross_site && !r->origin.p && h->route->kind != ROUTE_HELP && h->route->kind != ROUTE_STATUS) {
        refuse(c, 403); /* an image or a link of some page names no origin, and could reset the tables */
    } else if (h->route->acts && r->browser && !r->origin.p && r->method == HTTP_GET) {
        refuse(c, 405); /* a link must not act; scripts may GET, as Perfetto's do */
    } else if (h->route->kind == ROUTE_WEBSOCKET) {
        int status = check_websocket(r);
        if (status)
            refuse(c, status);
        else
            conn_websocket_begin(c, r);
    } else {
        h->stage = STAGE_BODY;
        if (r->expects_continue && body)
            conn_write(c, slice_str("HTTP/1.1 100 Continue\r\n\r\n"), NULL, slice_of(NULL, 0));
        if (!body && (!h->route->forms || take_body(c, r->query)))
            run_request(c);
    }
}

/* Takes bytes of a head from *in; behind a whole one, *in is what follows it. */
static void read_head(struct conn *c, struct slice *in)
{
    struct http_request request;
    size_t before = c->in.n;
    size_t take = HTTP_MAX_HEAD - before < in->len ? HTTP_MAX_HEAD - before : in->len;
    if (!vec_reserve(&c->in, before + take)) {
        conn_close(c);
        return;
    }
    memcpy(c->in.p + before, in->p, take);
    c->in.n += take;
    int len = http_parse_head(slice_of(c->in.p, c->in.n), &request);
    if (len < 0) {
        c->http.request = (struct http_request){0};
        refuse(c, -len);
        return;
    }
    size_t used = len ? (size_t)len - before : take; /* what came before was no whole head */
    in->p += used;
    in->len -= used;
    if (len == 0)
        return;
    uint8_t *head = c->in.p; /* the views of the request point into it */
    c->in.p = NULL;
    c->in.n = c->in.cap = 0;
    take_head(c, &request);
    mem_free(head);
}

static void read_body(struct conn *c, struct slice *in)
{
    struct http_conn *h = &c->http;
    bool over;
    if (h->request.chunked) {
        struct slice data;
        enum http_chunks_step step = http_chunks_next(&h->chunks, in, &data);
        if (step == HTTP_CHUNKS_BROKEN) {
            refuse(c, 400);
            return;
        }
        if (step == HTTP_CHUNKS_DATA && !take_body(c, data))
            return;
        over = step == HTTP_CHUNKS_END;
    } else {
        size_t take = h->body_left < in->len ? (size_t)h->body_left : in->len;
        struct slice data = slice_of(in->p, take);
        in->p += take;
        in->len -= take;
        h->body_left -= take;
        if (!take_body(c, data))
            return;
        over = h->body_left == 0;
    }
    if (over)
        run_request(c);
}

/* Keeps what came too early. */
static void keep_behind(struct conn *c, struct slice bytes)
{
    if (c->in.n + bytes.len > MAX_BEHIND + READ_BYTES || !vec_reserve(&c->in, c->in.n + bytes.len)) {
        conn_close(c);
        return;
    }
    memcpy(c->in.p + c->in.n, bytes.p, bytes.len);
    c->in.n += bytes.len;
    if (!conn_hold(c))
        conn_close(c);
    else if (c->in.n >= MAX_BEHIND)
        conn_read(c, false);
}

void conn_http_take(struct conn *c, struct slice bytes)
{
    while (bytes.len && !c->closing && !c->close_when_written) {
        if (c->protocol != CONN_HTTP) {
            conn_websocket_take(c, bytes);
            return;
        }
        switch (c->http.stage) {
        case STAGE_HEAD:
            read_head(c, &bytes);
            break;
        case STAGE_BODY:
            read_body(c, &bytes);
            break;
        case STAGE_REPLY:
            keep_behind(c, bytes);
            return;
        }
    }
}
