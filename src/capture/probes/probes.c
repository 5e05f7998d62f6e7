/* The producer of the system's data sources and its instances. */
#include "capture/probes/probes.h"

#include "base/alloc.h"
#include "base/vec.h"
#include "capture/common/daemon.h"
#include "capture/probes/common/data_source.h"
#include "capture/probes/common/metatrace.h"
#include "capture/probes/ftrace/ftrace_source.h"
#include "capture/shm/producer_link.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"
#include "wire/recording_problem.h"

#include <stdio.h>

enum {
    SHM_SIZE_HINT = 2 << 20,   /* what a burst of a second's events needs while the service is busy */
    PAGE_SIZE_HINT = 32 << 10, /* few, big chunks: a bundle of events fills one */
};

struct probe_instance {
    struct probes *probes;
    const struct data_source_type *type;
    uint64_t id;
    uint64_t session_id;
    void *state;                 /* NULL: setting up failed; the session goes on without */
    struct error failure;        /* why setting up or starting failed; the service is told when it starts us */
    struct trace_writer *writer; /* made when first needed; NULL when there is no memory: packets are dropped */
    bool started;
};

struct probes {
    struct producer *producer;
    struct probes_host host;
    struct metatrace metatrace;
    const struct data_source_type *const *sources;
    const char *name, *notify_env;
    bool waited; /* for a service, and said so */
    VEC(struct probe_instance *)
    instances;
};

static void log_line(void *ctx, const char *text)
{
    const struct probes *p = ctx;
    fprintf(stderr, "%s: %s\n", p->name, text);
}

/* Remembers why the instance cannot record. */
static void fail(struct probe_instance *i, const char *what, const struct error *err)
{
    char line[700];
    snprintf(line, sizeof line, "%s: %s: %s", i->type->name, what, err->text);
    log_line(i->probes, line);
    i->failure = *err;
}

static void sink_write(void *ctx, const struct slice *pieces, size_t n)
{
    struct probe_instance *i = ctx;
    if (!i->writer)
        return;
    trace_writer_begin_packet(i->writer);
    for (size_t k = 0; k < n; k++)
        trace_writer_raw(i->writer, pieces[k].p, pieces[k].len);
    trace_writer_end_packet(i->writer);
}

static uint64_t sink_lost(void *ctx)
{
    const struct probe_instance *i = ctx;
    return i->writer ? trace_writer_get_stats(i->writer)->dropped : 0;
}

/* ---- instances ---- */

static struct probe_instance *find(struct probes *p, uint64_t id)
{
    for (size_t i = 0; i < p->instances.n; i++)
        if (p->instances.p[i]->id == id)
            return p->instances.p[i];
    return NULL;
}

static void remove_instance(struct probes *p, struct probe_instance *i)
{
    for (size_t k = 0; k < p->instances.n; k++) {
        if (p->instances.p[k] == i) {
            p->instances.p[k] = p->instances.p[--p->instances.n];
            break;
        }
    }
    mem_free(i);
}

/* Stops and frees an instance; its last packets are in the shared memory when this returns. */
static void end_instance(struct probes *p, struct probe_instance *i)
{
    if (i->state) {
        if (i->started && i->type->stop)
            i->type->stop(i->state);
        i->type->free(i->state);
    }
    trace_writer_free(i->writer);
    remove_instance(p, i);
}

static const struct data_source_type *find_type(const struct probes *p, const char *name)
{
    for (const struct data_source_type *const *t = p->sources; *t; t++)
        if (strcmp((*t)->name, name) == 0)
            return *t;
    return NULL;
}

/* Sets the data source up from its config, whose bytes are made again: data sources read them without the schema. */
static void set_up_state(struct probes *p, struct probe_instance *i, const Mrd__DataSourceConfig *config)
{
    struct error err = {0};
    size_t len = mrd__data_source_config__get_packed_size(config);
    uint8_t *bytes = mem_alloc(len ? len : 1);
    struct pb_field f;
    if (!bytes) {
        error_set(&err, -MRD_ENOMEM, "out of memory");
        fail(i, "setting up", &err);
        return;
    }
    mrd__data_source_config__pack(config, bytes);
    struct data_source_config c = {.session_id = config->tracing_session_id,
                                   .duration_ms = config->trace_duration_ms,
                                   .bytes = slice_of(bytes, len)};
    if (i->type->config_field && pb_find(c.bytes, i->type->config_field, &f))
        c.specific = pb_bytes(&f);
    struct packet_sink sink = {sink_write, i, sink_lost};
    i->session_id = c.session_id;
    if (i->type->setup(&p->host, &c, &sink, &i->state, &err)) {
        i->state = NULL;
        fail(i, "setting up", &err);
    }
    mem_free(bytes);
}

static void on_setup(void *ctx, uint64_t id, const Mrd__DataSourceConfig *config)
{
    struct probes *p = ctx;
    const struct data_source_type *type = config->name ? find_type(p, config->name) : NULL;
    if (!type || find(p, id))
        return;
    struct probe_instance *i = mem_zalloc(sizeof *i);
    if (!i || !vec_push(&p->instances, i)) {
        mem_free(i);
        return;
    }
    i->probes = p;
    i->type = type;
    i->id = id;
    /* a full buffer is waited for: a drain of a busy cpu brings more than the shared memory holds */
    enum shm_policy policy = config->has_buffer_exhausted_policy && config->buffer_exhausted_policy
                                 ? (enum shm_policy)config->buffer_exhausted_policy
                                 : SHM_STALL_THEN_DROP;
    i->writer = producer_new_writer(p->producer, (uint16_t)config->target_buffer, policy);
    set_up_state(p, i, config);
}

static void put_incomplete(void *ctx, const char *text)
{
    pb_put_text(ctx, NOTIFY_STARTED_INCOMPLETE, slice_str(text));
}

/* Tells the service that the instance has started, or why not, or what it cannot record. */
static void report_started(struct probes *p, const struct probe_instance *i)
{
    struct pb_writer report = {0};
    if (!i->state)
        pb_put_text(&report, NOTIFY_STARTED_FAILURE, slice_str(i->failure.code ? i->failure.text : "setup failed"));
    else if (i->type->tell_incomplete)
        i->type->tell_incomplete(i->state, put_incomplete, &report);
    if (report.failed)
        pb_writer_clear(&report);
    producer_report_started(p->producer, i->id, pb_written(&report));
    pb_writer_free(&report);
}

static void on_start(void *ctx, uint64_t id, const Mrd__DataSourceConfig *config)
{
    struct probes *p = ctx;
    struct error err = {0};
    struct probe_instance *i = find(p, id);
    if (!i) {
        on_setup(ctx, id, config);
        i = find(p, id);
    }
    if (!i || i->started)
        return;
    i->started = true;
    if (i->state && i->type->start(i->state, &err)) {
        fail(i, "starting", &err);
        i->type->free(i->state);
        i->state = NULL;
    }
    report_started(p, i);
}

static void on_stop(void *ctx, uint64_t id)
{
    struct probes *p = ctx;
    struct probe_instance *i = find(p, id);
    if (i)
        end_instance(p, i);
    producer_notify_stopped(p->producer, id);
}

static void on_flush(void *ctx, uint64_t request_id, const uint64_t *ids, size_t n, uint64_t flags)
{
    struct probes *p = ctx;
    (void)flags;
    for (size_t k = 0; k < n; k++) {
        struct probe_instance *i = find(p, ids[k]);
        if (!i || !i->started)
            continue;
        if (i->state && i->type->flush)
            i->type->flush(i->state);
        if (i->writer)
            trace_writer_flush(i->writer);
    }
    producer_flush_done(p->producer, request_id);
}

static uint64_t on_hand_over(void *ctx)
{
    struct probes *p = ctx;
    uint64_t whole = probes_boot_ns();
    for (size_t k = 0; k < p->instances.n; k++) {
        struct probe_instance *i = p->instances.p[k];
        uint64_t until = i->started && i->state && i->type->whole_until ? i->type->whole_until(i->state) : whole;
        whole = until < whole ? until : whole;
        if (i->writer)
            trace_writer_flush(i->writer);
    }
    return whole;
}

static void on_clear(void *ctx, const uint64_t *ids, size_t n)
{
    struct probes *p = ctx;
    for (size_t k = 0; k < n; k++) {
        struct probe_instance *i = find(p, ids[k]);
        if (i && i->state && i->type->clear_incremental)
            i->type->clear_incremental(i->state);
    }
}

static void end_all(struct probes *p)
{
    while (p->instances.n)
        end_instance(p, p->instances.p[p->instances.n - 1]);
}

static void on_unreachable(void *ctx, const char *socket, const char *why)
{
    struct probes *p = ctx;
    char line[700];
    p->waited = true;
    snprintf(line, sizeof line, "no tracing service at %s (%s): waiting. Start one with: tracebox traced", socket, why);
    log_line(p, line);
}

/* The service has seen all data sources. */
static void on_registered(void *ctx)
{
    struct probes *p = ctx;
    daemon_notify(p->notify_env);
    p->notify_env = NULL; /* once: the descriptor is closed */
}

static void on_connected(void *ctx)
{
    struct probes *p = ctx;
    if (p->waited)
        log_line(p, "connected to the tracing service");
    p->waited = false;
    if (p->notify_env)
        producer_sync(p->producer, on_registered, p);
}

static void on_disconnected(void *ctx, const char *why)
{
    struct probes *p = ctx;
    if (p->instances.n) {
        char line[300];
        snprintf(line, sizeof line, "lost the connection to the service (%s); all data sources stopped", why);
        log_line(p, line);
    }
    end_all(p);
}

/* ---- what data sources tell each other ---- */

static void on_new_tids(void *ctx, uint64_t session_id, const int32_t *tids, size_t n)
{
    struct probes *p = ctx;
    for (size_t k = 0; k < p->instances.n; k++) {
        struct probe_instance *i = p->instances.p[k];
        if (i->session_id == session_id && i->started && i->state && i->type->new_tids)
            i->type->new_tids(i->state, tids, n);
    }
}

static void on_stale_tids(void *ctx, uint64_t session_id, const int32_t *tids, size_t n)
{
    struct probes *p = ctx;
    for (size_t k = 0; k < p->instances.n; k++) {
        struct probe_instance *i = p->instances.p[k];
        if (i->session_id == session_id && i->started && i->state && i->type->stale_tids)
            i->type->stale_tids(i->state, tids, n);
    }
}

static void on_new_inodes(void *ctx, uint64_t session_id, const struct inode_key *inodes, size_t n)
{
    struct probes *p = ctx;
    for (size_t k = 0; k < p->instances.n; k++) {
        struct probe_instance *i = p->instances.p[k];
        if (i->session_id == session_id && i->started && i->state && i->type->new_inodes)
            i->type->new_inodes(i->state, inodes, n);
    }
}

/* ---- the producer ---- */

static int register_all(struct probes *p, struct error *err)
{
    int rc = 0;
    for (const struct data_source_type *const *t = p->sources; *t && !rc; t++) {
        struct producer_data_source ds = {.name = (*t)->name,
                                          .will_notify_on_start = true,
                                          .will_notify_on_stop = true,
                                          .handles_incremental_state_clear = (*t)->handles_incremental_clear};
        rc = producer_register(p->producer, &ds, err);
    }
    return rc;
}

int probes_open(struct probes **out, uv_loop_t *loop, const struct probes_options *options, struct error *err)
{
    static const struct producer_ops ops = {.connected = on_connected,
                                            .disconnected = on_disconnected,
                                            .unreachable = on_unreachable,
                                            .setup = on_setup,
                                            .start = on_start,
                                            .stop = on_stop,
                                            .flush = on_flush,
                                            .clear_incremental_state = on_clear,
                                            .hand_over = on_hand_over};
    struct producer_options po = {.name = options->producer_name,
                                  .scraping_enabled = options->scraping,
                                  .socket = options->socket,
                                  .check_service = true,
                                  .reads_more = true,
                                  .service_uid = options->service_uid,
                                  .shm_size_hint = SHM_SIZE_HINT,
                                  .page_size_hint = PAGE_SIZE_HINT};
    struct ftrace_source_options fo = {options->tracefs_root, options->run_directory, options->mode};
    struct probes *p = mem_zalloc(sizeof *p);
    if (!p)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    p->sources = options->sources;
    p->name = options->name;
    p->notify_env = options->notify_env;
    p->host = (struct probes_host){.loop = loop,
                                   .log = log_line,
                                   .new_tids = on_new_tids,
                                   .stale_tids = on_stale_tids,
                                   .new_inodes = on_new_inodes,
                                   .ctx = p,
                                   .metatrace = &p->metatrace,
                                   .sysroot = options->sysroot,
                                   .perf = options->perf,
                                   .heap = options->heap,
                                   .ftrace = options->run_directory ? ftrace_source_create(&fo) : NULL};
    int rc = p->host.ftrace || !options->run_directory ? producer_open(&p->producer, loop, &po, &ops, p, err)
                                                       : error_set(err, -MRD_ENOMEM, "out of memory");
    if (!rc)
        rc = register_all(p, err);
    if (rc) {
        probes_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

void probes_close(struct probes *p)
{
    if (!p)
        return;
    end_all(p);
    if (p->producer)
        producer_commit_now(p->producer);
    producer_close(p->producer);
    ftrace_source_free(p->host.ftrace);
    vec_free(&p->instances);
    mem_free(p);
}
