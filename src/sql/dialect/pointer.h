/* Tells pointer values (graphs, tables …) from plain NULLs: they die with the statement that made them, so nothing that
 * outlives the statement may hand them on. */
#ifndef MERIDIAN_SQL_DIALECT_POINTER_H
#define MERIDIAN_SQL_DIALECT_POINTER_H

#include <sqlite3.h>
#include <stdbool.h>

static inline bool value_is_pointer(sqlite3_value *v)
{
    return sqlite3_value_type(v) == SQLITE_NULL && sqlite3_value_subtype(v) == 'p';
}

/* sqlite3_result_value() for a value of another statement; pointers become NULL. */
static inline void result_of_statement(sqlite3_context *ctx, sqlite3_value *v)
{
    if (value_is_pointer(v))
        sqlite3_result_null(ctx);
    else
        sqlite3_result_value(ctx, v);
}

#endif
