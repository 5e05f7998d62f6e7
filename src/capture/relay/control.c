/* The relay's control connection: introduction, clock rounds, reconnecting. */
#include "capture/relay/control.h"

#include "base/alloc.h"
#include "capture/common/clock_reading.h"
#include "capture/common/clock_source.h"
#include "capture/common/machine.h"
#include "capture/ipc/client.h"
#include "capture/ipc/frame.h"
#include "capture/relay/send_time.h"
#include "wire/fields.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PHASE_PING = 1, PHASE_UPDATE = 2 };
enum { PING_LATE_MAX_NS = 10000000 }; /* more: the clock was set meanwhile */
enum { RECONNECT_MIN_MS = 1000, RECONNECT_MAX_MS = 30000 };

/* The host hears from us at least so often, a burst that takes its time included. */
enum { LONGEST_SILENCE_MS = 3000 };

/* Bursts after a connect: how many rounds, how long until the next burst, how many such bursts. What a clock may do
 * between two bursts nobody sees: the pauses are short, and stay so (docs/clock-sync.md has what this costs). A round
 * follows the one before at once: processors and paths that are awake are quicker, by a third under emulation.
 */
static const struct burst {
    unsigned rounds;
    unsigned then_ms;
    unsigned times;
} bursts[] = {
    {24, 100, 600},
    {24, 250, UINT_MAX},
};

struct relay_control {
    uv_loop_t *loop;
    struct relay_control_options options;
    struct ipc_client *client;
    uv_timer_t timer;
    unsigned reconnect_ms;
    unsigned burst;             /* index into bursts */
    unsigned bursts_done;       /* of that row */
    unsigned rounds_left;       /* of this burst */
    uint64_t lost_bytes;        /* that the host has not acknowledged to know of */
    uint64_t lost_reported;     /* … of which the request under way tells */
    struct clock_readings ping; /* our clocks when the PING was made */
    struct clock_source source;
    uint64_t ping_late_ns; /* how much later the kernel sent it; 0: unknown */
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

/* What to do about a failure, as far as its text tells. */
static const char *advice(const char *why)
{
    static const struct {
        const char *why, *advice;
    } rows[] = {
        {"no connection to the service",
         "; the host has no relay endpoint: start it with traced --enable-relay-endpoint"},
        {"Connection refused",
         "; nothing listens there: does traced run, with this address in PERFETTO_PRODUCER_SOCK_NAME "
         "(0.0.0.0 for all networks)?"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(why, rows[i].why) == 0)
            return rows[i].advice;
    return "";
}

static void on_disconnected(void *ctx, const char *why)
{
    struct relay_control *c = ctx;
    fprintf(stderr, "traced_relay: no connection to the host at %s: %s%s\n", c->options.host.host, why, advice(why));
    ipc_client_close(c->client);
    c->client = NULL;
    retry_later(c);
}

static void put_lost(struct relay_control *c, struct pb_writer *w)
{
    c->lost_reported = c->lost_bytes;
    if (c->lost_reported)
        pb_put_varint(w, RELAY_FIELD_LOST_BYTES, c->lost_reported);
}

static void lost_reported(struct relay_control *c, bool success)
{
    c->lost_bytes -= success ? c->lost_reported : 0;
    c->lost_reported = 0;
}

/* Sends one SyncClock with the given clocks. */
static void send_sync(struct relay_control *c, unsigned phase, const struct clock_readings *clocks, ipc_reply_fn reply)
{
    struct pb_writer w = {0};
    pb_put_varint(&w, SYNC_CLOCK_REQUEST_PHASE, phase);
    clock_readings_put(clocks, &w, SYNC_CLOCK_REQUEST_CLOCKS);
    if (phase == PHASE_UPDATE && c->ping_late_ns)
        pb_put_varint(&w, RELAY_FIELD_PING_LATE, c->ping_late_ns);
    if (*c->source.name)
        pb_put_str(&w, RELAY_FIELD_CLOCK_SOURCE, c->source.name);
    put_lost(c, &w);
    if (w.failed || !ipc_client_invoke(c->client, RELAY_SYNC_CLOCK, pb_written(&w), -1, reply, c))
        fprintf(stderr, "traced_relay: cannot send a clock comparison\n");
    pb_writer_free(&w);
}

static void on_update_reply(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct relay_control *c = ctx;
    (void)reply;
    if (has_more)
        return;
    lost_reported(c, success);
    if (c->rounds_left > 1) {
        c->rounds_left--;
        start_round(c);
        return;
    }
    uv_timer_start(&c->timer, on_round, bursts[c->burst].then_ms, 0);
    if (++c->bursts_done == bursts[c->burst].times) {
        c->bursts_done = 0;
        c->burst++;
    }
    c->rounds_left = bursts[c->burst].rounds;
}

static void on_ping_reply(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct relay_control *c = ctx;
    (void)reply;
    if (has_more)
        return;
    lost_reported(c, success);
    /* The time of the UPDATE is that of the reply's receipt by the kernel: on the way from there to us it would only
     * grow. The age first: it must not count the time that reading the clocks takes. */
    uint64_t age_ns = ipc_client_receipt_age_ns(c->client);
    struct clock_readings now;
    clock_readings_take(&now);
    clock_readings_back_date(&now, age_ns, &c->ping);
    clock_source_read(&c->source);
    send_sync(c, PHASE_UPDATE, &now, on_update_reply);
}

static void start_round(struct relay_control *c)
{
    if (!c->client)
        return;
    int fd = ipc_client_socket(c->client);
    send_time_begin(fd);
    clock_readings_take_last(&c->ping);
    send_sync(c, PHASE_PING, &c->ping, on_ping_reply);
    uint64_t left_ns = send_time_end(fd), taken_ns = clock_readings_get(&c->ping, CLOCK_REALTIME_ID);
    c->ping_late_ns = left_ns > taken_ns && left_ns - taken_ns < PING_LATE_MAX_NS ? left_ns - taken_ns : 0;
}

static void on_init_reply(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct relay_control *c = ctx;
    (void)reply;
    if (has_more)
        return;
    if (!success)
        fprintf(stderr, "traced_relay: the host rejected the description of this machine\n");
    lost_reported(c, success);
    c->burst = c->bursts_done = 0;
    c->rounds_left = bursts[0].rounds;
    start_round(c);
}

static void on_bound(void *ctx)
{
    struct relay_control *c = ctx;
    c->reconnect_ms = RECONNECT_MIN_MS;
    ipc_client_time_receipts(c->client);
    struct pb_writer w = {0};
    char name[MACHINE_TEXT_MAX];
    machine_display_name(c->options.machine_name, name, sizeof name);
    size_t mark = pb_begin(&w, INIT_RELAY_REQUEST_SYSTEM_INFO);
    machine_put_system_info(&w);
    pb_put_str(&w, SYSTEM_INFO_MACHINE_NAME, name);
    pb_end(&w, mark);
    pb_put_varint(&w, RELAY_FIELD_PERIOD_MS, LONGEST_SILENCE_MS);
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
    bool connecting;
    int fd = relay_uplink_connect(&c->options.host, &connecting, &err);
    ipc_put_peer_identity(&w, getpid(), (int32_t)geteuid(), c->options.machine_id_hint, c->options.machine_name);
    struct slice identity = pb_written(&w);
    int rc = fd < 0 ? fd
             : w.failed
                 ? error_set(&err, -MRD_ENOMEM, "out of memory")
                 : ipc_client_attach(&c->client, c->loop, fd, connecting, &ipc_relay_port, &identity, &ops, c, &err);
    if (fd >= 0 && w.failed)
        close(fd);
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
    clock_source_open(&c->source);
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
    clock_source_close(&c->source);
    uv_close((uv_handle_t *)&c->timer, on_timer_closed);
}
