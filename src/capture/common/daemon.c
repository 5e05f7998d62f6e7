/* Background, notification, permissions. */
#include "capture/common/daemon.h"

#include "capture/ipc/addr.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

int daemon_detach(struct error *err)
{
    pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(err, errno, "fork");
    if (pid > 0) {
        printf("%d\n", (int)pid);
        fflush(stdout);
        _exit(0);
    }
    setsid();
    int null = open("/dev/null", O_RDWR);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        if (null > 2)
            close(null);
    }
    (void)!chdir("/");
    return 0;
}

void daemon_notify(const char *env)
{
    const char *v = getenv(env);
    if (!v || !*v)
        return;
    int fd = atoi(v);
    (void)!write(fd, "1", 1);
    close(fd);
}

int daemon_socket_permissions(const char *address, const char *group, const char *mode, struct error *err)
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

void daemon_raise_fd_limit(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}
