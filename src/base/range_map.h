/* Ranges of numbers that do not overlap, each with a value: which one holds a number, which ones a range overlaps.
 *
 * A zeroed struct with its arena set is an empty map; it is freed with the arena. */
#ifndef MERIDIAN_BASE_RANGE_MAP_H
#define MERIDIAN_BASE_RANGE_MAP_H

#include "base/arena.h"

struct range_node;

struct range_map {
    struct arena *arena;
    struct range_node *root;
    struct range_node *unused; /* nodes of ranges that were taken out */
    uint64_t random;
};

struct range {
    uint64_t start, end; /* [start, end) */
    void *value;
};

/* The range that holds `at`; false when none does. */
bool range_map_find(const struct range_map *m, uint64_t at, struct range *found);

/* Takes out one range that overlaps [start, end); false when there is none (any more). */
bool range_map_take(struct range_map *m, uint64_t start, uint64_t end, struct range *taken);

/* Adds a range, which must be longer than nothing and overlap none that is there. False when out of memory. */
bool range_map_add(struct range_map *m, struct range range);

#endif
