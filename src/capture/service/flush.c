/* Flushes: producers are asked to hand over what they hold; the slow ones are not waited for for ever. */
#include "capture/service/producers.h"
#include "capture/service/relay.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"
#include "wire/fields.h"

#define FLUSH_TIMEOUT_MS 5000
#define MAX_PENDING      1000
#define MAX_SLOW_SOURCES 32

static void on_timer_closed(uv_handle_t *h)
{
    struct pending_flush *f = h->data;
    vec_free(&f->waiting);
    mem_free(f);
}

static void unlink_flush(struct session *s, struct pending_flush *f)
{
    for (struct pending_flush **at = &s->flushes; *at; at = &(*at)->next) {
        if (*at == f) {
            *at = f->next;
            return;
        }
    }
}

static void tell_slow(struct session *s, const struct pending_flush *f)
{
    struct pb_writer w = {0};
    unsigned n = 0;
    for (size_t i = 0; i < s->instances.n; i++) {
        const struct instance *in = s->instances.p[i];
        bool slow = false;
        for (size_t k = 0; k < f->waiting.n; k++)
            slow |= f->waiting.p[k] == in->producer->id;
        if (!slow || in->no_flush || n == MAX_SLOW_SOURCES)
            continue;
        size_t m = pb_begin(&w, TRACING_SERVICE_EVENT_DATA_SOURCES_DATA_SOURCE);
        pb_put_str(&w, TRACING_SERVICE_EVENT_DATA_SOURCES_DATA_SOURCE_PRODUCER_NAME, in->producer->name);
        pb_put_str(&w, TRACING_SERVICE_EVENT_DATA_SOURCES_DATA_SOURCE_DATA_SOURCE_NAME, in->name);
        pb_end(&w, m);
        n++;
    }
    if (n && !w.failed)
        session_lifecycle_body(s, LIFECYCLE_LAST_FLUSH_SLOW, pb_written(&w));
    pb_writer_free(&w);
}

/* The session may be gone after this: its owner is told last. */
static void finish(struct pending_flush *f, bool ok)
{
    struct session *s = f->session;
    if (f->finished)
        return;
    f->finished = true;
    unlink_flush(s, f);
    uint64_t reason = f->flags & 15;
    if (!s->closing) {
        for (size_t i = 0; i < s->service->producers.n; i++)
            commit_scrape(s->service->producers.p[i], s);
        session_lifecycle(s, LIFECYCLE_ALL_FLUSHED, true);
        if (!ok) {
            log_line("traced: session %llu: flush %llu timed out, %zu producers have not answered",
                     (unsigned long long)s->id, (unsigned long long)f->id, f->waiting.n);
            if (reason == FLUSH_REASON_STOP || reason == FLUSH_REASON_CLONE)
                tell_slow(s, f);
            for (size_t i = 0; reason == FLUSH_REASON_STOP && i < f->waiting.n; i++)
                if (service_find_producer(s->service, f->waiting.p[i]))
                    relay_producer_silent(s, service_find_producer(s->service, f->waiting.p[i]));
        }
    }
    if (ok)
        s->flushes_succeeded++;
    else
        s->flushes_failed++;
    uv_timer_stop(&f->timer);
    uv_close((uv_handle_t *)&f->timer, on_timer_closed);
    if (f->done)
        f->done(f->ctx, s, ok);
}

static void on_timeout(uv_timer_t *t)
{
    struct pending_flush *f = t->data;
    finish(f, f->waiting.n == 0);
}

static bool is_waiting(const struct pending_flush *f, uint16_t producer)
{
    for (size_t i = 0; i < f->waiting.n; i++)
        if (f->waiting.p[i] == producer)
            return true;
    return false;
}

static void ask_producer(struct session *s, struct pending_flush *f, struct service_producer *p)
{
    struct pb_writer w = {0};
    for (size_t i = 0; i < s->instances.n; i++) {
        const struct instance *in = s->instances.p[i];
        if (in->producer == p && !in->no_flush && (in->state == INSTANCE_STARTED || in->state == INSTANCE_STARTING))
            pb_put_varint(&w, GET_ASYNC_COMMAND_RESPONSE_FLUSH_DATA_SOURCE_IDS, in->id);
    }
    pb_put_varint(&w, GET_ASYNC_COMMAND_RESPONSE_FLUSH_REQUEST_ID, f->id);
    pb_put_varint(&w, GET_ASYNC_COMMAND_RESPONSE_FLUSH_FLAGS, f->flags);
    if (!w.failed && vec_push(&f->waiting, p->id))
        producer_send_command(p, GET_ASYNC_COMMAND_RESPONSE_FLUSH, pb_written(&w), -1);
    pb_writer_free(&w);
}

void session_flush(struct session *s, unsigned timeout_ms, uint64_t flags,
                   void (*done)(void *ctx, struct session *s, bool ok), void *ctx)
{
    unsigned pending = 0;
    for (struct pending_flush *f = s->flushes; f; f = f->next)
        pending++;
    struct pending_flush *f = NULL;
    if (s->state == SESSION_STARTED && pending < MAX_PENDING)
        f = mem_zalloc(sizeof *f);
    if (!f) {
        s->flushes_failed += s->state == SESSION_STARTED;
        if (done)
            done(ctx, s, false);
        return;
    }
    s->flushes_requested++;
    session_lifecycle(s, LIFECYCLE_FLUSH_STARTED, false);
    f->session = s;
    f->id = ++s->service->last_flush_id;
    f->flags = flags;
    f->done = done;
    f->ctx = ctx;
    uv_timer_init(s->service->loop, &f->timer);
    f->timer.data = f;
    struct pending_flush **at = &s->flushes; /* in order of their ids */
    while (*at)
        at = &(*at)->next;
    *at = f;
    for (size_t i = 0; i < s->instances.n; i++) {
        const struct instance *in = s->instances.p[i];
        if (!in->no_flush && (in->state == INSTANCE_STARTED || in->state == INSTANCE_STARTING) &&
            !is_waiting(f, in->producer->id))
            ask_producer(s, f, in->producer);
    }
    if (!timeout_ms)
        timeout_ms = s->config->flush_timeout_ms ? s->config->flush_timeout_ms : FLUSH_TIMEOUT_MS;
    uv_timer_start(&f->timer, on_timeout, f->waiting.n ? timeout_ms : 0, 0);
}

/* Takes the producer off the flush; true when that completed it. */
static bool answered(struct pending_flush *f, uint16_t producer)
{
    for (size_t i = 0; i < f->waiting.n; i++) {
        if (f->waiting.p[i] != producer)
            continue;
        f->waiting.p[i] = *vec_last(&f->waiting);
        return --f->waiting.n == 0;
    }
    return false;
}

void flush_acknowledged(struct service_producer *p, uint64_t request_id)
{
    struct service *svc = p->service;
    uint16_t id = p->id;
    for (size_t i = 0; i < svc->sessions.n;) {
        struct pending_flush *f = svc->sessions.p[i]->flushes;
        while (f && f->id <= request_id && !answered(f, id))
            f = f->next;
        if (f && f->id <= request_id) {
            finish(f, true);
            i = 0; /* the owner may have ended sessions */
        } else {
            i++;
        }
    }
}

void flush_producer_gone(struct session *s, struct service_producer *p)
{
    for (struct pending_flush *f = s->flushes; f; f = f->next) /* from the loop: we are in the middle of a removal */
        if (answered(f, p->id))
            uv_timer_start(&f->timer, on_timeout, 0, 0);
}

void flush_abandon(struct session *s)
{
    while (s->flushes)
        finish(s->flushes, false);
}

/* ---- periodic ---- */

/* The next tick, so that ticks of all sessions fall together. */
static uint64_t until_next(unsigned period_ms)
{
    return period_ms - clock_real_ns() / 1000000 % period_ms;
}

static void on_flush_period(uv_timer_t *t)
{
    struct session *s = t->data;
    session_flush(s, 0, FLUSH_REASON_PERIODIC | FLUSH_BY_TRACED, NULL, NULL);
    session_arm_flush(s);
}

void session_arm_flush(struct session *s)
{
    if (s->flush_period_ms && s->state == SESSION_STARTED)
        uv_timer_start(&s->timers[TIMER_FLUSH], on_flush_period, until_next(s->flush_period_ms), 0);
}

static void on_clear_period(uv_timer_t *t)
{
    struct session *s = t->data;
    struct service *svc = s->service;
    for (size_t i = 0; i < svc->producers.n; i++) {
        struct pb_writer w = {0};
        for (size_t k = 0; k < s->instances.n; k++) {
            const struct instance *in = s->instances.p[k];
            if (in->producer == svc->producers.p[i] && in->handles_clear)
                pb_put_varint(&w, GET_ASYNC_COMMAND_RESPONSE_CLEAR_INCREMENTAL_STATE_DATA_SOURCE_IDS, in->id);
        }
        if (w.n && !w.failed)
            producer_send_command(svc->producers.p[i], GET_ASYNC_COMMAND_RESPONSE_CLEAR_INCREMENTAL_STATE,
                                  pb_written(&w), -1);
        pb_writer_free(&w);
    }
    session_arm_clear(s);
}

void session_arm_clear(struct session *s)
{
    const Mrd__TraceConfig__IncrementalStateConfig *c = s->config->incremental_state_config;
    if (c && c->clear_period_ms && s->state == SESSION_STARTED)
        uv_timer_start(&s->timers[TIMER_CLEAR], on_clear_period, until_next(c->clear_period_ms), 0);
}
