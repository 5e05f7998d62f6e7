/* --trigger: connects as a producer, fires triggers, leaves. */
#include "capture/client/perfetto.h"
#include "capture/shm/producer_link.h"

#include <stdio.h>

#define TIMEOUT_MS 10000

struct firing {
    uv_loop_t *loop;
    struct producer *producer;
    const char *const *names;
    unsigned n;
    bool ok;
};

static void on_synced(void *ctx)
{
    struct firing *f = ctx;
    f->ok = true;
    uv_stop(f->loop);
}

static void on_connected(void *ctx)
{
    struct firing *f = ctx;
    producer_activate_triggers(f->producer, f->names, f->n);
    if (!producer_sync(f->producer, on_synced, f))
        uv_stop(f->loop);
}

static void on_disconnected(void *ctx, const char *why)
{
    struct firing *f = ctx;
    fprintf(stderr, "perfetto: cannot reach the service: %s" NO_SERVICE_HINT "\n", why);
    uv_stop(f->loop);
}

static void on_timeout(uv_timer_t *t)
{
    fprintf(stderr, "perfetto: timed out\n");
    uv_stop(t->loop);
}

int perfetto_trigger(const char *const *names, unsigned n)
{
    static const struct producer_ops ops = {.connected = on_connected, .disconnected = on_disconnected};
    uv_loop_t loop;
    uv_timer_t timeout;
    struct error err = {0};
    struct firing f = {.loop = &loop, .names = names, .n = n};
    uv_loop_init(&loop);
    uv_timer_init(&loop, &timeout);
    if (producer_open(&f.producer, &loop, &(struct producer_options){.name = "perfetto.trigger", .no_retry = true},
                      &ops, &f, &err) != 0) {
        fprintf(stderr, "perfetto: %s\n", err.text);
    } else {
        uv_timer_start(&timeout, on_timeout, TIMEOUT_MS, 0);
        uv_run(&loop, UV_RUN_DEFAULT);
        producer_close(f.producer);
    }
    uv_close((uv_handle_t *)&timeout, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return f.ok ? EXIT_OK : EXIT_FAILED;
}
