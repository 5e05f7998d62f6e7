/* Statements that are answered from our columns, without SQLite's loops.
 *
 * SQLite hands each row through its virtual machine, some 20 ns a column and aggregate. The oldest shape of SELECT that
 * is answered otherwise has a shorter way than the plans of sql/plan:
 *
 *   aggregate_plan.c    SELECT {column | count(*) | count(column) | sum | min | max} … FROM table
 *                       [WHERE column OP literal AND …] [GROUP BY column, …] [ORDER BY …] [LIMIT n [OFFSET n]]
 *                       onto __intrinsic_aggregate (aggregate.c)
 *
 * It looks at the tree of the statement (frontend/select.h) and at what its names mean (schema.h). Whatever does not
 * fit exactly, or could come out differently, is left. Answers, names and order are those of SQLite (tested side by
 * side). */
#ifndef MERIDIAN_SQL_PLANNER_H
#define MERIDIAN_SQL_PLANNER_H

#include "sql/engine.h"
#include "sql/frontend/select.h"

enum { PLANNER_MIN_ROWS = 2000 }; /* smaller tables are not worth it */

/* The tree of a statement that may be planned, with parameters or without; false: SQLite shall have the text. */
bool planner_parse(struct engine *e, struct arena *arena, const struct sql_token *p, size_t n, struct sql_tree *tree);

/* Says that a function by this name has been made by a statement: what the planner thinks it means is not so. */
void planner_function_made(struct engine *e, const char *name);

/* From now on (or no longer) every statement goes to SQLite: for comparisons. */
void planner_switch(struct engine *e, bool on);
bool planner_is_on(const struct engine *e);

void planner_free(struct engine *e); /* before SQLite is closed */

#endif
