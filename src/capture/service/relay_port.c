/* Machines that relay their producers to us: who they are and what their clocks say (spec ipc 8). */
#include "capture/service/service_internal.h"

static void reply_ok(struct ipc_call call)
{
    ipc_reply(&call, true, false, slice_of(NULL, 0), -1);
}

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

static struct service_relay *relay_of(struct service *svc, struct ipc_peer *peer)
{
    struct service_relay *r = ipc_peer_data(peer, &ipc_relay_port);
    if (r)
        return r;
    r = mem_zalloc(sizeof *r);
    if (!r || !vec_push(&svc->relays, r)) {
        mem_free(r);
        return NULL;
    }
    r->service = svc;
    r->peer = peer;
    ipc_peer_set_data(peer, &ipc_relay_port, r);
    const struct ipc_identity *id = ipc_peer_identity(peer);
    log_line("traced: relay of machine %u \"%s\" connected: %s", id->machine_id, id->machine_name, ipc_peer_name(peer));
    return r;
}

static void init_relay(struct service_relay *r, struct slice args)
{
    struct pb_field f;
    if (!pb_find(args, 1, &f) || f.wire != PB_BYTES)
        return;
    free_slice(&r->system_info);
    r->system_info = copy_of(pb_bytes(&f));
}

/* The clocks of a SyncClockRequest as ClockSnapshot.clocks. */
static struct slice client_clocks(struct slice args)
{
    struct pb_writer w = {0};
    struct pb_cursor c = pb_cursor(args);
    struct pb_field f, g;
    while (pb_next(&c, &f)) {
        if (f.id != 2 || f.wire != PB_BYTES)
            continue;
        uint64_t id = 0, ts = 0;
        for (struct pb_cursor m = pb_sub(&f); pb_next(&m, &g);) {
            if (g.id == 1)
                id = pb_u64(&g);
            else if (g.id == 2)
                ts = pb_u64(&g);
        }
        uint8_t b[24];
        size_t n = 0;
        b[n++] = 1 << 3;
        n += pb_encode_varint(b + n, id);
        b[n++] = 2 << 3;
        n += pb_encode_varint(b + n, ts);
        pb_put_bytes(&w, 1, b, n);
    }
    struct slice out = w.failed ? slice_of(NULL, 0) : copy_of(pb_written(&w));
    pb_writer_free(&w);
    return out;
}

static void keep_exchange(struct service_relay *r, struct slice args, const struct clock_readings *host)
{
    struct slice client = client_clocks(args);
    if (!client.p)
        return;
    if (r->n_exchanges == CLOCK_EXCHANGES_KEPT) {
        free_slice(&r->exchanges[0].client_clocks);
        memmove(&r->exchanges[0], &r->exchanges[1], sizeof r->exchanges - sizeof r->exchanges[0]);
        r->n_exchanges--;
    }
    r->exchanges[r->n_exchanges++] = (struct clock_exchange){client, *host};
}

void relay_port_invoke(void *ctx, unsigned method, struct ipc_call call, struct slice args)
{
    struct clock_readings host;
    clock_readings_take(&host); /* first of all: what comes after would count as network delay */
    struct service_relay *r = relay_of(ctx, call.peer);
    if (!r) {
        ipc_reply(&call, false, false, slice_of(NULL, 0), -1);
        return;
    }
    reply_ok(call); /* the client measures the round trip */
    if (method == RELAY_INIT_RELAY)
        init_relay(r, args);
    else if (method == RELAY_SYNC_CLOCK)
        keep_exchange(r, args, &host);
}

void relay_port_disconnected(void *ctx, struct ipc_peer *peer)
{
    struct service *svc = ctx;
    struct service_relay *r = ipc_peer_data(peer, &ipc_relay_port);
    if (!r)
        return;
    ipc_peer_set_data(peer, &ipc_relay_port, NULL);
    for (size_t i = 0; i < svc->relays.n; i++)
        if (svc->relays.p[i] == r)
            svc->relays.p[i] = svc->relays.p[--svc->relays.n];
    log_line("traced: relay of machine %u \"%s\" disconnected", ipc_peer_identity(peer)->machine_id,
             ipc_peer_identity(peer)->machine_name);
    for (unsigned i = 0; i < r->n_exchanges; i++)
        free_slice(&r->exchanges[i].client_clocks);
    free_slice(&r->system_info);
    mem_free(r);
}

/* Adds `id` to the list; false when it is there already. */
#define remember_machine(list, id) (!has_machine((list)->p, (list)->n, id) && vec_push(list, id))

static bool has_machine(const uint32_t *ids, size_t n, uint32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static void emit(struct batch *b, struct pb_writer *w)
{
    struct slice piece = pb_written(w);
    if (!w->failed)
        batch_add(b, &piece, 1, slice_of(NULL, 0));
    w->failed = false;
    pb_writer_clear(w);
}

void relay_emit_system_info(struct session *s, struct batch *b, struct pb_writer *w)
{
    const Mrd__TraceConfig__BuiltinDataSource *c = s->config->builtin_data_sources;
    for (size_t i = 0; i < s->service->relays.n && !(c && c->disable_system_info); i++) {
        const struct service_relay *r = s->service->relays.p[i];
        uint32_t machine = ipc_peer_identity(r->peer)->machine_id;
        if (!machine || !r->system_info.len || !remember_machine(&s->machines_told, machine))
            continue;
        pb_put_bytes(w, 45, r->system_info.p, r->system_info.len);
        pb_put_varint(w, 98, machine);
        pb_put_varint(w, 3, s->service->uid);
        pb_put_varint(w, 10, 1);
        emit(b, w);
    }
}

void relay_emit_clocks(struct session *s, struct batch *b, struct pb_writer *w)
{
    const Mrd__TraceConfig__BuiltinDataSource *c = s->config->builtin_data_sources;
    for (size_t i = 0; i < s->service->relays.n && !(c && c->disable_clock_snapshotting); i++) {
        const struct service_relay *r = s->service->relays.p[i];
        uint32_t machine = ipc_peer_identity(r->peer)->machine_id;
        if (!machine || !r->n_exchanges || !remember_machine(&s->machines_synced, machine))
            continue;
        pb_put_varint(w, 98, machine);
        pb_put_varint(w, 3, s->service->uid);
        size_t sync = pb_begin(w, 107);
        for (unsigned k = 0; k < r->n_exchanges; k++) {
            size_t one = pb_begin(w, 1);
            pb_put_bytes(w, 2, r->exchanges[k].client_clocks.p, r->exchanges[k].client_clocks.len);
            size_t host = pb_begin(w, 3);
            clock_readings_put(&r->exchanges[k].host, w, 1);
            pb_end(w, host);
            pb_end(w, one);
        }
        pb_end(w, sync);
        emit(b, w);
    }
}
