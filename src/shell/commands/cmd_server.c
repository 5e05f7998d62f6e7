/* tp_shell server: the traces for the Perfetto UI and for scripts. */
#include "base/memory_limit.h"
#include "base/sandbox.h"
#include "base/suggest.h"
#include "server/server.h"
#include "shell/server_name.h"
#include "shell/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_PORT = 9001, UNIX_IDLE_MS = 30 * 60 * 1000, MAX_ORIGINS = 32 };

struct serving {
    struct shell *sh;
    struct server_config config;
    struct server_name name;
    char trace_name[256];
    char *origins_text; /* cut at the commas */
    const char *origins[MAX_ORIGINS];
    int ready_fd; /* --daemonize: whom to tell that clients can come; -1: nobody */
};

/* ---- flags ---- */

static int parse_port(const char *text, int *port, struct error *err)
{
    char *end;
    long v = strtol(text ? text : "", &end, 10);
    *port = DEFAULT_PORT;
    if (!text)
        return 0;
    if (end == text || *end || v < 0 || v > 65535)
        return error_set(err, -MRD_EINVALID, "--port: invalid port '%s': use 0 to 65535; 0 takes a free one", text);
    *port = (int)v;
    return 0;
}

static int parse_idle_timeout(const char *text, bool unix_socket, int64_t *ms, struct error *err)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"", 1000}, {"m", 60000}, {"h", 3600000}};
    *ms = unix_socket ? UNIX_IDLE_MS : 0;
    if (!text || strcmp(text, "auto") == 0)
        return 0;
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!errno && end != text && v >= 0 && v < 1000000000 && strcmp(end, units[i].name) == 0) {
            *ms = v * units[i].ms;
            return 0;
        }
    return error_set(err, -MRD_EINVALID,
                     "--idle-timeout: invalid duration '%s': use auto, or a number with s, m or h; 0: never", text);
}

static int parse_idle_start(const char *text, enum server_idle_start *start, struct error *err)
{
    static const struct {
        const char *name;
        enum server_idle_start start;
    } names[] = {
        {"auto", SERVER_IDLE_ORPHANED}, {"orphaned", SERVER_IDLE_ORPHANED}, {"last-query", SERVER_IDLE_LAST_QUERY}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text ? text : "auto", names[i].name) == 0) {
            *start = names[i].start;
            return 0;
        }
    static const char *const all[] = {"auto", "orphaned", "last-query"};
    return suggest_refuse(err, "--idle-start", text, all, sizeof all / sizeof *all);
}

static int parse_origins(struct serving *sv, const char *list, struct error *err)
{
    sv->config.origins = sv->origins;
    sv->origins_text = mem_strdup(list ? list : "");
    if (!sv->origins_text)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    char *rest = sv->origins_text, *one;
    while ((one = strsep(&rest, ",")))
        if (one[0] && sv->config.n_origins == MAX_ORIGINS)
            return error_set(err, -MRD_EINVALID, "--additional-cors-origins: more than %d", MAX_ORIGINS);
        else if (one[0])
            sv->origins[sv->config.n_origins++] = one;
    return 0;
}

static int parse_flags(struct serving *sv, struct error *err)
{
    const struct options *o = &sv->sh->opt;
    struct server_config *c = &sv->config;
    const struct dev_settings *dev = &sv->sh->dev;
    bool unix_socket = c->transport == SERVER_UNIX;
    c->host = o->ip_address;
    c->recordings = o->traces.p;
    c->n_recordings = o->traces.n;
    c->max_connections = (size_t)dev->max_connections;
    c->max_request_bytes = (size_t)dev->max_request_bytes;
    c->request_timeout_ms = dev->request_timeout_ms;
    c->stalled_write_ms = dev->stalled_write_ms;
    c->blocked_ms = dev->blocked_ms;
    c->max_views = (size_t)dev->max_views;
    int rc = parse_port(o->port, &c->port, err);
    if (rc == 0)
        rc = parse_idle_timeout(o->idle_timeout, unix_socket, &c->idle_timeout_ms, err);
    if (rc == 0)
        rc = parse_idle_start(o->idle_start, &c->idle_start, err);
    if (rc == 0)
        rc = parse_origins(sv, o->additional_cors_origins, err);
    if (rc == 0 && unix_socket)
        rc = server_name_resolve(&sv->name, o->session_name, o->socket_path, true, err);
    if (rc == 0 && o->daemonize && c->transport == SERVER_STDIO)
        rc = error_set(err, -MRD_EINVALID, "--daemonize: the server stdio ends with its standard input");
    return rc;
}

/* ---- the background ---- */

/* Forks: the child goes on, the parent ends when the child can be asked. 0 in the child; 1 in the parent when all went
 * well. */
static int daemonize(struct serving *sv, struct error *err)
{
    int fds[2];
    char byte = 0;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return error_set_errno(err, errno, "pipe");
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(err, errno, "fork");
    if (pid == 0) {
        close(fds[0]);
        setsid();
        sv->ready_fd = fds[1];
        return 0;
    }
    close(fds[1]);
    ssize_t n = read(fds[0], &byte, 1);
    close(fds[0]);
    return n == 1 ? 1 : error_set(err, -MRD_EIO, "the background server failed");
}

/* Clients can come. */
static void on_listening(void *ctx)
{
    struct serving *sv = ctx;
    struct error err = {0};
    if (sv->config.transport == SERVER_UNIX) {
        if (server_name_write_pid(&sv->name, &err) < 0)
            fprintf(stderr, "%s\n", err.text);
        printf("perfetto-session pid=%ld session=%s socket-path=%s idle-timeout=%llds\n", (long)getpid(),
               sv->name.session, sv->name.socket_path, (long long)(sv->config.idle_timeout_ms / 1000));
        fflush(stdout);
    }
    if (sv->ready_fd < 0)
        return;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        dup2(null, fd);
    close(null);
    if (write(sv->ready_fd, "", 1) == 1)
        close(sv->ready_fd);
}

/* ---- the command ---- */

static int prepare(void *ctx, struct tp *tp)
{
    return session_add_packages(ctx, tp);
}

/* Loads what is named; without a name the clients bring a trace. */
static int load(struct serving *sv, struct error *err)
{
    const struct text_list *args = &sv->sh->opt.positionals;
    int rc = session_config(sv->sh, &sv->config.tp_config, err);
    if (rc < 0 || args->n < 2)
        return rc;
    rc = session_load(sv->sh, args->p + 1, args->n - 1, err);
    if (rc < 0)
        return rc;
    const char *base = strrchr(args->p[1], '/');
    snprintf(sv->trace_name, sizeof sv->trace_name, "%s%s (%.1f MB)", base ? base + 1 : args->p[1],
             args->n > 2 ? " and more" : "", (double)tp_loaded_bytes(sv->sh->tp) / 1e6);
    sv->config.trace_name = sv->trace_name;
    sv->config.tp = sv->sh->tp; /* the server's from now on */
    sv->sh->tp = NULL;
    return 0;
}

/* What clients ask for (tables, texts, sorts, further traces) must not take the machine's memory from everybody else:
 * beyond seven eighths of what is free now they are told that there is none. */
static void limit_memory(const struct serving *sv)
{
    uint64_t bytes = (uint64_t)sv->sh->dev.max_memory_bytes;
    if (!bytes)
        bytes = memory_free_bytes() / 8 * 7;
    if (bytes && sv->config.transport != SERVER_STDIO)
        memory_limit_growth(bytes);
}

static int serve(struct serving *sv, struct error *err)
{
    struct server_config *c = &sv->config;
    int rc = parse_flags(sv, err);
    if (rc == 0 && sv->sh->opt.daemonize && (rc = daemonize(sv, err)) != 0)
        return rc < 0 ? rc : 0;
    if (rc == 0) /* of root's capabilities: to read traces of others, and to listen on a low port */
        rc = sandbox_enter(SANDBOX_CAP(CAP_DAC_READ_SEARCH) | SANDBOX_CAP(CAP_NET_BIND_SERVICE), err);
    if (rc == 0)
        rc = load(sv, err);
    if (rc < 0)
        return rc;
    c->prepare = prepare;
    c->prepare_ctx = sv->sh;
    c->socket_path = sv->name.socket_path;
    c->on_listening = on_listening;
    c->on_listening_ctx = sv;
    limit_memory(sv);
    rc = server_run(c, err);
    if (rc == 0 && c->transport == SERVER_UNIX)
        server_name_remove(&sv->name);
    return rc;
}

/* `kill [NAME]`, or by --name or --path. */
static int kill_server(struct shell *sh, struct error *err)
{
    struct server_name name;
    const struct options *o = &sh->opt;
    const char *by_name = o->positionals.n > 1 ? o->positionals.p[1] : o->session_name;
    int rc = server_name_resolve(&name, by_name, o->socket_path, false, err);
    return rc < 0 ? rc : server_name_kill(&name, err);
}

int cmd_server(struct shell *sh, struct error *err)
{
    static const struct {
        const char *mode;
        enum server_transport transport;
    } modes[] = {{"http", SERVER_HTTP}, {"unix", SERVER_UNIX}, {"stdio", SERVER_STDIO}};
    const struct text_list *args = &sh->opt.positionals;
    const char *mode = args->n ? args->p[0] : "";
    if (sh->opt.remote)
        return error_set(err, -MRD_EINVALID, "server: --remote is for query and interactive");
    if (strcmp(mode, "kill") == 0)
        return kill_server(sh, err);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(mode, modes[i].mode) != 0)
            continue;
        struct serving sv = {.sh = sh, .config = {.transport = modes[i].transport}, .ready_fd = -1};
        int rc = serve(&sv, err);
        mem_free(sv.origins_text);
        return rc;
    }
    struct suggestion s = suggest(mode, strlen(mode));
    char text[80];
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        suggest_among(&s, modes[i].mode);
    suggest_among(&s, "kill");
    return error_set(err, -MRD_EINVALID, "server: the first argument is http, unix, stdio or kill, not '%s'%s", mode,
                     suggest_text(&s, "", text, sizeof text));
}
