/* Words by place, of rows that lie side by side: for range_index.c and lookup_ranges.c. */
#ifndef MERIDIAN_SQL_PLAN_RANGE_WORDS_H
#define MERIDIAN_SQL_PLAN_RANGE_WORDS_H

#include "sql/plan/plan_private.h"

/* `own > other`, `own >= other`: rows from some place on pass; others up to one. */
static inline bool range_is_lower(uint8_t op)
{
    return op == SQL_GT || op == SQL_GE;
}

/* Is that place behind those that are equal? */
static inline bool range_is_beyond(uint8_t op)
{
    return op == SQL_GT || op == SQL_LE;
}

bool range_ascends(const int64_t *words, uint32_t n);

struct range_pair {
    int64_t word;
    uint32_t row;
};

/* Sorts n words with their rows, by the word and then by the row; `room` is for as many. False: r->rc, and they stay as
 * they were. */
bool range_sort(struct run *r, int64_t *words, uint32_t *rows, uint32_t n, struct range_pair *room);

/* The greatest so far of the places [from, to) where `op` is lower, else the least from there on: those ascend. */
void range_make_ascend(int64_t *words, uint32_t from, uint32_t to, uint8_t op);

/* Narrows [*lo, *hi), whose words ascend, to those that pass `own op word`. The search begins at *near, any number, and
 * leaves there where it has ended: those who ask in order find the next place beside the last. */
void range_cut(const int64_t *words, uint32_t *lo, uint32_t *hi, int64_t word, uint8_t op, uint32_t *near);

#endif
