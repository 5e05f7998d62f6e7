/* Triggers: names that producers send, and what sessions do on them. */
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"

#include "base/hash.h"

#include <sys/random.h>

#define MAX_HITS    1000    /* kept per session */
#define MAX_HISTORY 100000u /* of all triggers in 24 hours; more than any max_per_24_h makes sense for */

typedef Mrd__TraceConfig__TriggerConfig__Trigger Trigger;

enum trigger_mode config_trigger_mode(const Mrd__TraceConfig *c)
{
    const Mrd__TraceConfig__TriggerConfig *t = c->trigger_config;
    if (t && t->use_clone_snapshot_if_available && t->trigger_mode)
        return TRIGGER_CLONE;
    return t ? (enum trigger_mode)t->trigger_mode : TRIGGER_NONE;
}

bool session_awaits_trigger(const struct session *s)
{
    return config_trigger_mode(s->config) && s->triggers.n == 0 && s->state != SESSION_CLONED;
}

static bool producer_allowed(const Trigger *t, const char *producer)
{
    const char *regex = t->producer_name_regex;
    return !regex || !*regex || config_regex_matches(regex, producer);
}

/* How often the trigger fired in the last 24 hours. */
static unsigned fired_lately(struct service *svc, uint64_t name_hash, uint64_t now)
{
    const uint64_t day = 24ull * 3600 * 1000000000;
    unsigned n = 0;
    size_t keep = 0;
    for (size_t i = 0; i < svc->trigger_history.n; i++) {
        struct trigger_record r = svc->trigger_history.p[i];
        if (now - r.ts_ns > day)
            continue;
        n += r.name_hash == name_hash;
        svc->trigger_history.p[keep++] = r;
    }
    svc->trigger_history.n = keep;
    return n;
}

/* False when there is no memory, or the session has been told often enough: a producer may send without end. */
static bool remember(struct session *s, const char *name, const char *producer, uint32_t uid, uint64_t delay_ms)
{
    if (s->triggers.n >= MAX_HITS)
        return false;
    struct trigger_hit h = {.ts = clock_boot_ns(),
                            .name = mem_strdup(name),
                            .producer_name = mem_strdup(producer),
                            .uid = uid,
                            .stop_delay_ms = delay_ms};
    if (h.name && h.producer_name && vec_push(&s->triggers, h))
        return true;
    mem_free(h.name);
    mem_free(h.producer_name);
    return false;
}

/* Between 0 and 1, another one each time the service runs. */
static double chance(void)
{
    uint32_t r = 0;
    (void)!getrandom(&r, sizeof r, GRND_NONBLOCK);
    return r / 4294967296.0;
}

static void on_stop_delay(uv_timer_t *t)
{
    session_flush_and_disable(t->data);
}

static void fire(struct session *s, const Trigger *t, const char *producer, uint32_t uid)
{
    switch (config_trigger_mode(s->config)) {
    case TRIGGER_START:
        if (s->triggers.n || !remember(s, t->name, producer, uid, t->stop_delay_ms))
            return; /* one start is enough */
        uv_timer_stop(&s->timers[TIMER_TRIGGER]);
        session_start(s);
        uv_timer_start(&s->timers[TIMER_DURATION], on_stop_delay, t->stop_delay_ms, 0);
        break;
    case TRIGGER_STOP: {
        bool first = s->triggers.n == 0;
        if (!remember(s, t->name, producer, uid, t->stop_delay_ms) || !first)
            return; /* later triggers are noted, the first one stops */
        uv_timer_stop(&s->timers[TIMER_TRIGGER]);
        uv_timer_start(&s->timers[TIMER_DURATION], on_stop_delay, t->stop_delay_ms, 0);
        break;
    }
    case TRIGGER_CLONE: {
        if (!s->consumer)
            return;
        Mrd__ObservableEvents e = MRD__OBSERVABLE_EVENTS__INIT;
        Mrd__ObservableEvents__CloneTriggerHit hit = MRD__OBSERVABLE_EVENTS__CLONE_TRIGGER_HIT__INIT;
        hit.has_tracing_session_id = hit.has_producer_uid = hit.has_boot_time_ns = hit.has_trigger_delay_ms = true;
        hit.tracing_session_id = (int64_t)s->id;
        hit.trigger_name = t->name;
        hit.producer_name = (char *)(uintptr_t)producer;
        hit.producer_uid = uid;
        hit.boot_time_ns = clock_boot_ns();
        hit.trigger_delay_ms = t->stop_delay_ms;
        e.clone_trigger_hit = &hit;
        consumer_observe(s->consumer, &e, 4);
        break;
    }
    default:
        break;
    }
    unsigned dropped;
    if (log_allowed(&s->service->log_limit, 10, &dropped))
        log_line("traced: session %llu: trigger \"%s\" from \"%s\"", (unsigned long long)s->id, t->name, producer);
}

void service_trigger(struct service *svc, const char *name, const char *producer, uint32_t uid)
{
    uint64_t now = clock_boot_ns(), hash = hash_bytes_seeded(name, strlen(name), hash_secret());
    bool counted = false;
    for (size_t i = 0; i < svc->sessions.n; i++) {
        struct session *s = svc->sessions.p[i];
        const Mrd__TraceConfig__TriggerConfig *c = s->config->trigger_config;
        if (!config_trigger_mode(s->config) || (s->state != SESSION_STARTED && s->state != SESSION_CONFIGURED))
            continue;
        for (size_t k = 0; k < c->n_triggers; k++) {
            const Trigger *t = c->triggers[k];
            if (!t->name || strcmp(t->name, name) != 0 || !producer_allowed(t, producer))
                continue;
            if (t->max_per_24_h && fired_lately(svc, hash, now) >= t->max_per_24_h)
                continue;
            if (t->skip_probability > 0 && chance() < t->skip_probability)
                continue;
            if (!counted && svc->trigger_history.n < MAX_HISTORY)
                counted = vec_push(&svc->trigger_history, (struct trigger_record){now, hash});
            fire(s, t, producer, uid);
            break;
        }
    }
}

static void on_trigger_timeout(uv_timer_t *t)
{
    struct session *s = t->data;
    bool clone = config_trigger_mode(s->config) == TRIGGER_CLONE;
    if (s->triggers.n && !clone)
        return; /* a stop is under way */
    log_line("traced: session %llu: trigger_timeout_ms is over", (unsigned long long)s->id);
    if (s->state == SESSION_STARTED && clone)
        session_flush_and_disable(s);
    else
        session_disable(s, false);
}

void session_arm_trigger_timeout(struct session *s)
{
    uv_timer_start(&s->timers[TIMER_TRIGGER], on_trigger_timeout, s->config->trigger_config->trigger_timeout_ms, 0);
}
