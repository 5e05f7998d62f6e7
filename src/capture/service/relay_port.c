/* Machines that relay their producers to us: who they are and what their clocks say. */
#include "capture/service/producers.h"
#include "capture/service/relay.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"
#include "wire/fields.h"

enum { PHASE_PING = 1, PHASE_UPDATE = 2, MACHINES_MAX = 4096 };
enum { SYSTEM_INFO_MAX = 16384 }; /* of honest machines it has some hundred bytes */

/* Rounds closer together than this are one burst, of which the best are kept. */
#define BURST_NS 80000000u
enum { BURST_MAX = 64 };

/* So many comparisons from before its start belong to a session, too. */
enum { ROUNDS_BEFORE_START = 96 };

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

/* Does a session need it? What has only looked in, without recording, may be forgotten when room is short. */
static bool in_a_session(const struct service *svc, size_t machine, bool room_is_short)
{
    for (size_t i = 0; i < svc->sessions.n; i++) {
        const struct session *s = svc->sessions.p[i];
        const struct session_machine *entry = machine < s->machines.n ? &s->machines.p[machine] : NULL;
        if (entry && (entry->losses.recorded || (entry->present && !room_is_short)))
            return true;
    }
    return false;
}

static void forget(struct service_machine *m)
{
    vec_free(&m->rounds);
    vec_free(&m->burst);
    free_slice(&m->system_info);
}

void relay_free_machines(struct service *svc)
{
    for (size_t i = 0; i < svc->machines.n; i++)
        forget(&svc->machines.p[i]);
    vec_free(&svc->machines);
}

void relay_forget_idle(struct service *svc)
{
    for (size_t i = 0; i < svc->machines.n; i++) {
        struct service_machine *m = &svc->machines.p[i];
        if ((m->system_info.len || m->rounds.n || m->burst.n) && !m->relays && !in_a_session(svc, i, false))
            forget(m);
    }
}

/* The machines that producers are connected from: looked through once, as there may be thousands of both. */
static bool machines_of_producers(const struct service *svc, struct u64map *ids)
{
    for (size_t i = 0; i < svc->producers.n; i++)
        if (!u64map_put(ids, ipc_peer_identity(svc->producers.p[i]->peer)->machine_id, NULL))
            return false;
    return true;
}

static struct service_machine *find_place(struct service *svc, const struct u64map *with_producers)
{
    for (size_t i = 0; i < svc->machines.n; i++) {
        struct service_machine *m = &svc->machines.p[i];
        if (m->relays || u64map_get(with_producers, m->id) || in_a_session(svc, i, true))
            continue;
        forget(m);
        memset(m, 0, sizeof *m);
        for (size_t k = 0; k < svc->sessions.n; k++)
            if (i < svc->sessions.p[k]->machines.n) {
                vec_free(&svc->sessions.p[k]->machines.p[i].losses.absences);
                memset(&svc->sessions.p[k]->machines.p[i], 0, sizeof *svc->sessions.p[k]->machines.p);
            }
        return m;
    }
    return NULL;
}

/* Ids can be made up without end: the place of a machine that is gone goes to the next one. */
static struct service_machine *take_place(struct service *svc)
{
    struct u64map with_producers = {0};
    struct service_machine *m = machines_of_producers(svc, &with_producers) ? find_place(svc, &with_producers) : NULL;
    u64map_free(&with_producers);
    return m;
}

int64_t relay_machine_of(struct service *svc, uint32_t id)
{
    for (size_t i = 0; i < svc->machines.n; i++)
        if (svc->machines.p[i].id == id)
            return (int64_t)i;
    struct service_machine *m = svc->machines.n < MACHINES_MAX ? vec_add(&svc->machines) : take_place(svc);
    if (!m)
        return -1;
    m->id = id;
    return m - svc->machines.p;
}

void relay_name_machine(struct service_machine *m, const struct ipc_identity *id)
{
    if (*id->machine_name)
        snprintf(m->name, sizeof m->name, "%s", id->machine_name);
}

static void join_session(struct session *s, size_t machine)
{
    struct session_machine *sm = relay_session_machine(s, machine);
    if (sm)
        sm->present = true;
}

void relay_session_started(struct session *s)
{
    for (size_t i = 0; i < s->service->machines.n; i++)
        if (s->service->machines.p[i].relays)
            join_session(s, i);
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
    relay_name_machine(&svc->machines.p[machine], id);
    for (size_t i = 0; i < svc->sessions.n; i++)
        if (svc->sessions.p[i]->state == SESSION_STARTED)
            join_session(svc->sessions.p[i], (size_t)machine);
    clock_readings_take(&r->first_at);
    ipc_peer_time_receipts(peer);
    ipc_peer_set_data(peer, &ipc_relay_port, r);
    relay_watch_begin(r);
    log_line("traced: relay of machine %u \"%s\" connected: %s", id->machine_id, id->machine_name, ipc_peer_name(peer));
    return r;
}

static void init_relay(struct service_machine *m, struct slice args)
{
    struct pb_field f;
    if (!pb_find(args, INIT_RELAY_REQUEST_SYSTEM_INFO, &f) || f.wire != PB_BYTES)
        return;
    if (pb_bytes(&f).len > SYSTEM_INFO_MAX) {
        log_line("traced: machine %u \"%s\": its SystemInfo of %zu bytes is too large and left out", m->id, m->name,
                 pb_bytes(&f).len);
        return;
    }
    free_slice(&m->system_info);
    m->system_info = copy_of(pb_bytes(&f));
}

struct sync_request {
    uint64_t phase;
    struct clock_readings clocks;
    uint64_t ping_late_ns;              /* the PING left so much later than its clocks say; ours, see relay/control.c */
    char source[CLOCK_SOURCE_NAME_MAX]; /* ours, too */
};

static bool parse_sync(struct slice args, struct sync_request *q)
{
    struct pb_cursor c = pb_cursor(args);
    struct pb_field f, g;
    *q = (struct sync_request){0};
    while (pb_next(&c, &f)) {
        if (f.id == SYNC_CLOCK_REQUEST_PHASE)
            q->phase = pb_u64(&f);
        if (f.id == RELAY_FIELD_PING_LATE)
            q->ping_late_ns = pb_u64(&f);
        if (f.id == RELAY_FIELD_CLOCK_SOURCE && f.wire == PB_BYTES)
            snprintf(q->source, sizeof q->source, "%.*s", (int)pb_bytes(&f).len, (const char *)pb_bytes(&f).p);
        if (f.id != SYNC_CLOCK_REQUEST_CLOCKS || f.wire != PB_BYTES || q->clocks.n == CLOCK_READINGS_MAX)
            continue;
        uint32_t k = q->clocks.n++;
        for (struct pb_cursor m = pb_sub(&f); pb_next(&m, &g);) {
            if (g.id == SYNC_CLOCK_REQUEST_CLOCK_CLOCK_ID)
                q->clocks.clock[k].id = pb_u32(&g);
            else if (g.id == SYNC_CLOCK_REQUEST_CLOCK_TIMESTAMP)
                q->clocks.clock[k].value = pb_u64(&g);
        }
    }
    return !c.bad;
}

/* Half of the rounds go, every second one, so that a long life keeps the whole of its drift. */
static void thin_out(struct service_machine *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->rounds.n; i += 2)
        m->rounds.p[kept++] = m->rounds.p[i];
    m->first_round += m->rounds.n - kept; /* sessions that are behind lose some; none is told twice */
    m->rounds.n = kept;
}

/* A leg of a round: how long a message took, and the unknown offset of the clocks, which is the same for all rounds of
 * a burst. */
static int64_t leg_ns(const struct clock_round *r, unsigned leg)
{
    uint64_t sent = clock_readings_get(&r->client[0], CLOCK_BOOTTIME_ID);
    uint64_t heard = clock_readings_get(&r->host[0], CLOCK_BOOTTIME_ID);
    uint64_t back = clock_readings_get(&r->client[1], CLOCK_BOOTTIME_ID);
    uint64_t end = clock_readings_get(&r->host[1], CLOCK_BOOTTIME_ID);
    const uint64_t legs[] = {heard - sent, back - heard, end - back, back - sent};
    return (int64_t)legs[leg];
}
enum { ROUND_LEGS = 4 };

/* The burst is over. A leg bounds the offset on one side, and the quickest one bounds it best: the rounds that have the
 * quickest of each are kept. */
static void end_burst(struct service_machine *m)
{
    bool keep[BURST_MAX] = {0};
    for (unsigned leg = 0; leg < ROUND_LEGS && m->burst.n; leg++) {
        size_t best = 0;
        for (size_t i = 1; i < m->burst.n; i++)
            if (leg_ns(&m->burst.p[i], leg) < leg_ns(&m->burst.p[best], leg))
                best = i;
        keep[best] = true;
    }
    for (size_t i = 0; i < m->burst.n; i++) {
        if (keep[i] && m->rounds.n >= CLOCK_ROUNDS_KEPT)
            thin_out(m);
        if (keep[i])
            vec_push(&m->rounds, m->burst.p[i]); /* out of memory: one comparison less */
    }
    vec_clear(&m->burst);
}

static void add_round(struct service_machine *m, struct clock_round round)
{
    if (m->burst.n && (round.at_ns - m->burst.p[0].at_ns > BURST_NS || m->burst.n == BURST_MAX))
        end_burst(m);
    vec_push(&m->burst, round);
}

/* A kernel's clock source changed between the comparison before and this one: between two bursts, since rounds in which
 * it changes are not taken. */
static uint32_t source_period(struct service_machine *m, const char *remote, const char *host)
{
    if (!*remote || !*host)
        return 0;
    if (strcmp(m->source[0], remote) != 0 || strcmp(m->source[1], host) != 0) {
        snprintf(m->source[0], sizeof m->source[0], "%s", remote);
        snprintf(m->source[1], sizeof m->source[1], "%s", host);
        m->source_period++;
    }
    return m->source_period;
}

/* The clocks of a whole round come from one source on each side: it was read before the first of them and behind the
 * last. */
static bool sources_stayed(const struct service_relay *r, const char *remote, const char *host)
{
    return strcmp(r->ping_source[0], remote) == 0 && strcmp(r->ping_source[1], host) == 0;
}

static void sync_clock(struct service_relay *r, struct slice args, const struct clock_readings *host)
{
    struct sync_request q;
    if (!parse_sync(args, &q))
        return;
    struct service_machine *m = &r->service->machines.p[r->machine];
    struct clock_source *own = &r->service->clock_source;
    if (q.phase == PHASE_UPDATE)
        clock_source_read(own);
    if (q.phase == PHASE_UPDATE && r->ping.n && sources_stayed(r, q.source, own->name)) {
        struct clock_round round = {.client = {r->ping, q.clocks},
                                    .host = {r->ping_at, *host},
                                    .at_ns = clock_readings_get(host, CLOCK_BOOTTIME_ID),
                                    .source_period = source_period(m, q.source, own->name)};
        clock_readings_forward_date(&round.client[0], q.ping_late_ns, &round.client[1]);
        for (int k = 0; k < 2; k++) {
            clock_readings_drop_coarse(&round.client[k]);
            clock_readings_drop_coarse(&round.host[k]);
        }
        add_round(m, round);
    }
    r->ping.n = 0;
    if (q.phase == PHASE_PING) {
        r->ping = q.clocks;
        r->ping_at = *host;
        memcpy(r->ping_source[0], q.source, sizeof q.source);
        memcpy(r->ping_source[1], own->name, sizeof own->name);
    }
}

void relay_port_invoke(void *ctx, unsigned method, struct ipc_call call, struct slice args)
{
    struct clock_readings host;
    uint64_t age_ns = ipc_peer_receipt_age_ns(call.peer);
    clock_readings_take(&host); /* first of all: what comes after would count as network delay */
    struct service_relay *r = relay_of(ctx, call.peer);
    ipc_reply(&call, r != NULL, false, slice_of(NULL, 0), -1); /* at once: the client measures the round trip */
    if (!r)
        return;
    uint64_t reply_ns = clock_boot_ns() - clock_readings_get(&host, CLOCK_BOOTTIME_ID);
    if (method == RELAY_INIT_RELAY) {
        init_relay(&r->service->machines.p[r->machine], args);
    } else if (method == RELAY_SYNC_CLOCK) {
        /* One time stands for the receipt and for the reply. In the middle between the two it favours neither way, and
         * what the ways have in common drops out of the estimate. */
        if (age_ns > reply_ns)
            clock_readings_back_date(&host, (age_ns - reply_ns) / 2, &r->first_at);
        sync_clock(r, args, &host);
    }
    relay_watch_heard(r, args);
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
    r->service->machines.p[r->machine].relays--;
    relay_lost(r->service, r->service->machines.p[r->machine].id);
    relay_forget_idle(r->service);
    relay_watch_end(r);
}

void relay_emit_packet(struct batch *b, struct pb_writer *w)
{
    struct slice piece = pb_written(w);
    if (!w->failed)
        batch_add(b, &piece, 1, slice_of(NULL, 0));
    w->failed = false;
    pb_writer_clear(w);
}

struct session_machine *relay_session_machine(struct session *s, size_t machine)
{
    while (s->machines.n <= machine)
        if (!vec_add(&s->machines))
            return NULL;
    return &s->machines.p[machine];
}

/* Only machines that were connected while the session ran are in it. */
static struct session_machine *machine_in_session(struct session *s, size_t i)
{
    struct session_machine *sm = relay_session_machine(s, i);
    return sm && (sm->present || sm->losses.recorded) ? sm : NULL;
}

/* The name for readers. One that is no more than the kernel's ("Linux": nobody gave another) yields to the host's name,
 * which our relays put into the SystemInfo. A name that was given stands, whatever the SystemInfo says. */
static struct slice name_of(const struct service_machine *m)
{
    struct pb_field utsname, sysname, host;
    struct slice name = slice_of((const uint8_t *)m->name, strlen(m->name));
    if (!pb_find(m->system_info, SYSTEM_INFO_MACHINE_NAME, &host) || host.wire != PB_BYTES)
        return name;
    bool is_default =
        !name.len || (pb_find(m->system_info, SYSTEM_INFO_UTSNAME, &utsname) &&
                      pb_find(pb_bytes(&utsname), UTSNAME_SYSNAME, &sysname) && slice_eq(pb_bytes(&sysname), name));
    return is_default ? pb_bytes(&host) : name;
}

void relay_emit_system_info(struct session *s, struct batch *b, struct pb_writer *w)
{
    const Mrd__TraceConfig__BuiltinDataSource *c = s->config->builtin_data_sources;
    for (size_t i = 0; i < s->service->machines.n && !(c && c->disable_system_info); i++) {
        const struct service_machine *m = &s->service->machines.p[i];
        struct session_machine *sm = machine_in_session(s, i);
        struct slice name = name_of(m);
        bool name_only = !m->system_info.len; /* no relay of it has introduced itself: producers came straight */
        if (!sm || sm->described || (name_only && (sm->named || m->relays || !name.len)))
            continue;
        sm->described = !name_only;
        sm->named = true;
        size_t mark = pb_begin(w, TRACE_PACKET_SYSTEM_INFO);
        pb_put_raw(w, m->system_info.p, m->system_info.len);
        if (name.len)
            pb_put_bytes(w, SYSTEM_INFO_MACHINE_NAME, name.p, name.len);
        pb_end(w, mark);
        pb_put_varint(w, TRACE_PACKET_MACHINE_ID, m->id);
        pb_put_varint(w, TRACE_PACKET_TRUSTED_UID, s->service->uid);
        pb_put_varint(w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, 1);
        relay_emit_packet(b, w);
    }
}

static void put_round(const struct clock_round *r, struct pb_writer *w, uint32_t field)
{
    for (int k = 0; k < 2; k++) {
        size_t one = pb_begin(w, field);
        size_t client = pb_begin(w, REMOTE_CLOCK_SYNC_SYNCED_CLOCKS_CLIENT_CLOCKS);
        clock_readings_put(&r->client[k], w, CLOCK_SNAPSHOT_CLOCKS);
        pb_end(w, client);
        size_t host = pb_begin(w, REMOTE_CLOCK_SYNC_SYNCED_CLOCKS_HOST_CLOCKS);
        clock_readings_put(&r->host[k], w, CLOCK_SNAPSHOT_CLOCKS);
        pb_end(w, host);
        if (r->source_period)
            pb_put_varint(w, REMOTE_CLOCK_SYNC_SYNCED_CLOCKS_SOURCE_PERIOD, r->source_period);
        pb_end(w, one);
    }
}

/* A packet with the rounds [first, end) of a machine. The last one is for all readers, those before it for ours: they
 * prove something, but readers that average would see time run backwards. */
static void emit_rounds(struct session *s, const struct service_machine *m, uint64_t first, uint64_t end,
                        struct batch *b, struct pb_writer *w)
{
    pb_put_varint(w, TRACE_PACKET_MACHINE_ID, m->id);
    pb_put_varint(w, TRACE_PACKET_TRUSTED_UID, s->service->uid);
    size_t sync = pb_begin(w, TRACE_PACKET_REMOTE_CLOCK_SYNC);
    for (uint64_t i = first; i < end; i++)
        put_round(&m->rounds.p[i - m->first_round], w,
                  i + 1 < end ? REMOTE_CLOCK_SYNC_MORE_CLOCKS : REMOTE_CLOCK_SYNC_SYNCED_CLOCKS);
    pb_end(w, sync);
    relay_emit_packet(b, w);
}

/* One packet a round that is for all readers: they average over neighbouring exchanges of one packet, and only a PING
 * and its UPDATE are a round trip. */
void relay_emit_clocks(struct session *s, struct batch *b, struct pb_writer *w)
{
    const Mrd__TraceConfig__BuiltinDataSource *c = s->config->builtin_data_sources;
    for (size_t i = 0; i < s->service->machines.n && !(c && c->disable_clock_snapshotting); i++) {
        struct service_machine *m = &s->service->machines.p[i];
        struct session_machine *sm = machine_in_session(s, i);
        if (!sm)
            continue;
        end_burst(m);
        uint64_t end = m->first_round + m->rounds.n;
        if (!sm->synced) {
            uint64_t start_ns = clock_readings_get(&s->initial_snapshot, CLOCK_BOOTTIME_ID);
            uint64_t first = end;
            while (first > m->first_round && m->rounds.p[first - 1 - m->first_round].at_ns >= start_ns)
                first--;
            for (int back = 0; back < ROUNDS_BEFORE_START && first > m->first_round; back++)
                first--;
            sm->next_round = first;
        }
        if (sm->next_round < m->first_round)
            sm->next_round = m->first_round;
        for (uint64_t k = sm->next_round; k < end; k++) {
            if (!clock_order_add(&sm->order, &m->rounds.p[k - m->first_round]))
                continue;
            sm->synced = true;
            emit_rounds(s, m, sm->next_round, k + 1, b, w);
            sm->next_round = k + 1;
        }
    }
}
