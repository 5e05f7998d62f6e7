/* The record applet: one command for a recording of this machine, or of many. */
#include "base/clock.h"
#include "capture/client/perfetto.h"
#include "capture/common/applet.h"
#include "capture/record/daemons.h"
#include "capture/record/presets.h"
#include "capture/record/ssh_machine.h"
#include "capture/record/workload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { START_TIMEOUT_MS = 60000, PRODUCERS_TIMEOUT_MS = 10000 };
enum { FILE_WRITE_PERIOD_MS = 500, FLUSH_PERIOD_MS = 2500 }; /* of a recording of this machine */

struct record {
    struct perfetto_options perfetto;
    struct remote_options remote;
    const char *const *targets;
    unsigned n;
    bool no_host, direct;
    bool shared;          /* a service that runs here anyway does it */
    bool timed;           /* the user has said how long */
    char *const *command; /* NULL: none */
    char binary[PATH_MAX + 16];
    uint64_t random;   /* makes names that nobody else has */
    char scratch[32];  /* such a name, for a machine */
    char relay_to[32]; /* where relays connect to, here */
    struct daemons daemons;
    struct presets presets;
    struct workload workload;
    struct remote remotes[REMOTES_MAX];
    unsigned n_remotes; /* started */
    bool nothing;       /* of what was asked for has started */
};

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

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signum)
{
    (void)signum;
    interrupted = 1;
}

/* The terminal is gone: as if somebody had asked for the end, whoever handles that now. */
static void on_hangup(int signum)
{
    (void)signum;
    raise(SIGTERM);
}

/* A port that is free now, of addresses like `a`; 0: there are none. */
static unsigned free_port(struct sockaddr *a, socklen_t len, int *v6_only)
{
    struct sockaddr_in6 got;
    socklen_t got_len = sizeof got, only_len = sizeof *v6_only;
    unsigned port = 0;
    int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, a, len) == 0 && getsockname(fd, (struct sockaddr *)&got, &got_len) == 0)
        port = ntohs(got.sin6_port); /* where IPv4 has it, too */
    if (fd >= 0 && getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, v6_only, &only_len) != 0)
        *v6_only = 0;
    if (fd >= 0)
        close(fd);
    return port;
}

/* Where relays connect to: of this machine alone, through ssh; or (direct) of all its networks, by IPv6 and IPv4. */
static unsigned relay_addresses(bool direct, char *list, size_t size)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(direct ? INADDR_ANY : INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    int v6_only = 0;
    unsigned port = direct ? free_port((struct sockaddr *)&v6, sizeof v6, &v6_only) : 0;
    if (port && v6_only)
        snprintf(list, size, "[::]:%u,0.0.0.0:%u", port, port);
    else if (port)
        snprintf(list, size, "[::]:%u", port);
    else if ((port = free_port((struct sockaddr *)&v4, sizeof v4, &v6_only)) != 0)
        snprintf(list, size, "%s:%u", direct ? "0.0.0.0" : "127.0.0.1", port);
    return port;
}

static int start_service(struct record *r, struct error *err)
{
    char addresses[64] = "";
    unsigned port = r->n ? relay_addresses(r->direct, addresses, sizeof addresses) : 0;
    snprintf(r->relay_to, sizeof r->relay_to, "127.0.0.1:%u", port);
    r->remote.direct_port = port;
    r->remote.relay_to = r->direct ? NULL : r->relay_to;
    return daemons_start_service(&r->daemons, r->n ? addresses : NULL, err);
}

static unsigned count_state(const struct record *r, enum remote_state state)
{
    unsigned n = 0;
    for (unsigned i = 0; i < r->n_remotes; i++)
        n += r->remotes[i].state == state;
    return n;
}

static int64_t now_ms(void)
{
    return clock_now_ns(CLOCK_MONOTONIC) / 1000000;
}

/* All machines at once; the first that fails ends it. */
static int start_machines(struct record *r, struct error *err)
{
    for (unsigned i = 0; i < r->n; i++) {
        snprintf(r->scratch, sizeof r->scratch, "%016llx-%u", (unsigned long long)r->random,
                 i); /* they may share a disk */
        int rc = remote_start(&r->remotes[i], r->targets[i], &r->remote, err);
        if (rc)
            return rc;
        r->n_remotes++;
    }
    /* By the clock: while a program is copied, every step is short. */
    for (int64_t until = now_ms() + START_TIMEOUT_MS; now_ms() < until && !interrupted;) {
        unsigned ready = count_state(r, REMOTE_READY);
        if (ready == r->n)
            return 0;
        for (unsigned i = 0; i < r->n; i++)
            if (r->remotes[i].state == REMOTE_FAILED)
                return error_set(err, -MRD_EIO, "%s: %s", r->targets[i], r->remotes[i].why);
        remotes_step(r->remotes, r->n, 100);
    }
    return interrupted ? error_set(err, -MRD_EIO, "interrupted")
                       : error_set(err, -MRD_EIO, "not all machines were ready within %d s", START_TIMEOUT_MS / 1000);
}

static void wait_for_producers(struct record *r)
{
    unsigned want = r->n + !r->no_host;
    for (int64_t until = now_ms() + PRODUCERS_TIMEOUT_MS; now_ms() < until && !interrupted;) {
        if (daemons_count_producers(&r->daemons) >= want)
            return;
        remotes_step(r->remotes, r->n, 50);
    }
    if (!interrupted)
        fprintf(stderr, "record: %s not ready yet; it is recorded from the moment it is ready\n",
                r->n ? "a machine is" : "the program that reads the kernel's events is");
}

/* Each machine has the buffer's size for itself, unless the config says something else: a busy one does not push out
 * what a quiet one has recorded. */
static void give_machines_rings(Mrd__TraceConfig *config)
{
    for (size_t i = 0; i < config->n_buffers; i++) {
        Mrd__TraceConfig__BufferConfig *b = config->buffers[i];
        if (b->has_machine_size_kb)
            continue;
        b->has_machine_size_kb = true;
        b->machine_size_kb = b->size_kb;
    }
}

/* Everything that happens goes into the file, however long it takes; a config of the user's says itself what it wants.
 */
static void write_while_recording(Mrd__TraceConfig *config)
{
    config->has_write_into_file = config->write_into_file = true;
    config->has_file_write_period_ms = true;
    config->file_write_period_ms = FILE_WRITE_PERIOD_MS;
    config->has_flush_period_ms = true;
    config->flush_period_ms = FLUSH_PERIOD_MS;
}

/* Every machine records what the config says. */
static int record_now(struct record *r, struct error *err)
{
    Mrd__TraceConfig *config = NULL;
    int rc = perfetto_load_config(&r->perfetto, &config, err);
    if (!rc && r->command)
        rc = workload_start(&r->workload, r->command, err);
    if (rc) {
        if (config)
            mrd__trace_config__free_unpacked(config, NULL);
        return rc;
    }
    if (r->command) {
        r->perfetto.notify_fd = r->workload.go; /* which closes it */
        r->workload.go = -1;
        r->perfetto.until_fd = r->workload.end;
    }
    if (r->n) {
        config->has_trace_all_machines = config->trace_all_machines = true;
        give_machines_rings(config);
        fprintf(stderr, "record: recording %u machine%s\n", r->n + !r->no_host, r->n + !r->no_host == 1 ? "" : "s");
    } else if (!r->perfetto.config_path) {
        write_while_recording(config);
    }
    int code = perfetto_record(&r->perfetto, config); /* signals are its own meanwhile: it saves what there is */
    mrd__trace_config__free_unpacked(config, NULL);
    signal(SIGINT, SIG_IGN); /* the rest is short and must be whole */
    signal(SIGTERM, SIG_IGN);
    remotes_step(r->remotes, r->n, 0);
    for (unsigned i = 0; i < r->n; i++)
        if (r->remotes[i].state == REMOTE_FAILED)
            fprintf(stderr, "record: %s: %s; the trace holds what arrived before\n", r->targets[i], r->remotes[i].why);
    r->nothing = code == EXIT_NOTHING;
    return code == EXIT_OK || r->nothing ? 0 : error_set(err, -MRD_EIO, "the recording failed");
}

/* What the command made of itself: its exit status. A recording that was interrupted ends it. */
static int end_command(struct record *r)
{
    struct pollfd p = {.fd = r->workload.end, .events = POLLIN};
    int status = 0;
    if (!r->command)
        return 0;
    bool runs = r->workload.supervisor && poll(&p, 1, 0) == 0;
    if (runs && r->timed)
        fprintf(stderr, "record: the recording is over; waiting for %s to end\n", r->command[0]);
    if (!workload_end(&r->workload, runs && !r->timed, &status))
        return 0;
    if (status)
        fprintf(stderr, "record: %s ended with status %d\n", r->command[0], status);
    return status;
}

static void say_what_next(const char *out)
{
    fprintf(stderr,
            "record: next:  tp_shell check %s          # was anything lost?\n"
            "               tp_shell %s                # ask it, in SQL\n"
            "               tp_shell server http %s    # see it, on https://ui.perfetto.dev\n",
            out, out, out);
}

static int find_binary(struct record *r, struct error *err)
{
    snprintf(r->binary, sizeof r->binary, "%s-static", r->daemons.self);
    if (!r->remote.binary && access(r->binary, R_OK) == 0)
        r->remote.binary = r->binary;
    if (r->remote.always_copy && !r->remote.binary)
        return error_set(
            err, -MRD_ENOTFOUND,
            "there is no %s: build it with cmake --build … --target tracebox-static, or name it with --binary",
            r->binary);
    return 0;
}

/* Chooses what to record, and who does it. */
static int choose_events(struct record *r, const struct record_flags *f, struct error *err)
{
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

static int prepare(struct record *r, const struct record_flags *f, struct error *err)
{
    if (getrandom(&r->random, sizeof r->random, 0) != sizeof r->random)
        return error_set_errno(err, errno, "getrandom");
    int rc = daemons_init(&r->daemons, err);
    if (!rc)
        rc = find_binary(r, err);
    r->remote.scratch = r->scratch;
    r->shared = !rc && !r->n && daemons_offered(&r->daemons, "linux.ftrace");
    return rc ? rc : choose_events(r, f, err);
}

/* Starts what is needed, here and elsewhere. */
static int start(struct record *r, struct error *err)
{
    if (r->shared) {
        fprintf(stderr, "record: using the tracing service that runs on this machine\n");
        return 0;
    }
    int rc = start_service(r, err);
    if (!rc && !r->no_host)
        rc = daemons_start_probes(&r->daemons, err);
    if (!rc)
        rc = start_machines(r, err);
    if (!rc)
        wait_for_producers(r);
    return rc;
}

static int run(struct record *r, const struct record_flags *f)
{
    struct error err = {0};
    if (prepare(r, f, &err) != 0) {
        fprintf(stderr, "record: %s\n", err.text);
        return EXIT_FAILED;
    }
    signal(SIGPIPE, SIG_IGN);
    sigaction(SIGINT, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
    struct sigaction hangup;
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) /* unless under nohup */
        sigaction(SIGHUP, &(struct sigaction){.sa_handler = on_hangup}, NULL);
    int rc = start(r, &err);
    if (!rc)
        rc = interrupted ? error_set(&err, -MRD_EIO, "interrupted") : record_now(r, &err);
    int status = end_command(r);
    if (rc)
        fprintf(stderr, "record: %s%s\n", err.text,
                strcmp(err.text, "the recording failed") == 0 ? "" : "; nothing was recorded");
    else if (!r->nothing)
        say_what_next(r->perfetto.out);
    remotes_stop(r->remotes, r->n_remotes);
    daemons_stop(&r->daemons, rc && !interrupted && child_ended(&r->daemons.traced, NULL));
    return rc ? EXIT_FAILED : r->nothing ? EXIT_NOTHING : status;
}

/* What is wrong with the command line, NULL: nothing. */
static const char *check_flags(const struct record_flags *f)
{
    for (size_t i = 0; i < f->machines.n; i++)
        if (!*f->machines.p[i] || *f->machines.p[i] == '-') /* ssh would take -… for an option */
            return "--machine: the name of a machine is empty or begins with '-'";
    return f->machines.n > REMOTES_MAX      ? "too many machines"
           : f->no_host && !f->machines.n   ? "--no-host needs --machine"
           : !f->out                        ? "--out is needed: the trace goes there"
           : f->config_path && f->events.n  ? "--config and events exclude each other"
           : f->config_path && f->presets.n ? "--config and --preset exclude each other"
                                            : NULL;
}

static int run_flags(const struct record_flags *f, char *const *command)
{
    static struct record r; /* large: not for the stack */
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
    int rc = run(&r, f);
    presets_free(&r.presets);
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
    if (good && f.help) {
        applet_help(stdout, "record", &flags);
        rc = 0;
    } else if (good && f.version) {
        printf("Meridian v%s\n", MERIDIAN_VERSION);
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
