/* The applet traced_probes: its command line, signals and life. */
#include "base/dev_flags.h"
#include "capture/probes/ftrace/ftrace_instance.h"
#include "capture/probes/probes.h"
#include "capture/probes/watchdog.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "Usage: traced_probes [options]\n"
    "\n"
    "Offers this machine's data sources (ftrace, /proc, /sys ...) to the tracing service.\n"
    "\n"
    "  --socket ADDRESS   where the service listens (default: $PERFETTO_PRODUCER_SOCK_NAME or the usual place)\n"
    "  --tracefs DIR      use the tracefs mounted there\n"
    "  --ring read|map    how to take pages from the kernel (default: read)\n"
    "  --sysroot DIR      where the /proc and /sys of counters, processors and batteries are (default: /)\n"
    "  --background       go on in the background\n"
    "  --max-memory MB    end when more memory than this is in use (default: 256; 0: no limit)\n"
    "  --cleanup-after-crash\n"
    "                     take back what a recorder that was killed has left in tracefs, and exit\n"
    "  --reset-ftrace     the same, then switch tracing and all events of the top instance off, whoever uses it\n"
    "  --version, --help\n"
    "\n"
    "Example: tracebox traced_probes --socket 10.0.0.1:20001 --max-memory 64\n";

/* A recorder that stands still this long is stuck: reading, and waiting for a slow service, take seconds at most. */
enum { MEMORY_DEFAULT_MB = 256, STUCK_MS = 120000, WATCH_PERIOD_MS = 2000 };

struct arguments {
    struct probes_options probes;
    bool cleanup, reset, background;
    uint32_t max_memory_mb;
    int64_t stuck_ms;
};

/* For tests: docs/contributing.md. */
static const struct dev_flag dev_flags[] = {
    {"stuck-ms", DEV_NUMBER, offsetof(struct arguments, stuck_ms)},
};

static bool parse_number(const char *text, uint32_t *number)
{
    char *end;
    unsigned long v = strtoul(text, &end, 10);
    *number = (uint32_t)v;
    return end != text && !*end && text[0] != '-' && v <= UINT32_MAX;
}

/* Long: one case an option. */
static int parse(struct arguments *a, int argc, char **argv)
{
    enum { SOCKET = 256, TRACEFS, SYSROOT, RING, BACKGROUND, MEMORY, CLEANUP, RESET, DEV_FLAG, VERSION, HELP };
    static const struct option options[] = {
        {"socket", required_argument, NULL, SOCKET},
        {"tracefs", required_argument, NULL, TRACEFS},
        {"sysroot", required_argument, NULL, SYSROOT},
        {"ring", required_argument, NULL, RING},
        {"background", no_argument, NULL, BACKGROUND},
        {"max-memory", required_argument, NULL, MEMORY},
        {"cleanup-after-crash", no_argument, NULL, CLEANUP},
        {"reset-ftrace", no_argument, NULL, RESET},
        {"dev-flag", required_argument, NULL, DEV_FLAG},
        {"version", no_argument, NULL, VERSION},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    struct error err = {0};
    int opt;
    while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (opt) {
        case SOCKET:
            a->probes.socket = optarg;
            break;
        case TRACEFS:
            a->probes.tracefs_root = optarg;
            break;
        case SYSROOT:
            a->probes.sysroot = optarg;
            break;
        case RING:
            if (strcmp(optarg, "read") != 0 && strcmp(optarg, "map") != 0) {
                fprintf(stderr, "--ring is read or map\n");
                return 1;
            }
            a->probes.mode = strcmp(optarg, "map") == 0 ? RING_MAPPED : RING_READ;
            break;
        case BACKGROUND:
            a->background = true;
            break;
        case MEMORY:
            if (!parse_number(optarg, &a->max_memory_mb)) {
                fprintf(stderr, "--max-memory is a number of megabytes\n");
                return 1;
            }
            break;
        case CLEANUP:
            a->cleanup = true;
            break;
        case RESET:
            a->reset = true;
            break;
        case DEV_FLAG:
            if (dev_flag_set(dev_flags, sizeof dev_flags / sizeof *dev_flags, a, optarg, &err) <= 0) {
                fprintf(stderr, "traced_probes: %s\n", err.code ? err.text : "no such --dev-flag");
                return 1;
            }
            break;
        case VERSION:
            printf("Meridian v%s\n", MERIDIAN_VERSION);
            return -1;
        case HELP:
            fputs(usage, stdout);
            return -1;
        default:
            fputs(usage, stderr);
            return 1;
        }
    }
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
    int rc = probes_open(&probes, &loop, &a->probes, &err);
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

int traced_probes_main(int argc, char **argv)
{
    struct arguments a = {.max_memory_mb = MEMORY_DEFAULT_MB, .stuck_ms = STUCK_MS};
    struct error err = {0};
    char directory[PATH_MAX];
    int rc = parse(&a, argc, argv);
    if (rc)
        return rc < 0 ? 0 : rc;
    if (undo_log_directory(directory, &err)) {
        fprintf(stderr, "traced_probes: %s\n", err.text);
        return 1;
    }
    a.probes.run_directory = directory;
    if (a.reset) {
        rc = ftrace_reset(a.probes.tracefs_root, directory, &err);
        if (rc)
            fprintf(stderr, "traced_probes: %s\n", err.text);
        return rc ? 1 : 0;
    }
    int found = ftrace_recover_all(directory, &err);
    if (found)
        fprintf(stderr,
                "traced_probes: a recorder that was killed had left tracefs set up (%d instance%s): taken back%s%s\n",
                found, found == 1 ? "" : "s", err.code ? ", except: " : "", err.text);
    if (a.cleanup)
        return err.code ? 1 : 0;
    if (a.background && daemon(0, 0)) {
        perror("traced_probes: going to the background");
        return 1;
    }
    return run(&a);
}
