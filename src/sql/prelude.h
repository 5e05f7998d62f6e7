/* Runs the SQL of the prelude: the views and tables that are there before a user writes anything. */
#ifndef MERIDIAN_SQL_PRELUDE_H
#define MERIDIAN_SQL_PRELUDE_H

#include "sql/engine.h"

/* Runs every embedded module whose name begins with `prefix`, by name. A `CREATE TABLE x AS` of them is made when x is
 * first used. */
int prelude_run(struct engine *e, const char *prefix, struct error *err);

#endif
