/* Ctrl-C: interrupts the query that runs, never the shell. */
#include "shell/repl.h"

#include <signal.h>
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
