/* Names of servers on Unix sockets. */
#include "shell/server_name.h"

#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SOCKET_PATH = 103, KILL_TRIES = 100, KILL_PAUSE_NS = 50000000 };

static int make_directory(const char *dir, struct error *err)
{
    struct stat st;
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, errno, "%s", dir);
    if (lstat(dir, &st) < 0)
        return error_set_errno(err, errno, "%s", dir);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
        return error_set(err, -MRD_EDENIED,
                         "%s: must be a directory that only you may enter (set XDG_RUNTIME_DIR, or give --path)", dir);
    return 0;
}

int server_name_resolve(struct server_name *n, const char *name, const char *path, bool make_dir, struct error *err)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char dir[256], socket_path[512];
    name = name ? name : "default";
    if (!name[0] || strchr(name, '/') || strlen(name) >= sizeof n->session)
        return error_set(err, -MRD_EINVALID, "--name: invalid name '%s': use no '/', and less than %zu characters",
                         name, sizeof n->session);
    snprintf(n->session, sizeof n->session, "%s", name);
    snprintf(dir, sizeof dir, "%s/perfetto", runtime && runtime[0] ? runtime : "/tmp");
    if (path)
        snprintf(socket_path, sizeof socket_path, "%s", path);
    else
        snprintf(socket_path, sizeof socket_path, "%s/%s.sock", dir, name);
    if (strlen(socket_path) > MAX_SOCKET_PATH)
        return error_set(err, -MRD_EINVALID, "%s: the path of a socket has at most %d bytes", socket_path,
                         MAX_SOCKET_PATH);
    snprintf(n->socket_path, sizeof n->socket_path, "%.*s", MAX_SOCKET_PATH, socket_path);
    snprintf(n->pid_path, sizeof n->pid_path, "%.*s.pid", MAX_SOCKET_PATH, socket_path);
    return !path && make_dir ? make_directory(dir, err) : 0;
}

int server_name_write_pid(const struct server_name *n, struct error *err)
{
    char text[32];
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    unlink(n->pid_path);
    int fd = open(n->pid_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(err, errno, "%s", n->pid_path);
    int rc = file_write_all(fd, text, (size_t)len, err);
    close(fd);
    return rc;
}

void server_name_remove(const struct server_name *n)
{
    unlink(n->pid_path);
    unlink(n->socket_path);
}

/* Who listens at the socket, as the kernel knows it: the number in the pid file may be another process' by now. 0:
 * nobody. */
static pid_t listener(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    snprintf(a.sun_path, sizeof a.sun_path, "%.*s", (int)sizeof a.sun_path - 1, path); /* it has been checked */
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        peer.pid = 0;
    close(fd);
    return peer.pid;
}

int server_name_kill(const struct server_name *n, struct error *err)
{
    char *text = NULL;
    size_t len;
    if (file_read_all(n->pid_path, 64, &text, &len, err) < 0)
        return error_set(err, -MRD_ENOTFOUND, "no server with that name is running (%s does not exist)", n->pid_path);
    long pid = strtol(text, NULL, 10);
    mem_free(text);
    if (pid <= 1 || listener(n->socket_path) != pid || kill((pid_t)pid, SIGTERM) < 0)
        return error_set(err, -MRD_ENOTFOUND, "the server with that name has ended");
    const struct timespec pause = {0, KILL_PAUSE_NS};
    for (int i = 0; i < KILL_TRIES && access(n->pid_path, F_OK) == 0; i++)
        nanosleep(&pause, NULL);
    return access(n->pid_path, F_OK) == 0
               ? error_set(err, -MRD_ETIMEOUT, "asked the server (pid %ld) to end; it is still running", pid)
               : 0;
}
