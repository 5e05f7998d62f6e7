/* The folder that `perf record --threads` writes: a perf.data called `data`, and files of bare records beside it, one a
 * recording thread. */
#ifndef MERIDIAN_IMPORTER_PERF_PERF_FOLDER_H
#define MERIDIAN_IMPORTER_PERF_PERF_FOLDER_H

#include "importer/core/context.h"

struct perf_file;

/* The path of the perf.data in a folder, to be given to mem_free(); NULL when the path is no such folder. */
char *perf_folder_data(const char *path);

/* Opens what is beside it, for the perf.data that is read next. Names the file that cannot be opened. */
int perf_folder_open(struct importer *im, const char *path, struct error *err);
/* Gives a perf.data its parts; the next one has none. */
void perf_folder_parts(struct importer *im, struct perf_file *f);
void perf_folder_close(struct importer *im);

#endif
