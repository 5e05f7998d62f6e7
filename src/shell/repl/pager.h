/* Long answers go through a pager: $PAGER, or less where there is one. */
#ifndef MERIDIAN_SHELL_REPL_PAGER_H
#define MERIDIAN_SHELL_REPL_PAGER_H

#include <stdbool.h>
#include <sys/types.h>

struct pager {
    const char *command; /* what the shell runs; NULL: none */
    pid_t pid;           /* 0: it does not run */
    int fd;              /* its standard input */
};

/* Finds out what to use; none where the terminal is dumb or PAGER is empty or "cat". */
void pager_find(struct pager *p);

/* Starts it; false: there is none. What is written to p->fd is shown once it is more than a screen. */
bool pager_begin(struct pager *p);

/* Waits until the user has left it. */
void pager_end(struct pager *p);

#endif
