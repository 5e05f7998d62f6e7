/* One source's events waiting to be sorted: packed blocks, freed as they are emptied.
 *
 * Events are numbered from 0 in order of arrival; [head, pushed) are held. New ones gather in `fresh` and are sealed
 * into a block when it is full, when a window ends, when they are to be read, or when a block comes that is ready. */
#ifndef MERIDIAN_IMPORTER_SORT_QUEUE_H
#define MERIDIAN_IMPORTER_SORT_QUEUE_H

#include "base/spill.h"
#include "base/vec.h"
#include "importer/sort/event_block.h"

/* Where blocks go that are too many for memory: all queues of a sorter share it. */
struct sort_room {
    struct spill *file; /* NULL: nowhere */
    size_t memory;      /* from so many bytes on */
};

struct sort_queue {
    VEC(struct sort_block)
    blocks;
    size_t first_block; /* blocks before it are gone */
    uint64_t head;
    uint64_t pushed;
    uint64_t limit; /* events from here on arrived after the last read of the buffers; always where a block begins */

    struct sort_event *fresh; /* not in a block yet */
    uint32_t n_fresh;
    uint32_t cap_fresh;
    uint64_t fresh_epoch;

    struct sort_event *front; /* room for the first block, unpacked: `front_cap` events */
    uint32_t front_cap;
    const struct sort_room *room;
    sort_parse_fn parse;
    void *owner;
    uint32_t number;
    uint32_t points_to_bytes; /* so many lie where `a` of an event says; 0: none do */
    bool listed;              /* among those that hold events */
    bool tied;                /* events of one time go by b… */
    int64_t tie_from;         /* …from this time on */
};

static inline bool sort_queue_empty(const struct sort_queue *q)
{
    return q->head == q->pushed;
}

bool sort_queue_grow(struct sort_queue *q, uint64_t epoch, size_t *bytes);

/* Appends; *bytes grows by the memory taken. False when out of memory. */
static inline bool sort_queue_push(struct sort_queue *q, struct sort_event e, uint64_t epoch, size_t *bytes)
{
    if (__builtin_expect(q->n_fresh == q->cap_fresh, 0) && !sort_queue_grow(q, epoch, bytes))
        return false;
    if (q->n_fresh == 0 || epoch < q->fresh_epoch)
        q->fresh_epoch = epoch;
    q->fresh[q->n_fresh++] = e;
    q->pushed++;
    return true;
}

/* Puts the fresh events into a block. False when out of memory: they stay where they are. */
bool sort_queue_seal(struct sort_queue *q, size_t *bytes);

/* Appends n events, as sort_queue_push() does one. */
bool sort_queue_push_run(struct sort_queue *q, const struct sort_event *e, size_t n, uint64_t epoch, size_t *bytes);

/* Appends the events of a block, which is the queue's now and is left empty; not for tied queues. */
bool sort_queue_push_block(struct sort_queue *q, struct sort_block *b, uint64_t epoch, size_t *bytes);

/* --- the merging side: it has the blocks that it has not passed yet to itself ------------------------------------ */

/* Room for the times of a block, and what else is known of a queue there. */
struct sort_times {
    int64_t *p;
    uint32_t cap;
    uint32_t ahead; /* so many blocks are sorted together next time, at least */
    uint64_t head;  /* of the queue, when merging began */
};

/* Finds what of [head, limit) is not in order of time; everything is sealed before. *suffix_min becomes the smallest
 * timestamp of [limit, pushed), INT64_MAX when that is empty. */
void sort_queue_begin(struct sort_queue *q, int64_t *suffix_min);

/* Whether there is such a block, before the limit. */
static inline bool sort_queue_more(const struct sort_queue *q, size_t block)
{
    return block < q->blocks.n && q->blocks.p[block].first < q->limit;
}

/* The least timestamp of the block, which is before the limit and was not begun. */
static inline int64_t sort_queue_block_ts(const struct sort_queue *q, size_t block)
{
    const struct sort_block *b = &q->blocks.p[block];
    return b->unsorted ? b->rest_min : b->first_ts;
}

/* Puts the block's events in order, stably, if they are not: those of the queue's head on, of which there are some.
 * Their times: *n of them. NULL when out of memory. */
const int64_t *sort_queue_times(struct sort_queue *q, size_t block, struct sort_times *t, uint32_t *n, size_t *bytes);

/* --- the parsing side -------------------------------------------------------------------------------------------- */

/* The events of the front block from head on, unpacked: *n of them. The merging side has passed the block, or looks at
 * it. NULL when out of memory. They stay until sort_queue_drop_front() or sort_queue_end(). */
const struct sort_event *sort_queue_front(struct sort_queue *q, uint32_t *n);

/* Gives up the front block, which is used up. *bytes shrinks by the memory freed. */
void sort_queue_drop_front(struct sort_queue *q, size_t *bytes);

/* Both sides are done. Of the front block, `left` events from `rest` on are left, if it was begun (else 0). */
void sort_queue_end(struct sort_queue *q, const struct sort_event *rest, uint32_t left);

void sort_queue_free(struct sort_queue *q);

#endif
