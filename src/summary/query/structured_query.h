/* Structured queries: what a spec says as a tree of sources, filters and groups becomes one text of PerfettoSQL.
 *
 * Text in, text out: nothing here knows of a trace or runs a query. A spec is hostile input. Names (tables, columns,
 * aliases) are quoted; expressions and SQL of the spec must be whole (brackets that match, no second statement) and go
 * in as they are. Queries nest STRUCTURED_QUERY_MAX_DEPTH deep, counting both inner queries and those found by their
 * id; a cycle of ids is an error. A query that does more than name a table becomes one WITH clause, a shared one too
 * however often it is used, and since SQLite unfolds each use of a WITH clause when it prepares a statement, the number
 * of unfolded uses is bounded.
 *
 * Errors name the query by its id (or the nearest one around it that has an id) and the field:
 *     query 'cpu time': interval_intersect.base.filters[2].op: is missing */
#ifndef MERIDIAN_SUMMARY_QUERY_STRUCTURED_QUERY_H
#define MERIDIAN_SUMMARY_QUERY_STRUCTURED_QUERY_H

#include "base/arena.h"
#include "base/error.h"
#include "base/strpool.h"
#include "schema/structured_query.pb-c.h"

typedef Mrd__PerfettoSqlStructuredQuery structured_query;

enum {
    STRUCTURED_QUERY_MAX_DEPTH = 128,
    STRUCTURED_QUERY_MAX_USES = 10000,     /* of WITH clauses, unfolded, in one statement */
    STRUCTURED_QUERY_MAX_BYTES = 16 << 20, /* of one statement with its preambles */
};

/* ---- shared queries ---- */

struct structured_queries;

/* An empty index; NULL when out of memory. structured_queries_close(NULL) is fine. */
struct structured_queries *structured_queries_open(void);
void structured_queries_close(struct structured_queries *s);

/* Makes `q` known by its id. The message is borrowed: it must outlive the index. -MRD_EINVALID without an id,
 * -MRD_EEXISTS when the id is there, -MRD_ENOMEM. */
int structured_queries_add(struct structured_queries *s, const structured_query *q, struct error *err);

/* The query of that id, NULL when there is none. */
const structured_query *structured_queries_find(const struct structured_queries *s, const char *id);

/* From now on inner_query_id `id` reads `table` (copied) instead of unfolding the query: for a caller that has stored
 * its rows. NULL takes that back. -MRD_ENOTFOUND, -MRD_ENOMEM. */
int structured_queries_set_table(struct structured_queries *s, const char *id, const char *table, struct error *err);

/* ---- SQL ---- */

/* What running a query takes: include the modules, run the preambles in their order (each may be several statements
 * without results), then the statement. A zeroed struct is empty. All texts live in it until structured_sql_free(). */
struct structured_sql {
    struct strpool modules;   /* 1 … n, in the order of their first use */
    struct strpool preambles; /* the same */
    const char *sql;          /* one SELECT without a semicolon */
    size_t sql_len;
    struct arena mem;
};

/* Puts the SQL of `q` into `out`. Modules and preambles add to those that are there, each text once, so that one `out`
 * can serve many queries; `sql` is replaced, and the text before it stays alive. `shared` may be NULL. On failure
 * modules and preambles may have grown. -MRD_EINVALID, -MRD_ENOTFOUND (an id), -MRD_ELIMIT, -MRD_ENOMEM. */
int structured_query_sql(const struct structured_queries *shared, const structured_query *q, struct structured_sql *out,
                         struct error *err);

/* All of it as one text that stands by itself: INCLUDE statements, preambles, `out->sql`; in out->mem. NULL when out of
 * memory. */
const char *structured_sql_standalone(struct structured_sql *out);

void structured_sql_free(struct structured_sql *out);

#endif
