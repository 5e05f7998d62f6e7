/* What the parts of src/sql/aggregate share. */
#ifndef MERIDIAN_SQL_AGGREGATE_PRIVATE_H
#define MERIDIAN_SQL_AGGREGATE_PRIVATE_H

#include "sql/aggregate/aggregate.h"
#include "sql/engine_private.h"
#include "sql/vtab/vtab.h"

/* Finds the table of ours behind a name, and what the columns `names` are in it (at[]: column, or VTAB_ROW). NULL when
 * the name is not a table, or a view that only renames columns of one. */
const struct engine_known_table *aggregate_resolve(struct engine *e, const struct slice *names, int n,
                                                   struct slice table, int *at);

/* Can the name stand in a specification, whose words have blanks between them? */
bool aggregate_is_plain(const char *name);

/* A word of a column as the result of a function or a column. */
void aggregate_result(const struct engine *e, sqlite3_context *ctx, enum col_type type, int64_t word);

/* A table function of an engine with columns c0 …, and the hidden arguments spec, v0 …. */
struct aggregate_vtab {
    sqlite3_vtab base;
    struct engine *e;
};
int aggregate_connect(sqlite3 *db, struct engine *e, int columns, int values, sqlite3_vtab **out);
int aggregate_disconnect(sqlite3_vtab *base);

extern const sqlite3_module neighbours_module;

#endif
