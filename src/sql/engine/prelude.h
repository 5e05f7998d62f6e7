/* Runs the SQL of the prelude: the views and tables that are there before a user writes anything. */
#ifndef MERIDIAN_SQL_ENGINE_PRELUDE_H
#define MERIDIAN_SQL_ENGINE_PRELUDE_H

#include "sql/engine.h"

/* Runs every embedded module whose name begins with `prefix`, by name. They are written as CREATE PERFETTO statements:
 * a TABLE is made when it is first used, the columns of tables and views and all functions (built in) are declared for
 * the documentation only. */
int prelude_run(struct engine *e, const char *prefix, struct error *err);

#endif
