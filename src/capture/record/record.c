/* The record applet: one command for a recording of many machines. */
#include "base/clock.h"
#include "capture/client/perfetto.h"
#include "capture/common/applet.h"
#include "capture/record/ssh_machine.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

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

struct record {
    struct perfetto_options perfetto;
    struct remote_options remote;
    const char *const *targets;
    unsigned n;
    bool no_host, direct;
    char self[PATH_MAX], binary[PATH_MAX + 16];
    char dir[64];      /* our scratch directory */
    uint64_t random;   /* makes names that nobody else has */
    char scratch[32];  /* such a name, for a machine */
    char relay_to[32]; /* where relays connect to, here */
    struct child traced, probes;
    struct remote remotes[REMOTES_MAX];
    unsigned n_remotes; /* started */
    bool nothing;       /* of what was asked for has started */
};

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
    char producers[192], addresses[64] = "", notify[32], log[96];
    int ready[2];
    unsigned port = relay_addresses(r->direct, addresses, sizeof addresses);
    if (pipe(ready) != 0)
        return error_set_errno(err, errno, "pipe");
    fcntl(ready[0], F_SETFD, FD_CLOEXEC);
    snprintf(r->relay_to, sizeof r->relay_to, "127.0.0.1:%u", port);
    r->remote.direct_port = port;
    r->remote.relay_to = r->direct ? NULL : r->relay_to;
    snprintf(producers, sizeof producers, "PERFETTO_PRODUCER_SOCK_NAME=%s/producer,%s", r->dir, addresses);
    snprintf(notify, sizeof notify, "TRACED_NOTIFY_FD=%d", ready[1]);
    snprintf(log, sizeof log, "%s/traced.log", r->dir);
    int rc = child_start(&r->traced,
                         &(struct child_options){
                             .argv = (char *[]){r->self, (char[]){"traced"}, (char[]){"--enable-relay-endpoint"}, NULL},
                             .env = (const char *[]){producers, notify, NULL},
                             .log = log},
                         err);
    close(ready[1]);
    struct pollfd p = {.fd = ready[0], .events = POLLIN};
    char one = 0;
    if (!rc && (poll(&p, 1, 10000) <= 0 || read(ready[0], &one, 1) != 1))
        rc = error_set(err, -MRD_EIO, "the service does not start; see %s", log);
    close(ready[0]);
    return rc;
}

static int start_probes(struct record *r, struct error *err)
{
    char producer[128], log[96];
    snprintf(producer, sizeof producer, "PERFETTO_PRODUCER_SOCK_NAME=%s/producer", r->dir);
    snprintf(log, sizeof log, "%s/probes.log", r->dir);
    return child_start(&r->probes,
                       &(struct child_options){.argv = (char *[]){r->self, (char[]){"traced_probes"}, NULL},
                                               .env = (const char *[]){producer, NULL},
                                               .log = log},
                       err);
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

/* Producers that are connected, as the service tells. */
static unsigned count_producers(struct record *r)
{
    struct error err = {0};
    struct child c;
    struct pb_writer state = {0};
    unsigned n = 0;
    if (child_start(
            &c,
            &(struct child_options){.argv = (char *[]){r->self, (char[]){"perfetto"}, (char[]){"--query-raw"}, NULL},
                                    .pipes = true},
            &err) != 0)
        return 0;
    for (;;) {
        char buf[4096];
        struct pollfd p = {.fd = c.out, .events = POLLIN};
        ssize_t got = poll(&p, 1, 2000) > 0 ? read(c.out, buf, sizeof buf) : 0;
        if (got <= 0)
            break;
        pb_put_raw(&state, buf, (size_t)got);
    }
    child_stop(&c, SIGTERM, 1000);
    struct pb_field f;
    for (struct pb_cursor q = pb_cursor(pb_written(&state)); pb_next(&q, &f);)
        n += f.id == TRACING_SERVICE_STATE_PRODUCERS;
    pb_writer_free(&state);
    return n;
}

static void wait_for_producers(struct record *r)
{
    unsigned want = r->n + !r->no_host;
    for (int64_t until = now_ms() + PRODUCERS_TIMEOUT_MS; now_ms() < until && !interrupted;) {
        if (count_producers(r) >= want)
            return;
        remotes_step(r->remotes, r->n, 50);
    }
    if (!interrupted)
        fprintf(stderr, "record: some machines are not ready yet; they are recorded from when they are\n");
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

/* Every machine records what the config says. */
static int record_now(struct record *r, struct error *err)
{
    Mrd__TraceConfig *config = NULL;
    int rc = perfetto_load_config(&r->perfetto, &config, err);
    if (rc)
        return rc;
    config->has_trace_all_machines = config->trace_all_machines = true;
    give_machines_rings(config);
    fprintf(stderr, "record: recording %u machine%s\n", r->n + !r->no_host, r->n + !r->no_host == 1 ? "" : "s");
    int code = perfetto_record(&r->perfetto, config); /* signals are its own meanwhile: it saves what there is */
    mrd__trace_config__free_unpacked(config, NULL);
    signal(SIGINT, SIG_IGN); /* the rest is short and must be whole */
    signal(SIGTERM, SIG_IGN);
    remotes_step(r->remotes, r->n, 0);
    for (unsigned i = 0; i < r->n; i++)
        if (r->remotes[i].state == REMOTE_FAILED)
            fprintf(stderr, "record: %s: %s: the trace has what came until then\n", r->targets[i], r->remotes[i].why);
    r->nothing = code == EXIT_NOTHING;
    return code == EXIT_OK || r->nothing ? 0 : error_set(err, -MRD_EIO, "the recording failed");
}

static void remove_file(const char *dir, const char *name)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    unlink(path);
}

/* The end of the service's log: the last words before a failure. */
static void show_log(const struct record *r)
{
    char path[96], text[2048];
    snprintf(path, sizeof path, "%s/traced.log", r->dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof text, size > (off_t)sizeof text ? size - (off_t)sizeof text : 0);
    if (n > 0)
        fprintf(stderr, "record: the service said:\n%.*s", (int)n, text);
    if (fd >= 0)
        close(fd);
}

static void clean_up(struct record *r, bool failed)
{
    remotes_stop(r->remotes, r->n_remotes);
    child_stop(&r->probes, SIGTERM, 5000);
    child_stop(&r->traced, SIGTERM, 5000);
    remove_file(r->dir, "producer");
    remove_file(r->dir, "consumer");
    if (failed)
        show_log(r);
    remove_file(r->dir, "traced.log");
    remove_file(r->dir, "probes.log");
    rmdir(r->dir);
}

static int prepare(struct record *r, struct error *err)
{
    ssize_t n = readlink("/proc/self/exe", r->self, sizeof r->self - 1);
    if (n <= 0 || getrandom(&r->random, sizeof r->random, 0) != sizeof r->random)
        return error_set_errno(err, errno, "/proc/self/exe");
    r->self[n] = 0;
    snprintf(r->binary, sizeof r->binary, "%s-static", r->self);
    if (!r->remote.binary && access(r->binary, R_OK) == 0)
        r->remote.binary = r->binary;
    if (r->remote.always_copy && !r->remote.binary)
        return error_set(
            err, -MRD_ENOTFOUND,
            "there is no %s: build it with cmake --build … --target tracebox-static, or name it with --binary",
            r->binary);
    r->remote.scratch = r->scratch;
    snprintf(r->dir, sizeof r->dir, "/tmp/tracebox-record.XXXXXX");
    if (!mkdtemp(r->dir))
        return error_set_errno(err, errno, "%s", r->dir);
    char consumer[80];
    snprintf(consumer, sizeof consumer, "%s/consumer", r->dir);
    setenv("PERFETTO_CONSUMER_SOCK_NAME", consumer, 1);
    return 0;
}

static int run(struct record *r)
{
    struct error err = {0};
    if (prepare(r, &err) != 0) {
        fprintf(stderr, "record: %s\n", err.text);
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    sigaction(SIGINT, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
    struct sigaction hangup;
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) /* unless under nohup */
        sigaction(SIGHUP, &(struct sigaction){.sa_handler = on_hangup}, NULL);
    int rc = start_service(r, &err);
    if (!rc && !r->no_host)
        rc = start_probes(r, &err);
    if (!rc)
        rc = start_machines(r, &err);
    if (!rc)
        wait_for_producers(r);
    if (!rc)
        rc = interrupted ? error_set(&err, -MRD_EIO, "interrupted") : record_now(r, &err);
    if (rc)
        fprintf(stderr, "record: %s%s\n", err.text,
                strcmp(err.text, "the recording failed") == 0 ? "" : "; nothing was recorded");
    clean_up(r, rc && !interrupted);
    return rc ? EXIT_FAILED : r->nothing ? EXIT_NOTHING : EXIT_OK;
}

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

/* What is wrong with the command line, NULL: nothing. */
static const char *check_flags(const struct record_flags *f)
{
    for (size_t i = 0; i < f->machines.n; i++)
        if (!*f->machines.p[i] || *f->machines.p[i] == '-') /* ssh would take -… for an option */
            return "--machine: the name of a machine is empty or begins with '-'";
    return !f->machines.n                    ? "--machine is needed"
           : f->machines.n > REMOTES_MAX     ? "too many machines"
           : !f->out                         ? "--out is needed"
           : f->config_path && f->events.n   ? "--config and events exclude each other"
           : !f->config_path && !f->events.n ? "give the events to record, e.g. sched/sched_switch"
                                             : NULL;
}

static int run_flags(const struct record_flags *f)
{
    static struct record r; /* large: not for the stack */
    r.perfetto = (struct perfetto_options){.notify_fd = -1,
                                           .out = f->out,
                                           .time = f->time,
                                           .buffer = f->buffer,
                                           .config_path = f->config_path,
                                           .text = f->text,
                                           .categories = f->events,
                                           .light = !f->config_path};
    r.targets = f->machines.p;
    r.n = (unsigned)f->machines.n;
    r.no_host = f->no_host;
    r.direct = f->direct;
    r.remote.binary = f->binary;
    r.remote.always_copy = f->always_copy;
    r.remote.ssh = f->ssh;
    return run(&r);
}

int record_main(int argc, char **argv)
{
    struct record_flags f = {0};
    int rc = 1;
    bool good = applet_flags("record", &flags, &f, argc, argv);
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
        rc = run_flags(&f);
    }
    flags_free(&flags, &f);
    return rc;
}
