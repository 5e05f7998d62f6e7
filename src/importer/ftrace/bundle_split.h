/* What the bytes of a bundle alone say: its head, and its events as blocks for the sorter. It needs nothing of the
 * import, so that a thread may do it before the bundle's turn has come (bundles_ahead.h). */
#ifndef MERIDIAN_IMPORTER_FTRACE_BUNDLE_SPLIT_H
#define MERIDIAN_IMPORTER_FTRACE_BUNDLE_SPLIT_H

#include "base/vec.h"
#include "importer/sort/event_block.h"
#include "importer/sort/sorter.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

/* What a bundle says about itself: everything but its events. */
struct bundle_head {
    uint32_t cpu;
    uint32_t clock;
    bool has_cpu, lost, has_clock, has_ftrace_ts, has_boot_ts, has_start, has_previous_end;
    bool has_descriptors;
    int64_t ftrace_ts, boot_ts, start;
    struct slice compact;
};

/* Passes over the events. */
void bundle_head_read(struct slice bundle, struct bundle_head *h);

/* --- events ------------------------------------------------------------------------------------------------------- */

/* b of a queued event: length << 32 | generation << 8 | flags. */
enum {
    EVENT_FROM_START = 1, /* a points to the whole FtraceEvent, else behind its leading timestamp */
    EVENT_ROW_ONLY = 2,   /* becomes a row, nothing else */
    EVENT_RETIMED = 4,    /* a is an index in `retimed`; no row */
};

typedef VEC(struct sort_block) sort_block_list;

/* Events of a bundle on their way to a queue: many at once cost less than each by itself. */
struct ftrace_gather {
    struct sorter *sorter; /* NULL: they become blocks instead */
    uint32_t queue;
    sort_block_list *blocks;
    bool failed; /* memory ran out for a block */
    uint32_t n;
    struct sort_event events[SORT_BLOCK_EVENTS];
};

static inline void ftrace_gather_begin(struct ftrace_gather *g, struct sorter *s, uint32_t queue)
{
    g->sorter = s;
    g->queue = queue;
    g->n = 0;
}

void ftrace_gather_flush(struct ftrace_gather *g);

/* Where the next one goes; it counts once g->n does. */
static inline struct sort_event *ftrace_gather_next(struct ftrace_gather *g)
{
    if (g->n == SORT_BLOCK_EVENTS)
        ftrace_gather_flush(g);
    return &g->events[g->n];
}

static inline void ftrace_gather(struct ftrace_gather *g, struct sort_event e)
{
    *ftrace_gather_next(g) = e;
    g->n++;
}

enum event_start { EVENT_READ, EVENT_WITHOUT_TIME, EVENT_WITHOUT_ID };

/* Reads the beginning of a FtraceEvent: *e as it is queued, in the time that is recorded and of generation 0, and the
 * number of the event's own field. */
enum event_start ftrace_event_start(struct slice event, struct sort_event *e, uint32_t *id);

/* Events of lower numbers never wait (ftrace_event_waits()). */
enum { FIRST_EVENT_THAT_WAITS = FTRACE_EVENT_GPU_WORK_PERIOD };

/* --- compact events ----------------------------------------------------------------------------------------------- */

/* CompactSched has parallel packed arrays, timestamps as differences within the bundle. */
enum { COMPACT_FIELDS = FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_COMMON_FLAGS + 1 };

struct compact {
    struct pb_cursor columns[COMPACT_FIELDS];
    uint32_t n_comms; /* names that the bundle brings along */
};

/* Makes trace time of a recorded one; false when that cannot be. A NULL `convert`: it is trace time already. */
struct compact_time {
    bool (*convert)(void *ctx, int64_t raw, int64_t *ts);
    void *ctx;
};

/* False when it is damaged; what comes before that is there. */
bool compact_read(struct slice bytes, struct compact *c);

/* Gathers the events of one kind, whose `a` holds the number of a name, counted from `first_comm`, << 32 | pid. They
 * end where a time cannot be converted; false when they are damaged. */
bool compact_switches(const struct compact *c, uint32_t first_comm, const struct compact_time *time,
                      struct ftrace_gather *g);
bool compact_wakings(const struct compact *c, uint32_t first_comm, const struct compact_time *time,
                     struct ftrace_gather *g);

/* --- a whole bundle ----------------------------------------------------------------------------------------------- */

/* Bytes of a bundle from which on it is worth blocks of its own: few events are better put beside those of others. */
enum { BUNDLE_WORTH_BLOCKS = 2048 };

enum bundle_part { PART_EVENTS, PART_SWITCHES, PART_WAKINGS, BUNDLE_PARTS };

struct bundle_split {
    struct slice bytes; /* the bundle */
    struct bundle_head head;
    /* Times as they were recorded, names counted from 0, generation 0. */
    sort_block_list blocks[BUNDLE_PARTS];
    bool usable; /* false: something is damaged, or is told only with the state of the import, or memory ran out; then
                  * head and blocks are not whole */
};

/* Splits s->bytes. */
void bundle_split(struct bundle_split *s);

/* Frees the blocks that were not handed on, and keeps the room for their list. */
void bundle_split_clear(struct bundle_split *s);
void bundle_split_free(struct bundle_split *s);

#endif
