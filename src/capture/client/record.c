/* Recording: one connection to the service from EnableTracing (or Attach, or CloneSession) to the last packet. */
#include "base/alloc.h"
#include "capture/client/record_private.h"
#include "capture/ipc/addr.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"
#include "wire/recording_problem.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static void on_detached(void *ctx, bool success, bool has_more, struct slice reply)
{
    (void)has_more;
    (void)reply;
    if (!success)
        fprintf(stderr,
                "perfetto: the service refused to detach the session; choose another key if this one is in use\n");
    record_finish(ctx, success ? EXIT_OK : EXIT_FAILED);
}

/* Attached in vain: the session is as it was. */
static void on_put_back(void *ctx, bool success, bool has_more, struct slice reply)
{
    (void)success;
    (void)has_more;
    (void)reply;
    record_finish(ctx, EXIT_FAILED);
}

static void send_key(struct recorder *r, unsigned method, const char *key, ipc_reply_fn fn)
{
    struct pb_writer w = {0};
    pb_put_str(&w, DETACH_REQUEST_KEY, key);
    if (!w.failed)
        record_call(r, method, pb_written(&w), -1, fn);
    pb_writer_free(&w);
}

/* ---- beginnings ---- */

/* A whole session's time, as far as the config tells; 0: until somebody stops it. */
static uint64_t expected_ms(const Mrd__TraceConfig *c)
{
    uint64_t ms = c->duration_ms;
    if (c->trigger_config && c->trigger_config->trigger_mode) {
        ms = c->trigger_config->trigger_timeout_ms;
        uint64_t longest = 0;
        for (size_t i = 0; i < c->trigger_config->n_triggers; i++)
            if (c->trigger_config->triggers[i]->stop_delay_ms > longest)
                longest = c->trigger_config->triggers[i]->stop_delay_ms;
        ms += longest;
    }
    return ms;
}

static void enable(struct recorder *r)
{
    Mrd__EnableTracingRequest m = MRD__ENABLE_TRACING_REQUEST__INIT;
    const Mrd__TraceConfig *c = r->config;
    m.trace_config = r->config;
    size_t len = mrd__enable_tracing_request__get_packed_size(&m);
    uint8_t *bytes = mem_alloc(len + 1);
    if (!bytes) {
        record_finish(r, EXIT_FAILED);
        return;
    }
    mrd__enable_tracing_request__pack(&m, bytes);
    bool ok = record_call(r, CONSUMER_ENABLE_TRACING, slice_of(bytes, len), r->service_writes ? r->out.fd : -1,
                          record_on_disabled);
    mem_free(bytes);
    if (!ok)
        return;
    unsigned bits = r->task == TASK_DETACH ? 0 : OBSERVE_INSTANCES | OBSERVE_RECORDING_REPORT;
    if (r->o->notify_fd >= 0)
        bits |= OBSERVE_ALL_STARTED;
    const Mrd__TraceConfig__TriggerConfig *t = c->trigger_config;
    if (t && (t->trigger_mode == MRD__TRACE_CONFIG__TRIGGER_CONFIG__TRIGGER_MODE__CLONE_SNAPSHOT ||
              t->use_clone_snapshot_if_available)) /* this service can clone */
        bits |= OBSERVE_CLONE_TRIGGERS;
    if (bits)
        record_observe(r, bits);
    if (r->task == TASK_DETACH) {
        send_key(r, CONSUMER_DETACH, r->o->detach, on_detached);
        return;
    }
    left_out_ask(&r->left_out, r->client, c);
    report_ask(&r->report, r->client);
    r->started_ns = uv_hrtime();
    if (record_on_terminal(r))
        uv_timer_start(&r->status, record_on_status, 1000, 1000);
    uint64_t ms = expected_ms(c);
    if (ms)
        uv_timer_start(&r->timeout, record_on_timeout,
                       ms + CONNECT_GRACE_MS + (c->flush_timeout_ms ? c->flush_timeout_ms : 5000) +
                           (c->data_source_stop_timeout_ms ? c->data_source_stop_timeout_ms : 5000),
                       0);
}

static void on_attached(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct recorder *r = ctx;
    (void)has_more;
    struct pb_field f, g;
    if (!success) {
        if (r->task != TASK_IS_DETACHED)
            fprintf(stderr, "perfetto: there is no detached session of this user with the key \"%s\"\n", r->o->attach);
        record_finish(r, EXIT_ATTACH_FAILED);
        return;
    }
    if (r->task == TASK_IS_DETACHED) {
        send_key(r, CONSUMER_DETACH, r->o->is_detached, on_detached);
        return;
    }
    if (pb_find(reply, ATTACH_RESPONSE_TRACE_CONFIG, &f) && pb_find(pb_bytes(&f), TRACE_CONFIG_WRITE_INTO_FILE, &g))
        r->service_writes = pb_bool(&g);
    if (!r->service_writes && r->out.fd < 0) {
        fprintf(stderr, "perfetto: the service does not write this session into a file; give --out\n");
        send_key(r, CONSUMER_DETACH, r->o->attach, on_put_back);
        return;
    }
    record_observe(r, OBSERVE_RECORDING_REPORT);
    static const uint8_t notification_only[] = {ENABLE_TRACING_REQUEST_ATTACH_NOTIFICATION_ONLY << 3, 1};
    record_call(r, CONSUMER_ENABLE_TRACING, slice_of(notification_only, 2), -1, record_on_disabled);
    r->started_ns = uv_hrtime();
    if (r->task == TASK_STOP)
        record_stop(r);
}

static void on_cloned(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct recorder *r = ctx;
    (void)has_more;
    Mrd__CloneSessionResponse *m = success ? mrd__clone_session_response__unpack(NULL, reply.len, reply.p) : NULL;
    if (!m || !m->success) {
        fprintf(stderr, "perfetto: cannot clone: %s\n", m && m->error ? m->error : "the service does not support it");
        record_finish(r, EXIT_FAILED);
    } else {
        uv_timer_stop(&r->timeout);
        record_read_trace(r);
    }
    if (m)
        mrd__clone_session_response__free_unpacked(m, NULL);
}

static void clone_now(struct recorder *r)
{
    Mrd__CloneSessionRequest m = MRD__CLONE_SESSION_REQUEST__INIT;
    m.selector_case = MRD__CLONE_SESSION_REQUEST__SELECTOR_SESSION_ID;
    if (r->trigger) {
        m.session_id = r->session_id;
        m.clone_trigger_name = r->trigger->name;
        m.clone_trigger_producer_name = r->trigger->producer;
        m.has_clone_trigger_trusted_producer_uid = m.has_clone_trigger_boot_time_ns = m.has_clone_trigger_delay_ms =
            true;
        m.clone_trigger_trusted_producer_uid = (int32_t)r->trigger->uid;
        m.clone_trigger_boot_time_ns = r->trigger->boot_time_ns;
        m.clone_trigger_delay_ms = r->trigger->delay_ms;
    } else if (r->o->clone_name) {
        m.selector_case = MRD__CLONE_SESSION_REQUEST__SELECTOR_UNIQUE_SESSION_NAME;
        m.unique_session_name = (char *)(uintptr_t)r->o->clone_name;
    } else {
        m.session_id = r->o->clone_id ? strtoull(r->o->clone_id, NULL, 10) : UINT64_MAX;
    }
    if (r->o->clone_for_bugreport && !r->trigger) {
        m.has_for_bugreport = m.has_skip_trace_filter = true;
        m.for_bugreport = m.skip_trace_filter = true;
    }
    size_t len = mrd__clone_session_request__get_packed_size(&m);
    uint8_t *bytes = mem_alloc(len + 1);
    if (bytes) {
        mrd__clone_session_request__pack(&m, bytes);
        if (record_call(r, CONSUMER_CLONE_SESSION, slice_of(bytes, len), -1, on_cloned))
            uv_timer_start(&r->timeout, record_on_timeout, CLONE_TIMEOUT_MS, 0);
    }
    mem_free(bytes);
}

static void on_bound(void *ctx)
{
    struct recorder *r = ctx;
    uv_timer_stop(&r->timeout);
    switch (r->task) {
    case TASK_RECORD:
    case TASK_DETACH:
        enable(r);
        break;
    case TASK_ATTACH:
    case TASK_STOP:
        send_key(r, CONSUMER_ATTACH, r->o->attach, on_attached);
        break;
    case TASK_IS_DETACHED:
        send_key(r, CONSUMER_ATTACH, r->o->is_detached, on_attached);
        break;
    case TASK_CLONE:
        clone_now(r);
        break;
    }
}

static void on_disconnected(void *ctx, const char *why)
{
    struct recorder *r = ctx;
    if (r->done)
        return;
    fprintf(stderr, "%sperfetto: %s: %s\n", record_on_terminal(r) ? "\r\033[K" : "",
            r->started_ns || r->reading ? "the service went away" : "cannot connect to the service", why);
    record_finish(r, EXIT_FAILED);
}

static const struct ipc_client_ops client_ops = {.bound = on_bound, .disconnected = on_disconnected};

static void init(struct recorder *r, uv_loop_t *loop, const struct perfetto_options *o, enum task task)
{
    r->loop = loop;
    r->o = o;
    r->task = task;
    r->out.fd = -1;
    uv_timer_t *timers[] = {&r->timeout, &r->stall, &r->status, &r->delay, &r->announce};
    for (unsigned i = 0; i < sizeof timers / sizeof *timers; i++) {
        uv_timer_init(loop, timers[i]);
        timers[i]->data = r;
    }
}

static void connect_now(struct recorder *r)
{
    struct error err = {0};
    if (r->done)
        return;
    if (ipc_client_open(&r->client, r->loop, ipc_consumer_socket(), &ipc_consumer_port, NULL, &client_ops, r, &err) ==
        0)
        return;
    fprintf(stderr, "perfetto: %s" NO_SERVICE_HINT "\n", err.text);
    record_finish(r, EXIT_FAILED);
}

static void on_delay(uv_timer_t *t)
{
    connect_now(t->data);
}

/* cmd_trace_start_delay: any time between its limits, so that many machines do not begin together. */
static uint64_t start_delay_ms(const Mrd__TraceConfig *c)
{
    const Mrd__TraceConfig__CmdTraceStartDelay *d = c ? c->cmd_trace_start_delay : NULL;
    uint32_t random = 0;
    if (!d)
        return 0;
    (void)!getrandom(&random, sizeof random, 0);
    return d->min_delay_ms + random % ((uint64_t)d->max_delay_ms - d->min_delay_ms + 1);
}

/* A trigger asked for a copy of the session: on a connection of its own, into a file of its own. */
void record_start_clone(struct recorder *r, const Mrd__ObservableEvents__CloneTriggerHit *hit)
{
    struct error err = {0};
    char path[4096];
    if (!r->out.path[0]) {
        fprintf(stderr, "perfetto: a clone needs an output file\n");
        return;
    }
    struct recorder *c = mem_zalloc(sizeof *c);
    struct clone_trigger *t = mem_zalloc(sizeof *t);
    if (!c || !t) {
        mem_free(c);
        mem_free(t);
        return;
    }
    init(c, r->loop, r->o, TASK_CLONE);
    c->parent = r;
    c->next = r->children;
    r->children = c;
    c->trigger = t;
    c->session_id = (uint64_t)hit->tracing_session_id;
    t->name = mem_strdup(hit->trigger_name ? hit->trigger_name : "");
    t->producer = mem_strdup(hit->producer_name ? hit->producer_name : "");
    t->uid = hit->producer_uid;
    t->boot_time_ns = hit->boot_time_ns;
    t->delay_ms = hit->trigger_delay_ms;
    snprintf(path, sizeof path, "%.4000s.%u", r->out.path, r->n_children++);
    if (trace_output_open(&c->out, path, r->o->no_clobber, &err) != 0) {
        fprintf(stderr, "perfetto: %s\n", err.text);
        record_finish(c, EXIT_FAILED);
        return;
    }
    uv_timer_start(&c->delay, on_delay, hit->trigger_delay_ms, 0);
}

static void free_recorder(struct recorder *r)
{
    ipc_client_close(r->client);
    uv_handle_t *handles[] = {(uv_handle_t *)&r->timeout, (uv_handle_t *)&r->stall, (uv_handle_t *)&r->status,
                              (uv_handle_t *)&r->delay, (uv_handle_t *)&r->announce};
    for (unsigned i = 0; i < sizeof handles / sizeof *handles; i++)
        uv_close(handles[i], NULL);
    for (int i = 0; i < 2 && r->has_signals; i++)
        uv_close((uv_handle_t *)&r->signals[i], NULL);
    if (r->has_until)
        uv_close((uv_handle_t *)&r->until, NULL);
    left_out_free(&r->left_out);
    report_free(&r->report);
    if (r->trigger) {
        mem_free(r->trigger->name);
        mem_free(r->trigger->producer);
        mem_free(r->trigger);
    }
}

static enum task task_of(const struct perfetto_options *o)
{
    return o->attach                                                ? (o->stop ? TASK_STOP : TASK_ATTACH)
           : o->is_detached                                         ? TASK_IS_DETACHED
           : o->clone_id || o->clone_name || o->clone_for_bugreport ? TASK_CLONE
           : o->detach                                              ? TASK_DETACH
                                                                    : TASK_RECORD;
}

int perfetto_record(const struct perfetto_options *o, Mrd__TraceConfig *config)
{
    uv_loop_t loop;
    struct recorder r = {0};
    struct error err = {0};
    uv_loop_init(&loop);
    init(&r, &loop, o, task_of(o));
    r.config = config;
    r.report.config = config;
    r.report.short_form = o->light;
    r.service_writes = config && config->write_into_file;
    bool service_opens = config && config->output_path && *config->output_path;
    signal(SIGPIPE, SIG_IGN);
    if (o->out && !service_opens && trace_output_open(&r.out, o->out, o->no_clobber, &err) != 0) {
        fprintf(stderr, "perfetto: %s\n", err.text);
        record_finish(&r, EXIT_FAILED);
    }
    r.has_signals = true;
    for (int i = 0; i < 2; i++) {
        uv_signal_init(&loop, &r.signals[i]);
        r.signals[i].data = &r;
        uv_signal_start(&r.signals[i], record_on_signal, i ? SIGTERM : SIGINT);
    }
    if (o->until_fd >= 0 && uv_poll_init(&loop, &r.until, o->until_fd) == 0) {
        r.has_until = true;
        r.until.data = &r;
        uv_poll_start(&r.until, UV_READABLE, record_on_until);
    }
    uint64_t delay = start_delay_ms(config);
    if (delay)
        uv_timer_start(&r.delay, on_delay, delay, 0);
    else
        connect_now(&r);
    if (!r.done) {
        uv_timer_start(&r.timeout, record_on_timeout, delay + CLONE_TIMEOUT_MS, 0);
        uv_run(&loop, UV_RUN_DEFAULT);
    }
    int code = r.exit_code;
    for (struct recorder *c = r.children; c; c = c->next)
        free_recorder(c);
    free_recorder(&r);
    uv_run(&loop, UV_RUN_DEFAULT);
    for (struct recorder *c = r.children, *next; c; c = next) {
        next = c->next;
        mem_free(c);
    }
    uv_loop_close(&loop);
    return code;
}
