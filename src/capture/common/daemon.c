/* Background, notification, permissions. */
#include "capture/common/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
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

void daemon_raise_fd_limit(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}
