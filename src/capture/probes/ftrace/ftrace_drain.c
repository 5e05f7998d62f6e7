/* Reads the buffers of instances, and keeps count of who uses them. */
#include "capture/probes/ftrace/ftrace_drain.h"

#include "capture/probes/common/metatrace.h"

#include <stdio.h>

enum {
    MAX_PAGES_PER_TICK = 256, /* of one cpu, so that one busy cpu does not starve the loop */
    WATERMARK_TICK_MS = 1000, /* with drain_buffer_percent the kernel wakes us */
};

static void parse_for_all(struct drained_instance *d, struct ring_reader *reader, const struct page_view *view)
{
    for (size_t i = 0; i < d->in.started.n; i++) {
        struct ftrace_session *s = d->in.started.p[i];
        struct program_table programs = {s->selection.by_id, s->selection.n};
        struct page_view copy = *view;
        if (view->lost) {
            ftrace_bundle_lost(s->bundle);
            s->lost += view->lost_count;
        }
        s->records += page_view_parse(&copy, &programs, s->bundle);
        s->pages++;
        if (i == 0)
            ring_reader_parsed(reader, &copy);
    }
}

static void damaged(struct drained_instance *d, const struct page_view *view, enum ftrace_status status)
{
    for (size_t i = 0; i < d->in.started.n; i++) {
        struct ftrace_bundle *bundle = ((struct ftrace_session *)d->in.started.p[i])->bundle;
        ftrace_bundle_error(bundle, view->page_timestamp, status);
        ftrace_bundle_broken_page(bundle, view->page);
    }
}

/* Reads up to `max` pages of one cpu; true when there is more. */
static bool drain_cpu(struct drained_instance *d, uint32_t cpu, uint32_t max)
{
    struct ring_reader *reader = &d->in.readers[cpu];
    struct page_view view = {0};
    uint32_t n = 0;
    bool more = true;
    if (reader->fd < 0)
        return false;
    for (size_t i = 0; i < d->in.started.n; i++) {
        struct ftrace_session *s = d->in.started.p[i];
        ftrace_bundle_begin(s->bundle, cpu, &s->previous_end[cpu]);
    }
    for (; more && n < max; n++) {
        enum ftrace_status status = FTRACE_STATUS_OK;
        enum ring_result result = ring_reader_next(reader, &view, &status);
        if (result == RING_PAGE) {
            uint32_t length = view.end - view.begin;
            parse_for_all(d, reader, &view);
            more = n == 0 || !ring_reader_caught_up(reader, &view) || !length;
        } else if (result == RING_EMPTY) {
            more = false;
        } else {
            damaged(d, &view, status);
            more = result == RING_DAMAGED;
        }
    }
    for (size_t i = 0; i < d->in.started.n; i++)
        ftrace_bundle_end(((struct ftrace_session *)d->in.started.p[i])->bundle);
    return more;
}

static void report_news(struct ftrace_session *s)
{
    const struct probes_host *host = s->host;
    if (!s->tids.known)
        return;
    if (s->tids.stale.n && host->stale_tids)
        host->stale_tids(host->ctx, s->session_id, s->tids.stale.p, s->tids.stale.n);
    vec_clear(&s->tids.stale);
    if (s->tids.fresh.n && host->new_tids)
        host->new_tids(host->ctx, s->session_id, s->tids.fresh.p, s->tids.fresh.n);
    vec_clear(&s->tids.fresh);
    if (s->inodes.fresh.n && host->new_inodes)
        host->new_inodes(host->ctx, s->session_id, s->inodes.fresh.p, s->inodes.fresh.n);
    vec_clear(&s->inodes.fresh);
}

/* Reads all cpus, each up to `max` pages; true when there is more. */
static bool drain(struct drained_instance *d, uint32_t max)
{
    bool more = false;
    if (!d->in.readers || !d->in.started.n)
        return false;
    struct metatrace_span span = metatrace_begin(d->host->metatrace);
    uint64_t began_ns = probes_boot_ns();
    if (d->in.clock != FTRACE_CLOCK_BOOT) {
        int64_t ftrace_now, boot_now;
        ftrace_instance_clock_pair(&d->in, &ftrace_now, &boot_now);
        for (size_t i = 0; i < d->in.started.n; i++)
            ftrace_bundle_set_clock(((struct ftrace_session *)d->in.started.p[i])->bundle, d->in.clock, ftrace_now,
                                    boot_now);
    }
    for (uint32_t cpu = 0; cpu < d->in.n_cpus; cpu++)
        more |= drain_cpu(d, cpu, max);
    for (size_t i = 0; i < d->in.started.n; i++)
        report_news(d->in.started.p[i]);
    if (!more)
        d->drained_ns = began_ns;
    metatrace_end(d->host->metatrace, span, "ftrace_drain");
    return more;
}

void instance_drain(struct drained_instance *d)
{
    drain(d, d->in.buffer_pages + 2);
}

static void on_tick(uv_timer_t *timer)
{
    struct drained_instance *d = timer->data;
    bool more = drain(d, MAX_PAGES_PER_TICK);
    if (more)
        uv_timer_start(timer, on_tick, 0, 0);
    else
        probes_arm_tick(timer, on_tick, d->period_ms);
}

static void on_watermark(uv_poll_t *poll, int status, int events)
{
    struct drained_instance *d = poll->data;
    (void)status;
    (void)events;
    if (d->in.readers)
        on_tick(&d->timer);
}

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

static void free_instance(uv_handle_t *timer)
{
    mem_free(timer->data);
}

void instance_stop_polls(struct drained_instance *d)
{
    for (uint32_t i = 0; i < d->n_polls; i++)
        if (d->polls[i])
            uv_close((uv_handle_t *)d->polls[i], free_handle);
    mem_free(d->polls);
    d->polls = NULL;
    d->n_polls = 0;
}

void instance_release(struct drained_instance *d)
{
    const struct probes_host *host = d->host;
    struct error err = {0};
    if (--d->users)
        return;
    for (size_t i = 0; i < d->source->instances.n; i++) {
        if (d->source->instances.p[i] == d) {
            d->source->instances.p[i] = d->source->instances.p[--d->source->instances.n];
            break;
        }
    }
    instance_stop_polls(d);
    if (ftrace_instance_close(&d->in, &err)) {
        char line[640];
        snprintf(line, sizeof line, "restoring tracefs: %s", err.text);
        host->log(host->ctx, line);
    }
    uv_close((uv_handle_t *)&d->timer, free_instance);
}

int instance_get(struct ftrace_source *source, const struct probes_host *host, const struct ftrace_config *config,
                 const char *name, struct drained_instance **out, struct error *err)
{
    bool recovered;
    for (size_t i = 0; i < source->instances.n; i++) {
        if (strcmp(source->instances.p[i]->in.name, name) == 0) {
            *out = source->instances.p[i];
            (*out)->users++;
            return 0;
        }
    }
    struct drained_instance *d = mem_zalloc(sizeof *d);
    if (!d || !vec_push(&source->instances, d)) {
        mem_free(d);
        return error_set(err, -MRD_ENOMEM, "out of memory for ftrace");
    }
    struct ftrace_instance_options options = {source->tracefs_root, source->run_directory, source->mode,
                                              &source->next_dynamic_id, config->frozen};
    int rc = ftrace_instance_open(&d->in, name, &options, &recovered, err);
    if (rc) {
        source->instances.n--;
        mem_free(d);
        return rc;
    }
    if (recovered)
        host->log(host->ctx, "restored the tracefs settings that a killed recorder had left");
    d->source = source;
    d->host = host;
    d->users = 1;
    uv_timer_init(host->loop, &d->timer);
    d->timer.data = d;
    *out = d;
    return 0;
}

int instance_start_polls(struct drained_instance *d, const struct probes_host *host, struct error *err)
{
    if (d->n_polls)
        return 0;
    d->polls = mem_zalloc(d->in.n_cpus * sizeof *d->polls);
    if (!d->polls)
        return error_set(err, -MRD_ENOMEM, "out of memory for ftrace");
    d->n_polls = d->in.n_cpus;
    for (uint32_t cpu = 0; cpu < d->in.n_cpus; cpu++) {
        uv_poll_t *poll = d->in.readers[cpu].fd < 0 ? NULL : mem_zalloc(sizeof *poll);
        if (!poll || uv_poll_init(host->loop, poll, d->in.readers[cpu].fd)) {
            mem_free(poll); /* the timer does it alone */
            continue;
        }
        poll->data = d;
        uv_poll_start(poll, UV_READABLE, on_watermark);
        d->polls[cpu] = poll;
    }
    return 0;
}

static uint32_t session_period(const struct ftrace_session *s)
{
    uint32_t period = s->config.drain_period_ms;
    bool watermark = s->config.drain_buffer_percent && s->instance->n_polls;
    return watermark && period < WATERMARK_TICK_MS ? WATERMARK_TICK_MS : period;
}

void instance_set_period(struct drained_instance *d)
{
    d->period_ms = UINT32_MAX;
    for (size_t i = 0; i < d->in.started.n; i++) {
        uint32_t period = session_period(d->in.started.p[i]);
        if (period < d->period_ms)
            d->period_ms = period;
    }
    if (d->in.started.n)
        probes_arm_tick(&d->timer, on_tick, d->period_ms);
    else
        uv_timer_stop(&d->timer);
}
