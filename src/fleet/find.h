/* Finds the recordings that a command line names. */
#ifndef MERIDIAN_FLEET_FIND_H
#define MERIDIAN_FLEET_FIND_H

#include "base/error.h"
#include "base/vec.h"

#include <stdint.h>

/* A recording: a file, an archive of files that belong together, or a directory that is one (CTF). */
struct fleet_file {
    char *path; /* as the importer gets it */
    uint64_t size;
    int64_t modified_s;
    bool is_directory;
};

struct fleet_files {
    VEC(struct fleet_file)
    list;
};

/* `paths`: files; directories, whose files are taken at every depth, in the order of their names, without hidden ones;
 * patterns of the shell that no file is called like. -MRD_ENOTFOUND when one of them names nothing. */
int fleet_find(struct fleet_files *out, const char *const *paths, size_t n, struct error *err);
void fleet_files_free(struct fleet_files *files);

/* What the trace is called: by the bytes of its file, or of the directory's files in the order of their names. */
int fleet_file_id(const struct fleet_file *file, char *id, struct error *err);

#endif
