/* The data sources of a session: which match its config, and the life of their instances. */
#include "capture/service/producers.h"
#include "capture/service/relay.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"
#include "wire/fields.h"

#include <regex.h>
#include <stdlib.h>

#define STOP_TIMEOUT_MS 5000

void session_free_instance(struct instance *i)
{
    mem_free(i->name);
    mem_free(i->config);
    mem_free(i);
}

/* ---- which match ---- */

bool config_regex_matches(const char *pattern, const char *text)
{
    char buf[512];
    regex_t re;
    if (snprintf(buf, sizeof buf, "^(%s)$", pattern) >= (int)sizeof buf || regcomp(&re, buf, REG_EXTENDED | REG_NOSUB))
        return false;
    bool ok = regexec(&re, text, 0, NULL, 0) == 0;
    regfree(&re);
    return ok;
}

static bool machine_matches(const struct session *s, const Mrd__TraceConfig__DataSource *ds,
                            const struct service_producer *p)
{
    const struct ipc_identity *id = ipc_peer_identity(p->peer);
    if (!ds->n_machine_name_filter)
        return id->machine_id == 0 || s->config->trace_all_machines;
    for (size_t i = 0; i < ds->n_machine_name_filter; i++) {
        const char *want = ds->machine_name_filter[i];
        if (id->machine_id == 0 && (strcmp(want, "host") == 0 || strcmp(want, s->service->machine_name) == 0))
            return true;
        if (id->machine_id && strcmp(want, id->machine_name) == 0)
            return true;
    }
    return false;
}

static bool producer_matches(const Mrd__TraceConfig__DataSource *ds, const struct service_producer *p)
{
    if (!ds->n_producer_name_filter && !ds->n_producer_name_regex_filter)
        return true;
    for (size_t i = 0; i < ds->n_producer_name_filter; i++)
        if (strcmp(ds->producer_name_filter[i], p->name) == 0)
            return true;
    for (size_t i = 0; i < ds->n_producer_name_regex_filter; i++)
        if (config_regex_matches(ds->producer_name_regex_filter[i], p->name))
            return true;
    return false;
}

/* The config as the producer gets it. */
static bool pack_config(struct session *s, struct instance *in, const Mrd__DataSourceConfig *from, uint16_t buffer_id)
{
    Mrd__DataSourceConfig c = *from; /* a flat copy: only scalars change */
    const Mrd__TraceConfig *t = s->config;
    c.has_target_buffer = c.has_trace_duration_ms = c.has_tracing_session_id = c.has_stop_timeout_ms = true;
    c.has_enable_extra_guardrails = c.has_session_initiator = true;
    c.target_buffer = buffer_id;
    c.trace_duration_ms = t->duration_ms;
    c.tracing_session_id = s->id;
    c.stop_timeout_ms = t->data_source_stop_timeout_ms ? t->data_source_stop_timeout_ms : STOP_TIMEOUT_MS;
    c.enable_extra_guardrails = t->enable_extra_guardrails;
    c.session_initiator = MRD__DATA_SOURCE_CONFIG__SESSION_INITIATOR__SESSION_INITIATOR_UNSPECIFIED;
    if (t->prefer_suspend_clock_for_duration) {
        c.has_prefer_suspend_clock_for_duration = true;
        c.prefer_suspend_clock_for_duration = true;
    }
    in->config_len = mrd__data_source_config__get_packed_size(&c);
    in->config = mem_alloc(in->config_len);
    if (in->config)
        mrd__data_source_config__pack(&c, in->config);
    return in->config != NULL;
}

/* SetupDataSource and StartDataSource look alike. */
static void send_config(struct instance *in, unsigned field)
{
    struct pb_writer w = {0};
    pb_put_varint(&w, GET_ASYNC_COMMAND_RESPONSE_SETUP_DATA_SOURCE_NEW_INSTANCE_ID, in->id);
    pb_put_bytes(&w, GET_ASYNC_COMMAND_RESPONSE_SETUP_DATA_SOURCE_CONFIG, in->config, in->config_len);
    if (!w.failed)
        producer_send_command(in->producer, field, pb_written(&w), -1);
    pb_writer_free(&w);
}

void session_start_instance(struct session *s, struct instance *in)
{
    in->state = in->will_notify_on_start ? INSTANCE_STARTING : INSTANCE_STARTED;
    send_config(in, GET_ASYNC_COMMAND_RESPONSE_START_DATA_SOURCE);
    if (in->state != INSTANCE_STARTED)
        return;
    problems_instance_started(s, in, slice_of(NULL, 0));
    consumer_notify_instance(s, in);
}

static void setup_instance(struct session *s, unsigned source, struct service_producer *p,
                           const struct registered_source *r)
{
    const Mrd__DataSourceConfig *c = s->config->data_sources[source]->config;
    int target = session_target_buffer(s->config, c);
    struct instance *in = mem_zalloc(sizeof *in);
    if (target < 0 || !in) {
        mem_free(in);
        return;
    }
    uint16_t buffer_id = s->buffers.p[target].id;
    in->id = ++s->service->last_instance_id;
    in->producer = p;
    in->source = source;
    in->name = mem_strdup(r->name);
    in->will_notify_on_start = r->will_notify_on_start;
    in->will_notify_on_stop = r->will_notify_on_stop;
    in->handles_clear = r->handles_clear;
    in->no_flush = r->no_flush;
    if (!in->name || !pack_config(s, in, c, buffer_id) || !u64map_set(&p->allowed_buffers, buffer_id, 1) ||
        !vec_push(&s->instances, in)) {
        session_free_instance(in);
        return;
    }
    problems_instance_made(s, in);
    relay_producer_joined(s, p);
    producer_setup_tracing(p, s->config);
    send_config(in, GET_ASYNC_COMMAND_RESPONSE_SETUP_DATA_SOURCE);
    if (s->state == SESSION_STARTED)
        session_start_instance(s, in);
}

static void add_if_matching(struct session *s, unsigned source, struct service_producer *p,
                            const struct registered_source *r)
{
    const Mrd__TraceConfig__DataSource *ds = s->config->data_sources[source];
    if (s->service->lockdown && ipc_peer_identity(p->peer)->uid != s->service->uid)
        return;
    if (ds->config && ds->config->name && strcmp(ds->config->name, r->name) == 0 && machine_matches(s, ds, p) &&
        producer_matches(ds, p))
        setup_instance(s, source, p, r);
}

void session_add_source(struct session *s, struct service_producer *p, const struct registered_source *r)
{
    for (unsigned i = 0; i < s->config->n_data_sources; i++)
        add_if_matching(s, i, p, r);
}

void session_add_all_sources(struct session *s)
{
    struct service *svc = s->service;
    for (unsigned i = 0; i < s->config->n_data_sources; i++) /* instances are numbered in the order of the config */
        for (size_t p = 0; p < svc->producers.n; p++)
            for (size_t k = 0; k < svc->producers.p[p]->sources.n; k++)
                add_if_matching(s, i, svc->producers.p[p], &svc->producers.p[p]->sources.p[k]);
}

void session_instance_started(struct session *s, struct instance *in, struct slice report)
{
    if (in->state != INSTANCE_STARTING)
        return;
    in->state = INSTANCE_STARTED;
    problems_instance_started(s, in, report);
    consumer_notify_instance(s, in);
    session_check_started(s);
}

bool session_all_stopped(const struct session *s)
{
    for (size_t i = 0; i < s->instances.n; i++)
        if (s->instances.p[i]->state != INSTANCE_STOPPED)
            return false;
    return true;
}

void session_instance_stopped(struct session *s, struct instance *in)
{
    if (in->state != INSTANCE_STOPPING)
        return; /* a stop that nobody asked for changes nothing: the instance is still flushed and stopped */
    in->state = INSTANCE_STOPPED;
    consumer_notify_instance(s, in);
    if (s->state == SESSION_STOPPING && session_all_stopped(s))
        session_stopped(s);
}

void session_stop_instance(struct session *s, struct instance *in, bool immediately)
{
    uint8_t body[16];
    size_t n = 0;
    if (in->state == INSTANCE_STOPPED || in->state == INSTANCE_STOPPING)
        return;
    problems_instance_ended(s, in, false);
    bool wait = in->will_notify_on_stop && in->state != INSTANCE_CONFIGURED && !immediately;
    in->state = wait ? INSTANCE_STOPPING : INSTANCE_STOPPED;
    body[n++] = GET_ASYNC_COMMAND_RESPONSE_STOP_DATA_SOURCE_INSTANCE_ID << 3;
    n += pb_encode_varint(body + n, in->id);
    producer_send_command(in->producer, GET_ASYNC_COMMAND_RESPONSE_STOP_DATA_SOURCE, slice_of(body, n), -1);
    if (!wait)
        consumer_notify_instance(s, in);
}

static void remove_instance(struct session *s, size_t i)
{
    struct instance *in = s->instances.p[i];
    problems_instance_ended(s, in, true);
    if (in->state != INSTANCE_STOPPED) {
        in->state = INSTANCE_STOPPED;
        consumer_notify_instance(s, in);
    }
    session_free_instance(in);
    memmove(&s->instances.p[i], &s->instances.p[i + 1], (s->instances.n - i - 1) * sizeof in);
    s->instances.n--;
}

/* Nobody waits for the instances of a producer that is gone. */
static void after_removal(struct session *s)
{
    if (s->state == SESSION_STOPPING && session_all_stopped(s))
        session_stopped(s);
    else
        session_check_started(s);
}

void session_remove_producer(struct session *s, struct service_producer *p)
{
    size_t before = s->instances.n;
    bool recorded = false;
    for (size_t i = s->instances.n; i-- > 0;) {
        if (s->instances.p[i]->producer != p)
            continue;
        recorded |= s->instances.p[i]->state != INSTANCE_STOPPED; /* else it has said its last words */
        remove_instance(s, i);
    }
    if (s->instances.n == before)
        return;
    if (recorded)
        relay_producer_lost(s, p);
    log_line("traced: session %llu goes on without producer %u \"%s\"", (unsigned long long)s->id, p->id, p->name);
    flush_producer_gone(s, p);
    after_removal(s);
}

void session_remove_source(struct session *s, struct service_producer *p, const char *name)
{
    bool any = false;
    for (size_t i = s->instances.n; i-- > 0;) {
        if (s->instances.p[i]->producer != p || strcmp(s->instances.p[i]->name, name) != 0)
            continue;
        remove_instance(s, i);
        any = true;
    }
    if (any)
        after_removal(s);
}

/* ---- changes ---- */

/* Adds what `from` has and `to` has not. */
static bool add_names(char ***to, size_t *n_to, char *const *from, size_t n_from)
{
    for (size_t i = 0; i < n_from; i++) {
        bool known = false;
        for (size_t k = 0; k < *n_to; k++)
            known |= strcmp((*to)[k], from[i]) == 0;
        if (known)
            continue;
        char **list = realloc(*to, (*n_to + 1) * sizeof *list); /* protobuf-c frees it with free() */
        char *copy = strdup(from[i]);
        if (list)
            *to = list;
        if (!list || !copy) {
            free(copy);
            return false;
        }
        list[(*n_to)++] = copy;
    }
    return true;
}

static bool has_instance(const struct session *s, unsigned source, const struct service_producer *p)
{
    for (size_t i = 0; i < s->instances.n; i++)
        if (s->instances.p[i]->source == source && s->instances.p[i]->producer == p)
            return true;
    return false;
}

void session_change_config(struct session *s, const Mrd__TraceConfig *config)
{
    if (s->state != SESSION_STARTED && s->state != SESSION_CONFIGURED)
        return;
    for (unsigned i = 0; i < s->config->n_data_sources; i++) {
        Mrd__TraceConfig__DataSource *ds = s->config->data_sources[i];
        const Mrd__TraceConfig__DataSource *with = NULL;
        for (size_t k = 0; k < config->n_data_sources && ds->config && ds->config->name; k++)
            if (config->data_sources[k]->config && config->data_sources[k]->config->name &&
                strcmp(config->data_sources[k]->config->name, ds->config->name) == 0)
                with = config->data_sources[k];
        if (!with || (!ds->n_producer_name_filter && !ds->n_producer_name_regex_filter))
            continue; /* without a filter everybody is in already */
        add_names(&ds->producer_name_filter, &ds->n_producer_name_filter, with->producer_name_filter,
                  with->n_producer_name_filter);
        add_names(&ds->producer_name_regex_filter, &ds->n_producer_name_regex_filter, with->producer_name_regex_filter,
                  with->n_producer_name_regex_filter);
        for (size_t p = 0; p < s->service->producers.n; p++) {
            struct service_producer *producer = s->service->producers.p[p];
            if (has_instance(s, i, producer) || !producer_matches(ds, producer) || !machine_matches(s, ds, producer))
                continue;
            for (size_t r = 0; r < producer->sources.n; r++)
                if (strcmp(producer->sources.p[r].name, ds->config->name) == 0)
                    setup_instance(s, i, producer, &producer->sources.p[r]);
        }
    }
}
