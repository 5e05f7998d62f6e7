/* Finds out which data sources of a session did not start, and tells consumers and the trace. */
#include "capture/service/problems.h"

#include "capture/service/producers.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"
#include "wire/fields.h"

#include <stdarg.h>
#include <stdio.h>

/* A report goes to the consumer in one reply of 128 KiB at most. */
enum { MAX_PROBLEMS = 256, MAX_REASON = 1000, MAX_STORED_BYTES = 64 << 10, MAX_REPORT_BYTES = 100 << 10 };

/* ---- collecting ---- */

static bool mark(struct session *s, unsigned source, uint8_t bits)
{
    struct session_problems *ps = &s->problems;
    while (ps->sources.n < s->config->n_data_sources)
        if (!vec_push(&ps->sources, 0))
            return false;
    if (source < ps->sources.n)
        ps->sources.p[source] |= bits;
    return true;
}

static bool has(const struct session *s, unsigned source, uint8_t bit)
{
    return source < s->problems.sources.n && s->problems.sources.p[source] & bit;
}

static struct slice cut(struct slice s)
{
    return slice_of(s.p, s.len < MAX_REASON ? s.len : MAX_REASON);
}

/* Keeps a problem, once; the oldest MAX_PROBLEMS that fit in MAX_STORED_BYTES. */
static void store(struct session *s, const struct recording_problem *p)
{
    struct session_problems *ps = &s->problems;
    struct stored_problem n = {.machine_id = p->machine_id};
    recording_problem_put(&n.message, RECORDING_REPORT_PROBLEM, p);
    size_t bytes = n.message.n;
    for (size_t i = 0; i < ps->list.n; i++)
        bytes += ps->list.p[i].message.n;
    bool keep = !n.message.failed && ps->list.n < MAX_PROBLEMS && bytes <= MAX_STORED_BYTES;
    for (size_t i = 0; keep && i < ps->list.n; i++)
        keep = ps->list.p[i].message.n != n.message.n || memcmp(ps->list.p[i].message.p, n.message.p, n.message.n) != 0;
    if (!keep || !vec_push(&ps->list, n)) {
        pb_writer_free(&n.message);
        return;
    }
    char text[1400];
    recording_problem_text(p, text, sizeof text);
    log_line("traced: session %llu: %s", (unsigned long long)s->id, text);
}

static struct recording_problem of_instance(uint32_t kind, const struct instance *in, struct slice reason)
{
    const struct ipc_identity *id = ipc_peer_identity(in->producer->peer);
    return (struct recording_problem){.kind = kind,
                                      .source_index = in->source,
                                      .source = slice_str(in->name),
                                      .producer = slice_str(in->producer->name),
                                      .machine_id = id->machine_id,
                                      .machine_name = id->machine_id ? slice_str(id->machine_name) : slice_of(NULL, 0),
                                      .reason = cut(reason)};
}

void problems_instance_made(struct session *s, const struct instance *in)
{
    mark(s, in->source, SOURCE_TRIED);
}

void problems_instance_started(struct session *s, const struct instance *in, struct slice report)
{
    struct pb_cursor c = pb_cursor(report);
    struct pb_field f;
    bool failed = false;
    size_t before = s->problems.list.n;
    while (pb_next(&c, &f)) {
        if (f.id != NOTIFY_STARTED_FAILURE && f.id != NOTIFY_STARTED_INCOMPLETE)
            continue;
        failed |= f.id == NOTIFY_STARTED_FAILURE;
        struct recording_problem p =
            of_instance(f.id == NOTIFY_STARTED_FAILURE ? RECORDING_FAILED : RECORDING_INCOMPLETE, in, pb_bytes(&f));
        store(s, &p);
    }
    if (!failed)
        mark(s, in->source, SOURCE_STARTED);
    if (s->did_all_started && (!failed || s->problems.list.n > before))
        problems_announce(s);
}

void problems_instance_ended(struct session *s, const struct instance *in, bool is_gone)
{
    if (in->state != INSTANCE_STARTING)
        return;
    struct recording_problem p =
        is_gone ? of_instance(RECORDING_FAILED, in, slice_str("its producer disconnected before it had started"))
                : of_instance(RECORDING_SLOW, in, slice_of(NULL, 0));
    store(s, &p);
}

/* ---- sources that nobody has ---- */

/* A list of words in a fixed buffer, which says when it does not hold them all. */
struct words {
    char text[700];
    size_t n;
};

static void add_word(struct words *w, const char *word)
{
    if (w->n + strlen(word) + 8 < sizeof w->text)
        w->n += (size_t)snprintf(w->text + w->n, sizeof w->text - w->n, "%s%s", w->n ? ", " : "", word);
    else if (w->n + 6 < sizeof w->text && (w->n < 3 || strcmp(w->text + w->n - 3, "...") != 0))
        w->n += (size_t)snprintf(w->text + w->n, sizeof w->text - w->n, ", ...");
}

/* Who offers a data source: "perfetto.traced_probes on guest, …". */
static void offered_by(const struct service *svc, const char *name, struct words *w)
{
    for (size_t i = 0; i < svc->producers.n; i++) {
        const struct service_producer *p = svc->producers.p[i];
        const struct ipc_identity *id = ipc_peer_identity(p->peer);
        char who[160];
        snprintf(who, sizeof who, "%.60s on %.80s", p->name,
                 !id->machine_id     ? "this machine"
                 : *id->machine_name ? id->machine_name
                                     : "a machine without a name");
        for (size_t k = 0; k < p->sources.n; k++) {
            if (strcmp(p->sources.p[k].name, name) != 0)
                continue;
            add_word(w, who);
            break;
        }
    }
}

static void add_words(struct words *w, char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add_word(w, words[i]);
}

/* A data source that no producer got: NOT_OFFERED or NOT_SELECTED. False: there is nothing to say. */
static bool describe_missing(const struct session *s, unsigned source, struct recording_problem *p, char *reason,
                             size_t size)
{
    const Mrd__TraceConfig__DataSource *ds = s->config->data_sources[source];
    struct words by = {0}, want = {0};
    if (!ds->config || !ds->config->name || has(s, source, SOURCE_TRIED))
        return false;
    offered_by(s->service, ds->config->name, &by);
    *p = (struct recording_problem){.kind = by.n ? RECORDING_NOT_SELECTED : RECORDING_NOT_OFFERED,
                                    .source_index = source,
                                    .source = slice_str(ds->config->name)};
    if (!by.n)
        return true;
    add_words(&want, ds->machine_name_filter, ds->n_machine_name_filter);
    add_words(&want, ds->producer_name_filter, ds->n_producer_name_filter);
    add_words(&want, ds->producer_name_regex_filter, ds->n_producer_name_regex_filter);
    if (want.n)
        snprintf(reason, size, "the config's filters (%s) select none of those that offer it (%s)", want.text, by.text);
    else
        snprintf(reason, size, "only other machines offer it (%s), and the config has no trace_all_machines: true",
                 by.text);
    p->reason = slice_str(reason);
    return true;
}

/* ---- the end ---- */

/* The machines that something of is in the buffers; false when memory is out. */
static bool machines_that_delivered(const struct session *s, struct u64map *ids)
{
    for (size_t i = 0; i < s->buffers.n; i++) {
        const struct trace_sequence_stats *q;
        for (struct session_ring_place at = {0}; (q = session_ring_next(s->buffers.p[i].buffer, &at));)
            if (!u64map_put(ids, q->who.machine_id, NULL))
                return false;
    }
    return true;
}

static void conclude_machines(struct session *s, const struct u64map *delivered)
{
    for (size_t i = 0; i < s->machines.n && i < s->service->machines.n; i++) {
        const struct service_machine *m = &s->service->machines.p[i];
        const struct session_machine *sm = &s->machines.p[i];
        bool asked = sm->losses.recorded || (sm->present && s->config->trace_all_machines);
        if (!asked || u64map_get(delivered, m->id))
            continue;
        struct recording_problem p = {
            .kind = RECORDING_SILENT, .machine_id = m->id, .machine_name = slice_str(m->name)};
        store(s, &p);
    }
}

void problems_conclude(struct session *s)
{
    struct recording_problem p;
    char reason[1600];
    bool started = false;
    if (s->problems.concluded || !s->started_realtime_ns)
        return;
    s->problems.concluded = true;
    for (unsigned i = 0; i < s->config->n_data_sources; i++) {
        started |= has(s, i, SOURCE_STARTED);
        if (describe_missing(s, i, &p, reason, sizeof reason))
            store(s, &p);
    }
    struct u64map delivered = {0};
    if (machines_that_delivered(s, &delivered)) {
        conclude_machines(s, &delivered);
        if (started && !delivered.n) {
            p = (struct recording_problem){.kind = RECORDING_EMPTY};
            store(s, &p);
        }
    }
    u64map_free(&delivered);
}

/* ---- telling ---- */

void problems_put_report(const struct session *s, struct pb_writer *w, uint32_t field)
{
    struct recording_problem p;
    char reason[1600];
    if (!s->started_realtime_ns)
        return;
    size_t m = pb_begin(w, field), asked = 0;
    for (size_t i = 0; i < s->problems.list.n; i++)
        pb_put_raw(w, s->problems.list.p[i].message.p, s->problems.list.p[i].message.n);
    for (unsigned i = 0; i < s->config->n_data_sources; i++) {
        const Mrd__TraceConfig__DataSource *ds = s->config->data_sources[i];
        asked += ds->config && ds->config->name;
        if (has(s, i, SOURCE_STARTED))
            pb_put_varint(w, RECORDING_REPORT_STARTED, i);
        if (!s->problems.concluded && w->n < MAX_REPORT_BYTES && describe_missing(s, i, &p, reason, sizeof reason))
            recording_problem_put(w, RECORDING_REPORT_PROBLEM, &p);
    }
    pb_put_varint(w, RECORDING_REPORT_ASKED, asked);
    pb_end(w, m);
}

void problems_announce(struct session *s)
{
    struct service_consumer *c = s->consumer;
    struct pb_writer w = {0};
    if (!c || !(c->observing & OBSERVE_RECORDING_REPORT))
        return;
    problems_put_report(s, &w, OBSERVE_EVENTS_RESPONSE_REPORT);
    if (w.n && !w.failed)
        ipc_reply(&c->observe_call, true, true, pb_written(&w), -1);
    pb_writer_free(&w);
}

void problems_emit(struct session *s, struct batch *b, struct pb_writer *w)
{
    for (size_t i = 0; i < s->problems.list.n; i++) {
        struct stored_problem *p = &s->problems.list.p[i];
        struct pb_field body;
        if (p->emitted || !pb_find(pb_written(&p->message), RECORDING_REPORT_PROBLEM, &body))
            continue;
        p->emitted = true;
        if (p->machine_id)
            pb_put_varint(w, TRACE_PACKET_MACHINE_ID, p->machine_id);
        pb_put_varint(w, TRACE_PACKET_TRUSTED_UID, s->service->uid);
        pb_put_bytes(w, TRACE_PACKET_RECORDING_PROBLEM, body.p, (size_t)body.u);
        relay_emit_packet(b, w);
    }
}

/* ---- life ---- */

void problems_copy(struct session *to, const struct session *from)
{
    for (size_t i = 0; i < from->problems.list.n; i++) {
        const struct stored_problem *p = &from->problems.list.p[i];
        struct stored_problem n = {.machine_id = p->machine_id};
        pb_put_raw(&n.message, p->message.p, p->message.n);
        if (n.message.failed || !vec_push(&to->problems.list, n))
            pb_writer_free(&n.message);
    }
    for (size_t i = 0; i < from->problems.sources.n; i++)
        if (!vec_push(&to->problems.sources, from->problems.sources.p[i]))
            return;
}

void problems_free(struct session *s)
{
    for (size_t i = 0; i < s->problems.list.n; i++)
        pb_writer_free(&s->problems.list.p[i].message);
    vec_free(&s->problems.list);
    vec_free(&s->problems.sources);
}
