/* Ctrl-C: interrupts the query that runs; the prompt stays, a command ends when it has cleared up. */
#include "shell/interrupt.h"

#include "meridian/tp.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>

/* A signal handler gets no context: these two are the only variables of the program outside any struct. */
static struct tp *_Atomic target;
static volatile sig_atomic_t pressed;

static void on_interrupt(int signal_number)
{
    pressed = signal_number;
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

bool interrupt_came(void)
{
    return pressed != 0;
}

void interrupt_command(struct tp *tp)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    atomic_store(&target, tp);
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND | SA_RESTART}, old;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) /* nohup's SIGHUP stays ignored */
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
}

void interrupt_end_command(void)
{
    int signal_number = pressed;
    atomic_store(&target, NULL);
    if (!signal_number)
        return;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
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
