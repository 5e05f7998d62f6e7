/* Asks debuginfod servers for a file with debugging information. */
#ifndef MERIDIAN_SYMBOLS_DEBUGINFOD_H
#define MERIDIAN_SYMBOLS_DEBUGINFOD_H

#include "base/error.h"
#include "base/slice.h"

struct debuginfod;

/* -MRD_ENOTFOUND when the library is not installed or no server is named (DEBUGINFOD_URLS). */
int debuginfod_open(struct debuginfod **out, struct error *err);

/* The open file of a build id; -1 when no server has it. *path (to be given to free()) is where it was put. */
int debuginfod_fetch(struct debuginfod *d, struct slice build_id, char **path);

void debuginfod_close(struct debuginfod *d);

#endif
