/* Standard input and output as a connection: whatever they are (pipes, files, a terminal), two threads carry their
 * bytes to and from a socket that the loop can wait for. */
#include "server/streams.h"

#include "base/file.h"

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

/* Until the input ends, or nobody takes it any more. The thread may wait for input when the program ends. */
static void *carry_in(void *ctx)
{
    int fd = (int)(intptr_t)ctx;
    char buf[1 << 16];
    ssize_t n;
    while ((n = file_read(STDIN_FILENO, buf, sizeof buf)) > 0)
        if (file_write_all(fd, buf, (size_t)n, NULL) < 0)
            break;
    shutdown(fd, SHUT_WR);
    return NULL;
}

static void *carry_out(void *ctx)
{
    int fd = (int)(intptr_t)ctx;
    char buf[1 << 16];
    ssize_t n;
    while ((n = file_read(fd, buf, sizeof buf)) > 0)
        if (file_write_all(STDOUT_FILENO, buf, (size_t)n, NULL) < 0) {
            shutdown(fd, SHUT_RDWR); /* nobody reads the answers: end */
            break;
        }
    return NULL;
}

int stdio_start(pthread_t *out, int *server_fd, struct error *err)
{
    int fds[2];
    pthread_t in;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return error_set_errno(err, errno, "socketpair");
    *server_fd = fds[1];
    void *fd = (void *)(intptr_t)fds[0];
    if (pthread_create(out, NULL, carry_out, fd) != 0)
        return error_set(err, -MRD_ENOMEM, "no thread for standard output");
    if (pthread_create(&in, NULL, carry_in, fd) != 0)
        return error_set(err, -MRD_ENOMEM, "no thread for standard input");
    pthread_detach(in);
    return 0;
}
