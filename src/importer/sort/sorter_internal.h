/* What the files of importer/sort share: the state of a sorter, and what its two sides hand over.
 *
 * Merging is done in two steps. The merging side (order.c) looks at times alone and writes down which queue gives how
 * many events next; the parsing side (extract.c) takes them from the queues and parses them. So the two sides share few
 * bytes: an order of 4 bytes a run, where the events of it are 24 each, and a line of memory that one processor writes
 * and another reads costs more than merging an event does. */
#ifndef MERIDIAN_IMPORTER_SORT_SORTER_INTERNAL_H
#define MERIDIAN_IMPORTER_SORT_SORTER_INTERNAL_H

#include "importer/sort/merge_tree.h"
#include "importer/sort/queue.h"

/* A queue on the merging side. Leaves are in order of queue number. */
struct leaf {
    struct sort_queue *q;
    size_t block;            /* the next one to look at, or the one that is being looked at */
    const int64_t *at, *end; /* times of what is left of it; both NULL: not begun */
    struct sort_times times; /* where they stand */
    int64_t suffix_min;      /* smallest timestamp that arrived after the limit */
};

/* The same queue on the parsing side. */
struct feed {
    struct sort_queue *q;
    const struct sort_event *at; /* in the front block, unpacked; NULL: not begun */
    uint32_t left;               /* events from `at` on */
    uint32_t points_to_bytes;
    sort_parse_fn parse;
    void *owner;
};

/* A run of events of one leaf: leaf << 11 | late << 10 | events - 1. Late ones are passed over. */
typedef uint32_t sort_run;
enum { RUN_EVENT_BITS = 10, RUN_LATE = 1 << RUN_EVENT_BITS, RUN_LEAF_SHIFT = RUN_EVENT_BITS + 1 };
enum { RUN_LEAVES = 1 << (32 - RUN_LEAF_SHIFT) };
_Static_assert(SORT_BLOCK_EVENTS <= 1 << RUN_EVENT_BITS, "a run is of one block");

enum { BATCH_EVENTS = 8192 /* or a block more */, BATCH_RUNS = 4096 };

struct sort_batch {
    uint32_t n_events;
    uint32_t n_runs;
    bool releases; /* once it is parsed, blocks of input before `oldest` may go */
    uint64_t oldest;
    sort_run runs[BATCH_RUNS];
};

struct sorter {
    struct stats *stats;
    VEC(struct sort_queue *)
    queues; /* by rank; NULL: reserved and not opened */
    VEC(struct sort_queue *)
    busy; /* those that hold events, and some that did */
    VEC(struct feed)
    feeds; /* by leaf */
    int64_t max_ts;
    bool full_sort;
    bool failed;
    uint64_t thread_from; /* events from which on merging has a thread of its own; 0: never */
    unsigned flushes;     /* since the last effective read of the buffers */
    size_t bytes;
    size_t peak_bytes;
    struct sort_room room;
    uint64_t epoch;
    void (*released)(void *ctx, uint64_t oldest);
    void *released_ctx;

    sort_progress_fn progress; /* while it drains; NULL: nobody asks */
    void *progress_ctx;
    uint64_t n_parsed; /* of the `n_events` that are extracted */
    uint64_t n_events;

    /* While events are merged, all of this belongs to the merging side, and so do the blocks of queues from those of
     * the leaves on. */
    struct sort_order {
        VEC(struct leaf)
        leaves;
        struct merge_tree tree;
        int64_t emitted_ts;
        bool emitted; /* anything at all */
        bool failed;
        bool tells_released;  /* somebody wants to know what input may go */
        struct leaf *in_run;  /* its run goes on where the last batch was full: */
        int64_t until;        /* up to here */
        uint64_t late;        /* events that came too late, not counted yet */
        uint64_t epoch;       /* of the newest input */
        size_t bytes;         /* what the queues have grown by, modulo 2^64 */
        size_t passed;        /* blocks passed since the last look for the oldest epoch… */
        size_t release_after; /* …and how many of them it takes until the next */
    } order;
};

/* Emits what arrived before each queue's limit, as far as nothing that arrived later comes first. */
void sorter_extract(struct sorter *s);

/* Begins with each queue that holds events; false when there is none or memory ran out (order.failed). */
bool sort_order_begin(struct sorter *s, uint64_t *events);

/* Fills the batch with what comes next; false when that is all. */
bool sort_order_fill(struct sort_order *o, struct sort_batch *b);

void sort_order_end(struct sort_order *o);

#endif
