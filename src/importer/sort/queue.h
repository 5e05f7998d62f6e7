/* One source's events waiting to be sorted: blocks of 24-byte events, freed as they are emptied.
 *
 * Events are numbered from 0 in order of arrival; [head, pushed) are held. [head, sorted_until) is known to be in time
 * order; behind it nothing is known but the smallest timestamp, which costs nothing to keep. */
#ifndef MERIDIAN_IMPORTER_SORT_QUEUE_H
#define MERIDIAN_IMPORTER_SORT_QUEUE_H

#include "base/vec.h"
#include "importer/sort/sorter.h"

struct sort_block {
    uint64_t first; /* number of events[0] */
    uint64_t epoch; /* of the oldest event inside: see sorter_set_epoch() */
    uint32_t n;
    uint32_t cap;
    struct sort_event events[];
};

struct sort_queue {
    VEC(struct sort_block *)
    blocks;
    size_t first_block; /* blocks before it are freed already */
    uint64_t head;
    uint64_t pushed;
    uint64_t sorted_until;
    int64_t last_ts;  /* of event sorted_until - 1, when that is still held */
    uint64_t limit;   /* events from here on arrived after the last read of the buffers */
    bool close_block; /* the next push starts a block of its own, so that a block never spans two windows */
    sort_parse_fn parse;
    void *owner;
};

static inline bool sort_queue_empty(const struct sort_queue *q)
{
    return q->head == q->pushed;
}

static inline struct sort_block *sort_queue_front(const struct sort_queue *q)
{
    return q->blocks.p[q->first_block];
}

static inline const struct sort_event *sort_queue_head(const struct sort_queue *q)
{
    const struct sort_block *b = sort_queue_front(q);
    return &b->events[q->head - b->first];
}

/* Appends; *bytes grows by the memory taken. False when out of memory. */
bool sort_queue_push(struct sort_queue *q, struct sort_event e, uint64_t epoch, size_t *bytes);

/* Brings [head, until) into time order, stably. *suffix_min becomes the smallest timestamp of [until, pushed),
 * INT64_MAX when that is empty. False when out of memory: then the order is what it was. */
bool sort_queue_sort(struct sort_queue *q, uint64_t until, int64_t *suffix_min);

/* Gives up the first n events, which must lie in the front block. *bytes shrinks by the memory freed. */
void sort_queue_consume(struct sort_queue *q, uint32_t n, size_t *bytes);

void sort_queue_free(struct sort_queue *q);

#endif
