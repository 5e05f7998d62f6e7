/* Registration of the tables about the engine itself. */
#include "sql/tables/tables.h"

#include "sql/extensions.h"

int tables_attach(struct engine *e, struct error *err)
{
    int rc = 0;
#define X(subject)                                                                                                     \
    if (rc == 0)                                                                                                       \
        rc = engine_register_table_functions(e, subject##_table_functions, subject##_table_functions_n, err);
    ENGINE_TABLE_FILES(X)
#undef X
    return rc;
}
