/* The profile applet: samples what the processors run, and shows the functions that they ran most. */
#include "capture/common/applet.h"
#include "capture/record/profile_heap.h"
#include "capture/record/profile_top.h"
#include "capture/record/record_run.h"
#include "wire/pb_writer.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OFF_CPU_EVENTS = 2 }; /* sched_switch and sched_waking */
enum { DEFAULT_HZ = 99, MAX_HZ = 100000, DEFAULT_ROWS = 20 };
enum { READ_MS = 50, DWARF_READ_MS = 20, LEAST_PAGES = 256, MOST_PAGES = 4096, RING_TURNS = 8 };

static const struct flag flag_rows[] = {
#define FLAG(...) FLAG_ROW(struct profile_flags, __VA_ARGS__),
#include "capture/record/profile_flags.def"
#undef FLAG
};
static const struct flag_table flags = {flag_rows, sizeof flag_rows / sizeof *flag_rows,
                                        offsetof(struct profile_flags, none)};

static void put_text(struct pb_writer *w, const char *text)
{
    pb_put_raw(w, text, strlen(text));
}

/* A scope of these processes and control groups; without any it is that of all processes. */
static void put_scope(struct pb_writer *w, const struct text_list *pids, const struct text_list *cgroups)
{
    put_text(w, " scope {");
    for (size_t i = 0; i < pids->n; i++) {
        char text[48];
        int n = snprintf(text, sizeof text, " target_pid: %d", atoi(pids->p[i]));
        pb_put_raw(w, text, (size_t)n);
    }
    for (size_t i = 0; i < cgroups->n; i++) {
        put_text(w, " target_cgroup: \"");
        for (const char *c = cgroups->p[i]; *c; c++) { /* any byte, as a number: systemd has backslashes in its names */
            char text[8];
            int n = snprintf(text, sizeof text, "\\%03o", (unsigned char)*c);
            pb_put_raw(w, text, (size_t)n);
        }
        put_text(w, "\"");
    }
    put_text(w, " }");
}

static long long frequency_of(const struct profile_flags *f)
{
    return f->frequency.given ? (long long)f->frequency.value : DEFAULT_HZ;
}

/* Copied stacks take 64 KiB of a ring each. It has room for the samples of several turns of reading, as far as memory
 * may be locked for it: a turn that comes late loses none then. */
static unsigned ring_pages(const struct profile_flags *f)
{
    unsigned pages = LEAST_PAGES;
    if (f->dwarf)
        while (pages < MOST_PAGES && pages * 4096ll < frequency_of(f) * (1 << 16) * DWARF_READ_MS / 1000 * RING_TURNS)
            pages *= 2;
    return pages;
}

static void put_source(struct pb_writer *w, const struct profile_flags *f, const char *timebase, unsigned pages)
{
    char text[160];
    put_text(w, "data_sources { config { name: \"linux.perf\" perf_event_config { timebase { ");
    put_text(w, timebase);
    snprintf(text, sizeof text,
             " timestamp_clock: PERF_CLOCK_MONOTONIC } ring_buffer_read_period_ms: %d "
             "ring_buffer_pages: %u callstack_sampling { kernel_frames: true user_frames: ",
             f->dwarf ? DWARF_READ_MS : READ_MS, pages);
    put_text(w, text);
    put_text(w, f->dwarf ? "UNWIND_DWARF" : "UNWIND_KERNEL_FRAME_POINTER");
    put_scope(w, &f->pids, &f->cgroups);
    put_text(w, " } } } }\n");
}

/* The data sources as text: the samples, and what names the processes. */
static int choose(struct record *r, const void *flag_values, struct error *err)
{
    static const char *const names[] = {"task/task_newtask", "task/task_rename"},
                             *const switches[] = {"sched/sched_switch", "sched/sched_waking", "sched/sched_wakeup_new",
                                                  "task/task_newtask",  "task/task_rename",   "waits"};
    const struct profile_flags *f = flag_values;
    struct pb_writer w = {0};
    char timebase[80];
    if (geteuid() != 0 && !r->shared && !r->no_host)
        return error_set(err, -MRD_EDENIED, "sampling needs root: run it with sudo");
    snprintf(timebase, sizeof timebase, "counter: SW_CPU_CLOCK frequency: %lld", frequency_of(f));
    put_source(&w, f, timebase, ring_pages(f));
    r->perfetto.categories =
        (struct text_list){.p = (const char **)(uintptr_t)names, .n = sizeof names / sizeof *names};
    if (f->off_cpu) {
        /* the compact form does not say who stops, and kernels of virtual machines leave out switches */
        r->perfetto.full_switches = true;
        put_source(&w, f, "period: 1 tracepoint { name: \"sched/sched_switch\" filter: \"prev_pid != 0\" }",
                   f->dwarf ? MOST_PAGES : LEAST_PAGES);
        put_source(&w, f, "period: 1 tracepoint { name: \"sched/sched_waking\" }", f->dwarf ? MOST_PAGES : LEAST_PAGES);
        r->perfetto.categories =
            (struct text_list){.p = (const char **)(uintptr_t)switches, .n = sizeof switches / sizeof *switches};
    }
    pb_put_raw(&w, "", 1);
    return record_own_sources(r, &w, err);
}

/* The table is made of the file: what goes into a pipe or a device cannot be read again. */
static bool can_be_read_again(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && (stat(path, &st) != 0 || S_ISREG(st.st_mode));
}

/* What is wrong with the command line, NULL: nothing. */
static const char *check_flags(const struct profile_flags *f, bool command)
{
    for (size_t i = 0; i < f->pids.n; i++) {
        char *end;
        long pid = strtol(f->pids.p[i], &end, 10);
        if (end == f->pids.p[i] || *end || pid <= 0 || pid > INT32_MAX)
            return "--pid: use the number of a process";
        if (!f->machines.n && kill((pid_t)pid, 0) != 0 && errno == ESRCH)
            return "--pid: there is no such process on this machine";
    }
    const char *machines = record_check_machines(&f->machines, f->no_host);
    const char *heap = profile_heap_check(f, command);
    return machines                     ? machines
           : heap                       ? heap
           : !can_be_read_again(f->out) ? "--out: use a file: the table is made of it"
           : f->frequency.given && (f->frequency.value < 1 || f->frequency.value > MAX_HZ)
               ? "--frequency: use a number from 1 to 100000"
           : f->rows.given && (f->rows.value < 1 || f->rows.value > 100000) ? "--rows: use a number from 1 to 100000"
                                                                            : NULL;
}

/* Shows the table; false: what was asked for is not all there. */
static bool show(const struct record *r, const struct profile_flags *f)
{
    struct profile_counts n = {0};
    struct error err = {0};
    if (profile_top(r->perfetto.out, (unsigned)f->rows.value, f->callers, stdout, &n, &err)) {
        fprintf(stderr, "profile: %s\n", err.text);
        return false;
    }
    fflush(stdout);
    fprintf(stderr,
            "profile: %llu samples of running threads, %llu of idle processors; %llu without a stack, %llu lost\n",
            (unsigned long long)n.samples, (unsigned long long)n.idle, (unsigned long long)n.skipped,
            (unsigned long long)n.lost);
    if (!n.samples && !n.skipped && !n.lost)
        fprintf(stderr, "profile: nothing of what was to be sampled ran on a processor%s\n",
                f->off_cpu ? "" : "; --off-cpu records why threads wait");
    if (!r->shared && !r->no_host)
        fprintf(stderr, "profile: overhead: traced_perf used %llu ms of processor time\n",
                (unsigned long long)r->perf_ms);
    bool whole = !f->off_cpu || n.events >= OFF_CPU_EVENTS * ((uint64_t)r->n + !r->no_host);
    if (!whole)
        fprintf(stderr, "profile: why threads wait was not recorded%s: see above\n",
                r->n ? ", not on all machines" : "");
    fprintf(stderr, "profile: the trace is in %s: tp_shell %s\n", r->perfetto.out, r->perfetto.out);
    return whole;
}

static int run_flags(const struct profile_flags *f, char *const *command)
{
    static struct record r; /* large: not for the stack */
    r.name = "profile";
    r.needs = f->heap ? "android.heapprofd" : "linux.perf";
    r.own = f->heap && command;
    r.perfetto = (struct perfetto_options){.notify_fd = -1,
                                           .until_fd = -1,
                                           .out = f->out,
                                           .time = f->time   ? f->time
                                                   : command ? "0"
                                                             : NULL,
                                           .buffer = f->buffer,
                                           .light = true};
    r.timed = f->time != NULL;
    r.command = command;
    r.targets = f->machines.p;
    r.n = (unsigned)f->machines.n;
    r.no_host = f->no_host;
    r.direct = f->direct;
    r.remote.binary = f->binary;
    r.remote.always_copy = f->always_copy;
    r.remote.ssh = f->ssh;
    int rc = record_run(&r, f->heap ? profile_heap_choose : choose, f);
    if (r.recorded && !(f->heap ? profile_heap_show : show)(&r, f))
        rc = EXIT_FAILED;
    record_free(&r);
    return rc;
}

int profile_main(int argc, char **argv)
{
    struct profile_flags f = {0};
    int rc = 1, n = 1;
    while (n < argc && strcmp(argv[n], "--") != 0) /* behind it: the command */
        n++;
    char *const *command = n + 1 < argc ? argv + n + 1 : NULL;
    bool good = applet_flags_only("profile", &flags, &f, n, argv);
    if (!f.out)
        f.out = "profile.pftrace";
    if (!f.rows.given)
        f.rows.value = DEFAULT_ROWS;
    const char *wrong = good ? check_flags(&f, command != NULL) : NULL;
    if (good && applet_tells("profile", &flags, f.help, f.version)) {
        rc = 0;
    } else if (wrong) {
        fprintf(stderr, "profile: %s\n", wrong);
        applet_usage("profile");
    } else if (good) {
        rc = run_flags(&f, command);
    }
    flags_free(&flags, &f);
    return rc;
}
