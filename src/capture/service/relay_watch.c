/* Notices a machine that has fallen silent while its connections stand: its relay hangs or was stopped, and the kernel
 * there goes on acknowledging. (A machine whose kernel is gone, too, is noticed by TCP.) Our relay says how often it
 * speaks at least; Perfetto's promises nothing and is not watched.
 *
 * Silence is counted in looks and not by the clock: when it was us who stood still, one look has passed, and what the
 * machine has said meanwhile is read before the next. */
#include "capture/service/producers.h"
#include "capture/service/relay.h"
#include "capture/service/state.h"
#include "wire/pb_cursor.h"

enum { SILENT_MS = 30000, LOOKS = 4, PERIOD_MAX_MS = 10000 };

static void kick_producers(struct service *svc, uint32_t machine_id)
{
    for (size_t i = 0; i < svc->producers.n; i++)
        if (ipc_peer_identity(svc->producers.p[i]->peer)->machine_id == machine_id)
            ipc_peer_kick(svc->producers.p[i]->peer, "its machine stopped answering");
}

static void on_look(uv_timer_t *t)
{
    struct service_relay *r = t->data;
    r->silent_looks = ipc_peer_is_paused(r->peer) ? 0 : r->silent_looks + 1; /* while we do not listen … */
    if (r->silent_looks <= LOOKS)
        return;
    const struct service_machine *m = &r->service->machines.p[r->machine];
    log_line("traced: machine %u sent nothing for %u s; closing its connections", m->id, r->silent_ms / 1000);
    if (m->relays == 1) /* else it has come back already, and this relay is what it left behind */
        kick_producers(r->service, m->id);
    ipc_peer_kick(r->peer, "silent");
    uv_timer_stop(t);
}

void relay_watch_begin(struct service_relay *r)
{
    uv_timer_init(r->service->loop, &r->looks);
    r->looks.data = r;
}

void relay_watch_heard(struct service_relay *r, struct slice args)
{
    struct pb_field f;
    r->silent_looks = 0;
    if (r->silent_ms || !pb_find(args, RELAY_FIELD_PERIOD_MS, &f))
        return;
    uint64_t period_ms = pb_u64(&f);
    if (period_ms == 0 || period_ms > PERIOD_MAX_MS)
        return;
    r->silent_ms = r->service->o.silent_ms ? r->service->o.silent_ms : SILENT_MS;
    if (r->silent_ms < 2 * period_ms)
        r->silent_ms = (unsigned)(2 * period_ms);
    uv_timer_start(&r->looks, on_look, r->silent_ms / LOOKS, r->silent_ms / LOOKS);
}

static void on_closed(uv_handle_t *h)
{
    mem_free(h->data);
}

void relay_watch_end(struct service_relay *r)
{
    uv_close((uv_handle_t *)&r->looks, on_closed);
}
