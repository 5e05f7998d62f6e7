/* The recordings that a server may open for those who ask: the files below directories that its user named. */
#ifndef MERIDIAN_SERVER_RECORDING_FILES_H
#define MERIDIAN_SERVER_RECORDING_FILES_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct recordings {
    char **roots; /* without links */
    size_t n;
};

/* -MRD_EINVALID when one is not a directory; `r` is to be closed all the same. */
int recordings_init(struct recordings *r, const char *const *directories, size_t n, struct error *err);
void recordings_free(struct recordings *r);

enum { RECORDING_PATH_SIZE = 40 };

/* Opens a file by its absolute path: the descriptor, which the caller closes, and in `by` a path that leads to it and
 * to nothing else, whatever becomes of the name. -MRD_EDENIED: it is not below one of the directories; links are
 * followed, and must end there, too. -MRD_EUNSUPPORTED: it is no file. */
int recordings_open(const struct recordings *r, const char *path, char by[RECORDING_PATH_SIZE], struct error *err);

#endif
