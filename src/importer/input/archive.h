/* The members of a zip or tar file, in memory. */
#ifndef MERIDIAN_IMPORTER_INPUT_ARCHIVE_H
#define MERIDIAN_IMPORTER_INPUT_ARCHIVE_H

#include "base/error.h"
#include "base/slice.h"
#include "base/vec.h"

struct archive_member {
    char *name;
    uint8_t *bytes; /* owned */
    size_t len;
    bool damaged; /* only the first `len` bytes could be read */
};

typedef VEC(struct archive_member) archive_members;

/* How many bytes may come out of this many packed ones: enough for any trace, too few for a bomb. Asked while unpacking
 * for what has been used up so far, it stops a bomb at its beginning, however large its file. */
uint64_t unpack_limit(uint64_t packed_bytes);
/* Says that it is more; returns -MRD_ELIMIT. */
int unpack_limit_error(struct error *err);

/* Appends the regular files of an archive to *out, in the archive's order; their names are labels, never paths to write
 * to. `room` is how much may still be unpacked, less what this takes. On an error what was read so far is there:
 * -MRD_EFORMAT when the archive breaks off or its end is missing, -MRD_ELIMIT when it holds too much. */
int archive_read_members(struct slice file, archive_members *out, uint64_t *room, struct error *err);

void archive_members_free(archive_members *members);

#endif
