/* The traced_relay applet: stands where traced would, and forwards this machine's producers to a host. */
#include "base/sandbox.h"
#include "capture/common/applet.h"
#include "capture/common/machine.h"
#include "capture/ipc/addr.h"
#include "capture/relay/control.h"
#include "capture/relay/proxy.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct relay {
    struct relay_proxy *proxy;
    struct relay_control *control;
    uv_signal_t signals[2];
};

static void on_signal(uv_signal_t *h, int signum)
{
    struct relay *r = h->data;
    (void)signum;
    relay_proxy_close(r->proxy);
    relay_control_close(r->control);
    for (int i = 0; i < 2; i++)
        uv_close((uv_handle_t *)&r->signals[i], NULL);
}

static void on_lost(void *ctx, uint64_t bytes)
{
    struct relay *r = ctx;
    if (r->control)
        relay_control_add_lost(r->control, bytes);
}

/* With keys, their name is the machine's unless the user gives another (which the host then refuses, in words). */
static int load_keys(const char *dir, struct tls_keys **keys, char *name, size_t size, struct error *err)
{
    const char *given = getenv("PERFETTO_MACHINE_NAME");
    int rc = dir ? tls_keys_load(keys, dir, err) : 0;
    if (!rc && dir && !(given && *given))
        snprintf(name, size, "%s", tls_keys_name(*keys));
    return rc;
}

/* A socket file that nobody listens on any more may be taken over, one of a service not. */
static bool is_taken(const char *address)
{
    bool in_progress = false;
    struct error ignored = {0};
    struct ipc_addr addr;
    int fd = ipc_addr_connect(address, &in_progress, &addr, &ignored);
    if (fd >= 0)
        close(fd);
    return fd >= 0 && !in_progress;
}

static int run(const char *listen, const char *host, const char *tls, bool background)
{
    char hint[MACHINE_TEXT_MAX], name[MACHINE_TEXT_MAX];
    machine_id_hint(hint, sizeof hint);
    machine_name(name, sizeof name);
    struct error err = {0};
    struct relay r = {0};
    uv_loop_t loop;
    struct log_limit log = {0};
    struct relay_uplink uplink = {.loop = &loop, .host = host, .log = &log};
    if (load_keys(tls, &uplink.keys, name, sizeof name, &err) != 0) {
        fprintf(stderr, "traced_relay: %s\n", err.text);
        return 1;
    }
    if (is_taken(listen)) {
        fprintf(stderr, "traced_relay: %s is in use; run traced or traced_relay, not both\n", listen);
        tls_keys_free(uplink.keys);
        return 1;
    }
    if (background && daemon(0, 1) != 0) {
        perror("traced_relay: daemon");
        return 1;
    }
    if (uv_loop_init(&loop) != 0)
        return 1;
    int rc = relay_proxy_open(&r.proxy, &loop,
                              &(struct relay_proxy_options){.listen = listen,
                                                            .host = uplink,
                                                            .machine_id_hint = hint,
                                                            .machine_name = name,
                                                            .lost = on_lost,
                                                            .ctx = &r},
                              &err);
    if (!rc)
        rc = relay_control_open(&r.control, &loop, &(struct relay_control_options){uplink, hint, name}, &err);
    if (!rc)
        rc = sandbox_enter(0, &err);
    if (rc) {
        fprintf(stderr, "traced_relay: %s\n", err.text);
        relay_proxy_close(r.proxy);
    } else {
        static const int signums[2] = {SIGINT, SIGTERM};
        for (int i = 0; i < 2; i++) {
            uv_signal_init(&loop, &r.signals[i]);
            r.signals[i].data = &r;
            uv_signal_start(&r.signals[i], on_signal, signums[i]);
        }
        fprintf(stderr, "Started traced_relay, listening on %s, forwarding to %s\n", listen, host);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    tls_keys_free(uplink.keys);
    return rc ? 1 : 0;
}

struct relay_flags {
#define FLAG(field, kind, ...) FLAG_TYPE_##kind field;
#include "capture/relay/relay_flags.def"
#undef FLAG
    struct text_list none;
};

static const struct flag flag_rows[] = {
#define FLAG(...) FLAG_ROW(struct relay_flags, __VA_ARGS__),
#include "capture/relay/relay_flags.def"
#undef FLAG
};
static const struct flag_table flags = {flag_rows, sizeof flag_rows / sizeof *flag_rows,
                                        offsetof(struct relay_flags, none)};

static int run_flags(const struct relay_flags *f)
{
    if (applet_tells("traced_relay", &flags, f->help, f->version))
        return 0;
    const char *host = getenv("PERFETTO_RELAY_SOCK_NAME");
    if (!host || !*host) {
        fprintf(stderr, "traced_relay: PERFETTO_RELAY_SOCK_NAME is not set: it says where the host listens, e.g. "
                        "192.168.1.10:20001\n\n");
        applet_help(stderr, "traced_relay", &flags);
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    char listen[256];
    ipc_producer_socket_first(listen, sizeof listen);
    return run(listen, host, f->tls, f->background);
}

int traced_relay_main(int argc, char **argv)
{
    struct relay_flags f = {0};
    int rc = applet_flags_only("traced_relay", &flags, &f, argc, argv) ? run_flags(&f) : 1;
    flags_free(&flags, &f);
    return rc;
}
