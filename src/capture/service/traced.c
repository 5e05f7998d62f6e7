/* The traced applet: flags, sockets' permissions, signals, the loop. */
#include "base/dev_flags.h"
#include "base/log.h"
#include "capture/common/applet.h"
#include "capture/common/daemon.h"
#include "capture/ipc/addr.h"
#include "capture/service/service.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: traced [options]\n"
    "  --background                         return to the shell, go on as a daemon\n"
    "  --version                            print the version\n"
    "  --set-socket-permissions P:M:C:M     group and mode (octal) of the producer and of the consumer socket\n"
    "  --enable-relay-endpoint              other machines may relay their producers, to all producer sockets\n"
    "  --enable-relay-endpoint-on SOCKET    … to this one (repeatable)\n"
    "  --relay-tls DIR                      relays over TCP and vsock need a certificate (tracebox relay-keys makes "
    "DIR)\n"
    "  --relay-allow NAME[,NAME...]         only machines of these names\n"
    "  --relay-max-connections N            a machine may have so many connections (its relay, and one a producer)\n"
    "  --relay-max-bytes N[k|m|g]           … and send so many bytes a second; more is read more slowly\n"
    "\n"
    "Sockets: PERFETTO_PRODUCER_SOCK_NAME (a list, with commas) and PERFETTO_CONSUMER_SOCK_NAME: a path, @abstract,\n"
    "host:port, [v6]:port or vsock://CID:PORT. TRACED_NOTIFY_FD: a descriptor that gets a \"1\" when all are open.\n"
    "\n"
    "Example: PERFETTO_PRODUCER_SOCK_NAME=/run/perfetto/traced-producer.sock,0.0.0.0:20001 \\\n"
    "         traced --set-socket-permissions tracing:0660:tracing:0660 --enable-relay-endpoint-on 0.0.0.0:20001\n";

/* For tests: docs/contributing.md. */
struct dev_settings {
    int64_t silent_ms;
};
static const struct dev_flag dev_flags[] = {
    {"silent-machine-ms", DEV_NUMBER, offsetof(struct dev_settings, silent_ms)},
};

static void on_signal(uv_signal_t *h, int signum)
{
    (void)signum;
    uv_stop(h->loop);
}

/* Splits the comma-separated list in place. */
static unsigned split(char *list, const char **out, unsigned max)
{
    unsigned n = 0;
    for (char *save = NULL, *s = strtok_r(list, ",", &save); s && n < max; s = strtok_r(NULL, ",", &save))
        out[n++] = s;
    return n;
}

static int set_permissions(const struct service_options *o, char *spec, struct error *err)
{
    char *part[4], *save = NULL;
    unsigned n = 0;
    for (char *s = strtok_r(spec, ":", &save); s && n < 4; s = strtok_r(NULL, ":", &save))
        part[n++] = s;
    if (n != 4)
        return error_set(err, -MRD_EINVALID, "--set-socket-permissions needs group:mode:group:mode");
    int rc = 0;
    for (unsigned i = 0; i < o->n_producer_sockets && !rc; i++)
        rc = ipc_addr_permissions(o->producer_sockets[i], part[0], part[1], err);
    return rc ? rc : ipc_addr_permissions(o->consumer_socket, part[2], part[3], err);
}

static bool parse_bytes(const char *text, uint64_t *bytes)
{
    static const char units[] = "kmg";
    char *end;
    unsigned long long v = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end | 0x20) : NULL;
    *bytes = unit ? v << (10 * (unit - units + 1)) : v;
    return end != text && *text != '-' && (!*end || (unit && !end[1])) && v && v <= UINT32_MAX;
}

static bool parse_count(const char *text, unsigned *count)
{
    char *end;
    unsigned long v = strtoul(text, &end, 10);
    *count = (unsigned)v;
    return end != text && *text != '-' && !*end && v && v <= UINT32_MAX;
}

static bool enable_relay(struct service_options *o, const char *socket)
{
    bool found = false;
    for (unsigned i = 0; i < o->n_producer_sockets; i++) {
        if (strcmp(o->producer_sockets[i], socket) == 0)
            found = o->relay_endpoint[i] = true;
    }
    return found;
}

/* What the command line asks for. */
struct arguments {
    struct service_options o;
    struct dev_settings dev;
    bool background, relay_all;
    const char *relay_on[SERVICE_MAX_SOCKETS];
    unsigned n_relay_on;
    char *permissions;
};

enum { GO_ON = -1 };

static const struct option options[] = {
    {"background", no_argument, NULL, 'b'},
    {"version", no_argument, NULL, 'v'},
    {"set-socket-permissions", required_argument, NULL, 'p'},
    {"enable-relay-endpoint", no_argument, NULL, 'r'},
    {"enable-relay-endpoint-on", required_argument, NULL, 'R'},
    {"relay-tls", required_argument, NULL, 'T'},
    {"relay-allow", required_argument, NULL, 'A'},
    {"relay-max-connections", required_argument, NULL, 'C'},
    {"relay-max-bytes", required_argument, NULL, 'B'},
    {"dev-flag", required_argument, NULL, 'D'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

/* One option, by its letter. GO_ON, or the exit status. */
static int take_option(struct arguments *a, int option, char *value)
{
    struct error err = {0};
    switch (option) {
    case 'b':
        a->background = true;
        return GO_ON;
    case 'v':
        printf("Meridian v%s\n", MERIDIAN_VERSION);
        return 0;
    case 'p':
        a->permissions = value;
        return GO_ON;
    case 'r':
        a->relay_all = true;
        return GO_ON;
    case 'R':
        if (a->n_relay_on == SERVICE_MAX_SOCKETS) {
            fprintf(stderr, "traced: too many --enable-relay-endpoint-on\n");
            return 1;
        }
        a->relay_on[a->n_relay_on++] = value;
        return GO_ON;
    case 'T':
        a->o.relay_tls = value;
        return GO_ON;
    case 'A':
        a->o.guard.allow = value;
        return GO_ON;
    case 'C':
        if (parse_count(value, &a->o.guard.max_connections))
            return GO_ON;
        fprintf(stderr, "traced: --relay-max-connections %s: expected a number\n", value);
        return 1;
    case 'B':
        if (parse_bytes(value, &a->o.guard.max_bytes_per_s))
            return GO_ON;
        fprintf(stderr, "traced: --relay-max-bytes %s: expected a number, with k, m or g\n", value);
        return 1;
    case 'D':
        if (dev_flag_set(dev_flags, sizeof dev_flags / sizeof *dev_flags, &a->dev, value, &err) > 0)
            return GO_ON;
        fprintf(stderr, "traced: %s\n", err.code ? err.text : "no such --dev-flag");
        return 1;
    default:
        fputs(usage, stderr);
        return 1;
    }
}

/* The sockets that producers come to, cut out of `list`, and which of them relays may use. False after a message. */
static bool choose_sockets(struct arguments *a, char *list, size_t size)
{
    struct service_options *o = &a->o;
    snprintf(list, size, "%s", ipc_producer_socket());
    o->n_producer_sockets = split(list, o->producer_sockets, SERVICE_MAX_SOCKETS);
    if (!o->n_producer_sockets) {
        fprintf(stderr, "traced: no producer socket\n");
        return false;
    }
    for (unsigned i = 0; i < o->n_producer_sockets; i++)
        o->relay_endpoint[i] = a->relay_all;
    for (unsigned i = 0; i < a->n_relay_on; i++)
        if (!enable_relay(o, a->relay_on[i])) {
            fprintf(stderr, "traced: %s is not a producer socket\n", a->relay_on[i]);
            return false;
        }
    return true;
}

/* Runs until a signal ends it. The exit status. */
static int serve(const struct arguments *a)
{
    const struct service_options *o = &a->o;
    struct error err = {0};
    uv_loop_t loop;
    struct service *svc = NULL;
    uv_signal_t sig[2];
    uv_loop_init(&loop);
    if (service_open(&svc, &loop, o, &err) != 0 || (a->permissions && set_permissions(o, a->permissions, &err) != 0)) {
        fprintf(stderr, "traced: %s\n", err.text);
        service_close(svc);
        uv_run(&loop, UV_RUN_NOWAIT);
        uv_loop_close(&loop);
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        uv_signal_init(&loop, &sig[i]);
        uv_signal_start(&sig[i], on_signal, i ? SIGTERM : SIGINT);
    }
    for (unsigned i = 0; i < o->n_producer_sockets; i++)
        log_line("traced: producers at %s", o->producer_sockets[i]);
    log_line("traced: consumers at %s; ready", o->consumer_socket);
    daemon_notify("TRACED_NOTIFY_FD");
    uv_run(&loop, UV_RUN_DEFAULT);
    log_line("traced: going down");
    for (int i = 0; i < 2; i++)
        uv_close((uv_handle_t *)&sig[i], NULL);
    service_close(svc);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return 0;
}

int traced_main(int argc, char **argv)
{
    struct arguments a = {.o.consumer_socket = ipc_consumer_socket()};
    struct error err = {0};
    char list[4096];
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        int status = take_option(&a, c, optarg);
        if (status != GO_ON)
            return status;
    }
    a.o.silent_ms = (unsigned)a.dev.silent_ms;
    if (!choose_sockets(&a, list, sizeof list))
        return 1;
    if (a.background && daemon_detach(&err) != 0) {
        fprintf(stderr, "traced: %s\n", err.text);
        return 1;
    }
    daemon_raise_fd_limit();
    signal(SIGPIPE, SIG_IGN);
    return serve(&a);
}
