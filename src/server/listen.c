/* The ways in: TCP addresses, and a Unix socket with its directory. */
#include "server/loop.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

static void on_client(uv_stream_t *listener, int status)
{
    struct server *s = listener->data;
    if (status == 0)
        conn_accept(s, listener);
}

/* ---- TCP ---- */

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static int listen_address(struct server *s, const struct sockaddr *a)
{
    union listener *l = &s->listeners[s->n_listeners];
    int rc = uv_tcp_init(&s->loop, &l->tcp);
    if (rc < 0)
        return rc;
    s->n_listeners++;
    l->handle.data = s;
    rc = uv_tcp_bind(&l->tcp, a, a->sa_family == AF_INET6 ? UV_TCP_IPV6ONLY : 0);
    return rc < 0 ? rc : uv_listen(&l->stream, BACKLOG, on_client);
}

static int port_of(const union listener *l)
{
    struct sockaddr_storage a;
    int len = sizeof a;
    if (uv_tcp_getsockname(&l->tcp, (struct sockaddr *)&a, &len) < 0)
        return 0;
    return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                         : ((struct sockaddr_in *)&a)->sin_port);
}

static void say_where(const char *host, int port, bool everybody)
{
    if (everybody)
        fprintf(stderr,
                "warning: %s accepts connections from other machines: anyone who can connect can read the trace and "
                "run SQL.\n"
                "         For another machine's browser, ssh -L %d:127.0.0.1:%d is safer.\n",
                host, port, port);
    fprintf(stderr, "Serving at http://%s:%d: open https://ui.perfetto.dev there. Ctrl-C ends.\n",
            strchr(host, ':') ? "[::1]" : host, port);
}

int listen_http(struct server *s, struct error *err)
{
    const struct server_config *config = s->config;
    static const char *const both[] = {"127.0.0.1", "::1"};
    const char *const one[] = {config->host};
    bool local = !config->host || strcmp(config->host, "localhost") == 0, everybody = false;
    int port = config->port, rc = 0;
    for (size_t i = 0; i < (local ? 2U : 1U); i++) {
        const char *host = local ? both[i] : one[i];
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *found;
        char service[16];
        snprintf(service, sizeof service, "%d", port);
        int gai = getaddrinfo(host, service, &hints, &found);
        if (gai != 0)
            return error_set(err, -MRD_ENOTFOUND, "--ip-address: %s: %s", host, gai_strerror(gai));
        rc = listen_address(s, found->ai_addr);
        everybody |= !is_loopback(found->ai_addr);
        freeaddrinfo(found);
        if (rc < 0 && i == 1) { /* a machine without IPv6 is served by IPv4 alone */
            rc = 0;
            break;
        }
        if (rc < 0)
            return error_set(err, -MRD_EIO, "port %d of %s: %s (is another server running? --port takes another)", port,
                             host, uv_strerror(rc));
        port = port_of(&s->listeners[0]);
    }
    say_where(local ? "127.0.0.1" : config->host, port, everybody);
    return 0;
}

/* ---- Unix sockets ---- */

/* Removes a socket that nobody listens to any more; never anything else. */
static int clear_stale(const char *path, struct error *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct stat st;
    if (lstat(path, &st) < 0)
        return 0; /* nothing is there; what else may be wrong, bind() tells */
    if (!S_ISSOCK(st.st_mode))
        return error_set(err, -MRD_EEXISTS, "%s exists and is not a socket", path);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool taken = fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0;
    if (fd >= 0)
        close(fd);
    if (taken)
        return error_set(err, -MRD_EEXISTS, "%s: another server listens there; end it with tp_shell server kill", path);
    unlink(path);
    return 0;
}

int listen_unix(struct server *s, struct error *err)
{
    const char *path = s->config->socket_path;
    union listener *l = &s->listeners[s->n_listeners];
    if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path - 4)
        return error_set(err, -MRD_EINVALID, "%s: the path of a socket has at most 103 bytes", path);
    int rc = clear_stale(path, err);
    if (rc < 0)
        return rc;
    rc = uv_pipe_init(&s->loop, &l->pipe, 0);
    if (rc < 0)
        return error_set(err, -MRD_EIO, "%s: %s", path, uv_strerror(rc));
    s->n_listeners++;
    l->handle.data = s;
    mode_t before = umask(0077);
    rc = uv_pipe_bind(&l->pipe, path);
    umask(before);
    if (rc == 0)
        rc = uv_listen(&l->stream, BACKLOG, on_client);
    return rc < 0 ? error_set(err, -MRD_EIO, "%s: %s", path, uv_strerror(rc)) : 0;
}
