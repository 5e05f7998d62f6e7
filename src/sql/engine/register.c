/* Registers functions, modules, table functions and runtime tables with an engine, and finds them by name. */
#include "base/alloc.h"
#include "sql/engine/function_check.h"
#include "sql/engine_private.h"
#include "sql/vtab/vtab.h"

#include <string.h>

/* A function as SQLite knows it: its user data, which it frees. */
struct bound {
    struct engine *engine;
    struct engine_function f; /* its name lasts as long as the function is registered */
    struct function_check check;
};

struct engine *function_engine(sqlite3_context *ctx)
{
    return ((struct bound *)sqlite3_user_data(ctx))->engine;
}

void *function_data(sqlite3_context *ctx)
{
    return ((struct bound *)sqlite3_user_data(ctx))->f.data;
}

static void checked_scalar(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct bound *b = sqlite3_user_data(ctx);
    if (function_check_call(&b->check, b->f.name, ctx, argc, argv))
        b->f.scalar(ctx, argc, argv);
}

static void checked_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct bound *b = sqlite3_user_data(ctx);
    if (function_check_call(&b->check, b->f.name, ctx, argc, argv))
        b->f.step(ctx, argc, argv);
}

/* What a window takes out is what came in; a row that was refused has ended the statement. */
static int register_function(struct engine *e, const struct engine_function *f, struct error *err)
{
    struct bound *b = mem_zalloc(sizeof *b);
    if (!b)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    *b = (struct bound){.engine = e, .f = *f};
    if (!function_check_read(&b->check, f->takes, f->n_args)) {
        mem_free(b);
        return error_set(err, -MRD_EINVALID, "%s: its arguments are not described", f->name);
    }
    const bool any = b->check.any;
    const int flags = f->flags | SQLITE_UTF8 | (f->flags & SQLITE_DIRECTONLY ? 0 : SQLITE_INNOCUOUS);
    int rc;
    if (f->value)
        rc = sqlite3_create_window_function(e->db, f->name, f->n_args, flags, b, any ? f->step : checked_step, f->final,
                                            f->value, f->inverse, mem_free);
    else
        rc = sqlite3_create_function_v2(e->db, f->name, f->n_args, flags, b,
                                        f->scalar && !any ? checked_scalar : f->scalar,
                                        f->step && !any ? checked_step : f->step, f->final, mem_free);
    return rc == SQLITE_OK ? 0 : engine_sqlite_error(e, rc, err);
}

int engine_register_functions(struct engine *e, const struct engine_function *fns, size_t n, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        int rc = register_function(e, &fns[i], err);
        if (rc)
            return rc;
        if (!vec_push(&e->functions, &fns[i]))
            return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    return 0;
}

const struct engine_function *engine_find_function(const struct engine *e, const char *name, int n_args)
{
    for (size_t i = e->functions.n; i-- > 0;) {
        const struct engine_function *f = e->functions.p[i];
        if (sqlite3_stricmp(f->name, name) == 0 && (n_args == -2 || f->n_args == n_args))
            return f;
    }
    return NULL;
}

void engine_forget_function(struct engine *e, const struct engine_function *f)
{
    for (size_t i = 0; i < e->functions.n; i++)
        if (e->functions.p[i] == f) {
            memmove(&e->functions.p[i], &e->functions.p[i + 1], (e->functions.n - i - 1) * sizeof *e->functions.p);
            e->functions.n--;
            return;
        }
}

int engine_register_module(struct engine *e, const char *name, const sqlite3_module *module, struct error *err)
{
    int rc = sqlite3_create_module_v2(e->db, name, module, e, NULL);
    return rc == SQLITE_OK ? 0 : engine_sqlite_error(e, rc, err);
}

int engine_register_table_functions(struct engine *e, const struct engine_table_function *fns, size_t n,
                                    struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        int rc = vtab_register_function(e, &fns[i], err);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- runtime tables ---- */

int engine_add_table(struct engine *e, const char *name, struct runtime_table *t, struct error *err)
{
    char *sql = sqlite3_mprintf("CREATE VIRTUAL TABLE \"%w\" USING __intrinsic_dataframe", name);
    struct engine_pending outer = e->pending;
    int rc = SQLITE_NOMEM;
    if (sql) {
        e->pending = (struct engine_pending){name, t};
        rc = sqlite3_exec(e->db, sql, NULL, NULL, NULL);
        e->pending = outer;
    }
    sqlite3_free(sql);
    runtime_table_unref(t);
    return rc == SQLITE_OK ? 0 : engine_sqlite_error(e, rc, err);
}

static int append_row(struct table_builder *b, sqlite3_stmt *select, uint32_t n, struct error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        sqlite3_value *v = sqlite3_column_value(select, (int)i);
        int rc = table_builder_value(b, i, v, err);
        if (rc)
            return rc;
    }
    return table_builder_commit(b, err);
}

/* Brings a declared schema into the order of the select's columns; -1 where a name is not declared. */
static int types_of(sqlite3_stmt *select, uint32_t n, const struct runtime_schema *schema, const char **names,
                    uint8_t *types, struct error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        names[i] = sqlite3_column_name(select, (int)i);
        if (!names[i])
            return error_set(err, -MRD_ENOMEM, "out of memory");
        types[i] = RUNTIME_ANY;
        for (uint32_t k = 0; schema && k < schema->n; k++)
            if (sqlite3_stricmp(schema->names[k], names[i]) == 0)
                types[i] = schema->types[k];
    }
    return 0;
}

int engine_materialise(struct engine *e, sqlite3_stmt *select, const struct runtime_schema *schema,
                       struct runtime_table **out, struct error *err)
{
    uint32_t n = (uint32_t)sqlite3_column_count(select);
    struct table_builder b = {0};
    const char **names = mem_zalloc((n + 1) * sizeof *names);
    uint8_t *types = mem_zalloc(n + 1);
    int rc =
        names && types ? types_of(select, n, schema, names, types, err) : error_set(err, -MRD_ENOMEM, "out of memory");
    if (rc == 0)
        rc = table_builder_init(&b, e->storage, n, names, types, err);
    mem_free(names);
    mem_free(types);
    if (rc)
        return rc;
    while ((rc = engine_step(e, select, err)) == 1)
        if ((rc = append_row(&b, select, n, err)) != 0)
            break;
    if (rc == 0)
        return table_builder_finish(&b, out, err);
    table_builder_abort(&b);
    return rc;
}

/* ---- names ---- */

bool engine_know(struct engine *e, const char *name, const struct table *t, struct vtab *v)
{
    char *copy = mem_strdup(name);
    if (copy && vec_push(&e->known, (struct engine_known_table){copy, t, v}))
        return true;
    mem_free(copy);
    return false;
}

void engine_forget(struct engine *e, const struct vtab *v)
{
    for (size_t i = 0; i < e->known.n; i++) {
        if (e->known.p[i].vtab != v)
            continue;
        mem_free(e->known.p[i].name);
        e->known.p[i] = e->known.p[--e->known.n];
        return;
    }
}

bool engine_makes_table(struct engine *e, const char *name)
{
    return storage_find_table(name) >= 0 || vtab_is_runtime(e, name) || vtab_is_lazy(e, name);
}

const struct engine_known_table *engine_find_known(struct engine *e, const char *name)
{
    for (int tries = 0; tries < 2; tries++) {
        for (size_t i = e->known.n; i-- > 0;)
            if (sqlite3_stricmp(e->known.p[i].name, name) == 0)
                return &e->known.p[i];
        if (tries)
            break;
        /* A table is connected when a query names it for the first time. */
        sqlite3_stmt *stmt = NULL;
        char *sql = sqlite3_mprintf("SELECT 1 FROM \"%w\"", name);
        if (sql && engine_makes_table(e, name))
            engine_compile(e, sql, -1, 0, &stmt, NULL);
        sqlite3_finalize(stmt);
        sqlite3_free(sql);
    }
    return NULL;
}

/* With its rows: those of all args are decoded now. */
static const struct engine_known_table *find_known(struct engine *e, const char *name)
{
    const struct engine_known_table *k = engine_find_known(e, name);
    return k && (k->table != &e->all_args || args_all(e) == SQLITE_OK) ? k : NULL;
}

const struct table *engine_find_table(struct engine *e, const char *name)
{
    const struct engine_known_table *k = find_known(e, name);
    return k ? k->table : NULL;
}

struct runtime_table *engine_find_runtime(struct engine *e, const char *name)
{
    const struct engine_known_table *k = find_known(e, name);
    return k ? k->vtab->source->runtime : NULL;
}

static int find_column(const struct table *t, const char *name)
{
    for (uint32_t i = 0; i < t->def->n_columns; i++)
        if (sqlite3_stricmp(t->def->columns[i].name, name) == 0)
            return (int)i;
    return -1;
}

int engine_add_index(struct engine *e, const char *name, const char *table, const char *const *columns, size_t n,
                     struct error *err)
{
    const struct engine_known_table *k = find_known(e, table);
    struct plan_order order[PLAN_MAX_ORDER];
    if (!k)
        return error_set(err, -MRD_ESQL, "table '%s' does not exist", table);
    if (n > PLAN_MAX_ORDER)
        return error_set(err, -MRD_ESQL, "an index has at most %d columns", PLAN_MAX_ORDER);
    if (!k->table->final)
        table_finalize((struct table *)(uintptr_t)k->table);
    uint32_t used = 0;
    for (size_t i = 0; i < n; i++) {
        int column = find_column(k->table, columns[i]);
        if (column < 0)
            return error_set(err, -MRD_ESQL, "column '%s' does not exist in table '%s'", columns[i], table);
        if (used == i && k->table->columns[column].type != COL_F64)
            order[used++] = (struct plan_order){(int16_t)column, false};
    }
    if (used == 0)
        return error_set(err, -MRD_ESQL, "an index cannot begin with '%s': it holds doubles", columns[0]);
    return named_index_add(k->vtab->source, name, order, used) ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
}

bool engine_has_index(struct engine *e, const char *name, const char *table)
{
    const struct engine_known_table *k = find_known(e, table);
    return k && named_index_exists(k->vtab->source, name);
}

void engine_drop_index(struct engine *e, const char *name, const char *table)
{
    const struct engine_known_table *k = find_known(e, table);
    if (k)
        named_index_drop(k->vtab->source, name);
}

/* ---- tables that operators compute ---- */

bool engine_add_batches(struct engine *e, struct engine_batches *b)
{
    b->serial = ++e->last_serial;
    return vec_push(&e->batches, *b);
}

void engine_remove_batches(struct engine *e, uint64_t serial)
{
    for (size_t i = 0; i < e->batches.n; i++)
        if (e->batches.p[i].serial == serial) {
            e->batches.p[i] = e->batches.p[--e->batches.n];
            return;
        }
}

const struct engine_batches *engine_find_batches(const struct engine *e, const char *name, uint64_t serial)
{
    for (size_t i = 0; i < e->batches.n; i++) {
        const struct engine_batches *b = &e->batches.p[i];
        if (serial ? b->serial == serial : sqlite3_stricmp(b->name, name) == 0)
            return b;
    }
    return NULL;
}
