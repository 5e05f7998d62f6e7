/* The pager. */
#include "shell/repl/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_installed(const char *program)
{
    const char *path = getenv("PATH");
    char file[512];
    for (const char *p = path ? path : "/usr/bin:/bin"; *p;) {
        size_t n = strcspn(p, ":");
        snprintf(file, sizeof file, "%.*s/%s", (int)n, p, program);
        if (access(file, X_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

void pager_find(struct pager *p)
{
    const char *pager = getenv("PAGER"), *term = getenv("TERM");
    *p = (struct pager){.fd = -1};
    if (!term || strcmp(term, "dumb") == 0)
        return;
    if (pager)
        p->command = *pager && strcmp(pager, "cat") != 0 ? pager : NULL;
    else if (is_installed("less"))
        p->command = "less";
}

/* Quits by itself when all fits on the screen, keeps colours and the answer on the screen, cuts long lines. */
static void be_pager(const struct pager *p, int in)
{
    dup2(in, STDIN_FILENO);
    setenv("LESS", "FRSX", 0);
    signal(SIGPIPE, SIG_DFL);
    execl("/bin/sh", "sh", "-c", p->command, (char *)NULL);
    fprintf(stderr, "%s: %s\n", p->command, strerror(errno));
    _exit(127);
}

bool pager_begin(struct pager *p)
{
    int fds[2];
    if (!p->command || pipe2(fds, O_CLOEXEC) != 0)
        return false;
    fflush(NULL);
    p->pid = fork();
    if (p->pid == 0)
        be_pager(p, fds[0]);
    close(fds[0]);
    p->fd = fds[1];
    if (p->pid > 0)
        return true;
    close(fds[1]);
    *p = (struct pager){.command = p->command, .fd = -1};
    return false;
}

void pager_end(struct pager *p)
{
    if (p->fd >= 0)
        close(p->fd);
    while (p->pid > 0 && waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    p->pid = 0;
    p->fd = -1;
}
