/* The chunks of one sequence, in order of their id as a plain number.
 *
 * They lie in blocks, so that a chunk which comes anywhere in the order moves few others: a producer chooses the ids,
 * and a ring of 64 MiB holds four million of the smallest chunks. Nearly all sequences have one block. Positions count
 * from 0; what begins with `pos` holds until the next change. */
#ifndef MERIDIAN_CAPTURE_SERVICE_CHUNK_LIST_H
#define MERIDIAN_CAPTURE_SERVICE_CHUNK_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chunk_meta {
    uint32_t chunk_id;
    uint32_t offset;        /* of its record in the ring */
    uint32_t read_offset;   /* in the payload, of the next fragment to read */
    uint16_t num_fragments; /* whole ones */
    uint16_t num_read;
    uint8_t flags;
    bool complete;
    bool consumed; /* counted in chunks_read */
};

/* Live ones are chunks[head .. head + n); only the one block of an empty list has none. */
struct chunk_block {
    struct chunk_meta *chunks;
    uint32_t head, n, cap;
    uint32_t start; /* position of the first one, plus the list's origin */
};

struct chunk_list {
    struct chunk_block *blocks;
    uint32_t n_blocks, cap_blocks;
    uint32_t n;      /* chunks of all blocks */
    uint32_t origin; /* goes on when the first chunk leaves: the other blocks keep their start (it may wrap) */
};

/* The chunk at a position below n. */
struct chunk_meta *chunk_list_at(const struct chunk_list *l, uint32_t pos);

/* The first position whose chunk id is not below `chunk_id`. */
uint32_t chunk_list_lower_bound(const struct chunk_list *l, uint32_t chunk_id);

/* The chunk, or NULL. */
struct chunk_meta *chunk_list_find(const struct chunk_list *l, uint32_t chunk_id);

/* Adds a zeroed entry for an id that is not there, and says where. NULL when out of memory. */
struct chunk_meta *chunk_list_insert(struct chunk_list *l, uint32_t chunk_id, uint32_t *pos);

void chunk_list_remove(struct chunk_list *l, uint32_t pos);

/* Into an empty list. False when out of memory. */
bool chunk_list_copy(struct chunk_list *to, const struct chunk_list *from);

void chunk_list_free(struct chunk_list *l);

#endif
