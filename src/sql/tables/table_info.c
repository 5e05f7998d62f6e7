/* PERFETTO_TABLE_INFO(name): the columns of one of our tables, built in or made by SQL; and what tables.def says of
 * them. */
#include "sql/tables/tables.h"

#include <string.h>

/* How a column may be NULL and in what order its values stand, as numbers that clients know. */
enum { NEVER_NULL = 0, SPARSE_NULL = 1, DENSE_NULL = 4 };
enum { ORDER_ID = 0, ORDER_SET_ID = 1, ORDER_SORTED = 2, ORDER_NONE = 3 };

struct told {
    const char *type;
    int64_t nullable, order;
};

static const char *const type_names[] = {
    [COL_U32] = "uint32", [COL_I32] = "int32", [COL_I64] = "int64", [COL_F64] = "double", [COL_STR] = "string"};

/* A built-in column is what its table declares. */
static struct told declared_column(const struct column_def *c)
{
    bool full = !(c->flags & COL_NULLABLE) || c->flags & COL_TOLD_FULL;
    struct told told = {type_names[c->type], full ? NEVER_NULL : DENSE_NULL, ORDER_NONE};
    if (c->flags & COL_SET_ID)
        told.order = ORDER_SET_ID;
    else if (c->flags & COL_SORTED)
        told.order = ORDER_SORTED;
    return told;
}

static bool is_before(const struct strpool *strings, enum col_type type, int64_t a, int64_t b)
{
    if (type == COL_STR)
        return strcmp(strpool_cstr(strings, (strid)a), strpool_cstr(strings, (strid)b)) < 0;
    return type == COL_F64 ? column_f64(a) < column_f64(b) : a < b;
}

struct found {
    int64_t min, max;
    bool has_null, is_id, is_set_id, is_sorted;
};

/* Looks through a column that SQL filled. */
static int look_through(struct engine *e, const struct table *t, uint32_t column, struct found *found)
{
    enum col_type type = t->def->columns[column].type;
    const struct strpool *strings = &engine_storage(e)->strings;
    int64_t null = column_null(type), last = 0;
    bool any = false, is_integer = type != COL_STR && type != COL_F64;
    *found = (struct found){.min = INT64_MAX, .max = INT64_MIN, .is_id = is_integer, .is_sorted = true};
    found->is_set_id = is_integer;
    for (uint32_t r = 0; r < t->n_rows; r++) {
        int64_t v = table_get(t, column, r);
        if (stop_asked(engine_stop(e)))
            return -MRD_ECANCELLED;
        if (v == null) {
            found->has_null = true;
            continue;
        }
        found->is_id &= v == r;
        found->is_set_id &= v == r || (any && v == last);
        found->is_sorted &= !any || !is_before(strings, type, v, last);
        found->min = v < found->min ? v : found->min;
        found->max = v > found->max ? v : found->max;
        last = v;
        any = true;
    }
    return 0;
}

/* A column that SQL filled is what its values are: integers of the smallest type that holds them all. */
static int found_column(struct engine *e, const struct table *t, uint32_t column, struct told *told)
{
    enum col_type type = t->def->columns[column].type;
    struct found f;
    int rc = look_through(e, t, column, &f);
    *told = (struct told){type_names[type], f.has_null ? SPARSE_NULL : NEVER_NULL, ORDER_NONE};
    if (type != COL_STR && type != COL_F64) {
        bool none = f.min > f.max;
        told->type = none || (f.min >= 0 && f.max <= UINT32_MAX) ? "uint32"
                     : f.min >= INT32_MIN && f.max <= INT32_MAX  ? "int32"
                                                                 : "int64";
    }
    if (f.has_null)
        return rc;
    if (f.is_id)
        *told = (struct told){"id", NEVER_NULL, ORDER_ID};
    else if (f.is_set_id)
        told->order = ORDER_SET_ID;
    else if (f.is_sorted)
        told->order = ORDER_SORTED;
    return rc;
}

struct asked {
    struct strpool *strings;
    const char *table;
    struct table *out;
};

static int append_info(const struct asked *a, const char *column, const struct told *told)
{
    int64_t words[] = {strpool_intern_str(a->strings, a->table), strpool_intern_str(a->strings, column),
                       strpool_intern_str(a->strings, told->type), told->nullable, told->order};
    return table_append(a->out, words) == UINT32_MAX ? -MRD_ENOMEM : 0;
}

/* The stats are a table that is made for each query; its columns are declared as those of others. */
static const struct table_def *declaration(const struct table *t, const char *name)
{
    const struct table_def *stats = &table_defs[T_stats];
    return t ? t->def : name && strcmp(name, stats->name) == 0 ? stats : NULL;
}

static int table_info(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    static const struct told row_number = {"id", NEVER_NULL, ORDER_ID};
    if (sqlite3_value_type(args[0]) == SQLITE_NULL)
        return 0;
    const char *name = (const char *)sqlite3_value_text(args[0]);
    const struct table *t = name ? engine_find_table(e, name) : NULL;
    const struct table_def *d = declaration(t, name);
    if (!d)
        return error_set(err, -MRD_ESQL, "Perfetto table '%s' not found.", name ? name : "");
    struct asked a = {&engine_storage(e)->strings, name, out};
    bool by_sql = engine_find_runtime(e, name) != NULL;
    bool has_id = by_sql || strcmp(d->columns[0].name, "id") == 0; /* of a row elsewhere */
    int rc = has_id ? 0 : append_info(&a, "id", &row_number);
    for (uint32_t i = 0; i < d->n_columns && rc == 0; i++) {
        const struct column_def *c = &d->columns[i];
        struct told told = declared_column(c);
        if (by_sql)
            rc = found_column(e, t, i, &told);
        if (rc == 0)
            rc = append_info(&a, c->name, &told);
    }
    if (rc == 0)
        rc = append_info(&a, "_auto_id", &row_number);
    return rc == -MRD_ENOMEM ? error_set(err, rc, "out of memory") : rc;
}

static const struct column_def columns[] = {
    {"table_name", COL_STR, 0, ""}, {"name", COL_STR, 0, ""},   {"col_type", COL_STR, 0, ""},
    {"nullable", COL_I64, 0, ""},   {"sorted", COL_I64, 0, ""},
};
static const struct table_def def = {"", columns, sizeof columns / sizeof *columns, ""};

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
    {"perfetto_table_info", &def, 1, ROWS_BOTH, table_info},
    {.name = "_meridian_table_docs", .def = &docs_def, .compute = table_docs},
};
const size_t info_table_functions_n = sizeof info_table_functions / sizeof *info_table_functions;
