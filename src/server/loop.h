/* What the files of the loop's thread share: the server and its connections. */
#ifndef MERIDIAN_SERVER_LOOP_H
#define MERIDIAN_SERVER_LOOP_H

#include "base/vec.h"
#include "rpc/framer.h"
#include "rpc/http.h"
#include "server/client_session.h"
#include "server/server.h"
#include "server/worker.h"

#include <uv.h>

struct websocket;
struct server;

enum {
    READ_BYTES = 64 << 10,
    MAX_LISTENERS = 4,
    ENOUGH_WRITES = 64, /* on their way to a client: the loop makes no more for it */
    DEFAULT_REQUEST_TIMEOUT_MS = 30000,
};

enum conn_protocol {
    CONN_HTTP,
    CONN_WEBSOCKET,
    CONN_STREAM, /* bare messages */
};

/* Where an HTTP connection stands. */
enum http_stage {
    STAGE_HEAD,  /* a request's head is coming */
    STAGE_BODY,  /* its body */
    STAGE_REPLY, /* it waits for its answer */
};

struct http_conn {
    enum http_stage stage;
    struct http_request request; /* its views are gone with the head, but for `origin` */
    char origin[HTTP_MAX_ORIGIN];
    const struct route *route;
    struct http_chunks chunks;
    uint64_t body_left; /* of a body of known length */
    size_t body_taken;
    VEC(uint8_t)
    body;           /* for the routes that want it whole */
    bool head_sent; /* of the answer */
    bool answered;  /* the next request waits until the answers are out */
    bool chunking;  /* the answer goes out in chunks */
};

/* One client. */
struct conn {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    struct server *server;
    struct session *session;
    struct conn *next, *prev;
    enum conn_protocol protocol;
    bool reading;
    bool closing;
    bool close_when_written; /* closes once everything is written */
    bool shut;               /* and that has been done: the client's turn to close */
    bool answers_eof;        /* the end of its requests is not a reason to drop their answers */
    bool ended;              /* and that end has come */
    unsigned writes;         /* on their way */
    unsigned requests;       /* that have come whole */
    size_t held;             /* bytes of unfinished requests, accounted with the worker */
    uint64_t held_since_ms;  /* the unfinished request began then */
    uv_shutdown_t shutdown;
    uint64_t last_read_ms;
    uint64_t last_write_ms;
    struct framer framer;
    struct websocket *websocket;
    VEC(uint8_t)
    in; /* HTTP: an unfinished head, or what came behind the request that waits */
    struct http_conn http;
};

struct server {
    const struct server_config *config;
    uv_loop_t loop;
    uv_async_t notify;
    uv_timer_t tick;
    uv_signal_t signals[2];
    union listener {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } listeners[MAX_LISTENERS];
    size_t n_listeners;
    struct trace trace;
    struct worker worker;
    struct recordings recordings;
    struct conn *conns;
    size_t n_conns, max_conns;
    char own_name[256];   /* of this machine */
    uint64_t orphaned_ms; /* since when there is no client */
    bool accept_later;    /* a client waits for memory */
    bool stopping;
    char read_buf[READ_BYTES];
};

/* Ends the server: everything is closed at once, and what clients have asked is interrupted (server.c). */
void server_stop(struct server *s);

static inline uint64_t request_timeout_ms(const struct server_config *config)
{
    return (uint64_t)(config->request_timeout_ms ? config->request_timeout_ms : DEFAULT_REQUEST_TIMEOUT_MS);
}

/* ---- connections (conn.c) ---- */

/* Begins with a client whose stream `accept_from` (or the descriptor `fd`) gives. */
void conn_accept(struct server *s, uv_stream_t *accept_from);
int conn_open_fd(struct server *s, int fd, struct error *err);

/* Closes at once; what the client asked is interrupted. */
void conn_close(struct conn *c);

/* Closes when everything is written. */
void conn_part(struct conn *c);

/* Writes head, a reply's bytes (taken over; NULL: none) and tail. The texts are copied. */
void conn_write(struct conn *c, struct slice head, struct reply *reply, struct slice tail);

/* Reads on, or stops reading. */
void conn_read(struct conn *c, bool on);

/* Sends what the worker has made. */
void conn_flush(struct conn *c);

/* Has a request begun that does not come any further? */
bool conn_is_half_sent(const struct conn *c);

/* Accounts for what unfinished requests of the client hold by now. False: the limit of all clients is reached, and no
 * client holds half a request for long that could go instead. */
bool conn_hold(struct conn *c);

/* Hands a whole request to the worker, as session_push(), with room made for it in the same way. */
bool conn_push(struct conn *c, enum request_kind kind, const struct route *route, uint8_t *p, size_t len);

/* Frees what has come of a request that is not to be served. */
void conn_drop_request(struct conn *c);

/* ---- the stream of messages, whatever carries it (conn_rpc.c) ---- */

/* Takes bytes of the stream and hands whole messages to the worker. False: no room for them. */
bool conn_take_messages(struct conn *c, struct slice bytes);

/* ---- protocols ---- */

void conn_http_take(struct conn *c, struct slice bytes);
void conn_http_send(struct conn *c, struct reply *r);
void conn_http_written(struct conn *c); /* everything is out */

void conn_websocket_begin(struct conn *c, const struct http_request *r);
void conn_websocket_take(struct conn *c, struct slice bytes);
void conn_websocket_send(struct conn *c, struct reply *r);

/* ---- ways in (listen.c): 0 or negative with a text ---- */

int listen_http(struct server *s, struct error *err);
int listen_unix(struct server *s, struct error *err);

/* May a page of this origin ask us? */
bool origin_allowed(const struct server_config *config, struct slice origin);

#endif
