/* Queries run over packed columns by operators of our own; docs/plans.md explains them, with a picture.
 *
 * plan_prepare() is given every statement whose rows are wanted. What can be planned, in whole or a query within it,
 * becomes a table function __intrinsic_plan that holds the plan; SQLite runs what is left. Answers, names, types and
 * the order of rows are those of SQLite alone, which the tests compare. A plan that meets something it has not foreseen
 * (an integer that overflows, more memory than it may take) asks SQLite for its whole answer, before it gives a row. */
#ifndef MERIDIAN_SQL_PLAN_PLAN_H
#define MERIDIAN_SQL_PLAN_PLAN_H

#include "sql/engine.h"
#include "sql/frontend/select.h"

/* A statement that gives what p[0, n) gives, to be sqlite3_finalize()d; NULL: SQLite shall have the text. */
sqlite3_stmt *plan_prepare(struct engine *e, struct arena *arena, const struct sql_token *p, size_t n);

/* The body of a table function, which has been prepared before, for one set of arguments: what its $names stand for.
 * The arguments are bound. NULL: SQLite shall have the text. */
struct plan_body {
    const char *sql;
    const char *const *names; /* without $ */
    sqlite3_value *const *values;
    uint32_t n;
};
sqlite3_stmt *plan_prepare_body(struct engine *e, const struct plan_body *body);
/* Is every call of a table function to be planned, however long that takes: for comparisons. */
bool plan_wants_every_call(const struct engine *e);

/* The same for a statement whose rows become a table. */
sqlite3_stmt *plan_prepare_table(struct engine *e, struct arena *arena, const struct sql_token *p, size_t n);
/* The rows of a statement that plan_prepare_table() has just made, as a table. 1: *out is there; 0: the statement is to
 * be stepped; negative: error. As engine_materialise() otherwise. */
int plan_materialise(struct engine *e, sqlite3_stmt *select, const struct runtime_schema *schema,
                     struct runtime_table **out, struct error *err);

/* The answer of a statement that is a plan as a whole, read without SQLite between the columns and the caller. */
struct plan_output;
/* Computes it. 1: *out is there, before its first row; 0: the statement is to be stepped; negative: error. The
 * statement must live as long, and not be stepped meanwhile. */
int plan_output_open(struct engine *e, sqlite3_stmt *stmt, struct plan_output **out, struct error *err);
void plan_output_close(struct plan_output *o); /* NULL is fine */
/* 1: a row is there; 0: no more; negative: error. */
int plan_output_next(struct plan_output *o, struct error *err);
/* Values of the row: what sqlite3_column_*() would give. Texts live until the next row or the next plan_output_text()
 * of the same column. */
int plan_output_type(const struct plan_output *o, int column);
int64_t plan_output_int64(struct plan_output *o, int column);
double plan_output_double(struct plan_output *o, int column);
const char *plan_output_text(struct plan_output *o, int column, size_t *len);

/* The rows of a query's text at once, for operators that read tables. Columns that are not needed (by their number;
 * NULL: all are) may be NULL throughout. 1: *out is there, with a reference; 0: no plan, let SQLite run it. */
int plan_rows(struct engine *e, const char *sql, const bool *needed, struct runtime_table **out);

#endif
