/* What other sessions do meanwhile: told to sessions with builtin_data_sources.enable_concurrent_session_events. */
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"
#include "wire/fields.h"

#define MAX_KEPT 256 /* between two reads; the oldest go first */

static bool wants(const struct session *s)
{
    const Mrd__TraceConfig__BuiltinDataSource *b = s->config ? s->config->builtin_data_sources : NULL;
    return b && b->enable_concurrent_session_events && s->state != SESSION_DISABLED && s->state != SESSION_CLONED;
}

static void note(struct session *s, const struct session *other)
{
    const char *name = other->config->unique_session_name;
    struct concurrent_event e = {.ts = clock_boot_ns(),
                                 .state = other->state,
                                 .session_id = other->id,
                                 .uid = other->consumer_uid,
                                 .n_sources = (uint32_t)other->config->n_data_sources,
                                 .name = name && *name ? mem_strdup(name) : NULL};
    if (s->concurrent.n == MAX_KEPT) {
        mem_free(s->concurrent.p[0].name);
        memmove(s->concurrent.p, s->concurrent.p + 1, --s->concurrent.n * sizeof e);
    }
    if (!vec_push(&s->concurrent, e))
        mem_free(e.name);
}

void session_set_state(struct session *s, enum session_state state)
{
    struct service *svc = s->service;
    s->state = state;
    for (size_t i = 0; s->config && i < svc->sessions.n; i++) {
        struct session *other = svc->sessions.p[i];
        if (other != s && wants(other))
            note(other, s);
        if (other != s && state == SESSION_CONFIGURED && wants(s) && other->config)
            note(s, other); /* those that are there already */
    }
}

void concurrent_emit(struct session *s, struct batch *b, struct pb_writer *w)
{
    for (size_t i = 0; i < s->concurrent.n; i++) {
        const struct concurrent_event *e = &s->concurrent.p[i];
        struct pb_writer m = {0};
        pb_put_varint(&m, CONCURRENT_SESSION_EVENT_STATE,
                      (uint64_t)e->state + 1); /* ConcurrentSessionEvent.State, in our order */
        if (e->name)
            pb_put_str(&m, CONCURRENT_SESSION_EVENT_SESSION_NAME, e->name);
        pb_put_varint(&m, CONCURRENT_SESSION_EVENT_SESSION_ID, e->session_id);
        pb_put_i64(&m, CONCURRENT_SESSION_EVENT_CONSUMER_UID, (int32_t)e->uid);
        pb_put_varint(&m, CONCURRENT_SESSION_EVENT_NUM_DATA_SOURCES, e->n_sources);
        pb_put_varint(w, TRACE_PACKET_TIMESTAMP, e->ts);
        session_put_trusted(s, w, true);
        pb_put_bytes(w, TRACE_PACKET_CONCURRENT_SESSION_EVENT, m.p, m.n);
        session_emit(b, w);
        pb_writer_free(&m);
    }
    concurrent_free(s);
}

void concurrent_free(struct session *s)
{
    for (size_t i = 0; i < s->concurrent.n; i++)
        mem_free(s->concurrent.p[i].name);
    vec_free(&s->concurrent);
}
