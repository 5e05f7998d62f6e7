/* Resolves names: looks into SQLite's schema, parses views, and keeps what it has learned. */
#include "sql/planner/schema.h"

#include "sql/vtab/vtab.h"

#include <strings.h>

enum { MAX_VIEWS_DEEP = 20 };

/* What a name is in SQLite's schemas. */
struct found {
    struct sql_name name;
    bool table, view;
    bool several;    /* of the temporary schema, and of something else: who is meant depends on where the name stands */
    const char *sql; /* of a view */
};

struct schema {
    struct arena arena;
    VEC(struct schema_table *) known;
    VEC(struct found) found;
    sqlite3_stmt *version[2]; /* of the main and of the temporary schema */
    sqlite3_stmt *find, *views;
    int64_t seen[2]; /* versions that `known` and `found` are true for */
};

static void forget(struct schema *s)
{
    s->known.n = s->found.n = 0;
    arena_free(&s->arena);
}

void schema_free(struct engine *e)
{
    if (!e->schema)
        return;
    forget(e->schema);
    vec_free(&e->schema->known);
    vec_free(&e->schema->found);
    for (int i = 0; i < 2; i++)
        sqlite3_finalize(e->schema->version[i]);
    sqlite3_finalize(e->schema->find);
    sqlite3_finalize(e->schema->views);
    mem_free(e->schema);
    e->schema = NULL;
}

static struct schema *schema_open(struct engine *e)
{
    static const char *const versions[] = {"PRAGMA main.schema_version", "PRAGMA temp.schema_version"};
    static const char find[] =
        "SELECT type, sql, 1 FROM temp.sqlite_master WHERE name = ?1 COLLATE NOCASE AND type IN ('table', 'view') "
        "UNION ALL "
        "SELECT type, sql, 0 FROM main.sqlite_master WHERE name = ?1 COLLATE NOCASE AND type IN ('table', 'view')";
    static const char views[] = "SELECT name, sql FROM temp.sqlite_master WHERE type = 'view' "
                                "UNION ALL SELECT name, sql FROM main.sqlite_master WHERE type = 'view'";
    struct schema *s = e->schema = mem_zalloc(sizeof *s);
    bool ok = s != NULL;
    for (int i = 0; ok && i < 2; i++)
        ok = sqlite3_prepare_v3(e->db, versions[i], -1, SQLITE_PREPARE_PERSISTENT, &s->version[i], NULL) == SQLITE_OK;
    ok = ok && sqlite3_prepare_v3(e->db, find, -1, SQLITE_PREPARE_PERSISTENT, &s->find, NULL) == SQLITE_OK;
    ok = ok && sqlite3_prepare_v3(e->db, views, -1, SQLITE_PREPARE_PERSISTENT, &s->views, NULL) == SQLITE_OK;
    if (!ok)
        schema_free(e);
    return e->schema;
}

bool schema_versions(struct engine *e, int64_t out[2])
{
    struct schema *s = e->schema ? e->schema : schema_open(e);
    bool ok = s != NULL;
    for (int i = 0; ok && i < 2; i++) {
        ok = sqlite3_step(s->version[i]) == SQLITE_ROW;
        out[i] = ok ? sqlite3_column_int64(s->version[i], 0) : 0;
        sqlite3_reset(s->version[i]);
    }
    return ok;
}

/* Forgets everything when the schema has changed. In a transaction nothing is kept: ROLLBACK takes versions back. */
static bool bring_up_to_date(struct engine *e)
{
    int64_t now[2];
    if (!schema_versions(e, now))
        return false;
    struct schema *s = e->schema;
    bool same = sqlite3_get_autocommit(e->db) && memcmp(now, s->seen, sizeof now) == 0;
    memcpy(s->seen, now, sizeof now);
    if (!same)
        forget(s);
    return true;
}

bool schema_stamp(struct engine *e, struct schema_stamp *out)
{
    if (!bring_up_to_date(e))
        return false;
    *out = (struct schema_stamp){{e->schema->seen[0], e->schema->seen[1]}, e->n_functions_made};
    return true;
}

bool schema_stamp_is_equal(const struct schema_stamp *a, const struct schema_stamp *b)
{
    return a->versions[0] == b->versions[0] && a->versions[1] == b->versions[1] && a->functions == b->functions;
}

/* ---- what a view gives ---- */

/* Functions of SQLite that look at their row only. */
static const char *const rowwise[] = {"abs",    "ceil",      "char",  "coalesce", "exp",     "floor", "format",
                                      "hex",    "ifnull",    "iif",   "instr",    "length",  "ln",    "log",
                                      "log10",  "log2",      "lower", "ltrim",    "nullif",  "pow",   "power",
                                      "printf", "quote",     "round", "replace",  "rtrim",   "sign",  "sqrt",
                                      "substr", "substring", "trim",  "typeof",   "unicode", "upper"};

bool schema_is_rowwise_call(struct engine *e, const struct sql_expr *f)
{
    char name[64];
    if (f->star || f->distinct || f->filter || f->over || f->name.len >= sizeof name)
        return false;
    for (size_t i = 0; i < sizeof rowwise / sizeof *rowwise; i++)
        if (sql_name_is(f->name, rowwise[i]))
            return true;
    memcpy(name, f->name.p, f->name.len);
    name[f->name.len] = 0;
    const struct engine_function *own = engine_find_function(e, name, -2);
    return own && own->scalar && !own->step;
}

bool schema_is_rowwise(struct engine *e, const struct sql_expr *expr)
{
    if (expr->query || expr->in_table || (expr->kind == EXPR_FUNCTION && !schema_is_rowwise_call(e, expr)))
        return false;
    for (const struct sql_expr *a = expr->args; a; a = a->next)
        if (!schema_is_rowwise(e, a))
            return false;
    return true;
}

/* The one core of a view that hands rows of one table on as they are; NULL when it is another. */
static const struct sql_select *plain_core(const struct sql_query *q)
{
    const struct sql_select *s = q->selects;
    if (q->ctes || q->order || q->limit || s->next || s->rows || s->distinct || s->where || s->group || s->having ||
        s->windows || !s->from)
        return NULL;
    const struct sql_from *from = s->from;
    return from->next || from->form != SOURCE_TABLE || from->schema.len || from->indexed ? NULL : s;
}

static const struct schema_table *find_deep(struct engine *e, struct sql_name name, int depth);

static bool is_of(const struct sql_from *from, struct sql_name table)
{
    return !table.len || sql_name_equal(table, from->alias.len ? from->alias : from->name);
}

struct columns {
    struct schema_column *p;
    uint32_t n, cap;
};

static bool add_column(struct schema *s, struct columns *out, const char *name, const struct schema_column *from)
{
    if (out->n == out->cap) {
        uint32_t cap = out->cap ? out->cap * 2 : 32;
        struct schema_column *p = arena_alloc(&s->arena, cap * sizeof *p);
        if (!p)
            return false;
        if (out->n)
            memcpy(p, out->p, out->n * sizeof *p);
        out->p = p;
        out->cap = cap;
    }
    for (uint32_t i = 0; i < out->n; i++)
        if (*name && strcasecmp(out->p[i].name, name) == 0)
            return false; /* SQLite gives the second one another name */
    out->p[out->n] = from ? *from : (struct schema_column){.at = SCHEMA_COMPUTED};
    out->p[out->n].name = name;
    out->p[out->n++].hidden = false;
    return true;
}

static bool add_item(struct engine *e, struct columns *out, const struct sql_item *item, const struct sql_from *from,
                     const struct schema_table *below)
{
    struct schema *s = e->schema;
    if (item->star) {
        bool ok = is_of(from, item->table);
        for (uint32_t i = 0; ok && i < below->n_columns; i++)
            if (!below->columns[i].hidden)
                ok = add_column(s, out, below->columns[i].name, &below->columns[i]);
        return ok;
    }
    const struct sql_expr *x = item->expr;
    const struct schema_column *column = NULL;
    const char *name = "";
    if (x->kind == EXPR_COLUMN && !x->schema.len && is_of(from, x->table))
        column = schema_column(below, x->name);
    if (!column && !schema_is_rowwise(e, x))
        return false;
    if (item->alias.len)
        name = arena_strndup(&s->arena, item->alias.p, item->alias.len);
    else if (column)
        name = column->name;
    return name && add_column(s, out, name, column);
}

/* Behind CREATE VIEW: [IF NOT EXISTS] [schema.]name [(columns)] AS; where the SELECT begins, or 0. */
size_t schema_view_body(const struct sql_tokens *t)
{
    int depth = 0;
    for (size_t i = 0; i < t->n; i++) {
        depth += t->p[i].kind == TOKEN_LP ? 1 : t->p[i].kind == TOKEN_RP ? -1 : 0;
        if (depth == 0 && t->p[i].kind == TOKEN_WORD && token_is(t->p[i].text, t->p[i].len, "as"))
            return i + 1;
        if (depth) /* (columns): such views are left to SQLite */
            return 0;
    }
    return 0;
}

static void read_view(struct engine *e, struct schema_table *out, const char *sql, int depth)
{
    struct sql_tokens tokens = {0};
    struct sql_tree tree;
    struct columns columns = {0};
    size_t body;
    if (sql_tokens_scan_text(&tokens, sql, strlen(sql)) && (body = schema_view_body(&tokens)) != 0 &&
        sql_tree_parse(&tree, &e->schema->arena, tokens.p + body, tokens.n - body)) {
        const struct sql_select *core = plain_core(tree.query);
        const struct schema_table *below = core ? find_deep(e, core->from->name, depth + 1) : NULL;
        bool ok = below != NULL;
        for (const struct sql_item *item = core ? core->items : NULL; ok && item; item = item->next)
            ok = add_item(e, &columns, item, core->from, below);
        if (ok) {
            out->table = below->table;
            out->columns = columns.p;
            out->n_columns = columns.n;
        }
    }
    sql_tokens_free(&tokens);
}

/* ---- looking up ---- */

static void read_table(struct engine *e, struct schema_table *out, bool in_schema)
{
    const struct engine_known_table *known = engine_find_known(e, out->name);
    if (!known || in_schema != vtab_is_runtime(e, out->name))
        return;
    const struct vtab *v = known->vtab;
    struct schema_column *columns = arena_alloc(&e->schema->arena, (v->columns.n + 1) * sizeof *columns);
    if (!columns)
        return;
    for (uint32_t i = 0; i < v->columns.n; i++) {
        bool hidden;
        const char *name = arena_printf(&e->schema->arena, "%s", vtab_column_name(v, i, &hidden));
        if (!name)
            return;
        int16_t at = v->columns.at[i];
        uint8_t type = at >= 0 ? v->source->def->columns[at].type : COL_U32;
        columns[i] = (struct schema_column){name, at >= VTAB_ROW ? at : (int16_t)SCHEMA_COMPUTED, type, hidden};
    }
    out->columns = columns;
    out->n_columns = v->columns.n;
    out->table = out->name;
}

/* SQLite goes through its whole schema for a name. False: it did not answer, or memory is short. */
static bool ask(struct engine *e, const char *name, struct found *out)
{
    sqlite3_stmt *find = e->schema->find;
    int rc, n = 0;
    sqlite3_bind_text(find, 1, name, -1, SQLITE_STATIC);
    while ((rc = sqlite3_step(find)) == SQLITE_ROW) {
        const char *type = (const char *)sqlite3_column_text(find, 0);
        const char *sql = (const char *)sqlite3_column_text(find, 1);
        out->several |= n > 0 || (sqlite3_column_int(find, 2) && engine_makes_table(e, name));
        if (n++)
            continue;
        out->view = type && *type == 'v';
        out->table = !out->view;
        out->sql = out->view && sql ? arena_strndup(&e->schema->arena, sql, strlen(sql)) : NULL;
    }
    sqlite3_reset(find); /* before others run, and change the schema perhaps */
    return rc == SQLITE_DONE && (!out->view || out->sql);
}

/* Each name is asked for once. */
static const struct found *find(struct engine *e, struct sql_name name)
{
    struct schema *s = e->schema;
    for (size_t i = 0; i < s->found.n; i++)
        if (sql_name_equal(s->found.p[i].name, name))
            return &s->found.p[i];
    struct found f = {.name = name};
    f.name.p = arena_strndup(&s->arena, name.p, name.len);
    bool ok = f.name.p && strlen(f.name.p) == name.len && ask(e, f.name.p, &f);
    return ok && vec_push(&s->found, f) ? vec_last(&s->found) : NULL;
}

static void read_schema(struct engine *e, struct schema_table *out, int depth)
{
    const struct found *f = find(e, (struct sql_name){.p = out->name, .len = (uint32_t)strlen(out->name)});
    if (!f)
        e->schema->seen[0] = -1; /* interrupted, or out of memory: ask again next time */
    else if (f->view && !f->several)
        read_view(e, out, f->sql, depth);
    else if (!f->several)
        read_table(e, out, f->table);
}

static const struct schema_table *find_deep(struct engine *e, struct sql_name name, int depth)
{
    struct schema *s = e->schema;
    for (size_t i = 0; i < s->known.n; i++)
        if (sql_name_is(name, s->known.p[i]->name))
            return s->known.p[i]->table ? s->known.p[i] : NULL;
    struct schema_table *t = depth < MAX_VIEWS_DEEP ? arena_zalloc(&s->arena, sizeof *t) : NULL;
    if (!t || !(t->name = arena_strndup(&s->arena, name.p, name.len)) || strlen(t->name) != name.len)
        return NULL;
    read_schema(e, t, depth);
    if (s->arena.failed || !vec_push(&s->known, t))
        return NULL;
    return t->table ? t : NULL;
}

const struct schema_table *schema_find(struct engine *e, struct sql_name name)
{
    if (!bring_up_to_date(e))
        return NULL;
    const struct schema_table *t = find_deep(e, name, 0);
    if (e->schema->arena.failed) { /* half of it may be missing */
        forget(e->schema);
        e->schema->seen[0] = -1;
        return NULL;
    }
    return t;
}

const struct schema_column *schema_column(const struct schema_table *t, struct sql_name name)
{
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (sql_name_is(name, t->columns[i].name))
            return t->columns[i].at == SCHEMA_COMPUTED ? NULL : &t->columns[i];
    return NULL;
}

bool schema_view(struct engine *e, struct arena *arena, struct sql_name name, const char **sql)
{
    const struct found *f = bring_up_to_date(e) ? find(e, name) : NULL;
    *sql = f && f->view ? arena_strndup(arena, f->sql, strlen(f->sql)) : NULL;
    return f && !f->several && (!f->view || *sql);
}

bool schema_has_none(struct engine *e, struct sql_name name)
{
    const struct found *f = bring_up_to_date(e) ? find(e, name) : NULL;
    return f && !f->table && !f->view && !f->several;
}

bool schema_each_view(struct engine *e, bool (*take)(void *ctx, const char *name, const char *sql), void *ctx)
{
    struct schema *s = e->schema ? e->schema : schema_open(e);
    int rc = SQLITE_NOMEM;
    while (s && (rc = sqlite3_step(s->views)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s->views, 0);
        const char *sql = (const char *)sqlite3_column_text(s->views, 1);
        if (!name || !sql || !take(ctx, name, sql))
            break;
    }
    if (s)
        sqlite3_reset(s->views);
    return rc == SQLITE_DONE;
}
