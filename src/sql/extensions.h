/* The parts that add functions, modules and syntax to an engine: one line each, run in order by engine_open(). */
#ifndef MERIDIAN_SQL_EXTENSIONS_H
#define MERIDIAN_SQL_EXTENSIONS_H

#include "sql/engine.h"

/* int x_attach(struct engine *e, struct error *err): registers what the part has; 0 or an error. */
#define SQL_EXTENSIONS(X)                                                                                              \
    X(planner)                                                                                                         \
    X(plan)                                                                                                            \
    X(functions_storage)                                                                                               \
    X(tables)                                                                                                          \
    X(query_log)                                                                                                       \
    X(functions)                                                                                                       \
    X(operators)                                                                                                       \
    X(dialect)

#define X(name) int name##_attach(struct engine *e, struct error *err);
SQL_EXTENSIONS(X)
#undef X

#endif
