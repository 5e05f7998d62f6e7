/* What the files of the generator share: the state of one statement, the text of one query, and errors with a path.
 *
 * A query is generated depth first: those it reads come first and become WITH clauses, then its own text. Each function
 * returns 0 or -MRD_E…, with the error set. A query's text is written piece by piece into a `struct query_text`, which
 * latches failures (no memory, too many bytes); the end of the query tests it. */
#ifndef MERIDIAN_SUMMARY_QUERY_GENERATOR_H
#define MERIDIAN_SUMMARY_QUERY_GENERATOR_H

#include "base/slice.h"
#include "base/u64map.h"
#include "base/vec.h"
#include "summary/query/structured_query.h"

/* The C names of protoc-c, without the path. */
typedef Mrd__PerfettoSqlStructuredQuery__Filter query_filter;
typedef Mrd__PerfettoSqlStructuredQuery__ExperimentalFilterGroup query_filter_group;
typedef Mrd__PerfettoSqlStructuredQuery__GroupBy query_group_by;
typedef Mrd__PerfettoSqlStructuredQuery__GroupBy__Aggregate query_aggregate;
typedef Mrd__PerfettoSqlStructuredQuery__SelectColumn query_column;

/* One WITH clause. */
struct query_unit {
    const char *name;
    const char *sql; /* NULL: the name is that of something else */
    size_t sql_len;
    bool narrowing; /* is_narrowing() and USED_ONCE */
    uint32_t uses;  /* WITH clauses that SQLite unfolds for one use of this one, itself included */
};

/* Where the walk is: a query, and the field of it that is looked at. */
struct query_step {
    const char *field; /* of the query around it; "" at the top */
    int index;         /* of a repeated field; -1 for none */
    const char *id;    /* of the query that starts here; NULL when it has none, or when this is a field only */
};

struct generator {
    const struct structured_queries *shared;
    struct structured_sql *out;
    struct error *err;
    VEC(struct query_unit) units; /* each behind those that it reads */
    struct u64map shared_units;   /* message of a shared query -> its unit */
    VEC(struct query_step) path;
    size_t named_units; /* WITH clauses named so far */
    unsigned depth;     /* of queries */
    size_t bytes;       /* of all texts */
};

/* The text of one query. */
struct query_text {
    struct generator *g;
    char *p;
    size_t n, cap;
    uint32_t uses; /* see query_unit */
    int failed;    /* 0 or -MRD_E… */
};

/* ---- the walk: structured_query.c ---- */

/* Goes into a field, and out of it again. */
int path_enter(struct generator *g, const char *field, int index);
void path_leave(struct generator *g);

/* Sets the error, "query 'id': path.field: text"; `field` may be NULL. Returns `code`. */
int query_fail(struct generator *g, int code, const char *field, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Who reads a query, which decides how it may be written. */
enum query_use {
    USED_ONCE,   /* one operator, which gives it an alias of its own */
    USED_BY_ID,  /* any number */
    USED_IN_SQL, /* the spec's SQL: by its name, any number of times, beside others that may be of the same table */
};

/* Generates the query in `field` of the one at hand, `q` NULL meaning that the spec left it out (an error). *unit is
 * for put_unit(). */
int nested_query(struct generator *g, const char *field, int index, const structured_query *q, enum query_use use,
                 uint32_t *unit);

/* As nested_query() for a shared one. Either *unit or, where its rows are stored, *table. */
int shared_query(struct generator *g, const char *id, uint32_t *unit, const char **table);

/* Adds to the modules and preambles of the result, unless they are there. `field` says where the name is from. */
int need_module(struct generator *g, const char *field, const char *module);
int need_preamble(struct generator *g, struct slice text);

/* ---- texts: query_text.c ---- */

void put_sql(struct query_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void put_name(struct query_text *t, const char *name);   /* quoted, so that it is a name whatever it says */
void put_string(struct query_text *t, const char *text); /* a string literal */
void put_unit(struct query_text *t, uint32_t unit);      /* its WITH clause, counted */

/* A name of the spec that must be there and have no control characters; `field` for the error. */
int check_name(struct generator *g, const char *field, const char *name);

/* SQL of the spec: whole, without semicolons and with its brackets closed. Comments become blanks. A variable called as
 * one of `aliases` (NULL: there are none) becomes the WITH clause it stands for. */
struct query_aliases {
    struct strpool names;
    VEC(uint32_t) units; /* [name - 1] */
};
int put_whole(struct query_text *t, const char *field, struct slice sql, const struct query_aliases *aliases);
int put_expression(struct query_text *t, const char *field, const char *sql);

/* A column: a name, or an expression in its place; the operand of an operator is an expression in brackets. */
int put_column(struct query_text *t, const char *field, const char *name);
int put_operand(struct query_text *t, const char *field, const char *name);

/* Does the text have the form of a name, so that it needs no quotes but for keywords? */
bool is_plain_name(const char *text);

void query_text_free(struct query_text *t);

/* ---- clauses: query_clauses.c ---- */

/* The whole SELECT. */
int put_query(struct query_text *t, const structured_query *q);

/* A column with its alias, where it has one. */
int put_select_column(struct query_text *t, const query_column *c);

/* ---- sources: query_sources.c and its neighbours ---- */

/* The FROM clause of a query: a name, or a SELECT in brackets. */
int put_source(struct query_text *t, const structured_query *q);

/* Does the query only choose rows and columns of a table or of another query? Reading it twice (an intersection does)
 * costs less than storing its rows: a third for 13,000 slices of sched, measured. */
bool is_narrowing(const structured_query *q);

/* Is it even all of them? Then its FROM clause stands for it, without a WITH clause. */
bool is_whole(const structured_query *q);

/* query_sql.c */
int put_sql_source(struct query_text *t, const structured_query *q);

/* query_joins.c */
int put_join(struct query_text *t, const structured_query *q);
int put_add_columns(struct query_text *t, const structured_query *q);
int put_filter_in(struct query_text *t, const structured_query *q);
int put_union(struct query_text *t, const structured_query *q);

/* query_intervals.c */
int put_interval_intersect(struct query_text *t, const structured_query *q);
int put_filter_to_intervals(struct query_text *t, const structured_query *q);
int put_create_slices(struct query_text *t, const structured_query *q);
int put_counter_intervals(struct query_text *t, const structured_query *q);
int put_time_range(struct query_text *t, const structured_query *q);

#endif
