/* Owns the sessions of linux.ftrace and when their buffers are read. */
#include "capture/probes/ftrace/ftrace_source.h"

#include "capture/probes/common/metatrace.h"
#include "capture/probes/ftrace/ftrace_stats.h"

#include <stdio.h>
#include <unistd.h>

enum {
    MAX_PAGES_PER_TICK = 256, /* of one cpu, so that one busy cpu does not starve the loop */
    WATERMARK_TICK_MS = 1000, /* with drain_buffer_percent the kernel wakes us */
};

struct ftrace_source;

/* An instance in use, with its timer and, for watermarks, one poll a cpu. */
struct drained_instance {
    struct ftrace_instance in;
    struct ftrace_source *source;
    const struct probes_host *host;
    uv_timer_t timer;
    uv_poll_t **polls; /* [n_polls] one a cpu while readers are open, where the kernel can poll; entries may be NULL */
    uint32_t n_polls;
    uint32_t users;
    uint32_t period_ms;
    uint64_t drained_ns; /* BOOTTIME when the last drain began that read all there was */
};

struct ftrace_source {
    char *tracefs_root, *run_directory;
    enum ring_mode mode;
    uint32_t next_dynamic_id;
    struct kernel_symbols symbols;
    uint32_t symbol_users;
    bool retain_symbols; /* a session has asked to keep them for the next one */
    VEC(struct drained_instance *)
    instances;
};

struct ftrace_session {
    const struct probes_host *host;
    struct ftrace_source *source;
    struct drained_instance *instance;
    struct ftrace_config config;
    struct event_selection selection;
    struct packet_sink sink;
    struct symbol_output symbols;
    struct tid_tracker tids;
    struct inode_tracker inodes;
    struct ftrace_bundle *bundle;
    uint64_t *previous_end;       /* [n_cpus] */
    struct pb_writer start_stats; /* the START packet, sent again with each flush */
    uint64_t session_id;
    uint64_t records, lost, pages;
    bool started, symbolizing;
    struct error refused; /* why there is no instance, told in the trace when the session starts */
    bool refused_by_others;
};

struct ftrace_source *ftrace_source_create(const struct ftrace_source_options *options)
{
    struct ftrace_source *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    s->mode = options->mode;
    s->next_dynamic_id = FTRACE_EVENT_FIRST_DYNAMIC;
    s->run_directory = mem_strdup(options->run_directory);
    s->tracefs_root = options->tracefs_root ? mem_strdup(options->tracefs_root) : NULL;
    if (!s->run_directory || (options->tracefs_root && !s->tracefs_root)) {
        ftrace_source_free(s);
        return NULL;
    }
    return s;
}

void ftrace_source_free(struct ftrace_source *s)
{
    if (!s)
        return;
    vec_free(&s->instances);
    kernel_symbols_free(&s->symbols);
    mem_free(s->tracefs_root);
    mem_free(s->run_directory);
    mem_free(s);
}

/* ---- reading ---- */

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

/* Reads what is in the buffers now, but not for ever what a busy machine adds meanwhile. */
static void drain_all(struct drained_instance *d)
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

/* ---- instances ---- */

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

static void free_instance(uv_handle_t *timer)
{
    mem_free(timer->data);
}

static void stop_polls(struct drained_instance *d)
{
    for (uint32_t i = 0; i < d->n_polls; i++)
        if (d->polls[i])
            uv_close((uv_handle_t *)d->polls[i], free_handle);
    mem_free(d->polls);
    d->polls = NULL;
    d->n_polls = 0;
}

static void instance_release(struct drained_instance *d)
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
    stop_polls(d);
    if (ftrace_instance_close(&d->in, &err)) {
        char line[640];
        snprintf(line, sizeof line, "restoring tracefs: %s", err.text);
        host->log(host->ctx, line);
    }
    uv_close((uv_handle_t *)&d->timer, free_instance);
}

static int instance_get(struct ftrace_source *source, const struct probes_host *host,
                        const struct ftrace_config *config, const char *name, struct drained_instance **out,
                        struct error *err)
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
        host->log(host->ctx, "a recorder that was killed had left tracefs set up: taken back");
    d->source = source;
    d->host = host;
    d->users = 1;
    uv_timer_init(host->loop, &d->timer);
    d->timer.data = d;
    *out = d;
    return 0;
}

/* ---- sessions ---- */

static void session_free(void *state)
{
    struct ftrace_session *s = state;
    if (s->instance) {
        ftrace_instance_remove(&s->instance->in, &s->selection);
        instance_release(s->instance);
    }
    if (s->symbolizing && --s->source->symbol_users == 0 && !s->source->retain_symbols)
        kernel_symbols_free(&s->source->symbols);
    ftrace_bundle_free(s->bundle);
    address_table_free(&s->symbols.addresses);
    tid_tracker_free(&s->tids);
    u64map_free(&s->inodes.seen);
    vec_free(&s->inodes.fresh);
    pb_writer_free(&s->start_stats);
    ftrace_config_free(&s->config);
    mem_free(s->previous_end);
    mem_free(s);
}

static int load_symbols(struct ftrace_session *s, struct error *err)
{
    int rc = 0;
    if (!s->config.symbolize_ksyms)
        return 0;
    s->source->retain_symbols |= s->config.retain_ksyms;
    if (!s->source->symbols.list.n)
        rc = kernel_symbols_load(&s->source->symbols, err);
    if (rc)
        return rc;
    s->source->symbol_users++;
    s->symbolizing = true;
    s->symbols.kernel = &s->source->symbols;
    return 0;
}

/* What the session asks for exists in the top instance only: its buffer as it is, the function tracer, and what
 * programs write to its trace_marker. */
static bool needs_top(const struct ftrace_config *c)
{
    bool prints = c->print_rules.n > 0;
    for (size_t i = 0; i < c->events.n; i++) {
        const char *e = c->events.p[i];
        prints |= strncmp(e, "ftrace/", 7) == 0 || strncmp(e, "ftrace:", 7) == 0 || strcmp(e, "print") == 0;
    }
    return prints || c->function_graph || c->preserve_ftrace_buffer || c->frozen;
}

/* The instance that the config names; for the top instance, when another recorder uses it, one of our own. */
static int choose_instance(struct ftrace_session *s, struct drained_instance **out, struct error *err)
{
    const char *name = s->config.instance_name;
    char other[200] = "another recorder of ours", own[64], line[500];
    int rc = instance_get(s->source, s->host, &s->config, name, out, err);
    bool is_top = !*name, foreign = false;
    if (!rc && is_top && (*out)->users == 1 && !s->config.preserve_ftrace_buffer && !s->config.frozen)
        foreign = ftrace_instance_is_foreign(&(*out)->in, other, sizeof other);
    if (rc != -MRD_EEXISTS && !foreign)
        return rc;
    if (foreign) {
        instance_release(*out);
        rc = error_set(err, -MRD_EEXISTS,
                       "another program records in the top tracefs instance (tracing is on, with %s and maybe more): "
                       "end it, or leave out of this config what needs the top instance (ftrace/print, the function "
                       "tracer); what a crashed one left goes with traced_probes --reset-ftrace",
                       other);
    }
    if (!is_top || needs_top(&s->config))
        return rc;
    snprintf(own, sizeof own, "meridian-%d", (int)getpid());
    snprintf(line, sizeof line, "linux.ftrace: %s uses the top tracefs instance: recording in instances/%s", other,
             own);
    s->host->log(s->host->ctx, line);
    struct error second = {0};
    return instance_get(s->source, s->host, &s->config, own, out, &second) == 0 ? 0 : rc;
}

/* Brings the session into its instance. */
static int enter_instance(struct ftrace_session *s, struct error *err)
{
    struct drained_instance *d = NULL;
    int rc = choose_instance(s, &d, err);
    if (rc)
        return rc;
    rc = ftrace_instance_add(&d->in, &s->config, &s->selection, err);
    if (rc) {
        s->refused_by_others = rc == -MRD_EEXISTS && d->in.n_sessions;
        instance_release(d);
        return rc;
    }
    s->instance = d;
    return 0;
}

static int set_up_session(const struct probes_host *host, const struct data_source_config *config,
                          const struct packet_sink *sink, bool frozen, void **state, struct error *err)
{
    struct ftrace_session *s = mem_zalloc(sizeof *s);
    if (!s)
        return error_set(err, -MRD_ENOMEM, "out of memory for ftrace");
    s->host = host;
    s->source = host->ftrace;
    s->sink = *sink;
    s->session_id = config->session_id;
    int rc = frozen ? ftrace_config_parse_frozen(&s->config, config->specific, &s->refused)
                    : ftrace_config_parse(&s->config, config->specific, &s->refused);
    if (!rc)
        rc = enter_instance(s, &s->refused);
    if (rc && rc != -MRD_ENOMEM) {
        *state = s;
        return 0;
    }
    if (rc || !tid_tracker_init(&s->tids))
        rc = error_set(err, -MRD_ENOMEM, "out of memory for ftrace");
    if (!rc)
        rc = load_symbols(s, err);
    if (!rc) {
        struct drained_instance *d = s->instance;
        s->previous_end = mem_zalloc(d->in.n_cpus * sizeof *s->previous_end);
        s->bundle = ftrace_bundle_create(&s->sink, &d->in.printk, &s->symbols, &d->in.events.compact);
        if (!s->previous_end || !s->bundle)
            rc = error_set(err, -MRD_ENOMEM, "out of memory for ftrace");
    }
    if (rc) {
        session_free(s);
        return rc;
    }
    if (!frozen) { /* whoever ran before the last boot cannot be looked up now */
        ftrace_bundle_set_tids(s->bundle, &s->tids);
        ftrace_bundle_set_inodes(s->bundle, &s->inodes);
    }
    ftrace_bundle_set_debug(s->bundle, s->config.debug_ftrace_abi);
    *state = s;
    return 0;
}

static int session_setup(const struct probes_host *host, const struct data_source_config *config,
                         const struct packet_sink *sink, void **state, struct error *err)
{
    return set_up_session(host, config, sink, false, state, err);
}

static int frozen_setup(const struct probes_host *host, const struct data_source_config *config,
                        const struct packet_sink *sink, void **state, struct error *err)
{
    return set_up_session(host, config, sink, true, state, err);
}

/* A session without an instance: whoever opens the trace is told why there are no events in it. */
static int tell_refusal(struct ftrace_session *s, struct error *err)
{
    struct pb_writer w = {0};
    ftrace_stats_put_refusal(&w, s->config.frozen ? "linux.frozen_ftrace" : "linux.ftrace", s->refused.text,
                             s->refused_by_others);
    if (!w.failed)
        packet_sink_write(&s->sink, pb_written(&w));
    pb_writer_free(&w);
    return error_set(err, s->refused.code, "%s", s->refused.text);
}

static void put_stats(struct ftrace_session *s, struct pb_writer *w, enum ftrace_stats_phase phase)
{
    struct ftrace_stats_input in = {
        .instance = &s->instance->in,
        .selection = &s->selection,
        .config = &s->config,
        .counts = ftrace_bundle_counts(s->bundle),
        .symbols = (uint32_t)s->source->symbols.list.n,
        .symbols_kb = (uint32_t)(s->source->symbols.text.cap + s->source->symbols.list.cap * 16) >> 10};
    ftrace_stats_put(w, phase, &in);
}

static int start_polls(struct drained_instance *d, const struct probes_host *host, struct error *err)
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

static void set_period(struct drained_instance *d)
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

/* None of the events that the config names is there: the trace carries the statistics, which say so, and no more. */
static int tell_no_events(struct ftrace_session *s, struct error *err)
{
    const string_list *list = s->selection.unknown.n ? &s->selection.unknown : &s->selection.failed;
    char names[300];
    size_t n = 0, i = 0;
    if (!s->start_stats.failed)
        packet_sink_write(&s->sink, pb_written(&s->start_stats));
    for (; i < list->n && n + strlen(list->p[i]) + 3 < sizeof names; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", list->p[i]);
    return error_set(err, -MRD_ENOTFOUND, "%s: %.*s%s",
                     s->selection.unknown.n ? "the kernel has none of these events" : "no event can be recorded",
                     (int)n, names, i < list->n ? ", ..." : "");
}

static void session_tell_incomplete(void *state, void (*tell)(void *ctx, const char *text), void *ctx)
{
    const struct ftrace_session *s = state;
    char text[700];
    for (size_t i = 0; i < s->selection.unknown.n; i++) {
        snprintf(text, sizeof text, "the kernel has no event %s", s->selection.unknown.p[i]);
        tell(ctx, text);
    }
    for (size_t i = 0; i < s->selection.failed.n; i++)
        tell(ctx, s->selection.failed.p[i]);
    if (s->selection.atrace_errors)
        tell(ctx, s->selection.atrace_errors);
}

static int session_start(void *state, struct error *err)
{
    struct ftrace_session *s = state;
    struct drained_instance *d = s->instance;
    if (!d)
        return tell_refusal(s, err);
    drain_all(d); /* what was recorded before belongs to the others only */
    if (!vec_reserve(&d->in.started, d->in.started.n + 1))
        return error_set(err, -MRD_ENOMEM, "out of memory for ftrace");
    put_stats(s, &s->start_stats, FTRACE_STATS_PHASE_START_OF_TRACE);
    if (!s->selection.events.n && (s->selection.unknown.n || s->selection.failed.n))
        return tell_no_events(s, err);
    int rc = ftrace_instance_start(&d->in, err);
    if (rc)
        return rc;
    if (ftrace_instance_can_poll(&d->in))
        rc = start_polls(d, s->host, err);
    if (rc) {
        ftrace_instance_stop(&d->in);
        return rc;
    }
    vec_push(&d->in.started, s);
    s->started = true;
    set_period(d);
    if (s->config.preserve_ftrace_buffer && !s->start_stats.failed)
        packet_sink_write(&s->sink, pb_written(&s->start_stats));
    return 0;
}

static void session_flush(void *state)
{
    struct ftrace_session *s = state;
    struct pb_writer w = {0};
    if (!s->started)
        return;
    drain_all(s->instance);
    if (!s->start_stats.failed)
        packet_sink_write(&s->sink, pb_written(&s->start_stats));
    put_stats(s, &w, FTRACE_STATS_PHASE_END_OF_TRACE);
    if (!w.failed)
        packet_sink_write(&s->sink, pb_written(&w));
    pb_writer_free(&w);
}

static uint64_t session_whole_until(void *state)
{
    const struct ftrace_session *s = state;
    return s->instance ? s->instance->drained_ns : probes_boot_ns();
}

static void session_stop(void *state)
{
    struct ftrace_session *s = state;
    struct drained_instance *d = s->instance;
    if (!s->started)
        return;
    if (d->in.started.n == 1) /* nothing new while we read the last of it: then the counters agree to the event */
        ftrace_instance_pause(&d->in);
    session_flush(s);
    s->started = false;
    for (size_t i = 0; i < d->in.started.n; i++) {
        if (d->in.started.p[i] == s) {
            d->in.started.p[i] = d->in.started.p[--d->in.started.n];
            break;
        }
    }
    if (!d->in.started.n)
        stop_polls(d);
    ftrace_instance_stop(&d->in);
    set_period(d);
}

static void session_clear(void *state)
{
    struct ftrace_session *s = state;
    tid_tracker_forget_all(&s->tids);
    u64map_clear(&s->inodes.seen);
}

void ftrace_session_counts(const void *state, struct ftrace_session_counts *counts)
{
    const struct ftrace_session *s = state;
    *counts = (struct ftrace_session_counts){ftrace_bundle_counts(s->bundle), s->records, s->lost, s->pages};
}

const struct data_source_type ftrace_data_source = {
    .name = "linux.ftrace",
    .config_field = 100,
    .setup = session_setup,
    .start = session_start,
    .tell_incomplete = session_tell_incomplete,
    .flush = session_flush,
    .whole_until = session_whole_until,
    .clear_incremental = session_clear,
    .stop = session_stop,
    .free = session_free,
};

const struct data_source_type frozen_ftrace_data_source = {
    .name = "linux.frozen_ftrace",
    .config_field = 136,
    .setup = frozen_setup,
    .start = session_start,
    .tell_incomplete = session_tell_incomplete,
    .flush = session_flush,
    .whole_until = session_whole_until,
    .stop = session_stop,
    .free = session_free,
};
