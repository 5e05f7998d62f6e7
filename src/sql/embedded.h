/* The SQL texts of stdlib/, built into the library: module name ("slices.with_context") to text. */
#ifndef MERIDIAN_SQL_EMBEDDED_H
#define MERIDIAN_SQL_EMBEDDED_H

#include <stddef.h>

struct embedded_sql {
    const char *module; /* path below stdlib/ with dots, without .sql */
    const char *text;   /* NUL-terminated */
    size_t len;
};

/* All of them, sorted by module name. */
const struct embedded_sql *embedded_sql_all(size_t *n);
/* One, or NULL. */
const struct embedded_sql *embedded_sql_find(const char *module);

#endif
