/* Ranges of addresses that may nest: which is the smallest that an address lies in. */
#ifndef MERIDIAN_SYMBOLS_RANGE_LIST_H
#define MERIDIAN_SYMBOLS_RANGE_LIST_H

#include "base/vec.h"

#include <stdint.h>

struct code_range {
    uint64_t start, end; /* [start, end) */
    uint64_t reach;      /* the largest end of those up to it */
    uint32_t id;         /* the caller's */
};

struct range_list {
    VEC(struct code_range)
    list;
};

/* False when out of memory. Empty ranges are left out. */
bool range_list_add(struct range_list *l, uint64_t start, uint64_t end, uint32_t id);

/* Before the first look-up and after the last addition. */
void range_list_sort(struct range_list *l);

/* NULL when an address lies in none. */
const struct code_range *range_list_find(const struct range_list *l, uint64_t address);

void range_list_free(struct range_list *l);

#endif
