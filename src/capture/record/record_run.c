/* Runs a recording: starts what is needed, waits, records, ends everything. */
#include "capture/record/record_run.h"

#include "base/alloc.h"
#include "base/clock.h"

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
    unsigned each = 1 + r->remote.perf, want = r->n * each + !r->no_host + r->perf + r->heap;
    for (int64_t until = now_ms() + PRODUCERS_TIMEOUT_MS; now_ms() < until && !interrupted;) {
        if (daemons_count_producers(&r->daemons) >= want)
            return;
        remotes_step(r->remotes, r->n, 50);
    }
    if (!interrupted)
        fprintf(stderr, "%s: %s not ready yet; it is recorded from the moment it is ready\n", r->name,
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
    Mrd__TraceConfig *config = r->config;
    const char *env[DAEMONS_HEAP_ENV + 1] = {NULL};
    int rc = r->command && r->heap && !r->shared ? daemons_heap_env(&r->daemons, env, err) : 0;
    if (!rc && r->command)
        rc = workload_start(&r->workload, r->command, env, err);
    if (rc)
        return rc;
    if (r->command) {
        r->perfetto.notify_fd = r->workload.go; /* which closes it */
        r->workload.go = -1;
        r->perfetto.until_fd = r->workload.end;
    }
    if (r->n) {
        config->has_trace_all_machines = config->trace_all_machines = true;
        give_machines_rings(config);
        fprintf(stderr, "%s: recording %u machine%s\n", r->name, r->n + !r->no_host,
                r->n + !r->no_host == 1 ? "" : "s");
    } else if (!r->perfetto.config_path) {
        write_while_recording(config);
    }
    int code = perfetto_record(&r->perfetto, config); /* signals are its own meanwhile: it saves what there is */
    signal(SIGINT, SIG_IGN);                          /* the rest is short and must be whole */
    signal(SIGTERM, SIG_IGN);
    remotes_step(r->remotes, r->n, 0);
    for (unsigned i = 0; i < r->n; i++)
        if (r->remotes[i].state == REMOTE_FAILED)
            fprintf(stderr, "%s: %s: %s; the trace holds what arrived before\n", r->name, r->targets[i],
                    r->remotes[i].why);
    r->nothing = code == EXIT_NOTHING;
    if (r->heap && !r->shared && !daemons_end_heap(&r->daemons))
        return error_set(err, -MRD_EIO, "heapprofd ended early: what it had not written yet is missing in %s",
                         r->perfetto.out);
    return code == EXIT_OK || r->nothing ? 0 : error_set(err, -MRD_EIO, "the recording failed");
}

/* What the command made of itself: its exit status; -1: it was not run. A recording that was interrupted ends it. */
static int end_command(struct record *r)
{
    struct pollfd p = {.fd = r->workload.end, .events = POLLIN};
    int status = 0;
    if (!r->command)
        return 0;
    bool runs = r->workload.supervisor && poll(&p, 1, 0) == 0;
    if (runs && r->timed)
        fprintf(stderr, "%s: the recording is over; waiting for %s to end\n", r->name, r->command[0]);
    if (!workload_end(&r->workload, runs && !r->timed, &status))
        return -1;
    if (status)
        fprintf(stderr, "%s: %s ended with status %d\n", r->name, r->command[0], status);
    return status;
}

static void say_what_next(const struct record *r)
{
    const char *out = r->perfetto.out;
    fprintf(stderr,
            "%s: next:  tp_shell check %s          # was anything lost?\n"
            "               tp_shell %s                # ask it, in SQL\n"
            "               tp_shell server http %s    # see it, on https://ui.perfetto.dev\n",
            r->name, out, out, out);
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

static bool has_source(const struct record *r, const char *name)
{
    for (size_t i = 0; i < r->config->n_data_sources; i++) {
        const Mrd__DataSourceConfig *c = r->config->data_sources[i]->config;
        if (c && c->name && strcmp(c->name, name) == 0)
            return true;
    }
    return false;
}

static void find_sources(struct record *r)
{
    r->remote.perf = has_source(r, "linux.perf");
    r->perf = r->remote.perf && !r->no_host;
    r->heap = has_source(r, "android.heapprofd") && !r->no_host;
}

static int prepare(struct record *r, int (*choose)(struct record *r, const void *flags, struct error *err),
                   const void *flags, struct error *err)
{
    if (getrandom(&r->random, sizeof r->random, 0) != sizeof r->random)
        return error_set_errno(err, errno, "getrandom");
    int rc = daemons_init(&r->daemons, err);
    if (!rc)
        rc = find_binary(r, err);
    r->remote.scratch = r->scratch;
    r->shared = !rc && !r->n && !r->own && daemons_offered(&r->daemons, r->needs);
    if (!rc)
        rc = choose(r, flags, err);
    if (!rc)
        rc = perfetto_load_config(&r->perfetto, &r->config, err);
    if (!rc)
        find_sources(r);
    return rc;
}

/* Starts what is needed, here and elsewhere. */
static int start(struct record *r, struct error *err)
{
    if (r->shared) {
        fprintf(stderr, "%s: using the tracing service that runs on this machine\n", r->name);
        return 0;
    }
    int rc = start_service(r, err);
    if (!rc && !r->no_host)
        rc = daemons_start_probes(&r->daemons, err);
    if (!rc && r->perf)
        rc = daemons_start_perf(&r->daemons, err);
    if (!rc && r->heap)
        rc = daemons_start_heap(&r->daemons, err);
    if (!rc)
        rc = start_machines(r, err);
    if (!rc)
        wait_for_producers(r);
    return rc;
}

int record_run(struct record *r, int (*choose)(struct record *r, const void *flags, struct error *err),
               const void *flags)
{
    struct error err = {0};
    if (prepare(r, choose, flags, &err) != 0) {
        fprintf(stderr, "%s: %s\n", r->name, err.text);
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
        fprintf(stderr, "%s: %s%s\n", r->name, err.text,
                strcmp(err.text, "the recording failed") == 0 ? "" : "; nothing was recorded");
    else if (!r->nothing && status < 0)
        fprintf(stderr, "%s: %s was not run: nothing had told in time that it was recorded\n", r->name, r->command[0]);
    else if (!r->nothing && r->say_next)
        say_what_next(r);
    r->recorded = !rc && !r->nothing;
    r->perf_ms = daemons_perf_ms(&r->daemons);
    remotes_stop(r->remotes, r->n_remotes);
    daemons_stop(&r->daemons, rc && !interrupted && child_ended(&r->daemons.traced, NULL));
    return rc ? EXIT_FAILED : r->nothing ? EXIT_NOTHING : status < 0 ? EXIT_FAILED : status;
}

int record_own_sources(struct record *r, struct pb_writer *w, struct error *err)
{
    if (w->failed) {
        pb_writer_free(w);
        return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    r->own_sources = (char *)w->p;
    r->perfetto.sources = r->own_sources;
    r->perfetto.standard_sources = true;
    return 0;
}

void record_free(struct record *r)
{
    if (r->config)
        mrd__trace_config__free_unpacked(r->config, NULL);
    r->config = NULL;
    mem_free(r->own_sources);
    r->own_sources = NULL;
    presets_free(&r->presets);
}

const char *record_check_machines(const struct text_list *machines, bool no_host)
{
    for (size_t i = 0; i < machines->n; i++)
        if (!*machines->p[i] || *machines->p[i] == '-') /* ssh would take -… for an option */
            return "--machine: the name of a machine is empty or begins with '-'";
    return machines->n > REMOTES_MAX ? "too many machines"
           : no_host && !machines->n ? "--no-host needs --machine"
                                     : NULL;
}
