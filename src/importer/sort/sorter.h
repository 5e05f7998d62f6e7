/* Brings events of all sources into time order: one queue per source, merged by a loser tree (order.c).
 *
 * A queue belongs to a stream (ftrace of one cpu, compact switches of one cpu, generic packets, …) and keeps 24-byte
 * events in arrival order; while timestamps do not fall it costs nothing to sort, else the tail from the first
 * out-of-order event is sorted, stably. Across queues with equal timestamps the queue made first goes first, and a
 * queue's run goes on while its events are not later than the next queue's earliest.
 *
 * The meaning of a and b is the queue owner's. Typically a = pointer to payload bytes, b = length << 32 | generation
 * index. */
#ifndef MERIDIAN_IMPORTER_SORT_SORTER_H
#define MERIDIAN_IMPORTER_SORT_SORTER_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sort_event {
    int64_t ts;
    uint64_t a;
    uint64_t b;
};

/* Called with a run of consecutive events of one queue, in time order. It must not push events. */
typedef void (*sort_parse_fn)(void *owner, const struct sort_event *events, size_t n);

struct sorter;
struct stats;

struct sorter *sorter_open(struct stats *stats, bool full_sort);

/* A new queue; the number is its rank among equals. UINT32_MAX when out of memory. Of more than 2^21 queues that hold
 * events at once a load fails as of too little memory. */
uint32_t sorter_add_queue(struct sorter *s, sort_parse_fn parse, void *owner);

/* Ranks for `n` queues that are made later, or never: the first number; UINT32_MAX when out of memory. Nothing may be
 * pushed to one before it is opened; false when out of memory. */
uint32_t sorter_reserve_queues(struct sorter *s, uint32_t n);
bool sorter_open_queue(struct sorter *s, uint32_t queue, sort_parse_fn parse, void *owner);

/* As above for a queue whose events of one time go by b, then by arrival: of times from sorter_set_tie_from() on, none
 * until that is called. */
uint32_t sorter_add_tied_queue(struct sorter *s, sort_parse_fn parse, void *owner);
void sorter_set_tie_from(struct sorter *s, uint32_t queue, int64_t ts);

/* Appends an event. Negative timestamps and events older than what was already emitted are counted and dropped (stats
 * trace_sorter_negative_timestamp_dropped, sorter_push_event_out_of_order). */
void sorter_push_words(struct sorter *s, uint32_t queue, int64_t ts, uint64_t a, uint64_t b);
/* In registers: a struct's words would be stored one by one and read as two. */
static inline void sorter_push(struct sorter *s, uint32_t queue, struct sort_event e)
{
    sorter_push_words(s, queue, e.ts, e.a, e.b);
}

/* As sorter_push() of each event, in their order. */
void sorter_push_run(struct sorter *s, uint32_t queue, const struct sort_event *events, size_t n);

/* As sorter_push_run() of the events of a block, which is the sorter's from now on; not for tied queues. */
struct sort_block;
void sorter_push_block(struct sorter *s, uint32_t queue, struct sort_block *b);

/* `a` of this queue's events is where their bytes are, most often so many or fewer: they are fetched into the cache
 * before they are parsed. */
void sorter_points_to_bytes(struct sorter *s, uint32_t queue, uint32_t bytes);

/* The same for runs that are long, as of one queue of which all writers take turns: a parse function calls it for each
 * event, which `left` others follow in its run. (Measured: pieces of long runs, asked for at once, take 1.04 times.) */
static inline void sort_ask_ahead(const struct sort_event *e, size_t left, uint32_t bytes)
{
    enum { AHEAD = 6, CACHE_LINE = 64 };
    for (uint32_t at = 0; left >= AHEAD && at < bytes; at += CACHE_LINE)
        __builtin_prefetch((const void *)(uintptr_t)(e[AHEAD].a + at));
}

/* Merging runs in a thread of its own, ahead of the parse functions (which are called in the caller's, as ever), where
 * there are `from_events` events or more; 0: never, which is what a sorter begins with. */
void sorter_use_thread(struct sorter *s, uint64_t from_events);

/* From so many bytes of events on, what comes goes to a file (base/spill.h): a window may be the whole of a recording
 * that is larger than memory. Room in it is used once; it goes with the sorter. */
void sorter_spill(struct sorter *s, uint64_t memory);

/* The largest timestamp pushed so far (0 when none). */
int64_t sorter_max_ts(const struct sorter *s);

/* True while nothing was emitted: then packets may still be deferred and sorter_force_full_sort() works. */
bool sorter_can_full_sort(const struct sorter *s);
void sorter_force_full_sort(struct sorter *s);

/* Service events that drive windowed extraction. The second may call parse functions. */
void sorter_on_flush(struct sorter *s);
void sorter_on_read_buffers(struct sorter *s);

/* Emits everything that is left. `progress` (may be NULL) is told now and then how many events of how many are parsed.
 */
typedef void (*sort_progress_fn)(void *ctx, uint64_t done, uint64_t total);
void sorter_drain(struct sorter *s, sort_progress_fn progress, void *ctx);

/* Blocks of input that events point into are numbered in the order they are read: "events pushed from now on point into
 * block `epoch` or later ones". `released` is called now and then, during extraction, with the oldest number that is
 * still needed: older blocks may be freed. */
void sorter_set_epoch(struct sorter *s, uint64_t epoch);
uint64_t sorter_epoch(const struct sorter *s);
void sorter_on_released(struct sorter *s, void (*released)(void *ctx, uint64_t oldest), void *ctx);

/* Largest number of bytes held in queues at any time. */
size_t sorter_peak_bytes(const struct sorter *s);
bool sorter_failed(const struct sorter *s);
void sorter_close(struct sorter *s);

#endif
