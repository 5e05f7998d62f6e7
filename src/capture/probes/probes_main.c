/* The applet traced_probes: its command line, signals and life. */
#include "base/dev_flags.h"
#include "base/sandbox.h"
#include "capture/common/applet.h"
#include "capture/probes/ftrace/ftrace_instance.h"
#include "capture/probes/probes.h"
#include "capture/probes/watchdog.h"

#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A recorder that stands still this long is stuck: reading, and waiting for a slow service, take seconds at most. */
enum { MEMORY_DEFAULT_MB = 256, STUCK_MS = 120000, WATCH_PERIOD_MS = 2000 };

struct arguments {
#define FLAG(field, kind, ...) FLAG_TYPE_##kind field;
#include "capture/probes/probes_flags.def"
#undef FLAG
    struct text_list none;
    struct probes_options probes;
    uint32_t max_memory_mb;
    int64_t stuck_ms;
};

static const struct flag flag_rows[] = {
#define FLAG(...) FLAG_ROW(struct arguments, __VA_ARGS__),
#include "capture/probes/probes_flags.def"
#undef FLAG
};
static const struct flag_table flags = {flag_rows, sizeof flag_rows / sizeof *flag_rows,
                                        offsetof(struct arguments, none)};

/* For tests: docs/contributing.md. */
static const struct dev_flag settings[] = {
    {"stuck-ms", DEV_NUMBER, offsetof(struct arguments, stuck_ms)},
};

static bool parse_number(const char *text, uint32_t *number)
{
    char *end;
    unsigned long v = strtoul(text, &end, 10);
    *number = (uint32_t)v;
    return end != text && !*end && text[0] != '-' && v <= UINT32_MAX;
}

/* What the values of the flags mean. -MRD_EINVALID: nothing. */
static int read_values(struct arguments *a, struct error *err)
{
    bool map = a->ring && strcmp(a->ring, "map") == 0;
    if (a->ring && !map && strcmp(a->ring, "read") != 0)
        return error_set(err, -MRD_EINVALID, "--ring: use read or map");
    if (a->max_memory && !parse_number(a->max_memory, &a->max_memory_mb))
        return error_set(err, -MRD_EINVALID, "--max-memory: use a number of megabytes");
    for (size_t i = 0; i < a->dev_flags.n; i++) {
        int rc = dev_flag_set(settings, sizeof settings / sizeof *settings, a, a->dev_flags.p[i], err);
        if (rc <= 0)
            return rc < 0 ? rc : error_set(err, -MRD_EINVALID, "no such --dev-flag: '%s'", a->dev_flags.p[i]);
    }
    struct passwd *user = a->service_user ? getpwnam(a->service_user) : NULL;
    if (a->service_user && !user)
        return error_set(err, -MRD_EINVALID, "--service-user: there is no user '%s'", a->service_user);
    a->probes.service_uid = user ? user->pw_uid : 0;
    a->probes.socket = a->socket;
    a->probes.tracefs_root = a->tracefs;
    a->probes.sysroot = a->sysroot;
    a->probes.mode = map ? RING_MAPPED : RING_READ;
    return 0;
}

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

/* Of root's capabilities those that reading other users' processes, files and symbols of the kernel needs. tracefs
 * belongs to root's user id, which stays. */
#define KEPT (SANDBOX_CAP(CAP_DAC_READ_SEARCH) | SANDBOX_CAP(CAP_SYS_PTRACE) | SANDBOX_CAP(CAP_SYSLOG))

static int run(const struct arguments *a)
{
    uv_loop_t loop;
    uv_signal_t signals[2];
    struct probes *probes;
    struct watchdog watchdog = {0};
    struct error err = {0};
    if (uv_loop_init(&loop))
        return 1;
    signal(SIGPIPE, SIG_IGN);
    int rc = sandbox_enter(KEPT, &err);
    if (!rc)
        rc = probes_open(&probes, &loop, &a->probes, &err);
    if (rc) {
        fprintf(stderr, "traced_probes: %s\n", err.text);
    } else {
        uv_signal_init(&loop, &signals[0]);
        uv_signal_init(&loop, &signals[1]);
        uv_signal_start(&signals[0], on_signal, SIGINT);
        uv_signal_start(&signals[1], on_signal, SIGTERM);
        struct watchdog_limits limits = {a->max_memory_mb, (uint32_t)a->stuck_ms, WATCH_PERIOD_MS};
        if (limits.stuck_ms && limits.stuck_ms < 16 * WATCH_PERIOD_MS)
            limits.period_ms = limits.stuck_ms / 16;
        watchdog_start(&watchdog, &loop, limits);
        uv_run(&loop, UV_RUN_DEFAULT);
        watchdog_stop(&watchdog);
        probes_close(probes);
        uv_close((uv_handle_t *)&signals[0], NULL);
        uv_close((uv_handle_t *)&signals[1], NULL);
    }
    uv_run(&loop, UV_RUN_NOWAIT); /* lets handles that were closed say goodbye */
    uv_walk(&loop, close_handle, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return rc || watchdog.tripped ? 1 : 0;
}

static int run_flags(struct arguments *a)
{
    struct error err = {0};
    char directory[PATH_MAX];
    if (a->help) {
        applet_help(stdout, "traced_probes", &flags);
        return 0;
    }
    if (a->version) {
        printf("Meridian v%s\n", MERIDIAN_VERSION);
        return 0;
    }
    if (read_values(a, &err) < 0 || undo_log_directory(directory, &err)) {
        fprintf(stderr, "traced_probes: %s\n", err.text);
        return 1;
    }
    a->probes.run_directory = directory;
    if (a->reset) {
        int rc = ftrace_reset(a->probes.tracefs_root, directory, &err);
        if (rc)
            fprintf(stderr, "traced_probes: %s\n", err.text);
        return rc ? 1 : 0;
    }
    int found = ftrace_recover_all(a->probes.tracefs_root, directory, &err);
    if (found)
        fprintf(stderr,
                "traced_probes: restored the tracefs settings that a killed recorder had left in %d instance%s%s%s\n",
                found, found == 1 ? "" : "s", err.code ? ", except: " : "", err.text);
    else if (err.code)
        fprintf(stderr, "traced_probes: %s\n", err.text);
    if (a->cleanup)
        return err.code ? 1 : 0;
    if (a->background && daemon(0, 0)) {
        perror("traced_probes: going to the background");
        return 1;
    }
    return run(a);
}

int traced_probes_main(int argc, char **argv)
{
    struct arguments a = {.max_memory_mb = MEMORY_DEFAULT_MB, .stuck_ms = STUCK_MS};
    int rc = applet_flags_only("traced_probes", &flags, &a, argc, argv) ? run_flags(&a) : 1;
    flags_free(&flags, &a);
    return rc;
}
