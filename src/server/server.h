/* The server: one set of traces for many clients, over HTTP and WebSocket, a Unix socket or standard streams
 * (docs/server.md).
 *
 * Two threads. The loop (libuv) owns sockets: it reads, cuts bytes into requests, writes answers, and answers /status
 * itself. The worker owns the traces and runs the requests, one at a time and those of one client in order; between the
 * batches of a long answer it turns to other clients. What they share is struct session, one a client: requests on
 * their way in, answers on their way out, both bounded: a client that does not read its answers stops its own query,
 * not the worker; a client that goes away interrupts it. */
#ifndef MERIDIAN_SERVER_SERVER_H
#define MERIDIAN_SERVER_SERVER_H

#include "base/error.h"
#include "meridian/tp.h"

#include <stddef.h>

enum server_transport { SERVER_HTTP, SERVER_UNIX, SERVER_STDIO };

/* What starts the time after which an idle server ends. */
enum server_idle_start { SERVER_IDLE_ORPHANED /* the last client left */, SERVER_IDLE_LAST_QUERY };

struct server_config {
    enum server_transport transport;

    struct tp *tp;              /* loaded and finished, or NULL: the first client brings a trace; taken over */
    const char *trace_name;     /* what /status calls it */
    struct tp_config tp_config; /* for the traces that clients bring */
    /* Called with each handle opened for them, before it gets data: adds modules. NULL: nothing to do. */
    int (*prepare)(void *ctx, struct tp *tp);
    void *prepare_ctx;

    const char *const *recordings; /* directories whose files clients may ask by name; with links resolved once */
    size_t n_recordings;

    const char *host;           /* http: address to listen on; NULL: localhost, both IPv4 and IPv6 */
    int port;                   /* http: 0 chooses a free one */
    const char *const *origins; /* http: allowed beside the built-in ones */
    size_t n_origins;

    const char *socket_path; /* unix */

    void (*on_listening)(void *ctx); /* called once clients can come; NULL: nothing to do */
    void *on_listening_ctx;

    int64_t idle_timeout_ms; /* 0: never */
    enum server_idle_start idle_start;

    size_t max_connections;     /* 0: 4096 */
    size_t max_request_bytes;   /* held of requests that are coming or waiting, all clients together; 0: 1 GiB */
    int64_t request_timeout_ms; /* without a byte of a request that has begun; 0: 30 s */
    int64_t stalled_write_ms;   /* without a whole piece of an answer taken; 0: 5 minutes */
    int64_t blocked_ms;         /* others wait for one statement that long, then it ends; 0: 60 s */
    size_t max_views;           /* pages with tables of their own; 0: 32 */
};

/* Serves until SIGINT or SIGTERM, the idle timeout, or (stdio) the end of the input. 0; or negative with a text. */
int server_run(const struct server_config *config, struct error *err);

#endif
