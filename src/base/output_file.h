/* A file that is there whole or not at all: written under a temporary name beside it, and renamed when it is complete.
 *
 *     struct output_file o;
 *     int rc = output_file_open(&o, path, err);
 *     if (rc == 0) rc = output_file_write(&o, bytes, len, err);
 *     rc = output_file_close(&o, rc, err);
 *
 * What was at `path` before stays until then. A device, a pipe, a link to what is not there yet, and what standard
 * output goes to are written to as they are. A file that may not be written is not replaced. */
#ifndef MERIDIAN_BASE_OUTPUT_FILE_H
#define MERIDIAN_BASE_OUTPUT_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct output_file {
    char *path; /* what `path` stands for, symbolic links followed */
    char *part; /* what is written; the same as path when it cannot be replaced */
    char *buf;
    size_t n;
    int fd;
};

/* On failure nothing is left and output_file_close() need not be called (but may be). */
int output_file_open(struct output_file *o, const char *path, struct error *err);

/* Buffered. */
int output_file_write(struct output_file *o, const void *p, size_t len, struct error *err);
int output_file_flush(struct output_file *o, struct error *err);

/* rc 0: the file takes its name. Else it goes, and rc is handed on. Returns what came of it. */
int output_file_close(struct output_file *o, int rc, struct error *err);

#endif
