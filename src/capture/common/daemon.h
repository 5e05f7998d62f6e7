/* What every daemon of the capture side does on the way up. */
#ifndef MERIDIAN_CAPTURE_COMMON_DAEMON_H
#define MERIDIAN_CAPTURE_COMMON_DAEMON_H

#include "base/error.h"

/* Forks; the parent prints the child's pid and exits 0, the child leaves the terminal. Standard error stays open: it is
 * where the log goes. */
int daemon_detach(struct error *err);

/* Writes "1" to the descriptor that the environment variable names, and closes it. */
void daemon_notify(const char *env);

/* As many descriptors as we may have: a producer costs up to three. */
void daemon_raise_fd_limit(void);

#endif
