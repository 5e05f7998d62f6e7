/* The loop: opens the ways in, lets clients and worker do their work, and ends cleanly. */
#include "server/loop.h"
#include "server/streams.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    TICK_MS = 200,
    DEFAULT_MAX_CONNECTIONS = 4096,
    DEFAULT_STALLED_WRITE_MS = 300000,
    DEFAULT_BLOCKED_MS = 60000,
    DEFAULT_MAX_VIEWS = 32,  /* 0.3 MB each, beside what they create */
    LINGER_MS = 2000,        /* for a client to close after our last words */
    DESCRIPTORS_BESIDE = 64, /* of the trace, the library, the loop */
};
static const size_t DEFAULT_MAX_REQUEST_BYTES = (size_t)1 << 30;

/* ---- the end ---- */

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* Everything is closed: connections at once, with what they asked interrupted. The loop ends when nothing is open. */
void server_stop(struct server *s)
{
    if (s->stopping)
        return;
    s->stopping = true;
    for (size_t i = 0; i < s->n_listeners; i++)
        close_handle(&s->listeners[i].handle);
    for (struct conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        conn_close(c);
    }
    close_handle((uv_handle_t *)&s->tick);
    for (size_t i = 0; i < sizeof s->signals / sizeof *s->signals; i++)
        close_handle((uv_handle_t *)&s->signals[i]);
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    server_stop(handle->data);
}

/* ---- time ---- */

/* Has a client left that is not read from? Its bytes wait, and its end behind them, which poll() tells of at once. */
static bool has_left_unread(const struct conn *c)
{
    struct pollfd p = {.events = POLLRDHUP};
    return !c->reading && !c->ended && uv_fileno(&c->uv.handle, &p.fd) == 0 && poll(&p, 1, 0) > 0;
}

static void check_conn(struct server *s, struct conn *c, uint64_t now)
{
    const struct server_config *config = s->config;
    uint64_t request = request_timeout_ms(config);
    uint64_t stalled = (uint64_t)(config->stalled_write_ms ? config->stalled_write_ms : DEFAULT_STALLED_WRITE_MS);
    if (c->closing)
        return;
    bool late = c->shut                ? now - c->last_write_ms > LINGER_MS
                : c->writes            ? now - c->last_write_ms > stalled
                : conn_is_half_sent(c) ? c->reading && now - c->last_read_ms > request
                                       : false;
    if (late || has_left_unread(c))
        conn_close(c);
}

static bool is_idle_long(struct server *s, uint64_t now)
{
    int64_t limit = s->config->idle_timeout_ms;
    if (limit <= 0)
        return false;
    if (s->config->idle_start == SERVER_IDLE_ORPHANED)
        return s->n_conns == 0 && now - s->orphaned_ms > (uint64_t)limit;
    return worker_idle_ms(&s->worker) > limit;
}

static void on_tick(uv_timer_t *timer)
{
    struct server *s = timer->data;
    uint64_t now = uv_now(&s->loop);
    worker_interrupt(&s->worker);
    if (s->accept_later) {
        s->accept_later = false;
        for (size_t i = 0; i < s->n_listeners; i++)
            conn_accept(s, &s->listeners[i].stream);
    }
    for (struct conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        check_conn(s, c, now);
    }
    if (is_idle_long(s, now)) {
        fprintf(stderr, "idle for %lld s; shutting down\n", (long long)(s->config->idle_timeout_ms / 1000));
        server_stop(s);
    }
}

/* ---- the worker's news ---- */

static void flush_session(struct session *session)
{
    conn_flush(session->conn);
}

static void on_notify(uv_async_t *async)
{
    struct server *s = async->data;
    worker_each_ready(&s->worker, flush_session);
}

static void notify(void *ctx)
{
    uv_async_send(ctx);
}

/* ---- running ---- */

/* A client is a descriptor: as many as the system lets us have. */
static void raise_descriptors(struct server *s)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    rlim_t want = s->max_conns + DESCRIPTORS_BESIDE;
    if (limit.rlim_cur < want) {
        limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur < want && limit.rlim_cur > 2 * DESCRIPTORS_BESIDE)
        s->max_conns = limit.rlim_cur - DESCRIPTORS_BESIDE;
}

static int open_handles(struct server *s)
{
    static const int signals[] = {SIGINT, SIGTERM};
    int rc = uv_async_init(&s->loop, &s->notify, on_notify);
    s->notify.data = s;
    if (rc == 0)
        rc = uv_timer_init(&s->loop, &s->tick);
    s->tick.data = s;
    if (rc == 0)
        rc = uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
    for (size_t i = 0; i < sizeof signals / sizeof *signals && rc == 0; i++) {
        rc = uv_signal_init(&s->loop, &s->signals[i]);
        s->signals[i].data = s;
        if (rc == 0)
            rc = uv_signal_start(&s->signals[i], on_signal, signals[i]);
    }
    return rc;
}

static int open_transport(struct server *s, pthread_t *output, struct error *err)
{
    int fd, rc;
    switch (s->config->transport) {
    case SERVER_HTTP:
        return listen_http(s, err);
    case SERVER_UNIX:
        return listen_unix(s, err);
    case SERVER_STDIO:
        rc = stdio_start(output, &fd, err);
        return rc < 0 ? rc : conn_open_fd(s, fd, err);
    }
    return 0;
}

static void close_any(uv_handle_t *handle, void *ctx)
{
    (void)ctx;
    close_handle(handle);
}

/* Closes the loop with the handles that it still has. */
static void close_loop(struct server *s)
{
    uv_walk(&s->loop, close_any, NULL);
    while (uv_run(&s->loop, UV_RUN_DEFAULT))
        ;
    uv_loop_close(&s->loop);
}

/* Opens the loop with its handles, and starts the worker. After a failure nothing of them is left. */
static int start(struct server *s)
{
    const struct server_config *config = s->config;
    size_t max_bytes = config->max_request_bytes ? config->max_request_bytes : DEFAULT_MAX_REQUEST_BYTES;
    int rc = uv_loop_init(&s->loop);
    if (rc < 0)
        return rc;
    rc = open_handles(s);
    if (rc == 0) {
        worker_init(&s->worker, &s->trace, max_bytes, notify, &s->notify);
        s->worker.recordings = &s->recordings;
        s->worker.blocked_ns = (config->blocked_ms ? config->blocked_ms : DEFAULT_BLOCKED_MS) * 1000000;
        if (gethostname(s->own_name, sizeof s->own_name - 1) < 0)
            s->own_name[0] = '\0';
        if (worker_start(&s->worker) < 0) {
            worker_free(&s->worker);
            rc = UV_EAGAIN;
        }
    }
    if (rc < 0)
        close_loop(s);
    return rc;
}

/* Closes the connections, the worker and the loop, in this order. */
static void finish(struct server *s)
{
    server_stop(s);
    while (s->n_conns)
        uv_run(&s->loop, UV_RUN_ONCE);
    worker_close(&s->worker); /* calls notify() no more */
    close_loop(s);
}

static void free_server(struct server *s)
{
    trace_free(&s->trace);
    recordings_free(&s->recordings);
    mem_free(s);
}

int server_run(const struct server_config *config, struct error *err)
{
    struct server *s = mem_zalloc(sizeof *s);
    pthread_t output;
    if (!s) {
        tp_close(config->tp);
        return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    s->config = config;
    s->max_conns = config->max_connections ? config->max_connections : DEFAULT_MAX_CONNECTIONS;
    trace_init(&s->trace, config->tp, config->trace_name, &config->tp_config);
    s->trace.max_views = config->max_views ? config->max_views : DEFAULT_MAX_VIEWS;
    s->trace.prepare = config->prepare;
    s->trace.prepare_ctx = config->prepare_ctx;
    signal(SIGPIPE, SIG_IGN);
    raise_descriptors(s);
    int rc = recordings_init(&s->recordings, config->recordings, config->n_recordings, err);
    int started = rc == 0 ? start(s) : rc;
    if (started < 0) {
        free_server(s);
        return rc < 0 ? rc : error_set(err, -MRD_EIO, "cannot start the server: %s", uv_strerror(started));
    }
    rc = open_transport(s, &output, err);
    if (rc == 0) {
        s->orphaned_ms = uv_now(&s->loop);
        if (config->on_listening)
            config->on_listening(config->on_listening_ctx);
        while (!s->stopping)
            uv_run(&s->loop, UV_RUN_ONCE);
    }
    finish(s);
    if (rc == 0 && config->transport == SERVER_STDIO)
        pthread_join(output, NULL);
    free_server(s);
    return rc;
}
