/* Registration of the operators. */
#include "sql/operators/operators.h"

#include "sql/operators/rows.h"
#include "sql/operators/table_functions.h"

int operator_error(sqlite3_vtab *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    sqlite3_free(t->zErrMsg);
    t->zErrMsg = sqlite3_vmprintf(fmt, ap);
    va_end(ap);
    return SQLITE_ERROR;
}

int operator_set_plan(sqlite3_index_info *info, sqlite3_str *plan)
{
    int rc = sqlite3_str_errcode(plan);
    info->idxStr = sqlite3_str_finish(plan);
    info->needToFreeIdxStr = 1;
    return rc;
}

int operator_open_cursor(size_t size, sqlite3_vtab_cursor **out)
{
    *out = sqlite3_malloc64(size);
    if (!*out)
        return SQLITE_NOMEM;
    memset(*out, 0, size);
    return SQLITE_OK;
}

int operator_disconnect(sqlite3_vtab *t)
{
    sqlite3_free(t);
    return SQLITE_OK;
}

static const struct {
    const char *name;
    const sqlite3_module *module;
} modules[] = {
    {"span_join", &span_join_module},
    {"span_left_join", &span_left_join_module},
    {"span_outer_join", &span_outer_join_module},
    {"__intrinsic_counter_mipmap", &counter_mipmap_module},
    {"__intrinsic_flamegraph", &flamegraph_module},
    {"__intrinsic_slice_mipmap", &slice_mipmap_module},
    {"__intrinsic_table_ptr", &table_ptr_module},
    {"__intrinsic_window", &window_module},
};

static const struct function_rows *const files[] = {
#define X(file) &file##_functions,
    OPERATOR_FILES(X)
#undef X
};

int operators_attach(struct engine *e, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < sizeof modules / sizeof *modules && rc == 0; i++)
        rc = engine_register_module(e, modules[i].name, modules[i].module, err);
    for (size_t i = 0; i < sizeof files / sizeof *files && rc == 0; i++)
        rc = engine_register_functions(e, files[i]->p, files[i]->n, err);
#define X(subject)                                                                                                     \
    if (rc == 0)                                                                                                       \
        rc = engine_register_table_functions(e, subject##_table_functions, subject##_table_functions_n, err);
    TABLE_FUNCTION_FILES(X)
#undef X
    /* what xFindFunction gives a meaning must be known as a function of some kind */
    if (rc == 0)
        sqlite3_overload_function(engine_db(e), "source_geq", 2);
    return rc;
}
