/* The applet traced_probes: its command line, signals and life. */
#include "base/dev_flags.h"
#include "base/sandbox.h"
#include "capture/common/applet.h"
#include "capture/probes/common/data_source.h"
#include "capture/probes/ftrace/ftrace_instance.h"
#include "capture/probes/probes_run.h"

#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A recorder that stands still this long is stuck: reading, and waiting for a slow service, take seconds at most. */
enum { MEMORY_DEFAULT_MB = 256, STUCK_MS = 120000 };

struct arguments {
#define FLAG(field, kind, ...) FLAG_TYPE_##kind field;
#include "capture/probes/probes_flags.def"
#undef FLAG
    struct text_list none;
    struct probes_run run;
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

/* What the values of the flags mean. -MRD_EINVALID: nothing. */
static int read_values(struct arguments *a, struct error *err)
{
    bool map = a->ring && strcmp(a->ring, "map") == 0;
    if (a->ring && !map && strcmp(a->ring, "read") != 0)
        return error_set(err, -MRD_EINVALID, "--ring: use read or map");
    for (size_t i = 0; i < a->dev_flags.n; i++) {
        int rc = dev_flag_set(settings, sizeof settings / sizeof *settings, a, a->dev_flags.p[i], err);
        if (rc <= 0)
            return rc < 0 ? rc : error_set(err, -MRD_EINVALID, "no such --dev-flag: '%s'", a->dev_flags.p[i]);
    }
    a->run.options.socket = a->socket;
    a->run.options.tracefs_root = a->tracefs;
    a->run.options.sysroot = a->sysroot;
    a->run.options.mode = map ? RING_MAPPED : RING_READ;
    a->run.stuck_ms = (uint32_t)a->stuck_ms;
    int rc = probes_run_memory(&a->run, a->max_memory, err);
    return rc ? rc : probes_run_service_user(&a->run, a->service_user, err);
}

/* Of root's capabilities those that reading other users' processes, files and symbols of the kernel needs. tracefs
 * belongs to root's user id, which stays. */
#define KEPT (SANDBOX_CAP(CAP_DAC_READ_SEARCH) | SANDBOX_CAP(CAP_SYS_PTRACE) | SANDBOX_CAP(CAP_SYSLOG))

static int run_flags(struct arguments *a)
{
    struct error err = {0};
    char directory[PATH_MAX];
    if (applet_tells("traced_probes", &flags, a->help, a->version))
        return 0;
    if (read_values(a, &err) < 0 || undo_log_directory(directory, &err)) {
        fprintf(stderr, "traced_probes: %s\n", err.text);
        return 1;
    }
    a->run.options.run_directory = directory;
    if (a->reset) {
        int rc = ftrace_reset(a->run.options.tracefs_root, directory, &err);
        if (rc)
            fprintf(stderr, "traced_probes: %s\n", err.text);
        return rc ? 1 : 0;
    }
    int found = ftrace_recover_all(a->run.options.tracefs_root, directory, &err);
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
    return probes_run(&a->run);
}

int traced_probes_main(int argc, char **argv)
{
    struct arguments a = {.stuck_ms = STUCK_MS,
                          .run = {.options = {.name = "traced_probes",
                                              .producer_name = "perfetto.traced_probes",
                                              .sources = data_source_types},
                                  .keep = KEPT,
                                  .max_memory_mb = MEMORY_DEFAULT_MB}};
    int rc = applet_flags_only("traced_probes", &flags, &a, argc, argv) ? run_flags(&a) : 1;
    flags_free(&flags, &a);
    return rc;
}
