/* The rows of statements, stored as tables: equal statements are stored once and counted. */
#ifndef MERIDIAN_SUMMARY_RUN_STORED_ROWS_H
#define MERIDIAN_SUMMARY_RUN_STORED_ROWS_H

#include "base/u64map.h"
#include "summary/run/runner.h"

struct stored {
    struct stored *next, *prev;
    size_t users;
    struct runner_table table;
    char *sql;        /* all of it */
    struct arena mem; /* of the names of its columns */
    const char **columns;
    size_t n_columns;
    int64_t n_rows;
    double duration_ms; /* that computing it took */
};

/* Zeroed is ready. */
struct stored_rows {
    struct stored *all;
    struct u64map by_sql; /* hash of the SQL -> struct stored */
    struct runner_names names;
};
void stored_rows_free(struct stored_rows *s); /* when everything has been released */

/* Those of an equal statement, or NULL. */
struct stored *stored_rows_find(const struct stored_rows *s, const char *whole_sql);

/* Runs a statement into a table, which nobody uses yet. `whole_sql`: what equal statements are known by. */
int stored_rows_add(struct stored_rows *s, struct query_runner *runner, const char *origin,
                    const struct structured_sql *sql, const char *whole_sql, struct stored **out, struct error *err);

/* One user less; behind the last one the table is dropped. NULL is fine. */
void stored_rows_release(struct stored_rows *s, struct query_runner *runner, struct stored *stored);

/* Every table has gone with its engine. */
void stored_rows_gone(struct stored_rows *s);

#endif
