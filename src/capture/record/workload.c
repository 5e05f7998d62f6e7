/* The command that is recorded. */
#include "capture/record/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Data sources that start later than this are recorded from then on. */
enum { START_TIMEOUT_MS = 10000 };
enum { CANNOT_RUN = 127 };

static pid_t command; /* in the supervisor */

static void on_term(int signum)
{
    if (command > 0)
        kill(command, signum);
}

static void run_command(char *const *argv, const char *const *env)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    for (; *env; env++)
        putenv((char *)(uintptr_t)*env);
    execvp(argv[0], argv);
    fprintf(stderr, "cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(CANNOT_RUN);
}

/* Never returns. Ctrl-C reaches the command itself, which may take its time to end. */
static void supervise(int go, int end, char *const *argv, const char *const *env)
{
    struct pollfd p = {.fd = go, .events = POLLIN};
    char started = 0;
    int status = 0;
    signal(SIGINT, SIG_IGN);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_term}, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int n;
    while ((n = poll(&p, 1, START_TIMEOUT_MS)) < 0 && errno == EINTR)
        ;
    if (n > 0 && (read(go, &started, 1) != 1 || started != 0))
        _exit(0); /* the recording did not start */
    command = fork();
    if (command == 0)
        run_command(argv, env);
    while (command > 0 && waitpid(command, &status, 0) < 0 && errno == EINTR)
        ;
    int32_t exit_status = command < 0           ? CANNOT_RUN
                          : WIFEXITED(status)   ? WEXITSTATUS(status)
                          : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                                : CANNOT_RUN;
    _exit(write(end, &exit_status, sizeof exit_status) == sizeof exit_status ? 0 : 1);
}

int workload_start(struct workload *w, char *const *argv, const char *const *env, struct error *err)
{
    int go[2], end[2];
    *w = (struct workload){.go = -1, .end = -1};
    if (pipe2(go, O_CLOEXEC) != 0)
        return error_set_errno(err, errno, "pipe");
    if (pipe2(end, O_CLOEXEC) != 0) {
        int rc = error_set_errno(err, errno, "pipe");
        close(go[0]);
        close(go[1]);
        return rc;
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(go[1]);
        close(end[0]);
        supervise(go[0], end[1], argv, env);
    }
    close(go[0]);
    close(end[1]);
    w->go = go[1];
    w->end = end[0];
    if (pid > 0) {
        w->supervisor = pid;
        return 0;
    }
    int rc = error_set_errno(err, errno, "fork");
    workload_end(w, true, NULL);
    return rc;
}

bool workload_end(struct workload *w, bool stop, int *status)
{
    int32_t exit_status = 0;
    bool ran = false;
    if (w->go >= 0)
        close(w->go);
    if (w->supervisor && stop)
        kill(w->supervisor, SIGTERM);
    if (w->supervisor) {
        struct pollfd p = {.fd = w->end, .events = POLLIN}; /* a loop that has watched it made it non-blocking */
        while (poll(&p, 1, -1) < 0 && errno == EINTR)
            ;
        ran = read(w->end, &exit_status, sizeof exit_status) == sizeof exit_status;
        while (waitpid(w->supervisor, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (w->end >= 0)
        close(w->end);
    *w = (struct workload){.go = -1, .end = -1};
    if (ran && status)
        *status = exit_status;
    return ran;
}
