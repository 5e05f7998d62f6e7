/* The files of code that a recording names, for stacks to be unwound with while it is loaded. */
#ifndef MERIDIAN_SHELL_TRACE_CODE_H
#define MERIDIAN_SHELL_TRACE_CODE_H

#include "meridian/tp.h"

/* Opens one, for tp_config.open_code; `ctx` is the struct symbol_sources that say where to look. Only the file that was
 * recorded is opened: its build id is the recorded one, or where none was recorded it is the file of that device and
 * inode on this machine. -1: there is none. */
int trace_code_open(void *ctx, const struct tp_code_file *file);

#endif
