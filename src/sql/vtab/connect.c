/* Connects tables to SQLite: their schema, and the modules of built-in, runtime and computed tables. */
#include "sql/engine_private.h"
#include "sql/vtab/vtab.h"

#include <stdio.h>
#include <string.h>

static const char *const type_names[] = {
    [COL_U32] = "INTEGER", [COL_I32] = "INTEGER", [COL_I64] = "INTEGER", [COL_F64] = "DOUBLE", [COL_STR] = "TEXT"};

static void append_column(sqlite3_str *s, const char *name, const char *type, bool hidden)
{
    sqlite3_str_appendf(s, "%s\"%w\" %s%s", sqlite3_str_length(s) > 15 ? "," : "", name, type, hidden ? " HIDDEN" : "");
}

/* The CREATE TABLE text for sqlite3_declare_vtab() and, in the same order, what each SQL column is. */
static char *schema_text(const struct vtab_source *src, int16_t *at)
{
    sqlite3_str *s = sqlite3_str_new(NULL);
    uint32_t n = 0;
    sqlite3_str_appendall(s, "CREATE TABLE x("); /* 15 characters */
    if (src->implicit_id) {
        append_column(s, "id", "INTEGER", false);
        at[n++] = VTAB_ROW;
    }
    for (uint32_t i = 0; i < src->def->n_columns; i++) {
        const struct column_def *c = &src->def->columns[i];
        append_column(s, c->name, src->untyped ? "" : type_names[c->type], (c->flags & COL_HIDDEN) != 0);
        at[n++] = (int16_t)i;
    }
    for (int i = 0; src->function && i < src->function->n_args; i++) {
        char name[32];
        snprintf(name, sizeof name, "_fn_arg%d", i);
        append_column(s, name, "", true);
        at[n++] = (int16_t)(VTAB_ARG - i);
    }
    if (src->auto_id) {
        append_column(s, "_auto_id", "INTEGER", true);
        at[n++] = VTAB_ROW;
    }
    sqlite3_str_appendall(s, ")");
    return sqlite3_str_finish(s);
}

static uint32_t sql_columns(const struct vtab_source *src)
{
    return src->def->n_columns + src->implicit_id + src->auto_id +
           (uint32_t)(src->function ? src->function->n_args : 0);
}

const char *vtab_column_name(const struct vtab *v, uint32_t i, bool *hidden)
{
    const struct vtab_source *src = v->source;
    *hidden = false;
    if (src->implicit_id && i-- == 0)
        return "id";
    if (i < src->def->n_columns) {
        *hidden = (src->def->columns[i].flags & COL_HIDDEN) != 0;
        return src->def->columns[i].name;
    }
    *hidden = true;
    uint32_t n_args = src->function ? (uint32_t)src->function->n_args : 0;
    return src->auto_id && i == src->def->n_columns + n_args ? "_auto_id" : "";
}

static void source_unref(struct vtab_source *src)
{
    if (!src || --src->refs)
        return;
    named_index_free(src);
    runtime_table_unref(src->runtime);
    mem_free(src);
}

static void source_free_client(void *p)
{
    source_unref(p);
}

static void vtab_free(struct vtab *v)
{
    if (!v)
        return;
    index_drop_all(v);
    mem_free(v->indexes);
    mem_free(v->scanned);
    mem_free(v->columns.at);
    source_unref(v->source);
    mem_free(v);
}

/* Makes the vtab of a source; the caller keeps its own reference. */
static int connect_source(sqlite3 *db, struct vtab_source *src, const char *name, sqlite3_vtab **out)
{
    uint32_t n = sql_columns(src);
    struct vtab *v = mem_zalloc(sizeof *v);
    if (!v)
        return SQLITE_NOMEM;
    v->engine = src->engine;
    v->source = src;
    src->refs++;
    v->columns.n = n;
    v->columns.at = mem_zalloc((n + 1) * sizeof *v->columns.at);
    v->indexes = mem_zalloc((src->def->n_columns + 1) * sizeof *v->indexes);
    v->scanned = mem_zalloc((src->def->n_columns + 1) * sizeof *v->scanned);
    char *schema = v->columns.at ? schema_text(src, v->columns.at) : NULL;
    int rc = schema && v->indexes && v->scanned ? engine_declare_vtab(db, schema) : SQLITE_NOMEM;
    sqlite3_free(schema);
    const struct table *rows = src->is_args ? &src->engine->all_args : src->table;
    if (rc == SQLITE_OK && rows && !engine_know(src->engine, name, rows, v))
        rc = SQLITE_NOMEM;
    if (rc != SQLITE_OK) {
        vtab_free(v);
        return rc;
    }
    *out = &v->base;
    return SQLITE_OK;
}

static int disconnect(sqlite3_vtab *base)
{
    struct vtab *v = (struct vtab *)base;
    engine_forget(v->engine, v);
    vtab_free(v);
    return SQLITE_OK;
}

#define GENERIC_METHODS                                                                                                \
    .xBestIndex = vtab_best_index, .xDisconnect = disconnect, .xOpen = vtab_open, .xClose = vtab_close,                \
    .xFilter = vtab_filter, .xNext = vtab_next, .xEof = vtab_eof, .xColumn = vtab_column, .xRowid = vtab_rowid

/* ---- built-in tables and table functions: eponymous, so that nothing is parsed before a query names them ---- */

static int connect_eponymous(sqlite3 *db, void *client, int argc, const char *const *argv, sqlite3_vtab **out,
                             char **message)
{
    (void)message;
    return connect_source(db, client, argc > 2 ? argv[2] : "", out);
}

static const sqlite3_module eponymous_module = {.iVersion = 0, .xConnect = connect_eponymous, GENERIC_METHODS};

static int register_source(struct engine *e, const char *name, struct vtab_source *src, struct error *err)
{
    if (!src)
        return error_set(err, -MRD_ENOMEM, "table %s: out of memory", name);
    int rc = sqlite3_create_module_v2(e->db, name, &eponymous_module, src, source_free_client);
    return rc == SQLITE_OK ? 0 : engine_sqlite_error(e, rc, err);
}

static struct vtab_source *source_new(struct engine *e, const struct table_def *def)
{
    struct vtab_source *src = mem_zalloc(sizeof *src);
    if (src) {
        src->refs = 1;
        src->engine = e;
        src->def = def;
    }
    return src;
}

int vtab_register_builtin(struct engine *e, struct error *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < T_COUNT; i++) {
        const struct table_def *def = &table_defs[i];
        struct vtab_source *src = source_new(e, def);
        if (src) {
            src->table = &e->storage->t[i];
            src->implicit_id = strcmp(def->columns[0].name, "id") != 0;
            src->is_args = i == T_args;
            if (src->is_args)
                src->table = NULL;
        }
        if (i != T_stats) /* made by stats_table.c */
            rc = register_source(e, def->name, src, err);
        else
            source_unref(src);
    }
    return rc;
}

int vtab_register_function(struct engine *e, const struct engine_table_function *fn, struct error *err)
{
    struct vtab_source *src = source_new(e, fn->def);
    if (src) {
        src->function = fn;
        src->implicit_id = fn->row_numbers == ROWS_ID || fn->row_numbers == ROWS_BOTH;
        src->auto_id = fn->row_numbers == ROWS_AUTO_ID || fn->row_numbers == ROWS_BOTH;
        src->untyped = fn->row_numbers == ROWS_UNTYPED;
    }
    return register_source(e, fn->name, src, err);
}

/* ---- runtime tables: created by CREATE VIRTUAL TABLE ... USING __intrinsic_dataframe ---- */

static struct engine_runtime *find_runtime(const struct engine *e, const char *name)
{
    for (size_t i = e->runtime.n; i-- > 0;)
        if (sqlite3_stricmp(e->runtime.p[i].name, name) == 0)
            return &e->runtime.p[i];
    return NULL;
}

bool vtab_is_runtime(const struct engine *e, const char *name)
{
    return find_runtime(e, name) != NULL;
}

static void remove_runtime(struct engine *e, struct engine_runtime *r)
{
    source_unref(r->source);
    mem_free(r->name);
    *r = *vec_last(&e->runtime);
    e->runtime.n--;
}

void vtab_free_runtime(struct engine *e)
{
    while (e->runtime.n)
        remove_runtime(e, vec_last(&e->runtime));
    vec_free(&e->runtime);
}

static const char missing_runtime[] = "__intrinsic_dataframe: tables are made by CREATE PERFETTO TABLE";

/* SQLite takes all virtual tables down when a statement that changes the schema fails; their rows are still here. */
static int connect_runtime(sqlite3 *db, void *client, int argc, const char *const *argv, sqlite3_vtab **out,
                           char **message)
{
    struct engine_runtime *r = argc > 2 ? find_runtime(client, argv[2]) : NULL;
    if (r)
        return connect_source(db, r->source, r->name, out);
    *message = sqlite3_mprintf("%s", missing_runtime);
    return SQLITE_ERROR;
}

static int create_runtime(sqlite3 *db, void *client, int argc, const char *const *argv, sqlite3_vtab **out,
                          char **message)
{
    struct engine *e = client;
    if (!e->pending.t || argc < 3 || strcmp(e->pending.name, argv[2]) != 0) {
        *message = sqlite3_mprintf("%s", missing_runtime);
        return SQLITE_ERROR;
    }
    struct engine_runtime r = {mem_strdup(argv[2]), source_new(e, &e->pending.t->def)};
    if (!r.name || !r.source || !vec_push(&e->runtime, r)) {
        mem_free(r.name);
        source_unref(r.source);
        return SQLITE_NOMEM;
    }
    r.source->runtime = runtime_table_ref(e->pending.t);
    r.source->table = &r.source->runtime->table;
    r.source->auto_id = true;
    int rc = connect_source(db, r.source, r.name, out);
    if (rc != SQLITE_OK) {
        *message = sqlite3_mprintf("%s", sqlite3_errmsg(db));
        remove_runtime(e, vec_last(&e->runtime));
    }
    return rc;
}

static int destroy_runtime(sqlite3_vtab *base)
{
    struct engine *e = ((struct vtab *)base)->engine;
    struct vtab_source *src = ((struct vtab *)base)->source;
    disconnect(base);
    for (size_t i = 0; i < e->runtime.n; i++)
        if (e->runtime.p[i].source == src) {
            remove_runtime(e, &e->runtime.p[i]);
            break;
        }
    return SQLITE_OK;
}

static int rename_runtime(sqlite3_vtab *base, const char *name)
{
    struct vtab *v = (struct vtab *)base;
    char *copy = mem_strdup(name);
    if (!copy)
        return SQLITE_NOMEM;
    engine_forget(v->engine, v);
    for (size_t i = 0; i < v->engine->runtime.n; i++)
        if (v->engine->runtime.p[i].source == v->source) {
            mem_free(v->engine->runtime.p[i].name);
            v->engine->runtime.p[i].name = copy;
        }
    return engine_know(v->engine, name, v->source->table, v) ? SQLITE_OK : SQLITE_NOMEM;
}

static const sqlite3_module runtime_module = {.iVersion = 0,
                                              .xCreate = create_runtime,
                                              .xConnect = connect_runtime,
                                              .xDestroy = destroy_runtime,
                                              .xRename = rename_runtime,
                                              GENERIC_METHODS};

int vtab_register_runtime(struct engine *e, struct error *err)
{
    int rc = sqlite3_create_module_v2(e->db, "__intrinsic_dataframe", &runtime_module, e, NULL);
    return rc == SQLITE_OK ? 0 : engine_sqlite_error(e, rc, err);
}

/* ---- lazy tables: a SELECT of the prelude, run when the name is first used ---- */

struct lazy_table {
    struct engine *engine;
    char *name, *select;
    uint8_t *types; /* of the columns */
    uint32_t n_types;
};

static void lazy_free(void *p)
{
    struct lazy_table *lazy = p;
    if (!lazy)
        return;
    mem_free(lazy->name);
    mem_free(lazy->select);
    mem_free(lazy->types);
    mem_free(lazy);
}

static int materialise_lazy(const struct lazy_table *lazy, sqlite3_stmt *select, struct runtime_table **out,
                            struct error *err)
{
    const char **names = mem_zalloc((lazy->n_types + 1) * sizeof *names);
    if (!names)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    bool fits = (uint32_t)sqlite3_column_count(select) == lazy->n_types;
    for (uint32_t i = 0; fits && i < lazy->n_types; i++)
        names[i] = sqlite3_column_name(select, (int)i);
    struct runtime_schema schema = {lazy->n_types, names, lazy->types};
    int rc = engine_materialise(lazy->engine, select, fits ? &schema : NULL, out, err);
    mem_free(names);
    return rc;
}

static int connect_lazy(sqlite3 *db, void *client, int argc, const char *const *argv, sqlite3_vtab **out,
                        char **message)
{
    struct lazy_table *lazy = client;
    struct engine *e = lazy->engine;
    struct error err = {0};
    sqlite3_stmt *select = NULL;
    struct runtime_table *t = NULL;
    (void)argc;
    (void)argv;
    int rc = engine_prepare(e, slice_str(lazy->select), &select, NULL, &err);
    if (rc == 0)
        rc = materialise_lazy(lazy, select, &t, &err);
    sqlite3_finalize(select);
    if (rc < 0) {
        *message = sqlite3_mprintf("%s: %s", lazy->name, err.text);
        return SQLITE_ERROR;
    }
    struct vtab_source *src = source_new(e, &t->def);
    if (!src) {
        runtime_table_unref(t);
        return SQLITE_NOMEM;
    }
    src->runtime = t;
    src->table = &t->table;
    src->auto_id = true;
    rc = connect_source(db, src, lazy->name, out);
    source_unref(src);
    return rc;
}

static const sqlite3_module lazy_module = {.iVersion = 0, .xConnect = connect_lazy, GENERIC_METHODS};

int vtab_register_lazy(struct engine *e, const char *name, const char *select, const uint8_t *types, uint32_t n_types,
                       struct error *err)
{
    struct lazy_table *lazy = mem_zalloc(sizeof *lazy);
    if (!lazy)
        return error_set(err, -MRD_ENOMEM, "table %s: out of memory", name);
    *lazy = (struct lazy_table){e, mem_strdup(name), mem_strdup(select), mem_zalloc(n_types + 1), n_types};
    if (!lazy->name || !lazy->select || !lazy->types) {
        lazy_free(lazy);
        return error_set(err, -MRD_ENOMEM, "table %s: out of memory", name);
    }
    for (uint32_t i = 0; i < n_types; i++)
        lazy->types[i] = types[i];
    bool room = vec_reserve(&e->lazy, e->lazy.n + 1);
    int rc = sqlite3_create_module_v2(e->db, name, &lazy_module, lazy, lazy_free);
    if (rc != SQLITE_OK)
        return engine_sqlite_error(e, rc, err);
    if (room)
        (void)vec_push(&e->lazy, lazy->name);
    return 0;
}

bool vtab_is_lazy(const struct engine *e, const char *name)
{
    for (size_t i = 0; i < e->lazy.n; i++)
        if (sqlite3_stricmp(e->lazy.p[i], name) == 0)
            return true;
    return false;
}
