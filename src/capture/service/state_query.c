/* QueryServiceState: who is connected, what they offer, who records. */
#include "capture/service/producer.h"
#include "capture/service/session.h"
#include "capture/service/state.h"

#define REPLY_MAX (128u * 1024 - 512)

static void put_text(struct pb_writer *w, uint32_t id, const char *s)
{
    if (s && *s)
        pb_put_str(w, id, s);
}

static void put_producer(struct pb_writer *w, const struct service_producer *p)
{
    const struct ipc_identity *id = ipc_peer_identity(p->peer);
    size_t m = pb_begin(w, 1);
    pb_put_varint(w, 1, p->id);
    pb_put_str(w, 2, p->name);
    pb_put_i64(w, 3, (int32_t)id->uid);
    put_text(w, 4, p->sdk_version);
    pb_put_i64(w, 5, id->pid);
    pb_put_varint(w, 6, 0);
    if (id->machine_id) {
        pb_put_varint(w, 7, id->machine_id);
        pb_put_str(w, 8, id->machine_name);
    }
    pb_end(w, m);
}

static void put_session(struct pb_writer *w, const struct session *s)
{
    size_t m = pb_begin(w, 6);
    pb_put_varint(w, 1, s->id);
    pb_put_i64(w, 2, (int32_t)s->consumer_uid);
    pb_put_str(w, 3, session_state_name(s->state));
    put_text(w, 4, s->config->unique_session_name);
    for (size_t i = 0; i < s->config->n_buffers; i++)
        pb_put_varint(w, 5, s->config->buffers[i]->size_kb);
    pb_put_varint(w, 6, s->config->duration_ms);
    pb_put_varint(w, 7, s->instances.n);
    pb_put_i64(w, 8, s->started_realtime_ns);
    if (s->config->bugreport_score > 0)
        pb_put_i64(w, 9, s->config->bugreport_score);
    put_text(w, 10, s->config->bugreport_filename);
    pb_put_varint(w, 11, s->state == SESSION_STARTED);
    pb_end(w, m);
}

/* Sends what `state` holds as one reply. */
static void send_part(struct ipc_call call, struct pb_writer *state, bool more)
{
    struct pb_writer w = {0};
    pb_put_bytes(&w, 1, state->p, state->n);
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
    pb_put_varint(&w, 3, svc->sessions.n);
    pb_put_varint(&w, 4, started);
    pb_put_str(&w, 5, "Meridian v" MERIDIAN_VERSION);
    pb_put_varint(&w, 7, 1);
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
            size_t m = pb_begin(&w, 2);
            pb_put_bytes(&w, 1, r->descriptor, r->descriptor_len);
            pb_put_varint(&w, 2, p->id);
            pb_end(&w, m);
        }
    }
    send_part(call, &w, false);
    pb_writer_free(&w);
}
