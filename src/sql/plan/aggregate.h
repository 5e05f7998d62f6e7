/* One aggregate over all groups. */
#ifndef MERIDIAN_SQL_PLAN_AGGREGATE_H
#define MERIDIAN_SQL_PLAN_AGGREGATE_H

#include "sql/plan/plan_private.h"

struct sum {
    int64_t i; /* sum of integers, or the extreme word */
    double d;  /* sum as SQLite adds it up for averages */
    int64_t n; /* values that are not NULL */
};

struct growing_text {
    char *p;
    uint32_t n, cap;
    bool any;
};

struct accumulator {
    const struct plan_aggregate *of;
    struct sum *sums;
    uint64_t *sizes; /* sums of integers: that of their sizes, halved, where the order may show; of mixed numbers: is a
                        real among them */
    struct growing_text *texts; /* group_concat */
    uint32_t n_texts;
    struct pair *set; /* DISTINCT: groups and words seen */
    uint64_t n_set, set_mask;
    uint64_t secret;    /* of their hashes */
    VEC(double) values; /* percentile: all, and their groups */
    VEC(uint32_t) groups;
};

/* What a row is to min() or max() of its group so far. */
enum extreme {
    EXTREME_NOT,
    EXTREME_NULL, /* nor has any before it a value */
    EXTREME_EQUAL,
    EXTREME_BETTER
};

enum plan_type accumulator_type(const struct accumulator *a);
bool accumulator_grow(struct accumulator *a, struct run *r, uint32_t from, uint32_t to);
/* Adds the rows of a batch to the groups `ids`. `extremes` (may be NULL): enum extreme by row; left alone where a
 * filter leaves the row out. */
void accumulate(struct accumulator *a, struct run *r, const struct batch *b, const uint32_t *ids, uint8_t *extremes);
/* A word by group, to be mem_free()d; NULL: r->rc. */
int64_t *accumulator_results(struct accumulator *a, struct run *r, uint32_t n_groups);
void accumulator_free(struct accumulator *a);

#endif
