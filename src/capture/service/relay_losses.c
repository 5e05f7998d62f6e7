/* What a session has lost because links to other machines broke, counted per machine, and which machines it left out.
 *
 * A producer whose connection ends while it records takes with it what was on the way: the message that was cut (seen
 * here), packets that began in a chunk and never ended (seen by the buffers), and bytes that the relay had taken from
 * it and could not hand over (told by the relay when it comes back; a relay that was killed tells nothing). How long
 * the machine was away says what it could not even send. The numbers go into the trace in a packet of our own, beside
 * TraceStats; Perfetto's readers skip it. */
#include "capture/service/service_internal.h"

/* TracePacket field of ours; Perfetto uses none above 900. */
enum { FIELD_MACHINE_LOSSES = 990 };

static struct machine_losses *losses_of(struct session *s, uint32_t machine_id)
{
    int64_t i = machine_id ? relay_machine_of(s->service, machine_id) : -1;
    struct session_machine *told = i < 0 ? NULL : relay_told_of(s, (size_t)i);
    return told ? &told->losses : NULL;
}

void relay_producer_joined(struct session *s, const struct service_producer *p)
{
    struct machine_losses *l = losses_of(s, ipc_peer_identity(p->peer)->machine_id);
    if (!l)
        return;
    int64_t machine = relay_machine_of(s->service, ipc_peer_identity(p->peer)->machine_id);
    relay_name_machine(&s->service->machines.p[machine], ipc_peer_identity(p->peer));
    l->recorded = true;
    if (!l->away)
        return;
    l->away--;
    l->producers_back++;
    if (!l->away)
        l->away_ns += clock_boot_ns() - l->away_since_ns;
}

void relay_producer_lost(struct session *s, const struct service_producer *p)
{
    struct machine_losses *l = losses_of(s, ipc_peer_identity(p->peer)->machine_id);
    if (!l || s->state != SESSION_STARTED)
        return;
    l->producers_lost++;
    l->unfinished_bytes += ipc_peer_unfinished(p->peer);
    if (!l->away++)
        l->away_since_ns = clock_boot_ns();
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
    for (size_t i = 0; i < from->machines.n; i++) {
        struct session_machine *told = relay_told_of(to, i);
        if (!told)
            continue;
        told->present = from->machines.p[i].present;
        told->losses = from->machines.p[i].losses;
    }
}

/* Sequences of the machine that ended with a packet begun and never finished. */
static uint64_t unfinished_packets(const struct session *s, uint32_t machine_id)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->buffers.n; i++)
        n += trace_buffer_unfinished(s->buffers.p[i].buffer, machine_id);
    return n;
}

void relay_emit_losses(struct session *s, struct batch *b, struct pb_writer *w)
{
    for (size_t i = 0; i < s->service->machines.n; i++) {
        const struct service_machine *m = &s->service->machines.p[i];
        struct session_machine *told = relay_told_of(s, i);
        if (!told || !(told->losses.recorded || (told->present && s->config->n_data_sources)))
            continue;
        const struct machine_losses *l = &told->losses;
        const struct {
            uint32_t field;
            uint64_t value;
        } rows[] = {
            {1, l->producers_lost},
            {2, l->producers_back},
            {3, l->away_ns + (l->away ? clock_boot_ns() - l->away_since_ns : 0)},
            {4, l->unfinished_bytes},
            {5, l->producers_lost ? unfinished_packets(s, m->id) : 0}, /* a recording may end in a packet, too */
            {6, l->relay_bytes},
            {7, l->relays_lost},
            {8, !l->recorded},
        };
        struct pb_writer body = {0};
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            if (rows[k].value)
                pb_put_varint(&body, rows[k].field, rows[k].value);
        if (body.n) {
            pb_put_varint(w, 98, m->id);
            pb_put_varint(w, 3, s->service->uid);
            pb_put_bytes(w, FIELD_MACHINE_LOSSES, body.p, body.n);
            relay_emit_packet(b, w);
        }
        pb_writer_free(&body);
    }
}
