/* Ctrl-C. */
#ifndef MERIDIAN_SHELL_INTERRUPT_H
#define MERIDIAN_SHELL_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

struct tp;

/* From now on Ctrl-C interrupts the query of `tp`; NULL: only the line that is being typed. */
void interrupt_target(struct tp *tp);
/* For commands: the first Ctrl-C (or SIGTERM, SIGHUP) interrupts what `tp` does, so that no half of a file stays; a
 * second one ends the program at once. */
void interrupt_command(struct tp *tp);
/* The command is over: a signal that came ends the program as if nobody had caught it. */
void interrupt_end_command(void);
/* Was it pressed since the last call? */
bool interrupt_taken(void);
/* Did one come that interrupt_command() catches? */
bool interrupt_came(void);
/* Waiting for input without missing a Ctrl-C that comes just before: it is held, and let in by the wait alone. `before`
 * keeps the signals as they were. False: it was pressed. */
void interrupt_hold(sigset_t *before);
bool interrupt_wait(int fd, const sigset_t *before);
void interrupt_release(const sigset_t *before);

#endif
