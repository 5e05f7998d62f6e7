/* The applet heapprofd: its command line and what it may do. */
#include "base/sandbox.h"
#include "capture/common/applet.h"
#include "capture/common/daemon.h"
#include "capture/heap/heap_peer.h"
#include "capture/heap/heap_source.h"
#include "capture/perf/perf_kernel.h"
#include "capture/probes/common/data_source.h"
#include "capture/probes/probes_run.h"

#include <linux/capability.h>
#include <stdio.h>

enum { MEMORY_DEFAULT_MB = 1024, STUCK_MS = 120000 };

struct arguments {
#define FLAG(field, kind, ...) FLAG_TYPE_##kind field;
#include "capture/heap/heap_flags.def"
#undef FLAG
    struct text_list none;
};

static const struct flag flag_rows[] = {
#define FLAG(...) FLAG_ROW(struct arguments, __VA_ARGS__),
#include "capture/heap/heap_flags.def"
#undef FLAG
};
static const struct flag_table flags = {flag_rows, sizeof flag_rows / sizeof *flag_rows,
                                        offsetof(struct arguments, none)};

static const struct data_source_type *const sources[] = {&heap_data_source, &metatrace_data_source, NULL};

/* Reading other users' maps and files. */
#define KEPT (SANDBOX_CAP(CAP_SYS_PTRACE) | SANDBOX_CAP(CAP_DAC_READ_SEARCH) | SANDBOX_CAP(CAP_CHECKPOINT_RESTORE))

static int start_hub(void *ctx, uv_loop_t *loop, struct error *err)
{
    return heap_hub_start(ctx, loop, err);
}

static void stop_hub(void *ctx)
{
    heap_hub_stop(ctx);
}

static int run_flags(const struct arguments *a)
{
    struct error err = {0};
    struct perf_shared shared = {.kallsyms = -1, .files.threads = true};
    struct heap_hub hub = {.listening = -1};
    struct probes_run run = {.options = {.name = "heapprofd",
                                         .producer_name = "android.heapprofd",
                                         .sources = sources,
                                         .perf = &shared,
                                         .heap = &hub,
                                         .scraping = true,
                                         .notify_env = "HEAPPROFD_NOTIFY_FD",
                                         .socket = a->socket},
                             .keep = KEPT,
                             .max_memory_mb = MEMORY_DEFAULT_MB,
                             .stuck_ms = STUCK_MS,
                             .begin = start_hub,
                             .end = stop_hub,
                             .ctx = &hub};
    if (applet_tells("heapprofd", &flags, a->help, a->version))
        return 0;
    int rc = probes_run_memory(&run, a->max_memory, &err);
    if (!rc)
        rc = probes_run_service_user(&run, a->service_user, &err);
    if (!rc)
        rc = heap_hub_listen(&hub, a->listen, &err);
    if (!rc && a->background)
        rc = daemon_detach(&err);
    if (rc) {
        fprintf(stderr, "heapprofd: %s\n", err.text);
        heap_hub_close(&hub);
        return 1;
    }
    rc = probes_run(&run);
    heap_hub_close(&hub);
    perf_shared_free(&shared);
    return rc;
}

int heapprofd_main(int argc, char **argv)
{
    struct arguments a = {0};
    int rc = applet_flags_only("heapprofd", &flags, &a, argc, argv) ? run_flags(&a) : 1;
    flags_free(&flags, &a);
    return rc;
}
