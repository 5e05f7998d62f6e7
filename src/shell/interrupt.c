/* Ctrl-C: interrupts the query that runs, never the shell. */
#include "shell/repl.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>

/* A signal handler gets no context: these two are the only variables of the program outside any struct. */
static struct tp *_Atomic target;
static volatile sig_atomic_t pressed;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    pressed = 1;
    tp_interrupt(atomic_load(&target));
}

void interrupt_target(struct tp *tp)
{
    atomic_store(&target, tp);
    struct sigaction action = {.sa_handler = on_interrupt}; /* no SA_RESTART: reading a line must end */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

bool interrupt_taken(void)
{
    bool was = pressed;
    pressed = 0;
    return was;
}

void interrupt_hold(sigset_t *before)
{
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, before);
}

void interrupt_release(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

bool interrupt_wait(int fd, const sigset_t *before)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (!pressed) /* SIGINT is held: it cannot come between this look and the wait */
        if (ppoll(&p, 1, NULL, before) >= 0 || errno != EINTR)
            return true;
    return false;
}
