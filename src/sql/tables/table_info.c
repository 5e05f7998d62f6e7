/* PERFETTO_TABLE_INFO(name): the columns of one of our tables, built in or made by SQL; and what tables.def says of
 * them. */
#include "sql/tables/tables.h"

static int table_info(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    static const char *const types[] = {
        [COL_U32] = "uint32", [COL_I32] = "int32", [COL_I64] = "int64", [COL_F64] = "double", [COL_STR] = "string"};
    struct strpool *strings = &engine_storage(e)->strings;
    if (sqlite3_value_type(args[0]) == SQLITE_NULL)
        return 0;
    const char *name = (const char *)sqlite3_value_text(args[0]);
    const struct table *t = name ? engine_find_table(e, name) : NULL;
    if (!t)
        return error_set(err, -MRD_ESQL, "Perfetto table '%s' not found.", name ? name : "");
    for (uint32_t i = 0; i < t->def->n_columns; i++) {
        const struct column_def *c = &t->def->columns[i];
        int64_t words[] = {strpool_intern_str(strings, c->name), strpool_intern_str(strings, types[c->type]),
                           (c->flags & COL_NULLABLE) != 0, (c->flags & COL_SORTED) != 0 || t->columns[i].sorted};
        if (table_append(out, words) == UINT32_MAX)
            return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    return 0;
}

static const struct column_def columns[] = {
    {"name", COL_STR, 0, ""},
    {"col_type", COL_STR, 0, ""},
    {"nullable", COL_I64, 0, ""},
    {"sorted", COL_I64, 0, ""},
};
static const struct table_def def = {"", columns, 4, ""};

static const struct column_def docs_columns[] = {
    {"table_name", COL_STR, 0, "Name of the table."},
    {"column_name", COL_STR, COL_NULLABLE, "Name of the column; NULL in the row about the table itself."},
    {"description", COL_STR, 0, "What it holds."},
};
static const struct table_def docs_def = {"_meridian_table_docs", docs_columns, 3, "What tables and columns hold."};

static int table_docs(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    struct strpool *strings = &engine_storage(e)->strings;
    bool ok = true;
    (void)args;
    for (size_t i = 0; ok && i < T_COUNT; i++) {
        const struct table_def *d = &table_defs[i];
        int64_t words[] = {strpool_intern_str(strings, d->name), 0, strpool_intern_str(strings, d->doc)};
        ok = table_append(out, words) != UINT32_MAX;
        for (uint32_t c = 0; ok && c < d->n_columns; c++) {
            words[1] = strpool_intern_str(strings, d->columns[c].name);
            words[2] = strpool_intern_str(strings, d->columns[c].doc);
            ok = table_append(out, words) != UINT32_MAX;
        }
    }
    return ok ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
}

const struct engine_table_function info_table_functions[] = {
    {"perfetto_table_info", &def, 1, false, table_info},
    {.name = "_meridian_table_docs", .def = &docs_def, .compute = table_docs},
};
const size_t info_table_functions_n = sizeof info_table_functions / sizeof *info_table_functions;
