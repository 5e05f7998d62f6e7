/* Aggregates with an order of their own, f(x ORDER BY y), which SQLite 3.40 does not parse.
 *
 * The call becomes __intrinsic_ordered_agg('f', number of arguments, arguments …, key, flags, …), an aggregate that
 * keeps its rows, sorts them at the end and gives what f gives (functions/ordered.c). */
#ifndef MERIDIAN_SQL_DIALECT_ORDERED_H
#define MERIDIAN_SQL_DIALECT_ORDERED_H

#include "sql/frontend/text.h"

enum { ORDERED_DESC = 1, ORDERED_NULLS_LAST = 2, ORDERED_NULLS_FIRST = 4 };

/* Rewrites such calls in *t. Made-up texts come from the arena. False when out of memory. */
bool ordered_rewrite(struct sql_tokens *t, struct arena *arena);

#endif
