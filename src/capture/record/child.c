/* Starting and stopping processes. */
#include "capture/record/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child: never returns. */
static void become(const struct child_options *o, const int in[2], const int out[2], pid_t parent)
{
    int null = open("/dev/null", O_RDWR);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(127);
    dup2(o->pipes ? in[0] : null, STDIN_FILENO);
    dup2(o->pipes ? out[1] : null, STDOUT_FILENO);
    if (o->log) {
        int log = open(o->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (log >= 0)
            dup2(log, STDERR_FILENO);
    }
    for (const char *const *e = o->env; e && *e; e++)
        putenv((char *)(uintptr_t)*e);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    execvp(o->argv[0], o->argv);
    dprintf(STDERR_FILENO, "record: %s: %s\n", o->argv[0], strerror(errno));
    _exit(127);
}

int child_start(struct child *c, const struct child_options *o, struct error *err)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    *c = (struct child){.in = -1, .out = -1};
    if (o->pipes && (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0))
        return error_set_errno(err, errno, "pipe");
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        return error_set_errno(err, errno, "fork");
    if (pid == 0)
        become(o, in, out, parent);
    c->pid = pid;
    if (!o->pipes)
        return 0;
    close(in[0]);
    close(out[1]);
    c->in = in[1];
    c->out = out[0];
    fcntl(c->in, F_SETFL, O_NONBLOCK);
    fcntl(c->out, F_SETFL, O_NONBLOCK);
    return 0;
}

static void close_pipes(struct child *c)
{
    if (c->in >= 0)
        close(c->in);
    if (c->out >= 0)
        close(c->out);
    c->in = c->out = -1;
}

bool child_ended(struct child *c, int *status)
{
    int s = 0;
    if (!c->pid)
        return true;
    if (waitpid(c->pid, &s, WNOHANG) != c->pid)
        return false;
    c->pid = 0;
    if (status)
        *status = s;
    return true;
}

void child_stop(struct child *c, int signum, unsigned patience_ms)
{
    if (c->in >= 0)
        close(c->in);
    c->in = -1;
    if (c->pid && signum)
        kill(c->pid, signum);
    for (unsigned ms = 0; c->pid && ms < patience_ms && !child_ended(c, NULL); ms += 10)
        usleep(10000);
    if (c->pid) {
        kill(c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
        c->pid = 0;
    }
    close_pipes(c);
}
