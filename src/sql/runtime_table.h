/* Tables made by SQL: values appended row by row, column types detected, packed like built-in tables.
 *
 * A runtime table has its description inside and is reference-counted, since a prepared statement or a pointer value
 * may outlive its name. */
#ifndef MERIDIAN_SQL_RUNTIME_TABLE_H
#define MERIDIAN_SQL_RUNTIME_TABLE_H

#include "base/error.h"
#include "base/stop.h"
#include "storage/storage.h"

#include <sqlite3.h>

struct runtime_table {
    struct table table;
    struct table_def def;
    struct column_def *columns; /* def.columns; names are owned */
    int refs;
};

/* The type of pointers to them among SQL's values. */
#define RUNTIME_TABLE_POINTER "TABLE"

enum runtime_type { RUNTIME_ANY, RUNTIME_LONG, RUNTIME_DOUBLE, RUNTIME_STRING };

/* Declared columns: name and type in the order of the table. */
struct runtime_schema {
    uint32_t n;
    const char *const *names;
    const uint8_t *types; /* enum runtime_type */
};

enum { TABLE_BUILDER_CACHE = 16 };

struct table_builder {
    struct runtime_table *t;
    struct strpool *strings;
    stop_flag *stop; /* NULL: nobody interrupts */
    uint8_t *types;  /* what each column has been found to be; RUNTIME_ANY while only NULLs came */
    int64_t *row;    /* words of the row being made */
    /* The last text of a column: texts that come from our own tables are known again by their address. */
    const char *cached_text[TABLE_BUILDER_CACHE];
    strid cached_id[TABLE_BUILDER_CACHE];
};

/* Begins a table of `n` columns. types[i] RUNTIME_ANY (or types NULL) lets the first value that is not NULL decide.
 * Names must be valid and distinct: error as Perfetto says it. */
int table_builder_init(struct table_builder *b, struct storage *st, uint32_t n, const char *const *names,
                       const uint8_t *types, struct error *err);

/* Sets the value of a column in the row being made; all columns are NULL at first. A double makes a column of integers
 * one of doubles. -MRD_ESQL when the type does not
 * fit the column, or the value is a blob. */
int table_builder_value(struct table_builder *b, uint32_t column, sqlite3_value *v, struct error *err);
int table_builder_int(struct table_builder *b, uint32_t column, int64_t v, struct error *err);
int table_builder_double(struct table_builder *b, uint32_t column, double v, struct error *err);
int table_builder_text(struct table_builder *b, uint32_t column, const char *s, size_t len, struct error *err);

/* Appends the row. -MRD_ECANCELLED when `stop` is set. */
int table_builder_commit(struct table_builder *b, struct error *err);

/* Hands out the finished table (one reference) or frees everything: either way `b` is closed. */
int table_builder_finish(struct table_builder *b, struct runtime_table **out, struct error *err);
void table_builder_abort(struct table_builder *b);

struct runtime_table *runtime_table_ref(struct runtime_table *t);
void runtime_table_unref(struct runtime_table *t); /* NULL is fine */

#endif
