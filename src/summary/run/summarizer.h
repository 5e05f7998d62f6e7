/* Queries of a spec that changes, step by step, while somebody looks at their rows: each is stored as a table when it
 * is first asked for, and computed again only when it, or one that it uses, has changed. */
#ifndef MERIDIAN_SUMMARY_RUN_SUMMARIZER_H
#define MERIDIAN_SUMMARY_RUN_SUMMARIZER_H

#include "summary/query/spec.h"
#include "summary/run/runner.h"

/* SQLite's work for a new table grows with the tables that are there: 1000 take a second, 4000 a quarter of a minute.
 */
enum { SUMMARIZER_MAX_QUERIES = 1000 };

struct summarizer;

/* `runner` must outlive it. -MRD_ENOMEM. */
int summarizer_open(struct query_runner *runner, struct summarizer **out);

/* Drops its tables. NULL is fine. */
void summarizer_close(struct summarizer *s);

/* What an update has done with a query. */
struct query_change {
    const char *id;
    bool updated; /* it is to be computed (again) when asked for */
    bool dropped; /* no spec has it any more: its table is gone */
};

/* Puts the queries of `spec` in the place of those that were there. The table of a query that has changed stays until
 * it is computed again. On failure (a query without an id, an id twice, too many) nothing has changed. *changes are the
 * summarizer's until its next call. */
int summarizer_update(struct summarizer *s, struct slice spec, enum spec_format format,
                      const struct query_change **changes, size_t *n, struct error *err);

/* A query, stored. The texts are the summarizer's until its next call. */
struct query_table {
    bool exists; /* the spec has it; else nothing below is set */
    const char *table;
    int64_t n_rows;
    const char *const *columns;
    size_t n_columns;
    double duration_ms;     /* that computing it took */
    const char *sql;        /* what was run, on the tables of the queries it uses */
    const char *text;       /* the query in text format */
    const char *standalone; /* SQL that needs no other table */
};

/* The rows of a query: computes it, and first those it uses, unless that has been done. A failure is remembered until
 * the next update. */
int summarizer_query(struct summarizer *s, const char *id, struct query_table *out, struct error *err);

#endif
