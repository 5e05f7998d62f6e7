/* The members of a zip or tar file, in memory. */
#ifndef MERIDIAN_IMPORTER_READER_ARCHIVE_H
#define MERIDIAN_IMPORTER_READER_ARCHIVE_H

#include "base/error.h"
#include "base/slice.h"
#include "base/vec.h"

struct archive_member {
    char *name;
    uint8_t *bytes; /* owned */
    size_t len;
};

typedef VEC(struct archive_member) archive_members;

/* Appends the regular files of an archive to *out, in the archive's order. On an error what was read so far is there.
 */
int archive_read_members(struct slice file, archive_members *out, struct error *err);

void archive_members_free(archive_members *members);

#endif
