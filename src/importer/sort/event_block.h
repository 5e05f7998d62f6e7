/* A block of one source's events: packed, and what is known of it, so that what needs sorting is found without looking
 * at events. */
#ifndef MERIDIAN_IMPORTER_SORT_EVENT_BLOCK_H
#define MERIDIAN_IMPORTER_SORT_EVENT_BLOCK_H

#include "base/alloc.h"
#include "importer/sort/packed.h"

enum { SORT_BLOCK_EVENTS = 1024 /* at most; 24 KiB unpacked: stays in the cache while it is merged */ };

struct sort_block {
    struct packed_events *events;
    uint64_t first; /* number of the first event */
    uint64_t epoch; /* of the oldest event inside: see sorter_set_epoch() */
    int64_t min_ts, max_ts;
    int64_t first_ts;
    int64_t last_ts;
    int64_t rest_min; /* while merging: the least of this block and all behind it */
    uint32_t
        unsorted; /* the events of so many blocks from here on are mixed: some are sorted before this one is read */
    bool in_file; /* `events` is a piece of a file (base/spill.h), which is not freed one by one */
    bool sorted;
    bool ties_sorted; /* events of one time by b, too; known in tied queues only */
};

/* What is known of n events (n > 0), which are not packed yet. */
struct sort_block sort_block_describe(const struct sort_event *e, uint32_t n, bool tied);

/* Packs n events in the order of their arrival (0 < n <= SORT_BLOCK_EVENTS), for sorter_push_block(); it needs no
 * sorter, so that any thread may do it. The events are the caller's until then (sort_block_free()). False when out of
 * memory. */
bool sort_block_make(struct sort_block *b, const struct sort_event *e, uint32_t n);

/* Adds to the a and to the lower half of b of all events, where that carries nothing into other bits. */
void sort_block_add(struct sort_block *b, uint64_t a, uint32_t low_b);

static inline void sort_block_free(struct sort_block *b)
{
    if (!b->in_file)
        mem_free(b->events);
    b->events = NULL;
}

#endif
