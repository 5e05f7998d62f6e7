/* QueryServiceState: who is connected, what they offer, who records. */
#include "capture/service/producers.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"
#include "wire/fields.h"

#define REPLY_MAX (128u * 1024 - 512)

static void put_text(struct pb_writer *w, uint32_t id, const char *s)
{
    if (s && *s)
        pb_put_str(w, id, s);
}

static void put_producer(struct pb_writer *w, const struct service_producer *p)
{
    const struct ipc_identity *id = ipc_peer_identity(p->peer);
    size_t m = pb_begin(w, TRACING_SERVICE_STATE_PRODUCERS);
    pb_put_varint(w, TRACING_SERVICE_STATE_PRODUCER_ID, p->id);
    pb_put_str(w, TRACING_SERVICE_STATE_PRODUCER_NAME, p->name);
    pb_put_i64(w, TRACING_SERVICE_STATE_PRODUCER_UID, (int32_t)id->uid);
    put_text(w, TRACING_SERVICE_STATE_PRODUCER_SDK_VERSION, p->sdk_version);
    pb_put_i64(w, TRACING_SERVICE_STATE_PRODUCER_PID, id->pid);
    pb_put_varint(w, TRACING_SERVICE_STATE_PRODUCER_FROZEN, 0);
    if (id->machine_id) {
        pb_put_varint(w, TRACING_SERVICE_STATE_PRODUCER_MACHINE_ID, id->machine_id);
        pb_put_str(w, TRACING_SERVICE_STATE_PRODUCER_MACHINE_NAME, id->machine_name);
    }
    pb_end(w, m);
}

static void put_session(struct pb_writer *w, const struct session *s)
{
    size_t m = pb_begin(w, TRACING_SERVICE_STATE_TRACING_SESSIONS);
    pb_put_varint(w, TRACING_SERVICE_STATE_TRACING_SESSION_ID, s->id);
    pb_put_i64(w, TRACING_SERVICE_STATE_TRACING_SESSION_CONSUMER_UID, (int32_t)s->consumer_uid);
    pb_put_str(w, TRACING_SERVICE_STATE_TRACING_SESSION_STATE, session_state_name(s->state));
    put_text(w, TRACING_SERVICE_STATE_TRACING_SESSION_UNIQUE_SESSION_NAME, s->config->unique_session_name);
    for (size_t i = 0; i < s->config->n_buffers; i++)
        pb_put_varint(w, TRACING_SERVICE_STATE_TRACING_SESSION_BUFFER_SIZE_KB, s->config->buffers[i]->size_kb);
    pb_put_varint(w, TRACING_SERVICE_STATE_TRACING_SESSION_DURATION_MS, s->config->duration_ms);
    pb_put_varint(w, TRACING_SERVICE_STATE_TRACING_SESSION_NUM_DATA_SOURCES, s->instances.n);
    pb_put_i64(w, TRACING_SERVICE_STATE_TRACING_SESSION_START_REALTIME_NS, s->started_realtime_ns);
    if (s->config->bugreport_score > 0)
        pb_put_i64(w, TRACING_SERVICE_STATE_TRACING_SESSION_BUGREPORT_SCORE, s->config->bugreport_score);
    put_text(w, TRACING_SERVICE_STATE_TRACING_SESSION_BUGREPORT_FILENAME, s->config->bugreport_filename);
    pb_put_varint(w, TRACING_SERVICE_STATE_TRACING_SESSION_IS_STARTED, s->state == SESSION_STARTED);
    pb_end(w, m);
}

/* Sends what `state` holds as one reply. */
static void send_part(struct ipc_call call, struct pb_writer *state, bool more)
{
    struct pb_writer w = {0};
    pb_put_bytes(&w, QUERY_SERVICE_STATE_RESPONSE_SERVICE_STATE, state->p, state->n);
    if (!w.failed)
        ipc_reply(&call, true, more, pb_written(&w), -1);
    pb_writer_free(&w);
    pb_writer_clear(state);
}

void service_query_state(struct service_consumer *c, struct ipc_call call, bool sessions_only)
{
    struct service *svc = c->service;
    struct pb_writer w = {0};
    unsigned started = 0;
    for (size_t i = 0; i < svc->sessions.n; i++)
        started += svc->sessions.p[i]->state == SESSION_STARTED;
    pb_put_varint(&w, TRACING_SERVICE_STATE_NUM_SESSIONS, svc->sessions.n);
    pb_put_varint(&w, TRACING_SERVICE_STATE_NUM_SESSIONS_STARTED, started);
    pb_put_str(&w, TRACING_SERVICE_STATE_TRACING_SERVICE_VERSION, "Meridian v" MERIDIAN_VERSION);
    pb_put_varint(&w, TRACING_SERVICE_STATE_SUPPORTS_TRACING_SESSIONS, 1);
    for (size_t i = 0; i < svc->sessions.n; i++)
        put_session(&w, svc->sessions.p[i]);
    for (size_t i = 0; !sessions_only && i < svc->producers.n; i++) {
        const struct service_producer *p = svc->producers.p[i];
        if (w.n + strlen(p->name) + strlen(p->sdk_version) + 512 > REPLY_MAX)
            send_part(call, &w, true);
        put_producer(&w, p);
        for (size_t k = 0; k < p->sources.n; k++) {
            const struct registered_source *r = &p->sources.p[k];
            if (r->descriptor_len + 64 > REPLY_MAX)
                continue;
            if (w.n + r->descriptor_len + 64 > REPLY_MAX)
                send_part(call, &w, true);
            size_t m = pb_begin(&w, TRACING_SERVICE_STATE_DATA_SOURCES);
            pb_put_bytes(&w, TRACING_SERVICE_STATE_DATA_SOURCE_DS_DESCRIPTOR, r->descriptor, r->descriptor_len);
            pb_put_varint(&w, TRACING_SERVICE_STATE_DATA_SOURCE_PRODUCER_ID, p->id);
            pb_end(&w, m);
        }
    }
    send_part(call, &w, false);
    pb_writer_free(&w);
}
