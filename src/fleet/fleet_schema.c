/* The tables of a fleet: their columns and the statements that make them. */
#include "fleet/fleet_schema.h"

#include "api/export_source.h"
#include "base/fnv.h"
#include "export/native.h"
#include "fleet/views.h"

#include <stdio.h>

static const struct export_column own_columns[FLEET_OWN_COLUMNS] = {
    [FLEET_LOAD] = {"load", EXPORT_INT64, false, false},
    [FLEET_MONTH] = {"month", EXPORT_INT64, false, false},
    [FLEET_MACHINE] = {"machine", EXPORT_TEXT, false, false},
    [FLEET_TRACE] = {"trace", EXPORT_TEXT, false, false},
};

static const struct {
    const char *name;
    made_rows_fn make;
    const struct table_def *columns;
} made_tables[] = {
#define FLEET_MADE(name, make, columns) {#name, make, &columns},
#define FLEET_ROWS(table, make)
#define FLEET_LOCAL(name, columns, engine)
#include "fleet/tables.def"
#undef FLEET_MADE
#undef FLEET_ROWS
#undef FLEET_LOCAL
};
enum { N_MADE_TABLES = sizeof made_tables / sizeof *made_tables };

static const struct {
    const char *name, *columns, *engine;
} local_tables[] = {
#define FLEET_MADE(name, make, columns)
#define FLEET_ROWS(table, make)
#define FLEET_LOCAL(name, columns, engine) {#name, columns, engine},
#include "fleet/tables.def"
#undef FLEET_MADE
#undef FLEET_ROWS
#undef FLEET_LOCAL
};
enum { N_LOCAL_TABLES = sizeof local_tables / sizeof *local_tables };

static const struct {
    const char *table;
    made_rows_fn make;
} chosen_rows[] = {
#define FLEET_MADE(name, make, columns)
#define FLEET_ROWS(table, make) {#table, make},
#define FLEET_LOCAL(name, columns, engine)
#include "fleet/tables.def"
#undef FLEET_MADE
#undef FLEET_ROWS
#undef FLEET_LOCAL
};

/* What makes the rows of a table that are worth keeping, or NULL: all are. */
static made_rows_fn find_rows(const char *table)
{
    for (size_t i = 0; i < sizeof chosen_rows / sizeof *chosen_rows; i++)
        if (strcmp(chosen_rows[i].table, table) == 0)
            return chosen_rows[i].make;
    return NULL;
}

static int no_memory(struct error *err)
{
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

/* ---- columns ---- */

static bool has_column(const struct fleet_table *t, const char *name)
{
    for (size_t i = 0; i < t->columns.n; i++)
        if (strcmp(t->columns.p[i].name, name) == 0)
            return true;
    return false;
}

static bool add_column(struct fleet_table *t, const struct export_column *c)
{
    struct export_column copy = *c;
    if (has_column(t, c->name))
        return true;
    copy.name = mem_strdup(c->name);
    /* Any text may be NULL, whatever its table declares: of a row there may be nothing to say. */
    copy.nullable =
        (c->nullable || c->kind == EXPORT_TEXT) && t->columns.n >= FLEET_OWN_COLUMNS && strcmp(c->name, "id") != 0;
    if (copy.name && vec_push(&t->columns, copy))
        return true;
    mem_free((char *)copy.name);
    return false;
}

static bool add_columns(struct fleet_table *t, const struct export_column *c, size_t n)
{
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++)
        ok = add_column(t, &c[i]);
    for (size_t i = 0; i < n && ok; i++)
        t->by_time |= strcmp(c[i].name, "ts") == 0 && !c[i].nullable;
    return ok;
}

static struct fleet_table *add_table(struct fleet_schema *s, const char *name, made_rows_fn make)
{
    struct fleet_table *t = vec_add(&s->tables);
    if (t)
        *t = (struct fleet_table){.name = mem_strdup(name), .make = make};
    return t && t->name && add_columns(t, own_columns, FLEET_OWN_COLUMNS) ? t : NULL;
}

/* The columns that export gives the table of an empty trace: those of every trace but the nullability. */
static int add_exported(struct fleet_schema *s, struct tp *tp, const char *name, struct error *err)
{
    struct export_source *source;
    int rc = tp_export_table(tp, name, "", &source);
    if (rc < 0)
        return error_set(err, -MRD_EIO, "%s: %s", name, tp_error(tp));
    const struct export_schema *columns = export_source_schema(source);
    struct fleet_table *t = add_table(s, name, find_rows(name));
    bool ok = t && add_columns(t, columns->columns, columns->count);
    export_source_close(source);
    return ok ? 0 : no_memory(err);
}

static bool add_made(struct fleet_schema *s, size_t i)
{
    struct fleet_table *t = add_table(s, made_tables[i].name, made_tables[i].make);
    bool ok = t != NULL;
    for (uint32_t k = 0; ok && k < made_tables[i].columns->n_columns; k++) {
        const struct column_def *c = &made_tables[i].columns->columns[k];
        const struct export_column column = {c->name, c->type == COL_STR ? EXPORT_TEXT : EXPORT_INT64, true, false};
        ok = add_columns(t, &column, 1);
    }
    return ok;
}

static uint64_t hash_schema(const struct fleet_schema *s)
{
    uint64_t h = FNV1A_BASIS;
    for (size_t i = 0; i < s->tables.n; i++) {
        const struct fleet_table *t = &s->tables.p[i];
        h = fnv1a(h, t->name, strlen(t->name) + 1);
        for (size_t k = 0; k < t->columns.n; k++) {
            const char *type = native_type(&t->columns.p[k], false);
            h = fnv1a(h, t->columns.p[k].name, strlen(t->columns.p[k].name) + 1);
            h = fnv1a(h, type, strlen(type) + 1);
        }
    }
    return h;
}

int fleet_schema_open(struct fleet_schema *s, struct error *err)
{
    struct tp *tp = NULL;
    *s = (struct fleet_schema){0};
    int rc = tp_open(&tp, NULL);
    if (rc == 0)
        rc = tp_finish(tp);
    if (rc < 0)
        rc = error_set(err, -MRD_EIO, "%s", tp ? tp_error(tp) : "out of memory");
    for (size_t i = 0; rc == 0 && export_table_name(i); i++)
        rc = add_exported(s, tp, export_table_name(i), err);
    tp_close(tp);
    for (size_t i = 0; rc == 0 && i < N_MADE_TABLES; i++)
        rc = add_made(s, i) ? 0 : no_memory(err);
    s->hash = hash_schema(s);
    return rc;
}

void fleet_schema_close(struct fleet_schema *s)
{
    for (size_t i = 0; i < s->tables.n; i++) {
        struct fleet_table *t = &s->tables.p[i];
        for (size_t k = 0; k < t->columns.n; k++)
            mem_free((char *)t->columns.p[k].name);
        vec_free(&t->columns);
        mem_free(t->name);
    }
    vec_free(&s->tables);
}

int fleet_schema_find(const struct fleet_schema *s, const char *name, const char *ending)
{
    for (size_t i = 0; i < s->tables.n; i++) {
        const size_t n = strlen(s->tables.p[i].name);
        if (strncmp(s->tables.p[i].name, name, n) == 0 && strcmp(name + n, ending) == 0)
            return (int)i;
    }
    return -1;
}

int fleet_table_source(const struct fleet_table *t, size_t at, struct storage *st, const char *trace,
                       struct made_rows *made, struct export_source **out, struct error *err)
{
    struct export_rows rows = {.name = t->name, .table = t->make ? &made->table : export_table(st, at)};
    *out = NULL;
    if (t->make && t->make(made, st) < 0)
        return no_memory(err);
    rows.numbered = t->make ? made->ids.n > 0 : export_is_numbered(rows.table);
    rows.ids = made->ids.p;
    return rows.table->n_rows ? export_open_rows(out, st, &rows, trace, err) : 0;
}

/* ---- statements ---- */

struct maker {
    const char *database, *cluster;
    int (*run)(void *ctx, const char *sql, struct error *err);
    void *ctx;
};

static int run_text(const struct maker *m, struct click_text *t, struct error *err)
{
    int rc = t->bad ? no_memory(err) : m->run(m->ctx, click_string(t), err);
    click_text_free(t);
    return rc;
}

static void put_columns(struct click_text *t, const struct fleet_table *table, size_t from)
{
    for (size_t i = from; i < table->columns.n; i++)
        click_putf(t, "%s`%s`", i > from ? ", " : "", table->columns.p[i].name);
}

static void put_types(struct click_text *t, const struct fleet_table *table, bool low_cardinality)
{
    for (size_t i = 0; i < table->columns.n; i++)
        click_putf(t, "%s`%s` %s", i ? ", " : "", table->columns.p[i].name,
                   native_type(&table->columns.p[i], low_cardinality));
}

/* Texts as they lie in the table, of texts as they are sent. */
static void put_casts(struct click_text *t, const struct fleet_table *table)
{
    for (size_t i = 0; i < table->columns.n; i++) {
        const struct export_column *c = &table->columns.p[i];
        const char *sent = native_type(c, true), *kept = native_type(c, false);
        if (strcmp(sent, kept) == 0)
            click_putf(t, "%s`%s`", i ? ", " : "", c->name);
        else
            click_putf(t, "%sCAST(`%s` AS %s) AS `%s`", i ? ", " : "", c->name, kept, c->name);
    }
}

/* The table over all shards, of what each shows. */
static int make_whole(const struct maker *m, const char *name, struct error *err)
{
    struct click_text t = {0};
    click_putf(&t, "CREATE TABLE IF NOT EXISTS %s.`%s` AS %s_local.`%s` ENGINE = Distributed(%s, %s_local, `%s`)",
               m->database, name, m->database, name, m->cluster, m->database, name);
    return run_text(m, &t, err);
}

/* What a server shows, as a view: below NAME when it is alone, else below NAME_local with a table over all. */
static int make_view(const struct maker *m, const char *name, const char *select, struct error *err)
{
    struct click_text t = {0};
    click_putf(&t, "CREATE VIEW IF NOT EXISTS %s%s.`%s` AS %s", m->database, m->cluster ? "_local" : "", name, select);
    int rc = run_text(m, &t, err);
    return rc < 0 || !m->cluster ? rc : make_whole(m, name, err);
}

/* Where rows are sent to (fleet_schema.h). */
static int make_inlet(const struct maker *m, const struct fleet_table *table, struct error *err)
{
    struct click_text t = {0};
    click_putf(&t, "CREATE TABLE IF NOT EXISTS %s_local.`%s_in` (", m->database, table->name);
    put_types(&t, table, true);
    click_put(&t, ") ENGINE = Null");
    int rc = run_text(m, &t, err);
    if (rc < 0)
        return rc;
    click_putf(&t, "CREATE MATERIALIZED VIEW IF NOT EXISTS %s_local.`%s_pass` TO %s_local.`%s_rows` AS SELECT ",
               m->database, table->name, m->database, table->name);
    put_casts(&t, table);
    click_putf(&t, " FROM %s_local.`%s_in`", m->database, table->name);
    return run_text(m, &t, err);
}

static int make_table(const struct maker *m, const struct fleet_table *table, struct error *err)
{
    struct click_text t = {0};
    click_putf(&t, "CREATE TABLE IF NOT EXISTS %s_local.`%s_rows` (", m->database, table->name);
    put_types(&t, table, false);
    click_putf(&t, ") ENGINE = MergeTree PARTITION BY month ORDER BY (machine, trace%s)",
               table->by_time            ? ", ts"
               : has_column(table, "id") ? ", id"
                                         : "");
    int rc = run_text(m, &t, err);
    if (rc == 0)
        rc = make_inlet(m, table, err);
    if (rc < 0)
        return rc;
    click_put(&t, "SELECT ");
    put_columns(&t, table, FLEET_MACHINE);
    click_putf(&t, " FROM %s_local.`%s_rows` WHERE load IN (SELECT load FROM %s_local.loads)", m->database, table->name,
               m->database);
    rc = t.bad ? no_memory(err) : make_view(m, table->name, click_string(&t), err);
    click_text_free(&t);
    return rc;
}

static int make_local_tables(const struct maker *m, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < N_LOCAL_TABLES; i++) {
        struct click_text t = {0};
        click_putf(&t, "CREATE TABLE IF NOT EXISTS %s_local.%s (%s) ENGINE = %s", m->database, local_tables[i].name,
                   local_tables[i].columns, local_tables[i].engine);
        rc = run_text(m, &t, err);
    }
    struct click_text t = {0};
    click_putf(&t,
               "CREATE VIEW IF NOT EXISTS %s_local.loads AS SELECT first AS load FROM (SELECT min(load) AS first FROM "
               "%s_local.commits WHERE load NOT IN (SELECT load FROM %s_local.drops) GROUP BY trace)",
               m->database, m->database, m->database);
    return rc < 0 ? click_text_free(&t), rc : run_text(m, &t, err);
}

/* fleet_traces and fleet_errors. A commit that was sent twice because the first answer was lost counts once; an error
 * counts while the trace has not come in later. */
static int make_bookkeeping_views(const struct maker *m, struct error *err)
{
    struct click_text t = {0};
    click_putf(
        &t,
        "SELECT trace, uuid, added, recorded, day, host, path, size, build, label_names, label_values, machines, "
        "start_ts, end_ts, lost, errors, import_ms, tables, rows, bytes FROM %s_local.commits WHERE load IN (SELECT "
        "load FROM %s_local.loads) LIMIT 1 BY load",
        m->database, m->database);
    int rc = t.bad ? no_memory(err) : make_view(m, "fleet_traces", click_string(&t), err);
    click_text_free(&t);
    if (rc < 0)
        return rc;
    t = (struct click_text){0};
    click_putf(
        &t,
        "SELECT trace, at, host, path, size, error FROM (SELECT * FROM %s_local.errors ORDER BY at DESC LIMIT 1 BY "
        "trace, path) WHERE trace NOT IN (SELECT trace FROM %s_local.commits WHERE load IN (SELECT load FROM "
        "%s_local.loads))",
        m->database, m->database, m->database);
    rc = t.bad ? no_memory(err) : make_view(m, "fleet_errors", click_string(&t), err);
    click_text_free(&t);
    return rc;
}

/* What an earlier version has made of it. */
static int drop_ready_view(const struct maker *m, const char *name, struct error *err)
{
    static const char *const endings[] = {"", "_local"};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < 2; i++) {
        struct click_text t = {0};
        click_putf(&t, "DROP TABLE IF EXISTS %s%s.`%s`", m->database, endings[i], name);
        rc = run_text(m, &t, err);
    }
    return rc;
}

/* A view of views.def. */
static int make_ready_view(const struct maker *m, const struct fleet_view *v, struct error *err)
{
    struct click_text sql = {0}, t = {0};
    for (const char *p = v->sql; *p; p++) {
        if (*p == '$' || *p == '@')
            click_putf(&sql, "%s%s", m->database, *p == '@' && m->cluster ? "_local" : "");
        else
            click_putf(&sql, "%c", *p);
    }
    if (sql.bad)
        return no_memory(err);
    int rc = drop_ready_view(m, v->name, err);
    if (rc < 0) {
        click_text_free(&sql);
        return rc;
    }
    if (v->part) {
        rc = make_view(m, v->name, click_string(&sql), err);
    } else {
        click_putf(&t, "CREATE VIEW IF NOT EXISTS %s.`%s` AS %s", m->database, v->name, click_string(&sql));
        rc = run_text(m, &t, err);
    }
    click_text_free(&sql);
    return rc;
}

static int make_databases(const struct maker *m, struct error *err)
{
    static const char *const endings[] = {"", "_local"};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < 2; i++) {
        struct click_text t = {0};
        click_putf(&t, "CREATE DATABASE IF NOT EXISTS %s%s", m->database, endings[i]);
        rc = run_text(m, &t, err);
    }
    return rc;
}

int fleet_schema_make(const struct fleet_schema *s, const char *database, const char *cluster,
                      int (*run)(void *ctx, const char *sql, struct error *err), void *ctx, struct error *err)
{
    const struct maker m = {database, cluster, run, ctx};
    int rc = make_databases(&m, err);
    if (rc == 0)
        rc = make_local_tables(&m, err);
    if (rc == 0)
        rc = make_bookkeeping_views(&m, err);
    for (size_t i = 0; rc == 0 && i < s->tables.n; i++)
        rc = make_table(&m, &s->tables.p[i], err);
    for (size_t i = 0; rc == 0 && i < n_fleet_views; i++)
        rc = make_ready_view(&m, &fleet_views[i], err);
    return rc;
}
