/* The cache of snapshots: what was imported once is opened the next time, as long as it is the same.
 *
 * An entry is found by the sums of its traces' bytes, their names, the options of the import and the version of the
 * program. It appears whole or not at all, and a process that is killed leaves nothing. Only a directory that belongs
 * to the user, and to nobody else, is used. */
#ifndef MERIDIAN_API_CACHE_H
#define MERIDIAN_API_CACHE_H

#include "base/checksum.h"
#include "base/error.h"
#include "base/vec.h"
#include "storage/snapshot.h"

#define CACHE_DEFAULT_BYTES (20ull << 30)

struct cache;

/* `dir` "": $XDG_CACHE_HOME/meridian, or ~/.cache/meridian. It is made when it is not there. -MRD_EDENIED when it is
 * not the user's alone. */
int cache_open(struct cache **out, const char *dir, uint64_t max_bytes, struct error *err);
void cache_close(struct cache *c);

/* Notes a trace of the load. False: it is no regular file, or is being written to, and the load is not for the cache.
 */
bool cache_add_trace(struct cache *c, const char *path);

/* The path of trace i of the load, NULL behind the last. */
const char *cache_trace(const struct cache *c, size_t i);

/* The path of the entry for the traces so far; NULL when there is none. It lasts until the next call. */
const char *cache_find(struct cache *c, uint64_t options);

/* Writes the entry, unless the traces have changed since they were added, somebody else writes it, or it would be too
 * large. Older entries go when all take more than they may. What fails is nobody's concern but the next load's. */
typedef int (*cache_write_fn)(void *ctx, const struct snapshot_info *info, const struct snapshot_sink *sink,
                              struct error *err);
void cache_store(struct cache *c, cache_write_fn write, void *ctx);

/* Takes out the entry that cache_find() gave: it is damaged. */
void cache_drop(struct cache *c);

/* Bytes of the traces so far. */
uint64_t cache_trace_bytes(const struct cache *c);

#endif
