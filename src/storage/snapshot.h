/* Snapshots: an imported trace as one file that is mapped and not read.
 *
 * Opening costs milliseconds and little memory whatever the size: columns, strings and args are used where they lie in
 * the file, and checked when they are first read. A file that was cut, is of another version or machine, or whose
 * headers are damaged is refused when it is opened; of damage that shows later storage_damage() tells, and nothing
 * that the file says is ever used to read outside of it. */
#ifndef MERIDIAN_STORAGE_SNAPSHOT_H
#define MERIDIAN_STORAGE_SNAPSHOT_H

#include "base/checksum.h"
#include "base/error.h"
#include "base/map_guard.h"
#include "base/slice.h"
#include "storage/storage.h"

#define SNAPSHOT_SUFFIX ".mrdsnap"

struct snapshot_info {
    struct checksum source; /* of the bytes it was made of; zero: unknown */
    uint64_t source_bytes;
    uint64_t options;    /* hash of the options of the import */
    struct slice clocks; /* what the importer wants back */
    struct slice text;   /* for people: which trace, which program */
};

/* Where the bytes of a snapshot go. */
struct snapshot_sink {
    int (*write)(void *ctx, const void *bytes, size_t len, struct error *err);
    void *ctx;
};

/* Writes a loaded trace, after storage_finalize() and storage_number_args(). Args are decoded for it, and strings that
 * only args have come into the pool. */
int snapshot_write(struct storage *st, const struct snapshot_info *info, const struct snapshot_sink *sink,
                   struct error *err);

/* Puts what a snapshot holds in place of all that `st` has. With a guard, `file` is a whole mapping of a file
 * that stays until storage_free(); without one the bytes are copied. -MRD_EFORMAT: it is damaged; -MRD_EUNSUPPORTED: of
 * another version or machine. On an error `st` is as it was. */
int snapshot_attach(struct storage *st, struct slice file, struct map_guard *guard, struct error *err);

/* What the snapshot that `st` was attached to says of itself; the slices last as long. */
struct snapshot_info snapshot_info_of(const struct storage *st);

/* What a snapshot of this program means by its numbers: one of another is refused. */
uint64_t snapshot_schema(void);

/* Whether bytes begin as a snapshot does. */
bool snapshot_is(struct slice head);

struct snapshot;
void snapshot_close(struct snapshot *s);
bool snapshot_damaged(const struct snapshot *s, const char **what);

#endif
