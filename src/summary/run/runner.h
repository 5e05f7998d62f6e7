/* Runs what structured_query.h has made, on an engine: its modules, its preambles, its rows, or a table of its rows.
 *
 * Tables get names that are never given out again while the runner lives, so that nobody reads another query's rows by
 * an old name. */
#ifndef MERIDIAN_SUMMARY_RUN_RUNNER_H
#define MERIDIAN_SUMMARY_RUN_RUNNER_H

#include "base/vec.h"
#include "sql/engine.h"
#include "summary/query/structured_query.h"
#include "summary/run/preambles.h"

enum { RUNNER_TABLE_NAME = 48 };

struct runner_table {
    char name[RUNNER_TABLE_NAME]; /* "": none */
};

struct query_runner {
    struct engine *engine;      /* NULL: none is open */
    unsigned generation;        /* of the engine: the tables of an earlier one have gone with it */
    struct preambles preambles; /* that have run on it */
    uint64_t n_summarizers;     /* opened so far */
    uint64_t n_tables;          /* of summaries, named so far */
    VEC(struct runner_table)
    pending_drops; /* tables to drop that somebody was reading */
};

/* From now on on `engine` (NULL: the one that was there is closing). */
void query_runner_set_engine(struct query_runner *r, struct engine *engine);
void query_runner_free(struct query_runner *r);

/* Each failure has `origin` ("metric 'x'") in front, also in the engine's whole text. */

/* Includes the modules and runs the preambles that have not run yet. */
int query_runner_prepare(struct query_runner *r, const char *origin, const struct structured_sql *sql,
                         struct error *err);

/* The rows of `sql`, to be closed with engine_result_close(). */
int query_runner_open(struct query_runner *r, const char *origin, const char *sql, struct engine_result *out,
                      struct error *err);

/* Names the failure of a row of that result: returns `rc`. */
int query_runner_failed(struct query_runner *r, const char *origin, int rc, struct error *err);

/* The names of a summarizer's tables: `_exp_mat_N_M`, table M of summarizer N, which are those that UIs of Perfetto and
 * their recorded sessions expect. NULL in its place: `_meridian_summary_M`. */
struct runner_names {
    uint64_t summarizer;
    uint64_t n_tables; /* named so far */
};

/* Stores the rows of `sql` as a table. */
int query_runner_store(struct query_runner *r, const char *origin, struct runner_names *names, const char *sql,
                       struct runner_table *out, struct error *err);

/* Drops a table (one without a name is fine), at once or as soon as nobody reads it. The text of the engine's last
 * failure stays. */
void query_runner_drop(struct query_runner *r, struct runner_table *t);

#endif
