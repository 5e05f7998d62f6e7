/* Finds the embedded SQL texts; CMake makes the table. */
#include "sql/embedded.h"

#include <stdlib.h>
#include <string.h>

extern const struct embedded_sql embedded_sql_table[];
extern const size_t embedded_sql_count;

const struct embedded_sql *embedded_sql_all(size_t *n)
{
    *n = embedded_sql_count;
    return embedded_sql_table;
}

static int by_module(const void *name, const void *row)
{
    return strcmp(name, ((const struct embedded_sql *)row)->module);
}

const struct embedded_sql *embedded_sql_find(const char *module)
{
    return bsearch(module, embedded_sql_table, embedded_sql_count, sizeof *embedded_sql_table, by_module);
}
