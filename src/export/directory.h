/* Tables and results of SQL as files of a directory, each whole or not there. */
#ifndef MERIDIAN_EXPORT_DIRECTORY_H
#define MERIDIAN_EXPORT_DIRECTORY_H

#include "sql/engine.h"

struct export_request {
    const char *format;         /* a name of export_formats */
    const char *directory;      /* made when it is not there */
    const char *tables;         /* separated by commas; NULL: all that have rows, unless there are queries */
    const char *const *queries; /* "name=SELECT …" each */
    size_t n_queries;
    const char *const *files; /* what was loaded: for the trace's name */
    size_t n_files;
};

struct export_counts {
    uint64_t files, rows, bytes;
};

/* Files that are written before a failure stay. */
int export_directory(struct engine *e, const struct export_request *what, struct export_counts *counts,
                     struct error *err);

#endif
