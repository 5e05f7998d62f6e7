/* Owns the relay's control connection: introduction, clock rounds, reconnecting. */
#include "capture/relay/control.h"

#include "base/alloc.h"
#include "capture/host/clock_reading.h"
#include "capture/host/machine.h"
#include "capture/ipc/client.h"
#include "capture/ipc/frame.h"

#include <stdio.h>
#include <unistd.h>

enum { PHASE_PING = 1, PHASE_UPDATE = 2 };
enum { RECONNECT_MIN_MS = 1000, RECONNECT_MAX_MS = 30000 };
enum { CLOCK_BOOTTIME_ID = 6 };
enum { FIELD_RELAY_LOST = 990, RELAY_LOST_BYTES = 1 }; /* ours: capture/service/relay_losses.c */

/* The n-th burst after a connect: how many rounds, how long between two, how long until the next burst. The last row is
 * for all that follow. */
static const struct burst {
    unsigned rounds;
    unsigned round_ms;
    unsigned then_ms;
} bursts[] = {
    {5, 10, 250}, {5, 10, 500}, {5, 10, 1000}, {5, 10, 2000}, {5, 10, 5000},
};

struct relay_control {
    uv_loop_t *loop;
    struct relay_control_options options;
    struct ipc_client *client;
    uv_timer_t timer;
    unsigned reconnect_ms;
    unsigned burst;       /* index into bursts */
    unsigned rounds_left; /* of this burst */
    uint64_t lost_bytes;  /* that the host has not acknowledged to know of */
    uint64_t lost_told;   /* … of which the request under way tells */
    uint64_t ping_ns;     /* when the PING left, CLOCK_BOOTTIME */
    struct relay_control_counts counts;
    bool closing;
};

static void connect_now(struct relay_control *c);
static void start_round(struct relay_control *c);

static void on_reconnect(uv_timer_t *t)
{
    connect_now(t->data);
}

static void on_round(uv_timer_t *t)
{
    start_round(t->data);
}

static void retry_later(struct relay_control *c)
{
    uv_timer_start(&c->timer, on_reconnect, c->reconnect_ms, 0);
    c->reconnect_ms = c->reconnect_ms * 2 > RECONNECT_MAX_MS ? RECONNECT_MAX_MS : c->reconnect_ms * 2;
}

static void on_disconnected(void *ctx, const char *why)
{
    struct relay_control *c = ctx;
    fprintf(stderr, "traced_relay: no connection to the host at %s: %s\n", c->options.host, why);
    ipc_client_close(c->client);
    c->client = NULL;
    retry_later(c);
}

static void put_lost(struct relay_control *c, struct pb_writer *w)
{
    c->lost_told = c->lost_bytes;
    if (!c->lost_told)
        return;
    size_t mark = pb_begin(w, FIELD_RELAY_LOST);
    pb_put_varint(w, RELAY_LOST_BYTES, c->lost_told);
    pb_end(w, mark);
}

static void lost_told(struct relay_control *c, bool success)
{
    c->lost_bytes -= success ? c->lost_told : 0;
    c->lost_told = 0;
}

/* Sends one SyncClock; the clocks are read as late as can be. Returns BOOTTIME as sent. */
static uint64_t send_sync(struct relay_control *c, unsigned phase, ipc_reply_fn reply)
{
    struct clock_readings now;
    struct pb_writer w = {0};
    pb_put_varint(&w, 1, phase);
    clock_readings_take(&now);
    clock_readings_put(&now, &w, 2);
    put_lost(c, &w);
    if (w.failed || !ipc_client_invoke(c->client, RELAY_SYNC_CLOCK, pb_written(&w), -1, reply, c))
        fprintf(stderr, "traced_relay: the clock round could not be sent\n");
    pb_writer_free(&w);
    return clock_readings_get(&now, CLOCK_BOOTTIME_ID);
}

static void on_update_reply(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct relay_control *c = ctx;
    (void)reply;
    if (has_more)
        return;
    c->counts.rounds += success;
    lost_told(c, success);
    const struct burst *b = &bursts[c->burst];
    unsigned wait_ms = b->round_ms;
    if (c->rounds_left > 1) {
        c->rounds_left--;
    } else {
        wait_ms = b->then_ms;
        if (c->burst + 1 < sizeof bursts / sizeof *bursts)
            c->burst++;
        c->rounds_left = bursts[c->burst].rounds;
    }
    uv_timer_start(&c->timer, on_round, wait_ms, 0);
}

static void on_ping_reply(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct relay_control *c = ctx;
    (void)reply;
    if (has_more)
        return;
    lost_told(c, success);
    uint64_t back_ns = send_sync(c, PHASE_UPDATE, on_update_reply);
    uint64_t rtt = back_ns > c->ping_ns ? back_ns - c->ping_ns : 0;
    if (!c->counts.min_rtt_ns || rtt < c->counts.min_rtt_ns)
        c->counts.min_rtt_ns = rtt;
}

static void start_round(struct relay_control *c)
{
    if (c->client)
        c->ping_ns = send_sync(c, PHASE_PING, on_ping_reply);
}

static void on_init_reply(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct relay_control *c = ctx;
    (void)reply;
    if (has_more)
        return;
    if (!success)
        fprintf(stderr, "traced_relay: the host refused to learn about this machine\n");
    lost_told(c, success);
    c->burst = 0;
    c->rounds_left = bursts[0].rounds;
    start_round(c);
}

static void on_bound(void *ctx)
{
    struct relay_control *c = ctx;
    c->counts.connects++;
    c->reconnect_ms = RECONNECT_MIN_MS;
    struct pb_writer w = {0};
    size_t mark = pb_begin(&w, 1); /* system_info */
    machine_put_system_info(&w);
    pb_end(&w, mark);
    put_lost(c, &w);
    if (w.failed || !ipc_client_invoke(c->client, RELAY_INIT_RELAY, pb_written(&w), -1, on_init_reply, c))
        fprintf(stderr, "traced_relay: the host has no relay endpoint: start it with traced --enable-relay-endpoint\n");
    pb_writer_free(&w);
}

static void connect_now(struct relay_control *c)
{
    static const struct ipc_client_ops ops = {.bound = on_bound, .disconnected = on_disconnected};
    struct pb_writer w = {0};
    struct error err = {0};
    ipc_put_peer_identity(&w, getpid(), (int32_t)geteuid(), c->options.machine_id_hint, c->options.machine_name);
    struct slice identity = pb_written(&w);
    int rc = w.failed
                 ? -MRD_ENOMEM
                 : ipc_client_open(&c->client, c->loop, c->options.host, &ipc_relay_port, &identity, &ops, c, &err);
    pb_writer_free(&w);
    if (rc) {
        fprintf(stderr, "traced_relay: %s\n", err.text);
        c->client = NULL;
        retry_later(c);
    }
}

int relay_control_open(struct relay_control **out, uv_loop_t *loop, const struct relay_control_options *options,
                       struct error *err)
{
    struct relay_control *c = mem_zalloc(sizeof *c);
    if (!c)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    c->loop = loop;
    c->options = *options;
    c->reconnect_ms = RECONNECT_MIN_MS;
    uv_timer_init(loop, &c->timer);
    c->timer.data = c;
    *out = c;
    connect_now(c);
    return 0;
}

void relay_control_add_lost(struct relay_control *c, uint64_t bytes)
{
    c->lost_bytes += bytes;
}

void relay_control_counts(const struct relay_control *c, struct relay_control_counts *counts)
{
    *counts = c->counts;
}

static void on_timer_closed(uv_handle_t *h)
{
    mem_free(h->data);
}

void relay_control_close(struct relay_control *c)
{
    if (!c || c->closing)
        return;
    c->closing = true;
    ipc_client_close(c->client);
    c->client = NULL;
    uv_timer_stop(&c->timer);
    uv_close((uv_handle_t *)&c->timer, on_timer_closed);
}
