/* Sessions that write into a file while they record. */
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"

#include <unistd.h>

#define WRITE_PERIOD_MS     5000
#define MIN_WRITE_PERIOD_MS 100
#define AUTO_FLUSH_MS       5000
#define BATCH_BYTES         (1u << 20)
#define QUEUE_MAX_BYTES     (4u << 20) /* for the file's thread; more waits in the session's buffers */
#define TAIL_BYTES          4096u      /* of a file with a limit: kept for the packets that tell how it ended */

static void on_progress(void *ctx);

bool session_has_file(const struct session *s)
{
    return s->fd >= 0 || s->out;
}

/* The thread that writes; false: there is none, and the session's file has failed. */
static bool open_writer(struct session *s)
{
    if (!s->out && s->fd >= 0) {
        s->out = file_writer_open(s->service->loop, s->fd, on_progress, s, &s->file_error);
        s->fd = -1;
    }
    return s->out != NULL;
}

static void let_go(struct session *s)
{
    if (s->file_error.code)
        log_line("traced: session %llu: %s", (unsigned long long)s->id, s->file_error.text);
    log_line("traced: session %llu: %llu bytes in its file", (unsigned long long)s->id,
             (unsigned long long)file_writer_written(s->out));
    uv_timer_stop(&s->timers[TIMER_FILE]);
    file_writer_close(s->out);
    s->out = NULL;
}

static bool is_over(const struct session *s)
{
    return s->state == SESSION_DISABLED || s->state == SESSION_CLONED;
}

/* How much of the batch fits below `max` (0: no limit), up to a packet's end. */
static size_t fitting(const struct session *s, const struct batch *b, uint64_t max)
{
    size_t fits = b->bytes.n;
    if (!max || s->bytes_in_file + fits < max)
        return fits;
    fits = 0;
    for (size_t i = 0; i < b->packets.n; i++) {
        size_t end = b->packets.p[i].at + b->packets.p[i].len;
        if (s->bytes_in_file + end > max)
            break;
        fits = end;
    }
    return fits;
}

static void push(struct session *s, struct batch *b, size_t n)
{
    b->bytes.n = n;
    if (b->bytes.failed || (n && !file_writer_push(s->out, &b->bytes))) {
        error_set(&s->file_error, -MRD_ENOMEM, "the service has no memory for the trace file");
        s->file_full = true; /* a packet less would not show */
        return;
    }
    s->bytes_in_file += n;
}

/* Behind all that fits: how the recording ended, which readers need to tell an end from a cut. */
static void push_tail(struct session *s)
{
    struct batch *b = &s->service->batch;
    batch_clear(b);
    session_read_tail(s, b);
    push(s, b, fitting(s, b, s->max_file_bytes));
}

/* Queues what can be read, as long as the file takes it. */
static void fill(struct session *s)
{
    struct batch *b = &s->service->batch;
    uint64_t limit = s->max_file_bytes > 2 * TAIL_BYTES ? s->max_file_bytes - TAIL_BYTES : s->max_file_bytes;
    while (s->file_more && !s->file_full && file_writer_queued(s->out) < QUEUE_MAX_BYTES) {
        batch_clear(b);
        s->file_more = session_read(s, b, BATCH_BYTES);
        s->file_full = limit && s->bytes_in_file + b->bytes.n >= limit;
        push(s, b, fitting(s, b, limit));
        if (!s->file_more && s->config->fflush_post_write == MRD__TRACE_CONFIG__FFLUSH_MODE__FFLUSH_ENABLED)
            file_writer_sync(s->out);
    }
    if (!is_over(s)) {
        if (s->file_full)
            session_disable(s, false); /* comes back here when it is over */
        return;
    }
    if (s->file_ended || (s->file_more && !s->file_full))
        return;
    if (s->file_full && !s->file_error.code)
        push_tail(s);
    s->file_ended = true;
    file_writer_finish(s->out);
}

static void on_progress(void *ctx)
{
    struct session *s = ctx;
    if (!file_writer_done(s->out)) {
        fill(s);
        return;
    }
    struct error err = file_writer_error(s->out);
    if (err.code)
        s->file_error = err;
    let_go(s);
    if (is_over(s))
        session_ended(s);
    else
        session_disable(s, false);
}

void session_write_file(struct session *s)
{
    if (!open_writer(s))
        return;
    s->file_more = true;
    fill(s);
}

void session_finish_file(struct session *s)
{
    if (open_writer(s)) {
        s->file_more = true;
        fill(s);
    }
}

void session_abandon_file(struct session *s)
{
    if (s->out && !s->file_error.code)
        error_set(&s->file_error, -MRD_ETIMEOUT, "the trace file could not be written in time; its end is missing");
    if (s->out)
        let_go(s);
}

static void after_flush(void *ctx, struct session *s, bool ok)
{
    (void)ctx;
    (void)ok;
    if (!s->closing && s->state == SESSION_STARTED)
        session_write_file(s);
}

static void arm(struct session *s);

static void on_period(uv_timer_t *t)
{
    struct session *s = t->data;
    arm(s);
    if (s->flush_before_write)
        session_flush(s, 0, FLUSH_REASON_PERIODIC | FLUSH_BY_TRACED, after_flush, NULL);
    else
        session_write_file(s);
}

static void arm(struct session *s)
{
    uint64_t next = s->write_period_ms - clock_real_ns() / 1000000 % s->write_period_ms;
    uv_timer_start(&s->timers[TIMER_FILE], on_period, next, 0);
}

void session_start_file(struct session *s)
{
    const Mrd__TraceConfig *c = s->config;
    s->max_file_bytes = c->max_file_size_bytes;
    s->write_period_ms = c->file_write_period_ms ? c->file_write_period_ms : WRITE_PERIOD_MS;
    if (s->write_period_ms < MIN_WRITE_PERIOD_MS)
        s->write_period_ms = MIN_WRITE_PERIOD_MS;
    switch (c->write_flush_mode) {
    case MRD__TRACE_CONFIG__WRITE_FLUSH_MODE__WRITE_FLUSH_DISABLED:
        break;
    case MRD__TRACE_CONFIG__WRITE_FLUSH_MODE__WRITE_FLUSH_ENABLED:
        s->flush_before_write = true;
        break;
    default:
        s->flush_before_write = s->write_period_ms > AUTO_FLUSH_MS;
        if (c->flush_period_ms)
            log_line("traced: session %llu: flush_period_ms is not used with write_into_file: see write_flush_mode",
                     (unsigned long long)s->id);
        s->flush_period_ms = s->flush_before_write ? 0 : AUTO_FLUSH_MS;
    }
    arm(s);
}
