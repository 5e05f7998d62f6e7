/* Outer joins that a statement may have, in its text or in a view that it reads: engine_may_be_misread().
 *
 * SQLite 3.40 misreads conditions of outer joins over virtual tables: of `l LEFT JOIN r ON … AND l.x != 3` it asks the
 * table l for those rows alone that pass `!=`, and so loses the others, where it should give them without a partner. So
 * it does with IS NOT, NOT NULL and GLOB; with = or < it does not. A virtual table cannot tell such a condition from
 * one of WHERE: it takes these operators where there is no outer join at all. */
#ifndef MERIDIAN_SQL_PLANNER_OUTER_H
#define MERIDIAN_SQL_PLANNER_OUTER_H

#include "sql/engine_private.h"

void outer_free(struct engine *e);

#endif
