/* What a session has lost because links to other machines broke, counted per machine, and which machines it left out.
 *
 * A producer whose connection ends while it records takes with it what was on the way: the message that was cut (seen
 * here), packets that began in a chunk and never ended (seen by the buffers), and bytes that the relay had taken from
 * it and could not hand over (told by the relay when it comes back; a relay that was killed tells nothing). From
 * when to when the machine was away says what it could not even send (absence.c). The numbers go into the trace in a
 * packet of our own, beside TraceStats; Perfetto's readers skip it. */
#include "capture/service/producers.h"
#include "capture/service/relay.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"
#include "wire/fields.h"

enum { LOCAL_NAMES_MAX = 32, LOCAL_NAME_BYTES = 256 };

static struct machine_losses *losses_of(struct session *s, uint32_t machine_id)
{
    int64_t i = machine_id ? relay_machine_of(s->service, machine_id) : -1;
    struct session_machine *sm = i < 0 ? NULL : relay_session_machine(s, (size_t)i);
    return sm ? &sm->losses : NULL;
}

/* The machine's entry, after losses_of() has found the losses. */
static struct service_machine *machine_of(struct session *s, const struct service_producer *p)
{
    return &s->service->machines.p[relay_machine_of(s->service, ipc_peer_identity(p->peer)->machine_id)];
}

void relay_producer_joined(struct session *s, struct service_producer *p)
{
    struct machine_losses *l = losses_of(s, ipc_peer_identity(p->peer)->machine_id);
    if (!l)
        return;
    relay_name_machine(machine_of(s, p), ipc_peer_identity(p->peer));
    l->recorded = true;
    if (!absence_returns(l, p))
        return;
    l->producers_back++;
    p->returns = true;
}

void relay_producer_heard(struct service_producer *p)
{
    struct service *svc = p->service;
    uint32_t machine_id = ipc_peer_identity(p->peer)->machine_id;
    if (!machine_id)
        return;
    p->commit_ns = clock_boot_ns();
    for (size_t i = 0; p->returns && i < svc->sessions.n; i++) {
        struct machine_losses *l = losses_of(svc->sessions.p[i], machine_id);
        if (l && l->absences.n)
            absence_end(l, p);
    }
    p->returns = false;
}

/* Its words have an end here. Of producers that do not say when they have handed over everything we know it when they
 * have no writers any more. */
static void begin_absence(struct session *s, struct machine_losses *l, const struct service_producer *p)
{
    bool complete = p->tells_end ? p->finished : !p->writers.n;
    if (absence_begin(s, l, machine_of(s, p), p) && !complete)
        l->producers_cut++;
}

void relay_producer_lost(struct session *s, const struct service_producer *p)
{
    struct machine_losses *l = losses_of(s, ipc_peer_identity(p->peer)->machine_id);
    if (!l || (s->state != SESSION_STARTED && s->state != SESSION_STOPPING))
        return;
    l->producers_lost++;
    l->unfinished_bytes += ipc_peer_unfinished(p->peer);
    begin_absence(s, l, p);
}

void relay_producer_silent(struct session *s, const struct service_producer *p)
{
    struct machine_losses *l = losses_of(s, ipc_peer_identity(p->peer)->machine_id);
    if (l)
        begin_absence(s, l, p);
}

/* Sequences that ended with a packet begun and never finished, by machine: one walk over all of them, however many
 * machines there are. Out of memory: as many as there was room for. */
static struct u64map unfinished_packets(const struct session *s)
{
    struct u64map by_machine = {0};
    for (size_t i = 0; i < s->buffers.n; i++)
        if (!session_ring_unfinished(s->buffers.p[i].buffer, &by_machine))
            break;
    return by_machine;
}

static uint64_t unfinished_of(const struct u64map *by_machine, uint32_t machine_id)
{
    const uint64_t *n = u64map_get(by_machine, machine_id);
    return n ? *n : 0;
}

void relay_name_lost(struct session *s, const struct service_producer *p)
{
    char *name =
        s->local_lost.names.n < LOCAL_NAMES_MAX ? mem_strndup(p->name, strnlen(p->name, LOCAL_NAME_BYTES)) : NULL;
    if (name && !vec_push(&s->local_lost.names, name))
        mem_free(name);
}

/* Of this machine: who ended, and what nobody knows of. */
static void emit_local(struct session *s, const struct u64map *unfinished_by_machine, struct batch *b,
                       struct pb_writer *w)
{
    const struct local_losses *l = &s->local_lost;
    if (!l->producers)
        return;
    uint64_t unfinished = unfinished_of(unfinished_by_machine, 0);
    size_t m = pb_begin(w, TRACE_PACKET_MACHINE_LOSSES);
    pb_put_varint(w, MACHINE_LOSSES_PRODUCERS_LOST, l->producers);
    if (l->producers_cut)
        pb_put_varint(w, MACHINE_LOSSES_PRODUCERS_CUT, l->producers_cut);
    if (unfinished)
        pb_put_varint(w, MACHINE_LOSSES_PACKETS_UNFINISHED, unfinished);
    if (l->packets_unknown)
        pb_put_varint(w, MACHINE_LOSSES_PACKETS_UNKNOWN, l->packets_unknown);
    for (size_t i = 0; i < l->names.n; i++)
        pb_put_text(w, MACHINE_LOSSES_LOST_PRODUCER, slice_str(l->names.p[i]));
    pb_end(w, m);
    session_put_trusted(s, w, false);
    relay_emit_packet(b, w);
}

void relay_free_losses(struct session *s)
{
    for (size_t i = 0; i < s->local_lost.names.n; i++)
        mem_free(s->local_lost.names.p[i]);
    vec_free(&s->local_lost.names);
    for (size_t i = 0; i < s->machines.n; i++)
        vec_free(&s->machines.p[i].losses.absences);
    vec_free(&s->machines);
}

void relay_lost(struct service *svc, uint32_t machine_id)
{
    for (size_t i = 0; i < svc->sessions.n; i++) {
        struct session *s = svc->sessions.p[i];
        struct machine_losses *l = losses_of(s, machine_id);
        if (l && l->recorded && s->state == SESSION_STARTED)
            l->relays_lost++;
    }
}

void relay_report_lost(struct service *svc, uint32_t machine_id, struct slice args)
{
    struct pb_field bytes;
    if (!pb_find(args, RELAY_FIELD_LOST_BYTES, &bytes))
        return;
    for (size_t i = 0; i < svc->sessions.n; i++) {
        struct machine_losses *l = losses_of(svc->sessions.p[i], machine_id);
        if (l && l->producers_lost)
            l->relay_bytes += pb_u64(&bytes);
    }
}

void relay_copy_losses(struct session *to, const struct session *from)
{
    to->local_lost.producers = from->local_lost.producers;
    to->local_lost.producers_cut = from->local_lost.producers_cut;
    to->local_lost.packets_unknown = from->local_lost.packets_unknown;
    for (size_t i = 0; i < from->local_lost.names.n; i++) {
        char *name = mem_strdup(from->local_lost.names.p[i]);
        if (name && !vec_push(&to->local_lost.names, name))
            mem_free(name);
    }
    for (size_t i = 0; i < from->machines.n; i++) {
        struct session_machine *sm = relay_session_machine(to, i);
        if (!sm)
            continue;
        sm->present = from->machines.p[i].present;
        const struct machine_losses *l = &from->machines.p[i].losses;
        sm->losses = *l;
        memset(&sm->losses.absences, 0, sizeof sm->losses.absences);
        for (size_t k = 0; k < l->absences.n; k++)
            vec_push(&sm->losses.absences, l->absences.p[k]); /* out of memory: one less */
    }
}

static bool any_absence(const struct session *s)
{
    for (size_t i = 0; i < s->machines.n; i++)
        if (s->machines.p[i].losses.absences.n)
            return true;
    return false;
}

void relay_emit_losses(struct session *s, struct batch *b, struct pb_writer *w)
{
    struct sequences_of_producers all = {0};
    struct u64map unfinished = unfinished_packets(s);
    emit_local(s, &unfinished, b, w);
    if (any_absence(s) && !absence_list_sequences(s, &all))
        vec_clear(&all.list); /* out of memory: the absences alone are told */
    for (size_t i = 0; i < s->service->machines.n; i++) {
        const struct service_machine *m = &s->service->machines.p[i];
        struct session_machine *sm = relay_session_machine(s, i);
        if (!sm || !(sm->losses.recorded || (sm->present && s->config->n_data_sources)))
            continue;
        struct machine_losses *l = &sm->losses;
        const struct {
            uint32_t field;
            uint64_t value;
        } rows[] = {
            {MACHINE_LOSSES_PRODUCERS_LOST, l->producers_lost},
            {MACHINE_LOSSES_PRODUCERS_BACK, l->producers_back},
            {MACHINE_LOSSES_PRODUCERS_CUT, l->producers_cut},
            {MACHINE_LOSSES_AWAY_NS, absence_total_ns(l, s->stopped_boot_ns ? s->stopped_boot_ns : clock_boot_ns())},
            {MACHINE_LOSSES_BYTES_CUT, l->unfinished_bytes},
            {MACHINE_LOSSES_PACKETS_UNFINISHED,
             l->producers_lost ? unfinished_of(&unfinished, m->id) : 0}, /* a recording may end in a packet, too */
            {MACHINE_LOSSES_RELAY_BYTES_LOST, l->relay_bytes},
            {MACHINE_LOSSES_RELAYS_LOST, l->relays_lost},
            {MACHINE_LOSSES_NOT_RECORDED, !l->recorded},
        };
        struct pb_writer body = {0};
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            if (rows[k].value)
                pb_put_varint(&body, rows[k].field, rows[k].value);
        absence_put(s, l, &all, &body, MACHINE_LOSSES_ABSENCES);
        if (body.n) {
            pb_put_varint(w, TRACE_PACKET_MACHINE_ID, m->id);
            pb_put_varint(w, TRACE_PACKET_TRUSTED_UID, s->service->uid);
            pb_put_bytes(w, TRACE_PACKET_MACHINE_LOSSES, body.p, body.n);
            relay_emit_packet(b, w);
        }
        pb_writer_free(&body);
    }
    vec_free(&all.list);
    u64map_free(&unfinished);
}
