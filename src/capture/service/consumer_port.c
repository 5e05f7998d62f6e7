/* What consumers ask of the service. */
#include "capture/service/producers.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <unistd.h>

/* The most in one read task, in one reply, in one slice of a packet. */
#define READ_BYTES_PER_TASK (32u * 1024)
#define REPLY_MAX           (128u * 1024 - 512)
#define SLICE_MAX           (64u * 1024)
#define QUEUE_HIGH          (1u << 20) /* unsent bytes at which reading waits for the consumer */

static void reply_refused(struct ipc_call call)
{
    ipc_reply(&call, false, false, slice_of(NULL, 0), -1);
}
/* … and the log says whom and why. */
static void refuse(const struct service_consumer *c, struct ipc_call call, const char *what)
{
    unsigned dropped;
    if (log_allowed(&c->service->log_limit, 10, &dropped))
        log_line("traced: refused %s: %s", ipc_peer_name(c->peer), what);
    reply_refused(call);
}
static void reply_ok(struct ipc_call call)
{
    ipc_reply(&call, true, false, slice_of(NULL, 0), -1);
}

static void on_read_task(uv_idle_t *idle);

static void on_drained(void *ctx)
{
    struct service_consumer *c = ctx;
    if (c->reading)
        uv_idle_start(&c->read_task, on_read_task);
}

static struct service_consumer *consumer_of(struct service *svc, struct ipc_peer *peer)
{
    struct service_consumer *c = ipc_peer_data(peer, &ipc_consumer_port);
    if (c)
        return c;
    c = mem_zalloc(sizeof *c);
    if (!c || !vec_push(&svc->consumers, c)) {
        mem_free(c);
        return NULL;
    }
    c->service = svc;
    c->peer = peer;
    uv_idle_init(svc->loop, &c->read_task);
    c->read_task.data = c;
    ipc_peer_set_data(peer, &ipc_consumer_port, c);
    ipc_peer_on_drained(peer, on_drained, c);
    log_line("traced: consumer connected: %s", ipc_peer_name(peer));
    return c;
}

/* ---- replies that come later ---- */

void consumer_notify_disabled(struct service_consumer *c, const struct session *s, const char *error)
{
    struct pb_writer w = {0};
    if (s && s->file_error.code)
        error = s->file_error.text;
    pb_put_varint(&w, ENABLE_TRACING_RESPONSE_DISABLED, 1);
    if (error && *error)
        pb_put_str(&w, ENABLE_TRACING_RESPONSE_ERROR, error);
    if (s && c->observing & OBSERVE_RECORDING_REPORT)
        problems_put_report(s, &w, ENABLE_TRACING_RESPONSE_REPORT);
    struct ipc_call call = c->enable_call;
    c->enable_call.peer = NULL;
    if (!w.failed)
        ipc_reply(&call, true, false, pb_written(&w), -1);
    pb_writer_free(&w);
}

void consumer_observe(struct service_consumer *c, const Mrd__ObservableEvents *events, uint64_t type)
{
    if (!(c->observing & type))
        return;
    Mrd__ObserveEventsResponse r = MRD__OBSERVE_EVENTS_RESPONSE__INIT;
    r.events = (Mrd__ObservableEvents *)(uintptr_t)events;
    size_t len = mrd__observe_events_response__get_packed_size(&r);
    uint8_t *bytes = mem_alloc(len + 1);
    if (!bytes)
        return;
    mrd__observe_events_response__pack(&r, bytes);
    ipc_reply(&c->observe_call, true, true, slice_of(bytes, len), -1);
    mem_free(bytes);
}

void consumer_notify_instance(struct session *s, const struct instance *in)
{
    if (!s->consumer || !(s->consumer->observing & 1) ||
        (in->state != INSTANCE_STARTED && in->state != INSTANCE_STOPPED))
        return;
    Mrd__ObservableEvents e = MRD__OBSERVABLE_EVENTS__INIT;
    Mrd__ObservableEvents__DataSourceInstanceStateChange ch =
        MRD__OBSERVABLE_EVENTS__DATA_SOURCE_INSTANCE_STATE_CHANGE__INIT;
    Mrd__ObservableEvents__DataSourceInstanceStateChange *list[] = {&ch};
    ch.producer_name = in->producer->name;
    ch.data_source_name = in->name;
    ch.has_state = true;
    ch.state = in->state == INSTANCE_STARTED
                   ? MRD__OBSERVABLE_EVENTS__DATA_SOURCE_INSTANCE_STATE__DATA_SOURCE_INSTANCE_STATE_STARTED
                   : MRD__OBSERVABLE_EVENTS__DATA_SOURCE_INSTANCE_STATE__DATA_SOURCE_INSTANCE_STATE_STOPPED;
    e.n_instance_state_changes = 1;
    e.instance_state_changes = list;
    consumer_observe(s->consumer, &e, 1);
}

/* ---- sessions ---- */

static void enable(struct service_consumer *c, struct ipc_call call, struct slice args)
{
    Mrd__EnableTracingRequest *m = mrd__enable_tracing_request__unpack(NULL, args.len, args.p);
    int fd = ipc_peer_take_fd(c->peer);
    if (!m || (!m->trace_config && !m->attach_notification_only)) {
        if (m)
            mrd__enable_tracing_request__free_unpacked(m, NULL);
        if (fd >= 0)
            close(fd);
        reply_refused(call);
        return;
    }
    bool notification_only = m->attach_notification_only;
    Mrd__TraceConfig *config = m->trace_config;
    m->trace_config = NULL;
    mrd__enable_tracing_request__free_unpacked(m, NULL);
    c->enable_call = call;
    if (notification_only) { /* an attached consumer wants to hear of the end, too */
        if (config)
            mrd__trace_config__free_unpacked(config, NULL);
        if (fd >= 0)
            close(fd);
        if (c->session && c->session->state == SESSION_DISABLED)
            consumer_notify_disabled(c, c->session, NULL);
        return;
    }
    struct error err = {0};
    if (!session_enable(c->service, c, config, fd, &err)) {
        log_line("traced: session of uid %u refused: %s", ipc_peer_identity(c->peer)->uid, err.text);
        consumer_notify_disabled(c, NULL, err.text);
    }
}

static void change_config(struct service_consumer *c, struct ipc_call call, struct slice args)
{
    Mrd__ChangeTraceConfigRequest *m = mrd__change_trace_config_request__unpack(NULL, args.len, args.p);
    if (m && m->trace_config && c->session)
        session_change_config(c->session, m->trace_config);
    if (m)
        mrd__change_trace_config_request__free_unpacked(m, NULL);
    reply_ok(call);
}

/* A flush or clone may outlive its consumer: the call is found again by consumer and request. */
struct flush_ctx {
    struct service *service;
    struct service_consumer *consumer;
    struct ipc_call call;
};

static bool consumer_alive(struct service *svc, struct service_consumer *c, struct ipc_peer *peer)
{
    for (size_t i = 0; i < svc->consumers.n; i++)
        if (svc->consumers.p[i] == c && c->peer == peer)
            return true;
    return false;
}

static void flush_done(void *ctx, struct session *s, bool ok)
{
    struct flush_ctx *f = ctx;
    (void)s;
    if (consumer_alive(f->service, f->consumer, f->call.peer))
        ipc_reply(&f->call, ok, false, slice_of(NULL, 0), -1);
    mem_free(f);
}

static void flush(struct service_consumer *c, struct ipc_call call, struct slice args)
{
    Mrd__FlushRequest *m = mrd__flush_request__unpack(NULL, args.len, args.p);
    struct flush_ctx *f = m && c->session ? mem_alloc(sizeof *f) : NULL;
    if (!f) {
        reply_refused(call);
    } else {
        *f = (struct flush_ctx){c->service, c, call};
        session_flush(c->session, m->timeout_ms, m->flags ? m->flags : FLUSH_REASON_EXPLICIT, flush_done, f);
    }
    if (m)
        mrd__flush_request__free_unpacked(m, NULL);
}

static void detach(struct service_consumer *c, struct ipc_call call, struct slice args)
{
    Mrd__DetachRequest *m = mrd__detach_request__unpack(NULL, args.len, args.p);
    bool ok = m && m->key && *m->key && c->session && c->session->state != SESSION_CLONED;
    for (size_t i = 0; ok && i < c->service->sessions.n; i++) {
        struct session *s = c->service->sessions.p[i];
        if (s->detach_key && s->consumer_uid == c->session->consumer_uid && strcmp(s->detach_key, m->key) == 0)
            ok = false;
    }
    char *key = ok ? mem_strdup(m->key) : NULL;
    if (m)
        mrd__detach_request__free_unpacked(m, NULL);
    if (!key) {
        refuse(c, call, "Detach: the consumer has no session, or this user has a session with that key");
        return;
    }
    c->session->detach_key = key;
    c->session->consumer = NULL;
    c->session = NULL;
    reply_ok(call);
}

static void attach(struct service_consumer *c, struct ipc_call call, struct slice args)
{
    Mrd__AttachRequest *m = mrd__attach_request__unpack(NULL, args.len, args.p);
    struct session *found = NULL;
    uint32_t uid = ipc_peer_identity(c->peer)->uid;
    for (size_t i = 0; m && m->key && !c->session && i < c->service->sessions.n; i++) {
        struct session *s = c->service->sessions.p[i];
        if (s->detach_key && s->consumer_uid == uid && strcmp(s->detach_key, m->key) == 0)
            found = s;
    }
    if (m)
        mrd__attach_request__free_unpacked(m, NULL);
    if (!found) {
        refuse(c, call,
               "Attach: this user has no detached session with that key, or the consumer has a session already");
        return;
    }
    mem_free(found->detach_key);
    found->detach_key = NULL;
    found->consumer = c;
    c->session = found;
    struct pb_writer w = {0};
    pb_put_bytes(&w, ATTACH_RESPONSE_TRACE_CONFIG, found->config_bytes.p, found->config_bytes.len);
    ipc_reply(&call, !w.failed, false, pb_written(&w), -1);
    pb_writer_free(&w);
}

/* ---- reading ---- */

/* Puts the batch into replies. Only the last one of a stream ends it. */
static void send_batch(struct service_consumer *c, const struct batch *b, bool more)
{
    struct pb_writer w = {0};
    for (size_t i = 0; i < b->packets.n; i++) {
        const uint8_t *p = b->bytes.p + b->packets.p[i].at;
        size_t left = b->packets.p[i].len;
        do {
            size_t n = left < SLICE_MAX ? left : SLICE_MAX;
            if (w.n + n + 16 > REPLY_MAX) {
                ipc_reply(&c->read_call, true, true, pb_written(&w), -1);
                pb_writer_clear(&w);
            }
            uint8_t head[8];
            size_t h = pb_encode_varint(head, n), inner = 1 + h + n + 2;
            pb_put_raw_varint(&w, READ_BUFFERS_RESPONSE_SLICES << 3 | PB_BYTES);
            pb_put_raw_varint(&w, inner);
            pb_put_bytes(&w, READ_BUFFERS_RESPONSE_SLICE_DATA, p, n);
            pb_put_varint(&w, READ_BUFFERS_RESPONSE_SLICE_LAST_SLICE_FOR_PACKET, n == left);
            p += n;
            left -= n;
        } while (left);
    }
    if (w.failed)
        ipc_peer_kick(c->peer, "out of memory"); /* the consumer must not take half a trace for a whole one */
    else
        ipc_reply(&c->read_call, true, more, pb_written(&w), -1);
    pb_writer_free(&w);
}

static void stop_reading(struct service_consumer *c)
{
    c->reading = false;
    c->read_call.peer = NULL;
    uv_idle_stop(&c->read_task);
}

static void on_read_task(uv_idle_t *idle)
{
    struct service_consumer *c = idle->data;
    struct batch *b = &c->service->batch;
    if (ipc_peer_queued(c->peer) > QUEUE_HIGH) { /* on_drained() goes on */
        uv_idle_stop(idle);
        return;
    }
    if (!c->session) {
        ipc_reply(&c->read_call, true, false, slice_of(NULL, 0), -1);
        stop_reading(c);
        return;
    }
    batch_clear(b);
    bool more = session_read(c->session, b, READ_BYTES_PER_TASK);
    send_batch(c, b, more);
    if (!more)
        stop_reading(c);
}

static void read_buffers(struct service_consumer *c, struct ipc_call call)
{
    if (!c->session || c->reading || session_has_file(c->session)) {
        refuse(c, call,
               "ReadBuffers: the consumer has no session, its session writes a file, or a read is in progress");
        return;
    }
    c->read_call = call;
    c->reading = true;
    uv_idle_start(&c->read_task, on_read_task);
}

/* ---- questions ---- */

static void get_stats(struct service_consumer *c, struct ipc_call call)
{
    struct pb_writer w = {0}, m = {0};
    if (!c->session) {
        reply_refused(call);
        return;
    }
    session_put_stats(c->session, &m, REPLY_MAX - 16);
    pb_put_bytes(&w, GET_TRACE_STATS_RESPONSE_TRACE_STATS, m.p, m.n);
    ipc_reply(&call, !w.failed && !m.failed, false, pb_written(&w), -1);
    pb_writer_free(&m);
    pb_writer_free(&w);
}

static void observe(struct service_consumer *c, struct ipc_call call, struct slice args)
{
    Mrd__ObserveEventsRequest *m = mrd__observe_events_request__unpack(NULL, args.len, args.p);
    if (!m) {
        reply_refused(call);
        return;
    }
    if (c->observe_call.peer) /* a new request ends the stream of the last one */
        ipc_reply(&c->observe_call, true, false, slice_of(NULL, 0), -1);
    c->observe_call = call;
    c->observing = 0;
    for (size_t i = 0; i < m->n_events_to_observe; i++)
        c->observing |= (uint64_t)m->events_to_observe[i];
    mrd__observe_events_request__free_unpacked(m, NULL);
    if (!c->observing) {
        ipc_reply(&call, true, false, slice_of(NULL, 0), -1);
        c->observe_call.peer = NULL;
        return;
    }
    struct session *s = c->session;
    if (!s)
        return;
    for (size_t i = 0; i < s->instances.n; i++)
        consumer_notify_instance(s, s->instances.p[i]);
    if (s->did_all_started) {
        problems_announce(s);
        Mrd__ObservableEvents e = MRD__OBSERVABLE_EVENTS__INIT;
        e.has_all_data_sources_started = e.all_data_sources_started = true;
        consumer_observe(c, &e, 2);
    }
}

static void query_state(struct service_consumer *c, struct ipc_call call, struct slice args)
{
    Mrd__QueryServiceStateRequest *m = mrd__query_service_state_request__unpack(NULL, args.len, args.p);
    service_query_state(c, call, m && m->sessions_only);
    if (m)
        mrd__query_service_state_request__free_unpacked(m, NULL);
}

static void query_capabilities(struct ipc_call call)
{
    struct pb_writer w = {0};
    size_t m = pb_begin(&w, QUERY_CAPABILITIES_RESPONSE_CAPABILITIES);
    pb_put_varint(&w, TRACING_SERVICE_CAPABILITIES_HAS_QUERY_CAPABILITIES, 1);
    pb_put_varint(&w, TRACING_SERVICE_CAPABILITIES_OBSERVABLE_EVENTS, 1);
    pb_put_varint(&w, TRACING_SERVICE_CAPABILITIES_OBSERVABLE_EVENTS, 2);
    pb_put_varint(&w, TRACING_SERVICE_CAPABILITIES_OBSERVABLE_EVENTS, 4);
    pb_put_varint(&w, TRACING_SERVICE_CAPABILITIES_HAS_TRACE_CONFIG_OUTPUT_PATH, 1);
    pb_put_varint(&w, TRACING_SERVICE_CAPABILITIES_HAS_CLONE_SESSION, 1);
    pb_end(&w, m);
    ipc_reply(&call, !w.failed, false, pb_written(&w), -1);
    pb_writer_free(&w);
}

static void save_for_bugreport(struct ipc_call call)
{
    struct pb_writer w = {0};
    pb_put_varint(&w, SAVE_TRACE_FOR_BUGREPORT_RESPONSE_SUCCESS, 0);
    pb_put_str(&w, SAVE_TRACE_FOR_BUGREPORT_RESPONSE_MSG, "not supported: use CloneSession");
    ipc_reply(&call, !w.failed, false, pb_written(&w), -1);
    pb_writer_free(&w);
}

static void clone_session(struct service_consumer *c, struct ipc_call call, struct slice args)
{
    Mrd__CloneSessionRequest *m = mrd__clone_session_request__unpack(NULL, args.len, args.p);
    int fd = ipc_peer_take_fd(c->peer);
    if (m) {
        session_clone(c, call, m, fd);
        mrd__clone_session_request__free_unpacked(m, NULL);
        return;
    }
    if (fd >= 0)
        close(fd);
    reply_refused(call);
}

/* Long: one case a method. */
void consumer_port_invoke(void *ctx, unsigned method, struct ipc_call call, struct slice args)
{
    struct service_consumer *c = consumer_of(ctx, call.peer);
    if (!c) {
        reply_refused(call);
        return;
    }
    switch (method) {
    case CONSUMER_ENABLE_TRACING:
        enable(c, call, args);
        break;
    case CONSUMER_DISABLE_TRACING:
        if (c->session)
            session_disable(c->session, false);
        reply_ok(call);
        break;
    case CONSUMER_READ_BUFFERS:
        read_buffers(c, call);
        break;
    case CONSUMER_FREE_BUFFERS:
        if (c->session)
            session_free(c->session);
        reply_ok(call);
        break;
    case CONSUMER_FLUSH:
        flush(c, call, args);
        break;
    case CONSUMER_START_TRACING:
        if (c->session && session_start(c->session))
            reply_ok(call);
        else
            reply_refused(call);
        break;
    case CONSUMER_CHANGE_TRACE_CONFIG:
        change_config(c, call, args);
        break;
    case CONSUMER_DETACH:
        detach(c, call, args);
        break;
    case CONSUMER_ATTACH:
        attach(c, call, args);
        break;
    case CONSUMER_GET_TRACE_STATS:
        get_stats(c, call);
        break;
    case CONSUMER_OBSERVE_EVENTS:
        observe(c, call, args);
        break;
    case CONSUMER_QUERY_SERVICE_STATE:
        query_state(c, call, args);
        break;
    case CONSUMER_QUERY_CAPABILITIES:
        query_capabilities(call);
        break;
    case CONSUMER_SAVE_TRACE_FOR_BUGREPORT:
        save_for_bugreport(call);
        break;
    case CONSUMER_CLONE_SESSION:
        clone_session(c, call, args);
        break;
    default:
        reply_refused(call);
    }
}

static void on_idle_closed(uv_handle_t *h)
{
    mem_free(h->data);
}

void consumer_port_disconnected(void *ctx, struct ipc_peer *peer)
{
    struct service *svc = ctx;
    struct service_consumer *c = ipc_peer_data(peer, &ipc_consumer_port);
    if (!c)
        return;
    ipc_peer_set_data(peer, &ipc_consumer_port, NULL);
    for (size_t i = 0; i < svc->consumers.n; i++)
        if (svc->consumers.p[i] == c)
            svc->consumers.p[i] = svc->consumers.p[--svc->consumers.n];
    stop_reading(c);
    c->enable_call.peer = c->observe_call.peer = NULL;
    struct session *s = c->session;
    if (s)
        session_orphan(s);
    uv_close((uv_handle_t *)&c->read_task, on_idle_closed);
}
