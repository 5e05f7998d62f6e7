/* Kernel events that come again and again but for their time and thread: what a program made of one, and the set of its
 * args, serve the next.
 *
 * Events with parts of other lengths, or of more than PERF_REPEAT_BYTES, are not among them. An event takes a place
 * when it comes for the second time, so that those that never come again push nothing out. */
#ifndef MERIDIAN_IMPORTER_PERF_PERF_REPEATS_H
#define MERIDIAN_IMPORTER_PERF_PERF_REPEATS_H

#include "kernel/encode.h"
#include "kernel/event_program.h"
#include "storage/args.h"

enum {
    PERF_REPEAT_WORDS = 8,
    PERF_REPEAT_COMMON = 8, /* the fields that all events begin with; no program reads them */
    PERF_REPEAT_BYTES = PERF_REPEAT_COMMON + 8 * PERF_REPEAT_WORDS,
    PERF_REPEAT_MADE = 72, /* bytes of a message */
    PERF_REPEAT_BITS = 9,
};

struct perf_repeat {
    const struct event_program *program; /* NULL: none yet */
    uint64_t words[PERF_REPEAT_WORDS];   /* the event's last one, then those from PERF_REPEAT_COMMON on */
    uint64_t last;                       /* hash of the last event that had no place here */
    argset args;                         /* none: not asked for yet */
    uint8_t len, call_args;              /* of `made` */
    uint8_t made[PERF_REPEAT_MADE + ENCODE_SLACK];
};

/* How many words of an event tell it from others of its kind; 0: it cannot be told. */
uint32_t perf_repeat_words(const struct event_program *p);

/* A word of an event that is not shorter than its program wants. */
static inline uint64_t perf_repeat_word(const uint8_t *event, uint32_t at)
{
    uint64_t word;
    memcpy(&word, event + at, sizeof word);
    return word;
}

/* A hash of the words: the last one, which may overlap the one before, then the others. */
static inline uint64_t perf_repeat_hash(const struct event_program *p, uint32_t n, const uint8_t *event)
{
    uint64_t mixed = p->kernel_id ^ perf_repeat_word(event, p->min_size - 8u);
    for (uint32_t i = 1; i < n; i++)
        mixed = (mixed << 9 | mixed >> 55) ^ perf_repeat_word(event, 8 * i);
    return mixed * 0x9e3779b97f4a7c15u;
}

static inline bool perf_repeat_is(const struct perf_repeat *r, const struct event_program *p, uint32_t n,
                                  const uint8_t *event)
{
    uint64_t differ =
        ((uintptr_t)r->program ^ (uintptr_t)p) | (r->words[0] ^ perf_repeat_word(event, p->min_size - 8u));
    for (uint32_t i = 1; i < n; i++)
        differ |= r->words[i] ^ perf_repeat_word(event, 8 * i);
    return !differ;
}

/* Keeps what was made of an event, if it has come before. */
bool perf_repeat_keep(struct perf_repeat *r, const struct event_program *p, uint32_t n, const uint8_t *event,
                      uint64_t hash, struct slice made, uint32_t call_args);

#endif
