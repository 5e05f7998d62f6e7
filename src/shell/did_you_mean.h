/* Errors of SQL on the terminal, with the name that was probably meant. */
#ifndef MERIDIAN_SHELL_DID_YOU_MEAN_H
#define MERIDIAN_SHELL_DID_YOU_MEAN_H

#include "meridian/tp.h"

#include <stddef.h>

/* "did you mean 'sched'?" for an error about a table, column, function or module that does not exist, "'name' is a
 * column of thread" for a column that another table of the statement has; else, or when nothing is near, empty. `error`
 * is a copy of tp_error(): the handle is asked for its names. Returns `text`. */
const char *did_you_mean(struct tp *tp, const char *error, char *text, size_t room);

/* Prints tp_error(), and what may have been meant, on standard error. */
void shell_tell_error(struct tp *tp);

#endif
