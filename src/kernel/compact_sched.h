/* The compact encoding of sched_switch and sched_waking: parallel packed lists and a table of comms, per bundle. */
#ifndef MERIDIAN_KERNEL_COMPACT_SCHED_H
#define MERIDIAN_KERNEL_COMPACT_SCHED_H

#include "kernel/event_program.h"

enum {
    COMPACT_MAX_EVENTS = 2048, /* of either kind in one bundle */
    COMPACT_MAX_COMMS = 128,   /* different names of threads in one bundle */
    COMPACT_SLOTS = 512,       /* of the hash index over comms */
};

/* Field numbers of FtraceEventBundle.CompactSched; also the index of each list. */
enum compact_list_no {
    COMPACT_SWITCH_TIMESTAMP = 1,
    COMPACT_SWITCH_PREV_STATE,
    COMPACT_SWITCH_NEXT_PID,
    COMPACT_SWITCH_NEXT_PRIO,
    COMPACT_INTERN_TABLE,
    COMPACT_SWITCH_NEXT_COMM,
    COMPACT_WAKING_TIMESTAMP,
    COMPACT_WAKING_PID,
    COMPACT_WAKING_TARGET_CPU,
    COMPACT_WAKING_PRIO,
    COMPACT_WAKING_COMM,
    COMPACT_WAKING_COMMON_FLAGS,
    COMPACT_LISTS,
};

struct compact_list {
    uint8_t bytes[COMPACT_MAX_EVENTS * 10 + 16];
    size_t n;
};

struct compact_comm {
    uint64_t text[2]; /* 16 bytes, as in the event */
};

struct compact_sched {
    struct compact_offsets at;
    uint32_t n_switch, n_waking;
    uint64_t last_switch, last_waking; /* timestamps are deltas */
    uint32_t n_comms;
    struct compact_comm comms[COMPACT_MAX_COMMS];
    uint8_t slots[COMPACT_SLOTS]; /* comm number + 1 */
    struct compact_list lists[COMPACT_LISTS];
};

/* Whether one more event certainly fits. */
static inline bool compact_sched_has_room(const struct compact_sched *c)
{
    return c->n_switch < COMPACT_MAX_EVENTS && c->n_waking < COMPACT_MAX_EVENTS && c->n_comms < COMPACT_MAX_COMMS;
}

/* Add one event; there must be room, and the event must have at least the program's min_size. */
void compact_sched_switch(struct compact_sched *c, const uint8_t *event, uint64_t timestamp);
void compact_sched_waking(struct compact_sched *c, const uint8_t *event, uint64_t timestamp);

/* The bytes the lists and the table take so far, nearly. */
size_t compact_sched_size(const struct compact_sched *c);

/* Lays out the CompactSched message (without its own tag) as pieces; `scratch` gets tags and comms. Returns the number
 * of pieces (at most 2 * COMPACT_LISTS), 0 when there are no events; *total is the length of all. */
enum { COMPACT_SCRATCH = COMPACT_LISTS * 8 + COMPACT_MAX_COMMS * 18 + 16 };
size_t compact_sched_pieces(const struct compact_sched *c, uint8_t *scratch, struct slice *pieces, size_t *total);

void compact_sched_clear(struct compact_sched *c);

#endif
