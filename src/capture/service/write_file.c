/* Sessions that write into a file while they record. */
#include "base/file.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITE_PERIOD_MS     5000
#define MIN_WRITE_PERIOD_MS 100
#define AUTO_FLUSH_MS       5000
#define BATCH_BYTES         (1u << 20)
#define PIPE_WAIT_MS        200 /* for the reader of a pipe; the service must not wait longer */

/* Writes all or fails. A pipe's reader gets PIPE_WAIT_MS. */
static int write_out(int fd, const uint8_t *p, size_t len, struct error *err)
{
    while (len) {
        ssize_t n = file_write(fd, p, len);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd pfd = {.fd = fd, .events = POLLOUT};
            if (poll(&pfd, 1, PIPE_WAIT_MS) > 0)
                continue;
            errno = ETIMEDOUT;
        }
        if (n <= 0)
            return error_set_errno(err, n ? errno : EIO, "the service cannot write the trace file");
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

static void close_file(struct session *s)
{
    if (s->fd < 0)
        return;
    close(s->fd);
    s->fd = -1;
    uv_timer_stop(&s->timers[TIMER_FILE]);
    log_line("traced: session %llu: %llu bytes in its file", (unsigned long long)s->id,
             (unsigned long long)s->bytes_in_file);
}

/* How much of the batch fits the file, up to a packet's end. */
static size_t fitting(const struct session *s, const struct batch *b)
{
    size_t fits = b->bytes.n;
    if (!s->max_file_bytes || s->bytes_in_file + fits < s->max_file_bytes)
        return fits;
    fits = 0;
    for (size_t i = 0; i < b->packets.n; i++) {
        size_t end = b->packets.p[i].at + b->packets.p[i].len;
        if (s->bytes_in_file + end > s->max_file_bytes)
            break;
        fits = end;
    }
    return fits;
}

/* False when the file is finished: full, or it cannot be written. */
static bool write_pass(struct session *s)
{
    struct batch *b = &s->service->batch;
    bool more = true;
    while (more) {
        batch_clear(b);
        more = session_read(s, b, BATCH_BYTES);
        bool limit = s->max_file_bytes && s->bytes_in_file + b->bytes.n >= s->max_file_bytes;
        size_t n = fitting(s, b);
        if (write_out(s->fd, b->bytes.p, n, &s->file_error) != 0) {
            log_line("traced: session %llu: %s", (unsigned long long)s->id, s->file_error.text);
            return false;
        }
        s->bytes_in_file += n;
        if (limit)
            return false;
    }
    if (s->config->fflush_post_write == MRD__TRACE_CONFIG__FFLUSH_MODE__FFLUSH_ENABLED && fdatasync(s->fd) != 0 &&
        errno != EINVAL && errno != EROFS) { /* those: a pipe or a device, which have nothing to sync */
        error_set_errno(&s->file_error, errno, "the service cannot write the trace file");
        log_line("traced: session %llu: %s", (unsigned long long)s->id, s->file_error.text);
        return false;
    }
    return true;
}

void session_write_file(struct session *s)
{
    if (s->fd < 0 || write_pass(s))
        return;
    close_file(s);
    session_disable(s, false);
}

void session_finish_file(struct session *s)
{
    if (s->fd < 0)
        return;
    write_pass(s);
    close_file(s);
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
    struct stat st;
    if (fstat(s->fd, &st) == 0 && !S_ISREG(st.st_mode))
        fcntl(s->fd, F_SETFL, fcntl(s->fd, F_GETFL) | O_NONBLOCK);
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
