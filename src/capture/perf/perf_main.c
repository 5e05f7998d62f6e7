/* The applet traced_perf: its command line and what it may do. */
#include "base/sandbox.h"
#include "capture/common/applet.h"
#include "capture/common/daemon.h"
#include "capture/perf/perf_kernel.h"
#include "capture/perf/perf_source.h"
#include "capture/probes/probes_run.h"

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { MEMORY_DEFAULT_MB = 512, STUCK_MS = 120000 };

/* Ahead of what it samples: as one of thirty tasks that share two processors it lost half of the copied stacks at 999
 * Hz, at this priority none. It needs a few percent of a processor. */
enum { NICE = -10 };

struct arguments {
#define FLAG(field, kind, ...) FLAG_TYPE_##kind field;
#include "capture/perf/perf_flags.def"
#undef FLAG
    struct text_list none;
};

static const struct flag flag_rows[] = {
#define FLAG(...) FLAG_ROW(struct arguments, __VA_ARGS__),
#include "capture/perf/perf_flags.def"
#undef FLAG
};
static const struct flag_table flags = {flag_rows, sizeof flag_rows / sizeof *flag_rows,
                                        offsetof(struct arguments, none)};

static const struct data_source_type *const sources[] = {&perf_data_source, &metatrace_data_source, NULL};

/* Opening events of all tasks and mapping their rings; reading other users' maps, memory and files. */
#define KEPT                                                                                                           \
    (SANDBOX_CAP(CAP_PERFMON) | SANDBOX_CAP(CAP_IPC_LOCK) | SANDBOX_CAP(CAP_SYS_PTRACE) |                              \
     SANDBOX_CAP(CAP_DAC_READ_SEARCH) | SANDBOX_CAP(CAP_CHECKPOINT_RESTORE) | SANDBOX_CAP(CAP_SYSLOG))

static int run_flags(const struct arguments *a)
{
    struct error err = {0};
    struct perf_shared shared;
    struct probes_run run = {.options = {.name = "traced_perf",
                                         .producer_name = "perfetto.traced_perf",
                                         .sources = sources,
                                         .perf = &shared,
                                         .scraping = true,
                                         .notify_env = "TRACED_PERF_NOTIFY_FD",
                                         .socket = a->socket},
                             .keep = KEPT,
                             .max_memory_mb = MEMORY_DEFAULT_MB,
                             .stuck_ms = STUCK_MS};
    if (applet_tells("traced_perf", &flags, a->help, a->version))
        return 0;
    int rc = probes_run_memory(&run, a->max_memory, &err);
    if (!rc)
        rc = probes_run_service_user(&run, a->service_user, &err);
    if (!rc && a->background)
        rc = daemon_detach(&err);
    if (rc) {
        fprintf(stderr, "traced_perf: %s\n", err.text);
        return 1;
    }
    (void)setpriority(PRIO_PROCESS, 0, NICE); /* where it may */
    perf_shared_init(&shared);
    rc = probes_run(&run);
    perf_shared_free(&shared);
    return rc;
}

int traced_perf_main(int argc, char **argv)
{
    struct arguments a = {0};
    int rc = applet_flags_only("traced_perf", &flags, &a, argc, argv) ? run_flags(&a) : 1;
    flags_free(&flags, &a);
    return rc;
}
