/* Statements made from a grammar, for tests of plans: joins, groups, windows, expressions over rows with many NULLs and
 * numbers that overflow. They ask the views of a mirror. */
#ifndef MERIDIAN_TEST_PLAN_GRAMMAR_H
#define MERIDIAN_TEST_PLAN_GRAMMAR_H

#include "mirror.h"

enum { PLAN_ROWS = 2600 }; /* of slices */

/* What stands behind FROM, and what its columns are. */
struct plan_from {
    const char *from;
    const char *ints[8], *reals[4], *texts[4];
};
extern const struct plan_from plan_froms[];
extern const uint32_t plan_n_froms;
/* Tables and functions that they name: to be run first. */
extern const char plan_objects[];

/* The FROM whose columns expressions name. */
extern const struct plan_from *plan_at;

const char *one_of(const char *const *list, uint32_t n);
const char *pick_collation(void);
void put_int(struct text *t, int depth);
void put_real(struct text *t, int depth);
void put_text(struct text *t, int depth);
void put_any(struct text *t, int depth);
void put_condition(struct text *t, int depth);
/* FROM with or without WHERE. */
void put_from(struct text *t);
/* Queries within expressions that ask by keys, by ranges or both: plan_lookups.c. */
void put_query_condition(struct text *t);
void put_query_int(struct text *t);
void put_query_text(struct text *t);

/* SELECT … whose queries lie within each other: plan_nested.c. How many items its list has. */
uint32_t put_nested(struct text *t);

/* ORDER BY places of the list of n items, LIMIT. */
void put_tail(struct text *t, uint32_t n_items);
/* A whole statement. */
void make_statement(struct text *t);

#endif
