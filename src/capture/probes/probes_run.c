/* Runs a producer of data sources as a daemon. */
#include "capture/probes/probes_run.h"

#include "base/sandbox.h"
#include "capture/probes/watchdog.h"

#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { WATCH_PERIOD_MS = 2000 };

static void on_signal(uv_signal_t *signal, int number)
{
    (void)number;
    uv_stop(signal->loop);
}

static void close_handle(uv_handle_t *handle, void *ctx)
{
    (void)ctx;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

int probes_run(const struct probes_run *r)
{
    uv_loop_t loop;
    uv_signal_t signals[2];
    struct probes *probes;
    struct watchdog watchdog = {0};
    struct error err = {0};
    if (uv_loop_init(&loop))
        return 1;
    signal(SIGPIPE, SIG_IGN);
    int rc = sandbox_enter(r->keep, &err);
    if (!rc)
        rc = probes_open(&probes, &loop, &r->options, &err);
    if (!rc && r->begin && (rc = r->begin(r->ctx, &loop, &err)) != 0)
        probes_close(probes);
    if (rc) {
        fprintf(stderr, "%s: %s\n", r->options.name, err.text);
    } else {
        uv_signal_init(&loop, &signals[0]);
        uv_signal_init(&loop, &signals[1]);
        uv_signal_start(&signals[0], on_signal, SIGINT);
        uv_signal_start(&signals[1], on_signal, SIGTERM);
        struct watchdog_limits limits = {r->max_memory_mb, r->stuck_ms, WATCH_PERIOD_MS};
        if (limits.stuck_ms && limits.stuck_ms < 16 * WATCH_PERIOD_MS)
            limits.period_ms = limits.stuck_ms / 16;
        watchdog_start(&watchdog, &loop, limits);
        uv_run(&loop, UV_RUN_DEFAULT);
        watchdog_stop(&watchdog);
        probes_close(probes);
        uv_close((uv_handle_t *)&signals[0], NULL);
        uv_close((uv_handle_t *)&signals[1], NULL);
    }
    if (r->end)
        r->end(r->ctx);
    uv_run(&loop, UV_RUN_NOWAIT); /* lets handles that were closed say goodbye */
    uv_walk(&loop, close_handle, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return rc || watchdog.tripped ? 1 : 0;
}

static bool parse_number(const char *text, uint32_t *number)
{
    char *end;
    unsigned long v = strtoul(text, &end, 10);
    *number = (uint32_t)v;
    return end != text && !*end && text[0] != '-' && v <= UINT32_MAX;
}

int probes_run_memory(struct probes_run *r, const char *text, struct error *err)
{
    if (text && !parse_number(text, &r->max_memory_mb))
        return error_set(err, -MRD_EINVALID, "--max-memory: use a number of megabytes");
    return 0;
}

int probes_run_service_user(struct probes_run *r, const char *name, struct error *err)
{
    struct passwd *user = name ? getpwnam(name) : NULL;
    if (name && !user)
        return error_set(err, -MRD_EINVALID, "--service-user: there is no user '%s'", name);
    r->options.service_uid = user ? user->pw_uid : 0;
    return 0;
}
