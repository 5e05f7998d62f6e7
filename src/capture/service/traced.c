/* The traced applet: flags, sockets' permissions, signals, the loop. */
#include "base/dev_flags.h"
#include "base/log.h"
#include "base/sandbox.h"
#include "capture/common/applet.h"
#include "capture/common/daemon.h"
#include "capture/ipc/addr.h"
#include "capture/service/service.h"

#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For tests: docs/contributing.md. */
struct dev_settings {
    int64_t silent_ms, half_message_ms;
};
static const struct dev_flag settings[] = {
    {"silent-machine-ms", DEV_NUMBER, offsetof(struct dev_settings, silent_ms)},
    {"half-message-ms", DEV_NUMBER, offsetof(struct dev_settings, half_message_ms)},
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

static int set_permissions(const struct service_options *o, const char *text, struct error *err)
{
    char spec[256];
    if ((size_t)snprintf(spec, sizeof spec, "%s", text) >= sizeof spec)
        return error_set(err, -MRD_EINVALID, "--set-socket-permissions: the names of the groups are too long");
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
#define FLAG(field, kind, ...) FLAG_TYPE_##kind field;
#include "capture/service/traced_flags.def"
#undef FLAG
    struct text_list none;
    struct service_options o;
    struct dev_settings dev;
};

static const struct flag flag_rows[] = {
#define FLAG(...) FLAG_ROW(struct arguments, __VA_ARGS__),
#include "capture/service/traced_flags.def"
#undef FLAG
};
static const struct flag_table flags = {flag_rows, sizeof flag_rows / sizeof *flag_rows,
                                        offsetof(struct arguments, none)};

/* What the values of the flags mean. -MRD_EINVALID: nothing. */
static int read_values(struct arguments *a, struct error *err)
{
    const char *connections = a->relay_max_connections, *bytes = a->relay_max_bytes;
    a->o.relay_tls = a->relay_tls;
    a->o.guard.allow = a->relay_allow;
    if (connections && !parse_count(connections, &a->o.guard.max_connections))
        return error_set(err, -MRD_EINVALID, "--relay-max-connections %s: expected a number", connections);
    if (bytes && !parse_bytes(bytes, &a->o.guard.max_bytes_per_s))
        return error_set(err, -MRD_EINVALID, "--relay-max-bytes %s: expected a number, with k, m or g", bytes);
    for (size_t i = 0; i < a->dev_flags.n; i++) {
        int rc = dev_flag_set(settings, sizeof settings / sizeof *settings, &a->dev, a->dev_flags.p[i], err);
        if (rc <= 0)
            return rc < 0 ? rc : error_set(err, -MRD_EINVALID, "no such --dev-flag: '%s'", a->dev_flags.p[i]);
    }
    a->o.silent_ms = (unsigned)a->dev.silent_ms;
    a->o.half_message_ms = (unsigned)a->dev.half_message_ms;
    return 0;
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
    for (size_t i = 0; i < a->relay_on.n; i++)
        if (!enable_relay(o, a->relay_on.p[i])) {
            fprintf(stderr, "traced: %s is not a producer socket\n", a->relay_on.p[i]);
            return false;
        }
    return true;
}

/* Of root's capabilities: to raise its own priority, as configs ask for. */
#define KEPT SANDBOX_CAP(CAP_SYS_NICE)

/* Runs until a signal ends it. The exit status. */
static int serve(const struct arguments *a)
{
    const struct service_options *o = &a->o;
    struct error err = {0};
    uv_loop_t loop;
    struct service *svc = NULL;
    uv_signal_t sig[2];
    uv_loop_init(&loop);
    if (service_open(&svc, &loop, o, &err) != 0 || (a->permissions && set_permissions(o, a->permissions, &err) != 0) ||
        sandbox_enter(KEPT, &err) != 0) {
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
    log_line("traced: shutting down");
    for (int i = 0; i < 2; i++)
        uv_close((uv_handle_t *)&sig[i], NULL);
    service_close(svc);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return 0;
}

static int run_flags(struct arguments *a)
{
    struct error err = {0};
    char list[4096];
    if (applet_tells("traced", &flags, a->help, a->version))
        return 0;
    int rc = read_values(a, &err);
    if (rc == 0 && !choose_sockets(a, list, sizeof list))
        return 1;
    if (rc == 0 && a->background)
        rc = daemon_detach(&err);
    if (rc < 0) {
        fprintf(stderr, "traced: %s\n", err.text);
        return 1;
    }
    daemon_raise_fd_limit();
    signal(SIGPIPE, SIG_IGN);
    return serve(a);
}

int traced_main(int argc, char **argv)
{
    struct arguments a = {.o.consumer_socket = ipc_consumer_socket()};
    int rc = applet_flags_only("traced", &flags, &a, argc, argv) ? run_flags(&a) : 1;
    flags_free(&flags, &a);
    return rc;
}
