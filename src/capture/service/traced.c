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

int traced_main(int argc, char **argv)
{
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
    struct error err = {0};
    bool background = false;
    bool relay_all = false;
    struct dev_settings dev = {0};
    struct service_options o = {.consumer_socket = ipc_consumer_socket()};
    const char *relay_on[SERVICE_MAX_SOCKETS];
    unsigned n_relay_on = 0;
    char *permissions = NULL;
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        switch (c) {
        case 'b':
            background = true;
            break;
        case 'v':
            printf("Meridian v%s\n", MERIDIAN_VERSION);
            return 0;
        case 'p':
            permissions = optarg;
            break;
        case 'r':
            relay_all = true;
            break;
        case 'R':
            if (n_relay_on == SERVICE_MAX_SOCKETS) {
                fprintf(stderr, "traced: too many --enable-relay-endpoint-on\n");
                return 1;
            }
            relay_on[n_relay_on++] = optarg;
            break;
        case 'T':
            o.relay_tls = optarg;
            break;
        case 'A':
            o.guard.allow = optarg;
            break;
        case 'C':
            if (!parse_count(optarg, &o.guard.max_connections)) {
                fprintf(stderr, "traced: --relay-max-connections %s: expected a number\n", optarg);
                return 1;
            }
            break;
        case 'B':
            if (!parse_bytes(optarg, &o.guard.max_bytes_per_s)) {
                fprintf(stderr, "traced: --relay-max-bytes %s: expected a number, with k, m or g\n", optarg);
                return 1;
            }
            break;
        case 'D':
            if (dev_flag_set(dev_flags, sizeof dev_flags / sizeof *dev_flags, &dev, optarg, &err) <= 0) {
                fprintf(stderr, "traced: %s\n", err.code ? err.text : "no such --dev-flag");
                return 1;
            }
            break;
        default:
            fputs(usage, stderr);
            return 1;
        }
    }
    o.silent_ms = (unsigned)dev.silent_ms;
    char list[4096];
    snprintf(list, sizeof list, "%s", ipc_producer_socket());
    o.n_producer_sockets = split(list, o.producer_sockets, SERVICE_MAX_SOCKETS);
    if (!o.n_producer_sockets) {
        fprintf(stderr, "traced: no producer socket\n");
        return 1;
    }
    for (unsigned i = 0; i < o.n_producer_sockets; i++)
        o.relay_endpoint[i] = relay_all;
    for (unsigned i = 0; i < n_relay_on; i++) {
        if (!enable_relay(&o, relay_on[i])) {
            fprintf(stderr, "traced: %s is not a producer socket\n", relay_on[i]);
            return 1;
        }
    }
    if (background && daemon_detach(&err) != 0) {
        fprintf(stderr, "traced: %s\n", err.text);
        return 1;
    }
    daemon_raise_fd_limit();
    signal(SIGPIPE, SIG_IGN);
    uv_loop_t loop;
    struct service *svc = NULL;
    uv_signal_t sig[2];
    uv_loop_init(&loop);
    if (service_open(&svc, &loop, &o, &err) != 0 || (permissions && set_permissions(&o, permissions, &err) != 0)) {
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
    for (unsigned i = 0; i < o.n_producer_sockets; i++)
        log_line("traced: producers at %s", o.producer_sockets[i]);
    log_line("traced: consumers at %s; ready", o.consumer_socket);
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
