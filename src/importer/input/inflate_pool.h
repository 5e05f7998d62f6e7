/* Worker threads that decompress packets ahead of the reader.
 *
 * Jobs are taken back in the order they were given, so what the importer sees does not depend on how many threads there
 * are. A job that fails, or would make all of them together larger than a limit, is handed back unfinished: the reader
 * then decompresses it itself, in pieces. */
#ifndef MERIDIAN_IMPORTER_INPUT_INFLATE_POOL_H
#define MERIDIAN_IMPORTER_INPUT_INFLATE_POOL_H

#include "base/slice.h"
#include "importer/input/blocks.h"

struct inflate_pool;

/* NULL when threads cannot be had: do without. `threads` > 0. */
struct inflate_pool *inflate_pool_open(unsigned threads);
/* Waits for the workers; what was not taken is dropped. */
void inflate_pool_close(struct inflate_pool *p);

/* Room for another job? */
bool inflate_pool_has_room(const struct inflate_pool *p);
/* `payload` must stay until the job is taken or the pool is closed. */
void inflate_pool_submit(struct inflate_pool *p, struct slice payload, bool zstd);

/* The decompressed bytes of `payload` when that is the oldest job, waiting for it if need be: a block that is the
 * caller's (mem_free), with n set. NULL when it is another payload or the job is unfinished. */
struct block *inflate_pool_take(struct inflate_pool *p, struct slice payload);

#endif
