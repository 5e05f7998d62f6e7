/* One client as both threads see it: requests on their way to the worker, answers on their way back.
 *
 * Lists and counts are guarded by the worker's lock. The loop opens a session and lets it go with session_leave(); it
 * is freed by the worker, which may be in the middle of a request. */
#ifndef MERIDIAN_SERVER_CLIENT_SESSION_H
#define MERIDIAN_SERVER_CLIENT_SESSION_H

#include "server/rpc.h"
#include "wire/pb_writer.h"

struct worker;

/* Requests, in the order of the client. */
enum request_kind {
    REQUEST_RPC,    /* one TraceProcessorRpc message */
    REQUEST_ROUTE,  /* an HTTP request: `route` with the body */
    REQUEST_BROKEN, /* the stream cannot be read any further: tell and part */
    REQUEST_END,    /* the end of the body of a POST /rpc */
};

struct request {
    struct request *next;
    enum request_kind kind;
    const struct route *route;
    uint8_t *p; /* owned */
    size_t len;
};

/* What a request holds: one without a byte is not free. */
static inline size_t request_cost(size_t len)
{
    return sizeof(struct request) + len;
}

/* Answers. */
enum reply_kind {
    REPLY_HEAD,  /* HTTP: status and type; `length` bytes follow, or chunks */
    REPLY_BYTES, /* a whole message or a piece of a body */
    REPLY_END,   /* HTTP: the response is complete */
    REPLY_PART,  /* part with the client when all before it is out; an open response stays unterminated */
};

struct reply {
    struct reply *next;
    enum reply_kind kind;
    int status;
    const char *type;
    int64_t length; /* or HTTP_CHUNKED */
    uint8_t *p;     /* owned */
    size_t len;
};

static inline size_t reply_cost(const struct reply *r)
{
    return sizeof *r + r->len;
}

/* A session whose unsent answers are this much waits for its client. */
enum { REPLY_ENOUGH_BYTES = 512 << 10, REPLY_AGAIN_BYTES = REPLY_ENOUGH_BYTES / 2 };
/* The loop stops reading from a client with this much waiting. */
enum { REQUEST_ENOUGH_BYTES = 1 << 20 };

struct session {
    struct worker *worker;
    void *conn;  /* the loop's */
    bool stream; /* what it creates goes with it; set by the loop before the first request */

    /* under the worker's lock */
    struct request *first, *last;
    struct reply *first_reply, *last_reply;
    size_t request_bytes;
    size_t reply_bytes;       /* made and not yet sent */
    struct session *next_run; /* in the queue of those that can go on */
    struct session *next_ready;
    bool queued;
    bool running;
    bool blocked; /* waits for its client to read */
    bool ready;   /* has something for the loop */
    bool gone;    /* the client has left */
    bool cut;     /* a piece of an answer is lost: part with the client */
    bool page;    /* a WebSocket: what it creates it expects to find again */
    struct session *next_all, *prev_all;

    /* the worker's own */
    struct rpc rpc;
    struct tp_view *view;          /* a page's own tables; NULL: those that all share */
    bool asked;                    /* it has run a query, or begun with the initial tables */
    const char *tables_gone_error; /* who took away the tables that it has asked, as an error for all it asks now; NULL:
                                      nobody */
};

/* ---- the loop's side ---- */

struct session *session_open(struct worker *w, void *conn); /* NULL: out of memory */

/* Hands a request over (p is taken over, also on failure). False: out of memory, or too much is held by all clients
 * together (the limit of worker_init()). */
bool session_push(struct session *s, enum request_kind kind, const struct route *route, uint8_t *p, size_t len);

/* The next answer, or NULL; to be given to session_sent() once it has been written. */
struct reply *session_take_reply(struct session *s);
void session_sent(struct session *s, struct reply *r);

/* For a reply whose session has left meanwhile. */
void reply_free(struct reply *r);

/* Has a piece of an answer been lost for want of memory? */
bool session_is_cut(struct session *s);

/* The connection has become a WebSocket. */
void session_is_page(struct session *s);

/* Is there enough waiting that reading should stop? */
bool session_is_full(struct session *s);

/* The client is gone: what it asked is interrupted, and the session is not to be used any more. */
void session_leave(struct session *s);

/* ---- the worker's side: see worker.c ---- */

void client_session_free(struct session *s);

/* Takes over the writer's buffer as a piece of the answer. */
void session_reply_bytes(struct session *s, struct pb_writer *w);
void session_reply(struct session *s, enum reply_kind kind);
void session_reply_head(struct session *s, int status, const char *type, int64_t length);

#endif
