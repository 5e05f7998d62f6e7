/* Finds sockets that systemd listens on for us. */
#include "base/inherited_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* this one wants struct sockaddr */
#include <linux/vm_sockets.h>

enum { FIRST_FD = 3, MOST_FDS = 64 };

/* The number in an environment variable; 0 when it is not there or is none. */
static long env_number(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    long n = text ? strtol(text, &end, 10) : 0;
    return text && end != text && *end == '\0' && n > 0 ? n : 0;
}

static bool same_address(const struct sockaddr_storage *a, socklen_t a_len, const struct sockaddr *b, socklen_t b_len)
{
    if (a->ss_family != b->sa_family)
        return false;
    switch (b->sa_family) {
    case AF_UNIX: { /* a name ends with its length, a path with a NUL that the length may count */
        const char *x = ((const struct sockaddr_un *)a)->sun_path, *y = ((const struct sockaddr_un *)b)->sun_path;
        const size_t before = offsetof(struct sockaddr_un, sun_path);
        if (a_len <= before || b_len <= before)
            return false;
        if (*x == '\0')
            return a_len == b_len && memcmp(x, y, a_len - before) == 0;
        const size_t n = strnlen(x, a_len - before);
        return n == strnlen(y, b_len - before) && memcmp(x, y, n) == 0;
    }
    case AF_INET: {
        const struct sockaddr_in *x = (const struct sockaddr_in *)a, *y = (const struct sockaddr_in *)b;
        return x->sin_port == y->sin_port && x->sin_addr.s_addr == y->sin_addr.s_addr;
    }
    case AF_INET6: {
        const struct sockaddr_in6 *x = (const struct sockaddr_in6 *)a, *y = (const struct sockaddr_in6 *)b;
        return x->sin6_port == y->sin6_port && memcmp(&x->sin6_addr, &y->sin6_addr, sizeof x->sin6_addr) == 0;
    }
    case AF_VSOCK: {
        const struct sockaddr_vm *x = (const struct sockaddr_vm *)a, *y = (const struct sockaddr_vm *)b;
        return x->svm_port == y->svm_port && x->svm_cid == y->svm_cid;
    }
    default:
        return false;
    }
}

static bool listens_at(int fd, const struct sockaddr *address, socklen_t len)
{
    struct sockaddr_storage own = {0};
    socklen_t own_len = sizeof own, size = sizeof(int);
    int type = 0, listens = 0;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens &&
           getsockname(fd, (struct sockaddr *)&own, &own_len) == 0 && same_address(&own, own_len, address, len);
}

int inherited_socket(const struct sockaddr *address, socklen_t len)
{
    long n = env_number("LISTEN_PID") == (long)getpid() ? env_number("LISTEN_FDS") : 0;
    for (int fd = FIRST_FD; fd < FIRST_FD + (n < MOST_FDS ? (int)n : MOST_FDS); fd++) {
        if (!listens_at(fd, address, len))
            continue;
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        return fd;
    }
    return -1;
}
