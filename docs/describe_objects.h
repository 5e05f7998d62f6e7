/* Pages of objects that SQL files define, from their comments (__intrinsic_stdlib_objects). */
#ifndef MERIDIAN_DOCS_DESCRIBE_OBJECTS_H
#define MERIDIAN_DOCS_DESCRIBE_OBJECTS_H

#include "sql/engine.h"
#include "storage/storage.h"

#include <stdio.h>

/* Writes what stands below the description of a module; `table` is a table or view of it, "" when it has none. */
typedef void (*example_fn)(FILE *out, const char *module, const char *table);

/* Writes the exposed objects for which the SQL condition holds, in its order: "package = 'x' ORDER BY name". `example`
 * may be NULL. */
int describe_objects(FILE *out, struct engine *e, const char *condition, example_fn example, struct error *err);

#endif
