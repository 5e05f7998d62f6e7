/* The tables of a fleet: what columns each has, and the statements that make them.
 *
 * A server has two databases. NAME_local holds what the server has itself: NAME_local.T_rows has the rows of table T of
 * all traces, with the number of the load that brought each; NAME_local.T shows those whose load has been committed.
 * NAME has the tables that people ask: NAME.T is NAME_local.T of all shards.
 *
 *     columns of T_rows:   load    Int64   what the row came with; never in T
 *                          month   Int64   of the recording, 202611: the partition, so that old rows lie by themselves
 *                          machine String  '' where the table's rows are of no machine
 *                          trace   String
 *                          …               as export writes them (docs/export.md)
 *
 * Rows are sent to NAME_local.T_in, whose texts are dictionaries, and which keeps nothing: the view T_pass makes texts
 * of them and writes into T_rows. Sent as texts they would be three times the bytes, for both ends to copy.
 *
 * A load is one trace's way into one shard. Its rows count from the moment that its line is in NAME_local.commits,
 * which is one row and thus is there whole or not at all. Of two loads of one trace the lower number counts, on every
 * replica alike. A line in NAME_local.drops takes a load away again. */
#ifndef MERIDIAN_FLEET_FLEET_SCHEMA_H
#define MERIDIAN_FLEET_FLEET_SCHEMA_H

#include "base/error.h"
#include "base/vec.h"
#include "export/block.h"
#include "fleet/click.h"
#include "fleet/made_rows.h"

#include <stdint.h>

struct export_source;

/* Of databases and what is written into them. Another number: another way of committing, or other columns of the
 * tables that are not export's. (What columns export has is compared by a hash.) */
enum { FLEET_SCHEMA = 2 };

struct fleet_table {
    char *name;
    made_rows_fn make; /* the rows are these; NULL: those of the table */
    VEC(struct export_column)
    columns;      /* load, month, machine, trace, and the rest; names are owned */
    bool by_time; /* rows of a machine and a trace are ordered by ts, not by id */
};

enum { FLEET_LOAD, FLEET_MONTH, FLEET_MACHINE, FLEET_TRACE, FLEET_OWN_COLUMNS };

struct fleet_schema {
    VEC(struct fleet_table)
    tables;
    uint64_t hash; /* of all names and types */
};

/* What this program exports. */
int fleet_schema_open(struct fleet_schema *s, struct error *err);
void fleet_schema_close(struct fleet_schema *s);

/* The number of the table whose name begins `name` and is followed there by `ending`; -1: there is none. */
int fleet_schema_find(const struct fleet_schema *s, const char *name, const char *ending);

/* The rows of the table with the schema's number `at` in a loaded trace, or NULL in *out when it has none. `made` is
 * zeroed, and is to be freed after the source. */
int fleet_table_source(const struct fleet_table *t, size_t at, struct storage *st, const char *trace,
                       struct made_rows *made, struct export_source **out, struct error *err);

/* Statements for one server, in order; `cluster` NULL: it is alone. Calls `run` with each until one fails. */
int fleet_schema_make(const struct fleet_schema *s, const char *database, const char *cluster,
                      int (*run)(void *ctx, const char *sql, struct error *err), void *ctx, struct error *err);

#endif
