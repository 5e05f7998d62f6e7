/* The record applet: one command for a recording of this machine, or of many. */
#include "capture/common/applet.h"
#include "capture/record/record_run.h"

#include <stdio.h>

/* What the command line says. */
struct record_flags {
#define FLAG(field, kind, ...) FLAG_TYPE_##kind field;
#include "capture/record/record_flags.def"
#undef FLAG
    struct text_list events;
};

static const struct flag flag_rows[] = {
#define FLAG(...) FLAG_ROW(struct record_flags, __VA_ARGS__),
#include "capture/record/record_flags.def"
#undef FLAG
};
static const struct flag_table flags = {flag_rows, sizeof flag_rows / sizeof *flag_rows,
                                        offsetof(struct record_flags, events)};

/* Chooses what to record, and who does it. */
static int choose_events(struct record *r, const void *flag_values, struct error *err)
{
    const struct record_flags *f = flag_values;
    const struct text_list usual = {.p = (const char *[]){"sched"}, .n = 1};
    bool none = !f->events.n && !f->presets.n, here = !f->machines.n;
    bool open = !here || r->shared || presets_kernel_is_open();
    if (f->config_path)
        return 0;
    if (!open && !none)
        return error_set(err, -MRD_EIO,
                         "kernel events need root: run it with sudo, or leave out events and presets to record "
                         "processes and the figures of /proc");
    if (!open) {
        fprintf(stderr, "record: not root: recording processes, CPU time, memory and disks from /proc; for what the "
                        "kernel does, run it with sudo\n");
        r->perfetto.sources = presets_unprivileged;
        return 0;
    }
    int rc = presets_expand(&r->presets, none ? &usual : &f->presets, &f->events, here, err);
    r->perfetto.categories = r->presets.events;
    r->perfetto.sources = r->presets.sources;
    r->perfetto.standard_sources = true;
    return rc;
}

/* What is wrong with the command line, NULL: nothing. */
static const char *check_flags(const struct record_flags *f)
{
    const char *wrong = record_check_machines(&f->machines, f->no_host);
    return wrong                            ? wrong
           : !f->out                        ? "--out is needed: the trace goes there"
           : f->config_path && f->events.n  ? "--config and events exclude each other"
           : f->config_path && f->presets.n ? "--config and --preset exclude each other"
                                            : NULL;
}

static int run_flags(const struct record_flags *f, char *const *command)
{
    static struct record r; /* large: not for the stack */
    r.name = "record";
    r.needs = "linux.ftrace";
    r.say_next = true;
    r.perfetto = (struct perfetto_options){.notify_fd = -1,
                                           .until_fd = -1,
                                           .out = f->out,
                                           .time = f->time   ? f->time
                                                   : command ? "0"
                                                             : NULL,
                                           .buffer = f->buffer,
                                           .config_path = f->config_path,
                                           .text = f->text,
                                           .light = !f->config_path};
    r.timed = f->time != NULL;
    r.command = command;
    r.targets = f->machines.p;
    r.n = (unsigned)f->machines.n;
    r.no_host = f->no_host;
    r.direct = f->direct;
    r.remote.binary = f->binary;
    r.remote.always_copy = f->always_copy;
    r.remote.ssh = f->ssh;
    int rc = record_run(&r, choose_events, f);
    record_free(&r);
    return rc;
}

int record_main(int argc, char **argv)
{
    struct record_flags f = {0};
    int rc = 1, n = 1;
    while (n < argc && strcmp(argv[n], "--") != 0) /* behind it: the command */
        n++;
    char *const *command = n + 1 < argc ? argv + n + 1 : NULL;
    bool good = applet_flags("record", &flags, &f, n, argv);
    const char *wrong = good ? check_flags(&f) : NULL;
    if (good && applet_tells("record", &flags, f.help, f.version)) {
        rc = 0;
    } else if (wrong) {
        fprintf(stderr, "record: %s\n", wrong);
        applet_usage("record");
    } else if (good) {
        rc = run_flags(&f, command);
    }
    flags_free(&flags, &f);
    return rc;
}
