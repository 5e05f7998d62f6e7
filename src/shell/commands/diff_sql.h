/* Compares the rows of any query by key. */
#ifndef MERIDIAN_SHELL_COMMANDS_DIFF_SQL_H
#define MERIDIAN_SHELL_COMMANDS_DIFF_SQL_H

#include "shell/shell.h"

/* Runs --sql on two traces, matches the rows by the columns of --key (default: the first) and prints the values that
 * differ, the largest change first. 0: nothing differs; 1: something does. */
int diff_sql(struct shell *sh, const char *const paths[2], struct error *err);

#endif
