/* Machines that relay their producers to us: who they are and what their clocks say (spec ipc 8). */
#include "capture/service/service_internal.h"

enum { PHASE_PING = 1, PHASE_UPDATE = 2, CLOCK_BOOTTIME_ID = 6, MACHINES_MAX = 4096 };

/* Rounds closer together than this are one burst, of which the quickest is kept. */
#define BURST_NS 200000000u

/* So many comparisons from before its start belong to a session, too. */
enum { ROUNDS_BEFORE_START = 3 };

static struct slice copy_of(struct slice s)
{
    uint8_t *p = mem_alloc(s.len + 1);
    if (p && s.len)
        memcpy(p, s.p, s.len);
    return slice_of(p, p ? s.len : 0);
}

static void free_slice(struct slice *s)
{
    mem_free((void *)(uintptr_t)s->p);
    *s = slice_of(NULL, 0);
}

static void free_round(struct clock_round *r)
{
    free_slice(&r->client[0]);
    free_slice(&r->client[1]);
    *r = (struct clock_round){0};
}

void relay_free_machines(struct service *svc)
{
    for (size_t i = 0; i < svc->machines.n; i++) {
        struct service_machine *m = &svc->machines.p[i];
        for (size_t k = 0; k < m->rounds.n; k++)
            free_round(&m->rounds.p[k]);
        vec_free(&m->rounds);
        free_round(&m->burst);
        free_slice(&m->system_info);
    }
    vec_free(&svc->machines);
}

int64_t relay_machine_of(struct service *svc, uint32_t id)
{
    for (size_t i = 0; i < svc->machines.n; i++)
        if (svc->machines.p[i].id == id)
            return (int64_t)i;
    struct service_machine *m = svc->machines.n < MACHINES_MAX ? vec_add(&svc->machines) : NULL;
    if (!m)
        return -1;
    m->id = id;
    return (int64_t)svc->machines.n - 1;
}

static struct service_relay *relay_of(struct service *svc, struct ipc_peer *peer)
{
    struct service_relay *r = ipc_peer_data(peer, &ipc_relay_port);
    const struct ipc_identity *id = ipc_peer_identity(peer);
    if (r)
        return r;
    int64_t machine = id->machine_id ? relay_machine_of(svc, id->machine_id) : -1;
    r = machine < 0 ? NULL : mem_zalloc(sizeof *r);
    if (!r)
        return NULL;
    r->service = svc;
    r->peer = peer;
    r->machine = (uint32_t)machine;
    svc->machines.p[machine].relays++;
    ipc_peer_set_data(peer, &ipc_relay_port, r);
    log_line("traced: relay of machine %u \"%s\" connected: %s", id->machine_id, id->machine_name, ipc_peer_name(peer));
    return r;
}

static void init_relay(struct service_machine *m, struct slice args)
{
    struct pb_field f;
    if (!pb_find(args, 1, &f) || f.wire != PB_BYTES)
        return;
    free_slice(&m->system_info);
    m->system_info = copy_of(pb_bytes(&f));
}

/* The clocks of a SyncClockRequest as ClockSnapshot.clocks; its phase and the client's BOOTTIME. */
static struct slice client_clocks(struct slice args, uint64_t *phase, uint64_t *boot_ns)
{
    struct pb_writer w = {0};
    struct pb_cursor c = pb_cursor(args);
    struct pb_field f, g;
    *phase = *boot_ns = 0;
    while (pb_next(&c, &f)) {
        uint64_t id = 0, ts = 0;
        if (f.id == 1)
            *phase = pb_u64(&f);
        if (f.id != 2 || f.wire != PB_BYTES)
            continue;
        for (struct pb_cursor m = pb_sub(&f); pb_next(&m, &g);) {
            if (g.id == 1)
                id = pb_u64(&g);
            else if (g.id == 2)
                ts = pb_u64(&g);
        }
        if (id == CLOCK_BOOTTIME_ID)
            *boot_ns = ts;
        size_t mark = pb_begin(&w, 1);
        pb_put_varint(&w, 1, id);
        pb_put_varint(&w, 2, ts);
        pb_end(&w, mark);
    }
    struct slice out = w.failed || c.bad ? slice_of(NULL, 0) : copy_of(pb_written(&w));
    pb_writer_free(&w);
    return out;
}

/* Half of the rounds go, every second one, so that a long life keeps the whole of its drift. */
static void thin_out(struct service_machine *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->rounds.n; i++) {
        if (i % 2)
            free_round(&m->rounds.p[i]);
        else
            m->rounds.p[kept++] = m->rounds.p[i];
    }
    m->first_round += m->rounds.n - kept; /* sessions that are behind lose some; none is told twice */
    m->rounds.n = kept;
}

/* The burst is over: its best round is kept. */
static void end_burst(struct service_machine *m)
{
    if (!m->burst.at_ns)
        return;
    if (m->rounds.n >= CLOCK_ROUNDS_KEPT)
        thin_out(m);
    if (!vec_push(&m->rounds, m->burst))
        free_round(&m->burst);
    m->burst = (struct clock_round){0};
}

static void add_round(struct service_machine *m, struct clock_round round)
{
    if (m->burst.at_ns && round.at_ns - m->burst.at_ns > BURST_NS)
        end_burst(m);
    if (m->burst.at_ns && m->burst.rtt_ns <= round.rtt_ns) {
        free_round(&round);
        return;
    }
    uint64_t began = m->burst.at_ns;
    free_round(&m->burst);
    m->burst = round;
    if (began)
        m->burst.at_ns = began; /* a burst is measured from its first round */
}

static void sync_clock(struct service_relay *r, struct slice args, const struct clock_readings *host)
{
    uint64_t phase, boot_ns;
    struct slice client = client_clocks(args, &phase, &boot_ns);
    if (!client.p)
        return;
    if (phase == PHASE_UPDATE && r->ping.p) {
        struct clock_round round = {.client = {r->ping, client},
                                    .host = {r->ping_at, *host},
                                    .rtt_ns = boot_ns > r->ping_ns ? boot_ns - r->ping_ns : 0,
                                    .at_ns = clock_readings_get(host, CLOCK_BOOTTIME_ID)};
        r->ping = slice_of(NULL, 0);
        add_round(&r->service->machines.p[r->machine], round);
        return;
    }
    free_slice(&r->ping);
    if (phase == PHASE_PING) {
        r->ping = client;
        r->ping_ns = boot_ns;
        r->ping_at = *host;
    } else {
        free_slice(&client);
    }
}

void relay_port_invoke(void *ctx, unsigned method, struct ipc_call call, struct slice args)
{
    struct clock_readings host;
    clock_readings_take(&host); /* first of all: what comes after would count as network delay */
    struct service_relay *r = relay_of(ctx, call.peer);
    ipc_reply(&call, r != NULL, false, slice_of(NULL, 0), -1); /* at once: the client measures the round trip */
    if (!r)
        return;
    if (method == RELAY_INIT_RELAY)
        init_relay(&r->service->machines.p[r->machine], args);
    else if (method == RELAY_SYNC_CLOCK)
        sync_clock(r, args, &host);
    relay_report_lost(r->service, ipc_peer_identity(call.peer)->machine_id, args);
}

void relay_port_disconnected(void *ctx, struct ipc_peer *peer)
{
    struct service_relay *r = ipc_peer_data(peer, &ipc_relay_port);
    (void)ctx;
    if (!r)
        return;
    ipc_peer_set_data(peer, &ipc_relay_port, NULL);
    log_line("traced: relay of machine %u \"%s\" disconnected", ipc_peer_identity(peer)->machine_id,
             ipc_peer_identity(peer)->machine_name);
    free_slice(&r->ping);
    r->service->machines.p[r->machine].relays--;
    relay_lost(r->service, r->service->machines.p[r->machine].id);
    mem_free(r);
}

void relay_emit_packet(struct batch *b, struct pb_writer *w)
{
    struct slice piece = pb_written(w);
    if (!w->failed)
        batch_add(b, &piece, 1, slice_of(NULL, 0));
    w->failed = false;
    pb_writer_clear(w);
}

struct session_machine *relay_told_of(struct session *s, size_t machine)
{
    while (s->machines.n <= machine)
        if (!vec_add(&s->machines))
            return NULL;
    return &s->machines.p[machine];
}

void relay_emit_system_info(struct session *s, struct batch *b, struct pb_writer *w)
{
    const Mrd__TraceConfig__BuiltinDataSource *c = s->config->builtin_data_sources;
    for (size_t i = 0; i < s->service->machines.n && !(c && c->disable_system_info); i++) {
        const struct service_machine *m = &s->service->machines.p[i];
        struct session_machine *told = relay_told_of(s, i);
        if (!told || told->told || !m->system_info.len || !(m->relays || told->losses.recorded))
            continue;
        told->told = true;
        pb_put_bytes(w, 45, m->system_info.p, m->system_info.len);
        pb_put_varint(w, 98, m->id);
        pb_put_varint(w, 3, s->service->uid);
        pb_put_varint(w, 10, 1);
        relay_emit_packet(b, w);
    }
}

static void put_round(const struct clock_round *r, struct pb_writer *w)
{
    size_t sync = pb_begin(w, 107);
    for (int k = 0; k < 2; k++) {
        size_t one = pb_begin(w, 1);
        pb_put_bytes(w, 2, r->client[k].p, r->client[k].len);
        size_t host = pb_begin(w, 3);
        clock_readings_put(&r->host[k], w, 1);
        pb_end(w, host);
        pb_end(w, one);
    }
    pb_end(w, sync);
}

/* One packet a round: readers average over neighbouring exchanges of one packet, and only a PING and its UPDATE are a
 * round trip. */
void relay_emit_clocks(struct session *s, struct batch *b, struct pb_writer *w)
{
    const Mrd__TraceConfig__BuiltinDataSource *c = s->config->builtin_data_sources;
    for (size_t i = 0; i < s->service->machines.n && !(c && c->disable_clock_snapshotting); i++) {
        struct service_machine *m = &s->service->machines.p[i];
        struct session_machine *told = relay_told_of(s, i);
        if (!told)
            return;
        end_burst(m);
        uint64_t end = m->first_round + m->rounds.n;
        if (!told->synced) {
            uint64_t start_ns = clock_readings_get(&s->initial_snapshot, CLOCK_BOOTTIME_ID);
            uint64_t first = end;
            while (first > m->first_round && m->rounds.p[first - 1 - m->first_round].at_ns >= start_ns)
                first--;
            for (int back = 0; back < ROUNDS_BEFORE_START && first > m->first_round; back++)
                first--;
            told->next_round = first;
        }
        if (told->next_round < m->first_round)
            told->next_round = m->first_round;
        for (; told->next_round < end; told->next_round++) {
            told->synced = true;
            pb_put_varint(w, 98, m->id);
            pb_put_varint(w, 3, s->service->uid);
            put_round(&m->rounds.p[told->next_round - m->first_round], w);
            relay_emit_packet(b, w);
        }
    }
}
