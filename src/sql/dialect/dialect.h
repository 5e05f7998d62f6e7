/* PerfettoSQL on top of SQLite: the front end of an engine.
 *
 * Each statement is tokenized, its macros are expanded, and what PerfettoSQL adds (CREATE PERFETTO …, INCLUDE …) is
 * parsed and executed here; everything else goes to SQLite as it stands. Errors carry a traceback into the user's text
 * (engine_error_text() has all of it). */
#ifndef MERIDIAN_SQL_DIALECT_DIALECT_H
#define MERIDIAN_SQL_DIALECT_DIALECT_H

#include "sql/dialect/module.h"
#include "sql/engine.h"

/* Makes the front end and hands it to the engine, which owns it from then on. */
int dialect_attach(struct engine *e, struct error *err);

/* The packages of the engine, to add to (module.h). */
struct module_registry *dialect_modules(struct engine *e);

/* INCLUDE PERFETTO MODULE by name ("a.b", "a.*", "*"). */
int dialect_include(struct engine *e, const char *module, struct error *err);

#endif
