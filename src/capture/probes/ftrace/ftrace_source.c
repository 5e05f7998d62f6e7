/* The sessions of linux.ftrace. */
#include "capture/probes/ftrace/ftrace_source.h"
#include "capture/probes/ftrace/ftrace_drain.h"

#include "capture/probes/common/metatrace.h"
#include "capture/probes/ftrace/ftrace_stats.h"

#include <stdio.h>
#include <unistd.h>

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
                       "tracer); traced_probes --reset-ftrace removes what a crashed recorder left",
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
    instance_drain(d); /* what was recorded before belongs to the others only */
    if (!vec_reserve(&d->in.started, d->in.started.n + 1))
        return error_set(err, -MRD_ENOMEM, "out of memory for ftrace");
    put_stats(s, &s->start_stats, FTRACE_STATS_PHASE_START_OF_TRACE);
    if (!s->selection.events.n && (s->selection.unknown.n || s->selection.failed.n))
        return tell_no_events(s, err);
    int rc = ftrace_instance_start(&d->in, err);
    if (rc)
        return rc;
    if (ftrace_instance_can_poll(&d->in))
        rc = instance_start_polls(d, s->host, err);
    if (rc) {
        ftrace_instance_stop(&d->in);
        return rc;
    }
    vec_push(&d->in.started, s);
    s->started = true;
    instance_set_period(d);
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
    instance_drain(s->instance);
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
        instance_stop_polls(d);
    ftrace_instance_stop(&d->in);
    instance_set_period(d);
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
