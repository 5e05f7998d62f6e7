/* What the files of importer/sort share: the state of a sorter. */
#ifndef MERIDIAN_IMPORTER_SORT_SORTER_INTERNAL_H
#define MERIDIAN_IMPORTER_SORT_SORTER_INTERNAL_H

#include "importer/sort/merge_tree.h"
#include "importer/sort/queue.h"

/* A queue in the merge. Leaves are in order of queue number. */
struct leaf {
    struct sort_queue *q;
    const struct sort_event *at, *end; /* what is left of its front block, unpacked; both NULL: not unpacked yet */
    int64_t suffix_min;                /* smallest timestamp that arrived after the limit */
};

struct sorter {
    struct stats *stats;
    VEC(struct sort_queue *)
    queues; /* by rank; NULL: reserved and not opened */
    VEC(struct sort_queue *)
    busy; /* those that hold events, and some that did */
    VEC(struct leaf)
    leaves;
    struct merge_tree tree;
    int64_t max_ts;
    int64_t emitted_ts;
    bool emitted; /* anything at all */
    bool full_sort;
    bool failed;
    uint64_t thread_from; /* events from which on merging has a thread of its own; 0: never */
    unsigned flushes;     /* since the last effective read of the buffers */
    size_t bytes;
    size_t peak_bytes;
    uint64_t epoch;
    void (*released)(void *ctx, uint64_t oldest);
    void *released_ctx;

    sort_progress_fn progress; /* while it drains; NULL: nobody asks */
    void *progress_ctx;
    uint64_t n_parsed; /* of the `n_events` that are extracted; for the parsing side */
    uint64_t n_events;

    /* While events are merged; all of this, the queues and `bytes` belong to whoever merges. */
    struct leaf *in_run;  /* its run goes on where the last batch was full: */
    int64_t until;        /* up to here */
    uint64_t late;        /* events that came too late, not counted yet */
    size_t freed;         /* blocks emptied since the last look for the oldest epoch… */
    size_t release_after; /* …and how many of them it takes until the next */
};

/* Emits what arrived before each queue's limit, as far as nothing that arrived later comes first. */
void sorter_extract(struct sorter *s);

#endif
