/* Parses socket addresses and opens the sockets. */
#include "capture/ipc/addr.h"

#include "base/inherited_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/vm_sockets.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int parse_unix(struct ipc_addr *a, const char *text, struct error *err)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&a->addr;
    size_t n = strlen(text);
    if (n >= sizeof un->sun_path)
        return error_set(err, -MRD_EINVALID, "socket path longer than %zu bytes: %s", sizeof un->sun_path - 1, text);
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, text, n);
    a->is_path = text[0] != '@';
    if (!a->is_path)
        un->sun_path[0] = 0;
    /* the name of an abstract socket is all its bytes, so a NUL behind it must not be counted */
    a->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (a->is_path ? 1 : 0));
    a->family = AF_UNIX;
    return 0;
}

/* A decimal uint32 that ends at `stop`; false for anything else. */
static bool parse_u32(const char *s, char stop, uint32_t *v, const char **end)
{
    char *e;
    if (*s < '0' || *s > '9')
        return false;
    errno = 0;
    unsigned long long x = strtoull(s, &e, 10);
    if (errno || x > UINT32_MAX || *e != stop)
        return false;
    *v = (uint32_t)x;
    *end = e;
    return true;
}

static int parse_vsock(struct ipc_addr *a, const char *text, struct error *err)
{
    struct sockaddr_vm *vm = (struct sockaddr_vm *)&a->addr;
    const char *p = text + strlen("vsock://");
    uint32_t cid, port;
    if (!parse_u32(p, ':', &cid, &p) || !parse_u32(p + 1, 0, &port, &p))
        return error_set(err, -MRD_EINVALID, "%s: expected vsock://CID:PORT", text);
    vm->svm_family = AF_VSOCK;
    vm->svm_cid = cid;
    vm->svm_port = port;
    a->len = sizeof *vm;
    a->family = AF_VSOCK;
    return 0;
}

static int parse_tcp(struct ipc_addr *a, const char *text, const char *colon, struct error *err)
{
    char host[256];
    bool v6 = text[0] == '[';
    size_t n = (size_t)(colon - text);
    if (v6 && (n < 2 || colon[-1] != ']'))
        return error_set(err, -MRD_EINVALID, "%s: expected [address]:port", text);
    if (v6) {
        text++;
        n -= 2;
    }
    if (n == 0 || n >= sizeof host)
        return error_set(err, -MRD_EINVALID, "invalid host name in socket address");
    memcpy(host, text, n);
    host[n] = 0;
    struct addrinfo hints = {.ai_family = v6 ? AF_INET6 : AF_INET, .ai_socktype = SOCK_STREAM}, *res = NULL;
    int rc = getaddrinfo(host, colon + 1, &hints, &res);
    if (rc != 0 || !res)
        return error_set(err, -MRD_EINVALID, "cannot resolve %s: %s", host, gai_strerror(rc));
    memcpy(&a->addr, res->ai_addr, res->ai_addrlen);
    a->len = res->ai_addrlen;
    a->family = res->ai_family;
    freeaddrinfo(res);
    return 0;
}

int ipc_addr_parse(struct ipc_addr *a, const char *text, struct error *err)
{
    memset(a, 0, sizeof *a);
    if (!text || !*text)
        return error_set(err, -MRD_EINVALID, "empty socket address");
    if (text[0] == '@')
        return parse_unix(a, text, err);
    if (strncmp(text, "vsock://", 8) == 0)
        return parse_vsock(a, text, err);
    const char *colon = strrchr(text, ':'), *end;
    uint32_t port;
    if (colon && parse_u32(colon + 1, 0, &port, &end) && port <= 65535)
        return parse_tcp(a, text, colon, err);
    return parse_unix(a, text, err);
}

bool ipc_addr_is_exposed(const struct ipc_addr *a)
{
    const struct sockaddr_in *in = (const void *)&a->addr;
    const struct sockaddr_in6 *in6 = (const void *)&a->addr;
    if (a->family == AF_INET)
        return ntohl(in->sin_addr.s_addr) >> 24 != 127;
    return a->family == AF_INET6 && !IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

enum { SILENT_MS = 30000 };

void ipc_addr_notice_death(int fd, unsigned silent_ms)
{
    int seconds = silent_ms < 6000 ? 6 : (int)(silent_ms / 1000); /* the kernel counts in them */
    const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, seconds / 3},
        {IPPROTO_TCP, TCP_KEEPINTVL, seconds / 6},
        {IPPROTO_TCP, TCP_KEEPCNT, 4},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, (int)silent_ms},
        {IPPROTO_TCP, TCP_NODELAY, 1},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof options[i].value);
}

static int open_socket(const struct ipc_addr *a, const char *text, struct error *err)
{
    int fd = socket(a->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set_errno(err, errno, "socket for %s", text);
    if (a->family == AF_INET || a->family == AF_INET6)
        ipc_addr_notice_death(fd, SILENT_MS);
    return fd;
}

/* Locks the folder of a socket file until the descriptor is closed: two daemons that start together must not both find
 * the socket stale. -1: cannot be locked; then nothing else is lost. */
static int lock_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash > path ? (int)(slash - path) : 1, slash ? path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        flock(fd, LOCK_EX);
    return fd;
}

static int in_use(const char *text, int pid, struct error *err)
{
    char by[48] = "another process";
    if (pid > 0)
        snprintf(by, sizeof by, "process %d", pid);
    return error_set(
        err, -MRD_EEXISTS,
        "%s is in use by %s: a machine runs one traced or one traced_relay; stop that one, or choose other "
        "sockets with PERFETTO_PRODUCER_SOCK_NAME and PERFETTO_CONSUMER_SOCK_NAME",
        text, by);
}

/* Removes a socket file that nobody listens on. */
static int remove_stale(const char *text, const struct ipc_addr *a, struct error *err)
{
    struct stat st;
    struct ucred cred = {0};
    socklen_t n = sizeof cred;
    if (lstat(text, &st) != 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return error_set(err, -MRD_EEXISTS, "%s exists and is not a socket", text);
    int fd = open_socket(a, text, err);
    if (fd < 0)
        return fd;
    int rc = connect(fd, (const struct sockaddr *)&a->addr, a->len) == 0 ? 0 : errno;
    if (rc == 0)
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n); /* of whoever listens */
    close(fd);
    if (rc == 0 || rc == EAGAIN || rc == EINPROGRESS)
        return in_use(text, cred.pid, err);
    if (rc != ECONNREFUSED && rc != ENOENT)
        return error_set_errno(err, rc, "%s exists and cannot be replaced", text);
    unlink(text);
    return 0;
}

int ipc_addr_listen(const char *text, struct ipc_addr *out, struct error *err)
{
    struct ipc_addr a;
    int rc = ipc_addr_parse(&a, text, err), one = 1;
    if (rc)
        return rc;
    int fd = inherited_socket((struct sockaddr *)&a.addr, a.len);
    if (fd >= 0) {
        if (a.family == AF_INET || a.family == AF_INET6)
            ipc_addr_notice_death(fd, SILENT_MS);
        if (out)
            *out = a;
        return fd;
    }
    fd = open_socket(&a, text, err);
    if (fd < 0)
        return fd;
    if (a.family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    int lock = a.is_path ? lock_folder(text) : -1;
    if (a.is_path)
        rc = remove_stale(text, &a, err);
    if (!rc && (bind(fd, (struct sockaddr *)&a.addr, a.len) != 0 || listen(fd, SOMAXCONN) != 0))
        rc = errno == EADDRINUSE ? in_use(text, 0, err) : error_set_errno(err, errno, "cannot listen on %s", text);
    if (lock >= 0)
        close(lock);
    if (rc) {
        close(fd);
        return rc;
    }
    if (out)
        *out = a;
    return fd;
}

int ipc_addr_connect(const char *text, bool *in_progress, struct ipc_addr *out, struct error *err)
{
    struct ipc_addr a;
    int rc = ipc_addr_parse(&a, text, err);
    if (rc)
        return rc;
    int fd = open_socket(&a, text, err);
    if (fd < 0)
        return fd;
    *in_progress = false;
    if (connect(fd, (struct sockaddr *)&a.addr, a.len) != 0) {
        if (errno != EINPROGRESS) {
            rc = error_set_errno(err, errno, "cannot connect to %s", text);
            close(fd);
            return rc;
        }
        *in_progress = true;
    }
    if (out)
        *out = a;
    return fd;
}

static void sockaddr_name(const struct sockaddr_storage *ss, bool port, char *buf, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (ss->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)ss;
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        snprintf(buf, size, port ? "%s:%u" : "%s", host, ntohs(in->sin_port));
    } else if (ss->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)ss;
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        snprintf(buf, size, port ? "[%s]:%u" : "[%s]", host, ntohs(in6->sin6_port));
    } else if (ss->ss_family == AF_VSOCK) {
        const struct sockaddr_vm *vm = (const void *)ss;
        snprintf(buf, size, port ? "vsock://%u:%u" : "vsock://%u", vm->svm_cid, vm->svm_port);
    } else {
        snprintf(buf, size, "unix");
    }
}

void ipc_addr_local_name(int fd, char *buf, size_t size)
{
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof ss;
    getsockname(fd, (struct sockaddr *)&ss, &len);
    sockaddr_name(&ss, false, buf, size);
}

void ipc_addr_peer_name(int fd, char *buf, size_t size)
{
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof ss;
    getpeername(fd, (struct sockaddr *)&ss, &len);
    if (ss.ss_family == AF_UNIX) {
        struct ucred cred = {0};
        socklen_t n = sizeof cred;
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n);
        snprintf(buf, size, "unix uid=%d pid=%d", (int)cred.uid, (int)cred.pid);
        return;
    }
    sockaddr_name(&ss, true, buf, size);
}

static const char *socket_name(const char *env, const char *run, const char *tmp)
{
    const char *v = getenv(env);
    if (v && *v)
        return v;
    return access("/run/perfetto/", X_OK) == 0 ? run : tmp;
}

const char *ipc_producer_socket(void)
{
    return socket_name("PERFETTO_PRODUCER_SOCK_NAME", "/run/perfetto/traced-producer.sock", "/tmp/perfetto-producer");
}

const char *ipc_consumer_socket(void)
{
    return socket_name("PERFETTO_CONSUMER_SOCK_NAME", "/run/perfetto/traced-consumer.sock", "/tmp/perfetto-consumer");
}

void ipc_producer_socket_first(char *buf, size_t size)
{
    const char *s = ipc_producer_socket();
    snprintf(buf, size, "%.*s", (int)strcspn(s, ","), s);
}

int ipc_addr_permissions(const char *address, const char *group, const char *mode, struct error *err)
{
    struct ipc_addr a;
    char *end;
    if (ipc_addr_parse(&a, address, err) != 0 || !a.is_path)
        return 0;
    unsigned long bits = strtoul(mode, &end, 8);
    if (*end || bits > 07777)
        return error_set(err, -MRD_EINVALID, "%s is not an octal mode", mode);
    const struct group *g = getgrnam(group);
    if (!g)
        return error_set(err, -MRD_ENOTFOUND, "there is no group %s", group);
    if (chown(address, (uid_t)-1, g->gr_gid) != 0 || chmod(address, (mode_t)bits) != 0)
        return error_set_errno(err, errno, "permissions of %s", address);
    return 0;
}
