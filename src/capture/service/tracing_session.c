/* The state machine of a session. */
#include "capture/service/tracing_session.h"
#include "capture/service/producers.h"
#include "capture/service/relay.h"
#include "capture/service/state.h"
#include "wire/fields.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define START_TIMEOUT_MS     20000
#define STOP_TIMEOUT_MS      5000
#define SNAPSHOT_INTERVAL_MS 10000
#define MAX_SLOW_SOURCES     32

static const char *const state_names[] = {"DISABLED", "CONFIGURED", "STARTED", "STOP_WAIT", "CLONED_READ_ONLY"};
const char *session_state_name(enum session_state st)
{
    return state_names[st];
}

/* ---- making and freeing ---- */

struct session *session_alloc(struct service *svc, struct error *err)
{
    struct session *s = mem_zalloc(sizeof *s);
    if (!s || !vec_push(&svc->sessions, s)) {
        mem_free(s);
        error_set(err, -MRD_ENOMEM, "out of memory");
        return NULL;
    }
    s->service = svc;
    s->id = ++svc->last_session_id;
    s->fd = -1;
    s->last_sequence_id = 1; /* 1 is the service itself */
    for (unsigned i = 0; i < TIMER_COUNT; i++) {
        uv_timer_init(svc->loop, &s->timers[i]);
        s->timers[i].data = s;
        s->open_handles++;
    }
    return s;
}

static void on_handle_closed(uv_handle_t *h)
{
    struct session *s = h->data;
    if (--s->open_handles == 0)
        mem_free(s);
}

static void free_instances(struct session *s)
{
    for (size_t i = 0; i < s->instances.n; i++)
        session_free_instance(s->instances.p[i]);
    vec_free(&s->instances);
}

static void free_buffers(struct session *s)
{
    struct service *svc = s->service;
    for (size_t i = 0; i < s->buffers.n; i++) {
        uint16_t id = s->buffers.p[i].id;
        if (id) {
            u64map_del(&svc->buffers, id);
            for (size_t k = 0; k < svc->producers.n; k++)
                u64map_del(&svc->producers.p[k]->allowed_buffers, id);
        }
        session_ring_free(s->buffers.p[i].buffer);
    }
    vec_free(&s->buffers);
}

static void free_now(struct session *s)
{
    struct service *svc = s->service;
    if (s->fd >= 0)
        close(s->fd);
    free_instances(s);
    free_buffers(s);
    for (size_t i = 0; i < s->events.n; i++)
        mem_free(s->events.p[i].body);
    for (size_t i = 0; i < s->triggers.n; i++) {
        mem_free(s->triggers.p[i].name);
        mem_free(s->triggers.p[i].producer_name);
    }
    if (s->clone_trigger) {
        mem_free(s->clone_trigger->name);
        mem_free(s->clone_trigger->producer_name);
        mem_free(s->clone_trigger);
    }
    vec_free(&s->events);
    vec_free(&s->triggers);
    concurrent_free(s);
    problems_free(s);
    vec_free(&s->packet.slices);
    u64map_free(&s->sequence_ids);
    relay_free_losses(s);
    mem_free((void *)(uintptr_t)s->config_bytes.p);
    if (s->config)
        mrd__trace_config__free_unpacked(s->config, NULL);
    for (size_t i = 0; i < svc->sessions.n; i++) {
        if (svc->sessions.p[i] == s) {
            memmove(&svc->sessions.p[i], &svc->sessions.p[i + 1], (svc->sessions.n - i - 1) * sizeof s);
            svc->sessions.n--;
            break;
        }
    }
    log_line("traced: session %llu freed", (unsigned long long)s->id);
    relay_forget_idle(svc);
    for (unsigned i = 0; i < TIMER_COUNT; i++)
        uv_close((uv_handle_t *)&s->timers[i], on_handle_closed);
}

void session_free(struct session *s)
{
    if (s->closing)
        return;
    s->closing = true;
    if (s->state == SESSION_STARTED || s->state == SESSION_CONFIGURED || s->state == SESSION_STOPPING)
        session_disable(s, true);
    flush_abandon(s);
    if (s->consumer)
        s->consumer->session = NULL;
    s->consumer = NULL;
    mem_free(s->detach_key);
    s->detach_key = NULL;
    if (!s->out)
        free_now(s);
}

/* ---- clocks and lifecycle events ---- */

void session_snapshot_clocks(struct session *s, bool force)
{
    struct clock_readings now;
    if (s->config->builtin_data_sources && s->config->builtin_data_sources->disable_clock_snapshotting)
        return;
    clock_readings_take(&now);
    if (!force && s->n_snapshots && !clock_snapshot_drifted(&s->last_snapshot, &now))
        return;
    if (s->n_snapshots == sizeof s->snapshots / sizeof *s->snapshots) {
        memmove(s->snapshots, s->snapshots + 1, sizeof s->snapshots - sizeof *s->snapshots);
        s->n_snapshots--;
    }
    s->snapshots[s->n_snapshots++] = now;
    s->last_snapshot = now;
}

static unsigned events_kept(enum lifecycle field)
{
    return field == LIFECYCLE_BUFFER_CLONED                                     ? 128
           : field == LIFECYCLE_ALL_FLUSHED || field == LIFECYCLE_FLUSH_STARTED ? 64
                                                                                : 1;
}

static void add_event(struct session *s, enum lifecycle field, uint32_t value, struct slice body)
{
    struct lifecycle_event e = {.field = field, .ts = clock_boot_ns(), .value = value};
    unsigned n = 0;
    size_t oldest = 0;
    if (body.p) {
        e.body = mem_alloc(body.len ? body.len : 1);
        if (!e.body)
            return;
        memcpy(e.body, body.p, body.len);
        e.body_len = body.len;
    }
    for (size_t i = s->events.n; i-- > 0;) {
        if (s->events.p[i].field != field)
            continue;
        n++;
        oldest = i;
    }
    if (n >= events_kept(field)) {
        mem_free(s->events.p[oldest].body);
        memmove(&s->events.p[oldest], &s->events.p[oldest + 1], (s->events.n - oldest - 1) * sizeof e);
        s->events.n--;
    }
    if (!vec_push(&s->events, e))
        mem_free(e.body);
}

void session_lifecycle_body(struct session *s, enum lifecycle field, struct slice body)
{
    add_event(s, field, 1, body);
}

void session_lifecycle_value(struct session *s, enum lifecycle field, uint32_t value)
{
    add_event(s, field, value, slice_of(NULL, 0));
}

void session_lifecycle(struct session *s, enum lifecycle field, bool snapshot)
{
    if (snapshot)
        session_snapshot_clocks(s, false);
    session_lifecycle_value(s, field, 1);
}

static void put_source_name(struct pb_writer *w, const struct instance *i)
{
    size_t m = pb_begin(w, TRACING_SERVICE_EVENT_DATA_SOURCES_DATA_SOURCE);
    pb_put_str(w, TRACING_SERVICE_EVENT_DATA_SOURCES_DATA_SOURCE_PRODUCER_NAME, i->producer->name);
    pb_put_str(w, TRACING_SERVICE_EVENT_DATA_SOURCES_DATA_SOURCE_DATA_SOURCE_NAME, i->name);
    pb_end(w, m);
}

static void on_start_timeout(uv_timer_t *t)
{
    struct session *s = t->data;
    struct pb_writer w = {0};
    unsigned n = 0;
    for (size_t i = 0; i < s->instances.n && n < MAX_SLOW_SOURCES; i++) {
        if (s->instances.p[i]->state != INSTANCE_STARTING)
            continue;
        put_source_name(&w, s->instances.p[i]);
        n++;
        log_line("traced: session %llu: %s of \"%s\" has not started in time", (unsigned long long)s->id,
                 s->instances.p[i]->name, s->instances.p[i]->producer->name);
    }
    if (n && !w.failed)
        session_lifecycle_body(s, LIFECYCLE_SLOW_STARTING, pb_written(&w));
    pb_writer_free(&w);
    problems_announce(s);
}

void session_check_started(struct session *s)
{
    if (s->state != SESSION_STARTED || s->did_all_started)
        return;
    for (size_t i = 0; i < s->instances.n; i++)
        if (s->instances.p[i]->state != INSTANCE_STARTED)
            return;
    s->did_all_started = true;
    uv_timer_stop(&s->timers[TIMER_START]);
    session_lifecycle(s, LIFECYCLE_ALL_STARTED, true);
    problems_announce(s);
    if (s->consumer) {
        Mrd__ObservableEvents e = MRD__OBSERVABLE_EVENTS__INIT;
        e.has_all_data_sources_started = true;
        e.all_data_sources_started = true;
        consumer_observe(s->consumer, &e, 2);
    }
}

/* ---- enable, start, disable ---- */

static bool make_buffers(struct session *s)
{
    struct service *svc = s->service;
    for (size_t i = 0; i < s->config->n_buffers; i++) {
        const Mrd__TraceConfig__BufferConfig *c = s->config->buffers[i];
        bool discard = c->fill_policy == MRD__TRACE_CONFIG__BUFFER_CONFIG__FILL_POLICY__DISCARD;
        struct session_buffer b = {.id = service_new_buffer_id(svc)};
        b.buffer = b.id ? session_ring_new((size_t)c->size_kb * 1024, (size_t)c->machine_size_kb * 1024,
                                           discard ? TRACE_BUFFER_DISCARD : TRACE_BUFFER_RING)
                        : NULL;
        if (!b.buffer || !vec_push(&s->buffers, b)) {
            session_ring_free(b.buffer);
            return false;
        }
        if (!u64map_set(&svc->buffers, b.id, (uint64_t)(uintptr_t)b.buffer))
            return false;
    }
    return true;
}

static int open_output(const char *path, struct error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot create output_path %s", path);
    fchmod(fd, 0644);
    return fd;
}

static void choose_uuid(struct session *s)
{
    s->uuid_msb = (uint64_t)s->config->trace_uuid_msb;
    s->uuid_lsb = (uint64_t)s->config->trace_uuid_lsb;
    if (s->uuid_msb || s->uuid_lsb)
        return;
    uint64_t r[2] = {clock_real_ns(), clock_boot_ns()};
    (void)!getrandom(r, sizeof r, GRND_NONBLOCK);
    s->uuid_msb = (r[0] & ~0xf000ull) | 0x4000; /* version 4 */
    s->uuid_lsb = (r[1] & ~(3ull << 62)) | 1ull << 63;
}

static void abort_others(struct service *svc, const Mrd__TraceConfig *config)
{
    if (!config->exclusive_prio)
        return;
    for (size_t i = svc->sessions.n; i-- > 0;) {
        struct session *s = svc->sessions.p[i];
        if (s->state == SESSION_DISABLED || s->state == SESSION_CLONED)
            continue;
        log_line("traced: session %llu ends because a session with exclusive_prio %u starts", (unsigned long long)s->id,
                 config->exclusive_prio);
        session_disable(s, true);
    }
}

struct session *session_enable(struct service *svc, struct service_consumer *consumer, Mrd__TraceConfig *config, int fd,
                               struct error *err)
{
    struct session *s = NULL;
    int rc = session_check(svc, consumer, config, fd, err);
    if (!rc && config->write_into_file && fd < 0)
        rc = fd = open_output(config->output_path, err);
    if (rc >= 0)
        s = session_alloc(svc, err);
    if (!s) {
        mrd__trace_config__free_unpacked(config, NULL);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    s->config = config;
    s->consumer_uid = ipc_peer_identity(consumer->peer)->uid;
    if (config->write_into_file)
        s->fd = fd;
    else if (fd >= 0)
        close(fd);
    size_t len = mrd__trace_config__get_packed_size(config);
    uint8_t *bytes = mem_alloc(len ? len : 1);
    if (bytes) {
        mrd__trace_config__pack(config, bytes);
        s->config_bytes = slice_of(bytes, len);
    }
    if (!bytes || !make_buffers(s)) {
        error_set(err, -MRD_ENOMEM, "out of memory for the buffers");
        session_free(s);
        return NULL;
    }
    abort_others(svc, config);
    choose_uuid(s);
    s->consumer = consumer;
    consumer->session = s;
    session_set_state(s, SESSION_CONFIGURED);
    if (priority_update(svc, err) != 0) {
        session_free(s);
        return NULL;
    }
    if (config->lockdown_mode)
        svc->lockdown = config->lockdown_mode == MRD__TRACE_CONFIG__LOCKDOWN_MODE_OPERATION__LOCKDOWN_SET;
    log_line("traced: session %llu \"%s\" configured by uid %u: %zu buffers, %zu data sources",
             (unsigned long long)s->id, config->unique_session_name ? config->unique_session_name : "", s->consumer_uid,
             config->n_buffers, config->n_data_sources);
    session_add_all_sources(s);
    enum trigger_mode mode = config_trigger_mode(config);
    if (mode)
        session_arm_trigger_timeout(s);
    if (!config->deferred_start && mode != TRIGGER_START)
        session_start(s);
    return s;
}

static void on_snapshot(uv_timer_t *t)
{
    struct session *s = t->data;
    session_snapshot_clocks(s, false);
    s->want_sync_marker = s->want_stats = true;
}

static void on_duration(uv_timer_t *t)
{
    session_flush_and_disable(t->data);
}

bool session_start(struct session *s)
{
    const Mrd__TraceConfig *c = s->config;
    if (s->state != SESSION_CONFIGURED)
        return false;
    session_set_state(s, SESSION_STARTED);
    s->started_realtime_ns = (int64_t)clock_real_ns();
    s->started_boot_ns = clock_boot_ns();
    relay_session_started(s);
    const Mrd__TraceConfig__BuiltinDataSource *b = c->builtin_data_sources;
    if (!b || !b->disable_clock_snapshotting) {
        clock_readings_take(&s->initial_snapshot);
        s->has_initial_snapshot = true;
    }
    session_lifecycle(s, LIFECYCLE_TRACING_STARTED, false);
    unsigned interval = b && b->snapshot_interval_ms ? b->snapshot_interval_ms : SNAPSHOT_INTERVAL_MS;
    on_snapshot(&s->timers[TIMER_SNAPSHOT]);
    uv_timer_start(&s->timers[TIMER_SNAPSHOT], on_snapshot, interval, interval);
    uv_update_time(s->service->loop);
    if (c->duration_ms)
        uv_timer_start(&s->timers[TIMER_DURATION], on_duration, c->duration_ms, 0);
    uv_timer_start(&s->timers[TIMER_START], on_start_timeout, START_TIMEOUT_MS, 0);
    s->flush_period_ms = c->flush_period_ms;
    if (c->write_into_file)
        session_start_file(s);
    session_arm_flush(s);
    session_arm_clear(s);
    for (size_t i = 0; i < s->instances.n; i++)
        session_start_instance(s, s->instances.p[i]);
    session_check_started(s);
    return true;
}

static void after_final_flush(void *ctx, struct session *s, bool ok)
{
    (void)ctx;
    s->final_flush_outcome = ok ? 1 : 2;
    if (!s->closing && s->state == SESSION_STARTED)
        session_disable(s, false);
}

void session_flush_and_disable(struct session *s)
{
    if (s->state == SESSION_STARTED)
        session_flush(s, 0, FLUSH_REASON_STOP | FLUSH_BY_TRACED, after_final_flush, NULL);
}

/* All producers have stopped, or nobody waits for them. */
void session_stopped(struct session *s)
{
    struct service *svc = s->service;
    struct error err;
    for (unsigned i = 0; i < TIMER_COUNT; i++)
        uv_timer_stop(&s->timers[i]);
    for (size_t i = 0; i < svc->producers.n; i++)
        commit_scrape(svc->producers.p[i], s);
    session_lifecycle(s, LIFECYCLE_TRACING_DISABLED, true);
    s->stopped_boot_ns = clock_boot_ns();
    s->want_stats = true;
    problems_conclude(s);
    session_set_state(s, SESSION_DISABLED);
    priority_update(svc, &err);
    for (size_t i = s->instances.n; i-- > 0;)
        session_free_instance(s->instances.p[i]);
    vec_clear(&s->instances);
    log_line("traced: session %llu disabled", (unsigned long long)s->id);
    if (!s->closing)
        flush_abandon(s);
    session_finish_file(s);
    if (!s->out && !s->closing)
        session_ended(s);
}

void session_ended(struct session *s)
{
    if (s->written)
        s->written(s->written_ctx, s);
    else if (s->consumer)
        consumer_notify_disabled(s->consumer, s, NULL);
    else if (s->config->write_into_file)
        s->closing = true; /* detached, and all is in the file */
    if (s->closing)
        free_now(s);
}

void session_orphan(struct session *s)
{
    bool goes_on = session_has_file(s) && !s->written && !s->closing &&
                   (s->state == SESSION_STARTED || s->state == SESSION_STOPPING || s->state == SESSION_DISABLED);
    if (!goes_on) { /* without Detach a session dies with its consumer */
        session_free(s);
        return;
    }
    s->consumer = NULL;
    session_flush_and_disable(s);
}

static void on_stop_timeout(uv_timer_t *t)
{
    struct session *s = t->data;
    for (size_t i = 0; i < s->instances.n; i++) {
        if (s->instances.p[i]->state != INSTANCE_STOPPING)
            continue;
        log_line("traced: session %llu: %s of \"%s\" has not stopped in time", (unsigned long long)s->id,
                 s->instances.p[i]->name, s->instances.p[i]->producer->name);
        s->instances.p[i]->state = INSTANCE_STOPPED;
        relay_producer_silent(s, s->instances.p[i]->producer);
    }
    session_stopped(s);
}

void session_disable(struct session *s, bool immediately)
{
    if (s->state == SESSION_DISABLED || s->state == SESSION_CLONED)
        return;
    if (s->state == SESSION_STOPPING && !immediately)
        return;
    bool never_started = s->state == SESSION_CONFIGURED;
    for (size_t i = 0; i < s->instances.n; i++)
        session_stop_instance(s, s->instances.p[i], immediately || never_started);
    session_set_state(s, SESSION_STOPPING);
    for (size_t i = 0; immediately && i < s->instances.n; i++)
        s->instances.p[i]->state = INSTANCE_STOPPED;
    if (session_all_stopped(s)) {
        session_stopped(s);
        return;
    }
    unsigned timeout = s->config->data_source_stop_timeout_ms;
    uv_timer_start(&s->timers[TIMER_STOP], on_stop_timeout, timeout ? timeout : STOP_TIMEOUT_MS, 0);
}
