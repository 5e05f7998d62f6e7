/* Blocks of trace bytes that are not mapped, numbered in the order they are made and freed when nothing points into
 * them any more. */
#ifndef MERIDIAN_IMPORTER_INPUT_BLOCKS_H
#define MERIDIAN_IMPORTER_INPUT_BLOCKS_H

#include "base/vec.h"

#include <stdint.h>

struct block {
    uint64_t epoch;
    size_t n;
    size_t cap;
    bool in_use; /* bytes are still being added or read */
    uint8_t bytes[];
};

struct blocks {
    VEC(struct block *)
    list; /* by epoch */
    uint64_t next_epoch;
};

/* A new block in use; NULL when out of memory. */
struct block *blocks_add(struct blocks *b, size_t cap);

/* Takes over a block made elsewhere, and numbers it. False when out of memory: then it is freed. */
bool blocks_adopt(struct blocks *b, struct block *block);

/* Frees blocks older than `oldest` that are not in use. */
void blocks_release(struct blocks *b, uint64_t oldest);
void blocks_free(struct blocks *b);

#endif
