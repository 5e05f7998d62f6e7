/* Aggregates with an order of their own, f(x ORDER BY y), which SQLite 3.40 does not parse.
 *
 * The call becomes __intrinsic_ordered_agg('f', number of arguments, arguments …, key, flags, …), an aggregate that
 * keeps its rows, sorts them at the end and gives what f gives (functions/ordered.c). f(DISTINCT x ORDER BY y) is
 * named 'DISTINCT f': of rows with equal arguments the first stays. */
#ifndef MERIDIAN_SQL_DIALECT_ORDERED_H
#define MERIDIAN_SQL_DIALECT_ORDERED_H

#include "sql/frontend/text.h"

#define ORDERED_DISTINCT "DISTINCT "
#define ORDERED_CALL     "__intrinsic_ordered_agg("

enum { ORDERED_DESC = 1, ORDERED_NULLS_LAST = 2, ORDERED_NULLS_FIRST = 4 };

/* Rewrites such calls in *t. Made-up texts come from the arena. False when out of memory. */
bool ordered_rewrite(struct sql_tokens *t, struct arena *arena);

/* The name of a column without an alias, with such calls as they were written (mem_alloc); NULL: there are none, or no
 * memory. */
char *ordered_column_name(const char *name);

#endif
