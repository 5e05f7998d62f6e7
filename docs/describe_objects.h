/* Pages of objects that SQL files define, from their comments (__intrinsic_stdlib_objects). */
#ifndef MERIDIAN_DOCS_DESCRIBE_OBJECTS_H
#define MERIDIAN_DOCS_DESCRIBE_OBJECTS_H

#include "sql/engine.h"
#include "storage/storage.h"

#include <stdio.h>

/* Writes the exposed objects for which the SQL condition holds, in its order: "package = 'x' ORDER BY name". */
int describe_objects(FILE *out, struct engine *e, const char *condition, struct error *err);

#endif
