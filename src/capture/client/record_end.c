/* The end of a recording: stopping it, reading the trace, what is said about it. */
#include "capture/client/record_private.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"
#include "wire/recording_problem.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

bool record_call(struct recorder *r, unsigned method, struct slice args, int fd, ipc_reply_fn fn)
{
    if (ipc_client_invoke(r->client, method, args, fd, fn, r))
        return true;
    fprintf(stderr, "perfetto: cannot send the request to the service; the config may be too large\n");
    record_finish(r, EXIT_FAILED);
    return false;
}

/* Tells who waits (--background-wait, --notify-fd) how it went: 0 started, 1 failed, 2 too late. */
void record_notify(struct recorder *r, char status)
{
    if (r->notified || r->parent)
        return;
    r->notified = true;
    if (r->o->notify_fd >= 0) {
        (void)!write(r->o->notify_fd, &status, 1);
        close(r->o->notify_fd);
    }
}

bool record_on_terminal(const struct recorder *r)
{
    return isatty(STDERR_FILENO) && !r->o->background && !r->parent;
}

static void maybe_stop_loop(struct recorder *r)
{
    struct recorder *root = r->parent ? r->parent : r;
    if (!root->done)
        return;
    for (struct recorder *c = root->children; c; c = c->next)
        if (!c->done)
            return;
    uv_stop(root->loop);
}

void record_finish(struct recorder *r, int code)
{
    if (r->done)
        return;
    r->done = true;
    r->exit_code = code;
    if (record_on_terminal(r) && r->started_ns)
        fprintf(stderr, "\r\033[K");
    trace_output_close(&r->out, r->service_writes, code == EXIT_OK || code == EXIT_NOTHING);
    record_notify(r, code == EXIT_OK ? 0 : 1);
    uv_timer_stop(&r->timeout);
    uv_timer_stop(&r->stall);
    uv_timer_stop(&r->status);
    uv_timer_stop(&r->announce);
    maybe_stop_loop(r);
}

/* The recording has ended and all of it is in the file. */
static void finish_whole(struct recorder *r)
{
    record_finish(r, report_nothing_started(&r->report) ? EXIT_NOTHING : EXIT_OK);
}

/* ---- the trace ---- */

static void on_stall(uv_timer_t *t)
{
    struct recorder *r = t->data;
    fprintf(stderr, "perfetto: the service stopped sending in the middle of the trace\n");
    record_finish(r, EXIT_FAILED);
}

static void on_data(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct recorder *r = ctx;
    if (r->done)
        return;
    if (!success) {
        fprintf(stderr, "perfetto: the service refused to hand over the trace\n");
        record_finish(r, EXIT_FAILED);
        return;
    }
    struct error err = {0};
    if (trace_output_add(&r->out, reply, &err) != 0) {
        fprintf(stderr, "perfetto: cannot write the trace: %s\n", err.text);
        record_finish(r, EXIT_FAILED);
        return;
    }
    if (has_more)
        uv_timer_start(&r->stall, on_stall, DATA_STALL_MS, 0);
    else
        finish_whole(r);
}

void record_read_trace(struct recorder *r)
{
    if (r->reading || r->done)
        return;
    r->reading = true;
    if (record_call(r, CONSUMER_READ_BUFFERS, slice_of(NULL, 0), -1, on_data))
        uv_timer_start(&r->stall, on_stall, DATA_STALL_MS, 0);
}

/* ---- the end of the recording ---- */

/* The session's statistics after its end; then the trace. */
static void on_final_stats(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct recorder *r = ctx;
    struct pb_field stats;
    (void)has_more;
    if (r->done)
        return;
    if (success && pb_find(reply, GET_TRACE_STATS_RESPONSE_TRACE_STATS, &stats))
        report_losses(pb_bytes(&stats), r->service_writes);
    if (r->service_writes || r->out.fd < 0)
        finish_whole(r);
    else
        record_read_trace(r);
}

void record_on_disabled(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct recorder *r = ctx;
    (void)has_more;
    struct pb_field f;
    if (r->done)
        return;
    uv_timer_stop(&r->status);
    uv_timer_stop(&r->announce);
    if (record_on_terminal(r) && r->started_ns)
        fprintf(stderr, "\r\033[K");
    bool has_run = success && pb_find(reply, ENABLE_TRACING_RESPONSE_REPORT, &f);
    if (has_run) {
        report_take(&r->report, pb_bytes(&f));
        report_print(&r->report);
    }
    struct slice error =
        success && pb_find(reply, ENABLE_TRACING_RESPONSE_ERROR, &f) ? pb_bytes(&f) : slice_of(NULL, 0);
    if (error.len || !success) {
        fprintf(stderr, "perfetto: %s%.*s\n",
                !success  ? "the service did not understand the config"
                : has_run ? ""
                          : "the service refused the session: ",
                (int)error.len, error.len ? (const char *)error.p : "");
        record_notify(r, 1);
        record_finish(r, EXIT_FAILED);
    } else {
        if (!ipc_client_invoke(r->client, CONSUMER_GET_TRACE_STATS, slice_of(NULL, 0), -1, on_final_stats, r))
            on_final_stats(r, false, false, slice_of(NULL, 0)); /* an old service: the trace is worth having */
    }
}

static void on_disable_reply(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct recorder *r = ctx;
    (void)has_more;
    (void)reply;
    if (!success)
        record_finish(r, EXIT_FAILED);
    /* EnableTracing answers when all data sources have stopped */
}

static void on_flushed(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct recorder *r = ctx;
    (void)success; /* what is slow is counted in the trace; the rest is worth having */
    (void)has_more;
    (void)reply;
    if (!r->done)
        record_call(r, CONSUMER_DISABLE_TRACING, slice_of(NULL, 0), -1, on_disable_reply);
}

void record_on_timeout(uv_timer_t *t)
{
    struct recorder *r = t->data;
    fprintf(stderr, "perfetto: timed out\n");
    record_notify(r, 2);
    record_finish(r, EXIT_FAILED);
}

/* Flush, stop, read what there is. */
void record_stop(struct recorder *r)
{
    uint8_t args[8];
    size_t n = 0;
    if (r->stopping || r->done)
        return;
    r->stopping = true;
    args[n++] = FLUSH_REQUEST_TIMEOUT_MS << 3; /* 0: the session's */
    args[n++] = 0;
    args[n++] = FLUSH_REQUEST_FLAGS << 3;
    n += pb_encode_varint(args + n, FLUSH_REASON_STOP | FLUSH_BY_PERFETTO);
    if (!record_call(r, CONSUMER_FLUSH, slice_of(args, n), -1, on_flushed))
        return;
    uv_timer_start(&r->timeout, record_on_timeout, CONNECT_GRACE_MS, 0);
}

void record_on_signal(uv_signal_t *h, int signum)
{
    struct recorder *r = h->data;
    bool second = r->signalled;
    r->signalled = true; /* Ctrl-C ends the command as well, which may be told first: it is stopping then */
    if (second || !r->client || !ipc_client_has_method(r->client, CONSUMER_FLUSH)) {
        record_finish(r, EXIT_FAILED); /* impatient, or there is nothing to save yet */
        return;
    }
    fprintf(stderr, "%sSIG%s received: saving the trace\n", record_on_terminal(r) ? "\r\033[K" : "",
            signum == SIGINT ? "INT" : "TERM");
    record_stop(r);
}

void record_on_until(uv_poll_t *h, int status, int events)
{
    struct recorder *r = h->data;
    (void)status, (void)events;
    uv_poll_stop(h);
    if (r->client && ipc_client_has_method(r->client, CONSUMER_FLUSH))
        record_stop(r);
    else
        record_finish(r, EXIT_FAILED);
}
