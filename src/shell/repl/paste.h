/* Reads a terminal's bytes and tells what is typed from what is pasted (bracketed paste): tabs and empty lines of a
 * pasted text mean nothing. */
#ifndef MERIDIAN_SHELL_REPL_PASTE_H
#define MERIDIAN_SHELL_REPL_PASTE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct paste {
    int fd;
    char queue[8]; /* read and not yet given out: an escape sequence that was none of ours */
    size_t n, at;
    bool inside; /* a pasted text */
    bool line;   /* the last newline given out was pasted */
};

/* Asks the terminal to mark pasted text, or to stop it. */
void paste_ask(bool on);

/* The next byte, as read(): 1; 0 at the end; -1 with errno EINTR when Ctrl-C was pressed. `signals` as for
 * interrupt_wait(). A pasted tab is a blank, other pasted controls are left out. */
int paste_read(struct paste *p, const sigset_t *signals, char *byte);

#endif
