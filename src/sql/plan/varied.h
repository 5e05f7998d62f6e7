/* Values of which each has a type of its own. */
#ifndef MERIDIAN_SQL_PLAN_VARIED_H
#define MERIDIAN_SQL_PLAN_VARIED_H

#include "sql/plan/mixed.h"

struct varied_value {
    enum plan_type type;
    int64_t word;      /* of a number */
    struct slice text; /* with a NUL behind it, or of a snapshot; borrowed */
};

/* The word of a value, which is NULL where `word` is. False: *rc, an SQLite code or RUN_GAVE_UP. */
bool varied_from(struct strpool *strings, enum plan_type type, int64_t word, int64_t *out, int *rc);
/* The value of a word; its type is PLAN_NULL for 0. */
struct varied_value varied_value_of(const struct strpool *strings, int64_t word);
/* The word of what is equal and stands for all that are: of reals that are whole the integer. */
bool varied_comparable(struct strpool *strings, int64_t word, int64_t *out, int *rc);
/* The order of two values that are not NULL. */
int varied_compare(const struct strpool *strings, int64_t a, int64_t b);
void varied_bind(struct engine *e, sqlite3_stmt *stmt, int at, int64_t word);
void varied_result(struct engine *e, sqlite3_context *ctx, int64_t word);
/* A value of SQLite, in the first column. */
bool varied_from_column(struct strpool *strings, sqlite3_stmt *stmt, int64_t *out, int *rc);
/* The number as a mixed one, as sum() and avg() take it: texts that are no numbers are 0.0. */
bool varied_summand(const struct strpool *strings, int64_t word, int64_t *out);

/* A value as a varied one while the plan runs: new texts of the string pool count as its memory. 0: NULL, or r->rc. */
int64_t varied_word(struct run *r, enum plan_type type, int64_t word);
/* X_VARIED, X_COMPARABLE and X_SUMMAND. */
void eval_varied(struct run *r, const struct plan_expr *x, const struct batch *b, int64_t *out);

/* Is it written as a value? What else is constant may have an affinity, which changes what it is compared with. */
bool varied_is_literal(const struct sql_expr *x);
/* The value as a varied one; NULL: not understood. */
struct plan_expr *varied_of(struct reader *r, struct plan_expr *x);
/* A varied value as it is compared, grouped and ordered. */
struct plan_expr *varied_compared(struct query_plan *p, struct plan_expr *x);
/* Marks an expression whose words are those of varied values. */
struct plan_expr *varied_mark(struct plan_expr *x);
/* Reads an expression that may be varied, but no mixed number. */
struct plan_expr *read_varied(struct reader *r, const struct sql_expr *x);
/* Gives n values that do not agree one type: NULLs stay. */
bool varied_unify(struct reader *r, struct plan_expr **values, uint32_t n, struct plan_expr *out);

#endif
