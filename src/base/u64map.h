/* A hash map from 64-bit keys to 64-bit values: open addressing, linear probing, no tombstones.
 *
 * A zeroed struct is an empty map. Keys and values are any 64-bit values. */
#ifndef MERIDIAN_BASE_U64MAP_H
#define MERIDIAN_BASE_U64MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct u64map_slot {
    uint64_t key;
    uint64_t value;
};

struct u64map {
    struct u64map_slot *slots; /* capacity slots, a power of two */
    uint8_t *used;             /* capacity flags: 0, or bits of the key's hash */
    size_t capacity;
    size_t n;
    uint64_t seed; /* 0 until keys crowd (HASH_WALK_MAX) */
};

/* Asks for the memory that the next look for `key` reads: for several looks at once. */
void u64map_ahead(const struct u64map *m, uint64_t key);

/* The value of `key`, or NULL. The pointer lasts until the next put or del. */
uint64_t *u64map_get(const struct u64map *m, uint64_t key);

/* The value slot of `key`, made (value 0) when absent; *added tells which (may be NULL). NULL when out of memory. */
uint64_t *u64map_put(struct u64map *m, uint64_t key, bool *added);

/* Sets key to value; false when out of memory. */
bool u64map_set(struct u64map *m, uint64_t key, uint64_t value);

/* Removes `key`; false when it was not there. */
bool u64map_del(struct u64map *m, uint64_t key);

/* Walks all entries in no particular order: start with *it = 0; NULL at the end. */
struct u64map_slot *u64map_next(const struct u64map *m, size_t *it);

void u64map_clear(struct u64map *m); /* keeps the memory */
void u64map_free(struct u64map *m);

#endif
