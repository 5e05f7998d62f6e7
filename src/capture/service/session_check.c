/* Which trace configs are refused, and why: the first check that fails gives the reason. */
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"

#include "base/hash.h"

#include <string.h>

#define MAX_DURATION_MS         (7ull * 24 * 3600 * 1000)
#define MAX_GUARDED_DURATION_MS (24ull * 3600 * 1000)
#define MAX_GUARDED_BUFFER_KB   (128u * 1024)
#define MAX_BUFFERS             128
#define MAX_SESSIONS            15
#define MAX_SESSIONS_PER_UID    5
#define RESTART_PAUSE_S         300u
#define MAX_NAMED_STARTS        10000

#define REFUSE(...) return error_set(err, -MRD_EINVALID, __VA_ARGS__)

typedef Mrd__TraceConfig Config;

static bool is_active(const struct session *s)
{
    return s->state != SESSION_DISABLED && s->state != SESSION_CLONED;
}

static int check_triggers(const Config *c, struct error *err)
{
    const Mrd__TraceConfig__TriggerConfig *t = c->trigger_config;
    enum trigger_mode mode = config_trigger_mode(c);
    if (!mode)
        return 0;
    uint64_t max = c->enable_extra_guardrails ? MAX_GUARDED_DURATION_MS : MAX_DURATION_MS;
    if (t->trigger_timeout_ms == 0 || t->trigger_timeout_ms > max)
        REFUSE("trigger_timeout_ms must be between 1 and %llu", (unsigned long long)max);
    if (t->trigger_mode > 4 || t->trigger_mode == 3)
        REFUSE("unknown trigger_mode %d", (int)t->trigger_mode);
    if (t->use_clone_snapshot_if_available && (int)t->trigger_mode != TRIGGER_STOP)
        REFUSE("use_clone_snapshot_if_available needs STOP_TRACING");
    if (c->duration_ms)
        REFUSE("duration_ms and triggers exclude each other: use trigger_timeout_ms");
    if ((mode == TRIGGER_STOP || mode == TRIGGER_CLONE) && c->write_into_file)
        REFUSE("write_into_file and STOP_TRACING or CLONE_SNAPSHOT exclude each other");
    for (size_t i = 0; i < t->n_triggers; i++)
        for (size_t k = 0; k < i; k++)
            if (t->triggers[i]->name && t->triggers[k]->name && strcmp(t->triggers[i]->name, t->triggers[k]->name) == 0)
                REFUSE("trigger name \"%s\" is used twice", t->triggers[i]->name);
    return 0;
}

static int check_buffers(const Config *c, struct error *err)
{
    uint64_t total = 0;
    if (c->n_buffers > MAX_BUFFERS)
        REFUSE("too many buffers: %zu, at most %d", c->n_buffers, MAX_BUFFERS);
    for (size_t i = 0; i < c->n_buffers; i++) {
        const Mrd__TraceConfig__BufferConfig *b = c->buffers[i];
        uint64_t bytes = (uint64_t)b->size_kb * 1024;
        total += b->size_kb;
        if (!bytes || bytes > UINT32_MAX)
            REFUSE("buffer %zu: size_kb %u is out of range; use 1 to 4194303", i, b->size_kb);
        if (b->machine_size_kb >= UINT32_MAX / 1024)
            REFUSE("buffer %zu: machine_size_kb %u is out of range; use 0 to 4194302", i, b->machine_size_kb);
        total += b->machine_size_kb;
        for (size_t k = 0; k < i && b->name && *b->name; k++)
            if (c->buffers[k]->name && strcmp(c->buffers[k]->name, b->name) == 0)
                REFUSE("buffer name \"%s\" is used twice", b->name);
    }
    uint32_t limit = c->guardrail_overrides && c->guardrail_overrides->max_tracing_buffer_size_kb
                         ? c->guardrail_overrides->max_tracing_buffer_size_kb
                         : MAX_GUARDED_BUFFER_KB;
    if (c->enable_extra_guardrails && total > limit)
        REFUSE("guardrail: the buffers take %llu KiB in all; at most %u KiB are allowed", (unsigned long long)total,
               limit);
    return 0;
}

int session_target_buffer(const Mrd__TraceConfig *config, const Mrd__DataSourceConfig *ds)
{
    if (!ds->target_buffer_name || !*ds->target_buffer_name)
        return ds->target_buffer < config->n_buffers ? (int)ds->target_buffer : -1;
    for (size_t i = 0; i < config->n_buffers; i++)
        if (config->buffers[i]->name && strcmp(config->buffers[i]->name, ds->target_buffer_name) == 0)
            return ds->target_buffer && ds->target_buffer != i ? -1 : (int)i;
    return -1;
}

static int check_sources(const Config *c, struct error *err)
{
    for (size_t i = 0; i < c->n_data_sources; i++) {
        const Mrd__DataSourceConfig *d = c->data_sources[i]->config;
        if (d && session_target_buffer(c, d) < 0)
            REFUSE("data source \"%s\": there is no target buffer %u \"%s\"", d->name ? d->name : "", d->target_buffer,
                   d->target_buffer_name ? d->target_buffer_name : "");
    }
    return 0;
}

static int check_others(struct service *svc, uint32_t uid, const Config *c, struct error *err)
{
    unsigned of_uid = 0, active = 0;
    for (size_t i = 0; i < svc->sessions.n; i++) {
        const struct session *s = svc->sessions.p[i];
        if (is_active(s) && s->config->exclusive_prio && s->config->exclusive_prio >= c->exclusive_prio)
            REFUSE("session %llu records exclusively with priority %u", (unsigned long long)s->id,
                   s->config->exclusive_prio);
    }
    for (size_t i = 0; i < svc->sessions.n; i++) {
        const struct session *s = svc->sessions.p[i];
        const char *name = s->config->unique_session_name;
        active++;
        of_uid += s->consumer_uid == uid;
        if (name && *name && c->unique_session_name && strcmp(name, c->unique_session_name) == 0 &&
            s->state != SESSION_CLONED)
            REFUSE("a session with unique_session_name \"%s\" exists", name);
    }
    for (size_t i = 0; i < c->n_session_semaphores; i++) {
        uint64_t holders = 0, limit = c->session_semaphores[i]->max_other_session_count;
        for (size_t k = 0; k < svc->sessions.n; k++) {
            const Config *o = svc->sessions.p[k]->config;
            for (size_t j = 0; j < o->n_session_semaphores; j++) {
                const Mrd__TraceConfig__SessionSemaphore *other = o->session_semaphores[j];
                if (!other->name || !c->session_semaphores[i]->name ||
                    strcmp(other->name, c->session_semaphores[i]->name) != 0)
                    continue;
                holders++;
                if (other->max_other_session_count < limit)
                    limit = other->max_other_session_count;
            }
        }
        if (holders > limit)
            REFUSE("semaphore \"%s\" is held by %llu other sessions", c->session_semaphores[i]->name,
                   (unsigned long long)holders);
    }
    if (of_uid >= MAX_SESSIONS_PER_UID)
        REFUSE("too many sessions of uid %u: at most %d", uid, MAX_SESSIONS_PER_UID);
    if (active >= MAX_SESSIONS)
        REFUSE("too many sessions: at most %d", MAX_SESSIONS);
    return 0;
}

/* Extra guardrails: a name (also none) may not start again and again. */
static int check_restart(struct service *svc, const Config *c, struct error *err)
{
    const char *name = c->unique_session_name ? c->unique_session_name : "";
    uint64_t now = clock_boot_ns(), hash = hash_bytes_seeded(name, strlen(name), hash_secret());
    size_t keep = 0;
    if (!c->enable_extra_guardrails)
        return 0;
    for (size_t i = 0; i < svc->named_starts.n; i++)
        if (now - svc->named_starts.p[i].at_ns < RESTART_PAUSE_S * 1000000000ull)
            svc->named_starts.p[keep++] = svc->named_starts.p[i];
    svc->named_starts.n = keep;
    for (size_t i = 0; i < keep; i++)
        if (svc->named_starts.p[i].name_hash == hash)
            REFUSE("guardrail: a session named \"%s\" began less than %u s ago", name, RESTART_PAUSE_S);
    if (keep == MAX_NAMED_STARTS)
        REFUSE("guardrail: too many sessions with different names started recently");
    if (!vec_push(&svc->named_starts, (struct named_start){hash, now}))
        return error_set(err, -MRD_ENOMEM, "out of memory");
    return 0;
}

static int check_file(const struct service *svc, uint32_t uid, const Config *c, int fd, struct error *err)
{
    bool path = c->output_path && *c->output_path;
    if (!c->write_into_file)
        return 0;
    if (path && fd >= 0)
        REFUSE("write_into_file: give a file descriptor or output_path, not both");
    if (path && uid != 0 && uid != svc->uid) /* the file would be made with our rights */
        return error_set(err, -MRD_EDENIED,
                         "output_path: only root and the service's own user may name a file; hand over an open one "
                         "(perfetto -o)");
    if (!path && fd < 0)
        REFUSE("write_into_file needs a file descriptor or output_path");
    return 0;
}

int session_check(struct service *svc, struct service_consumer *consumer, const Config *c, int fd, struct error *err)
{
    uint64_t max = c->enable_extra_guardrails ? MAX_GUARDED_DURATION_MS : MAX_DURATION_MS;
    if (consumer->session)
        REFUSE("this consumer has a session already");
    if (c->duration_ms > max)
        REFUSE("duration_ms %u is too long: at most %llu", c->duration_ms, (unsigned long long)max);
    int rc = check_triggers(c, err);
    for (const char *p = c->bugreport_filename; !rc && p && *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", *p))
            REFUSE("bugreport_filename may hold letters, digits, '-', '_' and '.' only");
    if (!rc && c->trace_filter) /* recording what it would hide is not for us to decide */
        return error_set(err, -MRD_EUNSUPPORTED,
                         "trace_filter is not supported by this service: take it out of the "
                         "config, or filter the trace afterwards");
    if (!rc)
        rc = check_buffers(c, err);
    if (!rc)
        rc = check_sources(c, err);
    if (!rc)
        rc = check_others(svc, ipc_peer_identity(consumer->peer)->uid, c, err);
    if (!rc)
        rc = priority_check(c->priority_boost, err);
    if (!rc)
        rc = check_file(svc, ipc_peer_identity(consumer->peer)->uid, c, fd, err);
    return rc ? rc : check_restart(svc, c, err);
}
