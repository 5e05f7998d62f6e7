/* Numbers that are integers in some rows and reals in others. */
#ifndef MERIDIAN_SQL_PLAN_MIXED_H
#define MERIDIAN_SQL_PLAN_MIXED_H

#include "sql/plan/plan_private.h"

/* A word of a mixed number that is an integer: a NaN that is not NULL, with the integer in its last half. */
#define MIXED_WHOLE 0x7ff86d78ull

static inline bool mixed_is_whole(int64_t word)
{
    return (uint64_t)word >> 32 == MIXED_WHOLE;
}

static inline int32_t mixed_integer(int64_t word)
{
    return (int32_t)(uint32_t)word;
}

/* The number as a real. */
static inline int64_t mixed_real_word(int64_t word)
{
    return mixed_is_whole(word) ? column_f64_word(mixed_integer(word)) : word;
}

/* False: the integer does not fit. */
bool mixed_from_integer(int64_t integer, int64_t *word);

/* Reads an expression that may be a mixed number. */
struct plan_expr *read_mixed(struct reader *r, const struct sql_expr *x);
/* The same for those to whom an integer is as good as the real of its value. */
struct plan_expr *read_as_real(struct reader *r, const struct sql_expr *x);
struct plan_expr *mixed_to_real(struct reader *r, struct plan_expr *x);
/* An integer constant as a word of a mixed number; NULL: it is none, or does not fit. */
struct plan_expr *mixed_constant(struct reader *r, const struct plan_expr *x);
/* Gives n values one type, NULLs aside, and marks `out` when that is a mixed number; false: they have none. */
bool mixed_unify(struct reader *r, struct plan_expr **values, uint32_t n, struct plan_expr *out);

#endif
