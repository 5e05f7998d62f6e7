/* CREATE PERFETTO TABLE, VIEW, MACRO. */
#include "sql/dialect/replace.h"
#include "sql/dialect/undo.h"
#include "sql/plan/plan.h"

#include <stdio.h>
#include <strings.h>

static char *name_of(const struct sql_token *t)
{
    return token_name(t->text, t->len);
}

int exec_check_columns(struct exec *x, sqlite3_stmt *stmt, const struct parsed_fields *columns, bool ordered,
                       const struct sql_token *at)
{
    struct sql_message absent = {0}, undeclared = {0};
    int n = sqlite3_column_count(stmt), rc = 0;
    for (size_t i = 0; i < columns->n; i++) {
        const struct sql_token *t = columns->p[i].name;
        char *name = name_of(t);
        int found = -1;
        for (int k = 0; name && k < n; k++)
            if (strcasecmp(sqlite3_column_name(stmt, k), name) == 0)
                found = k;
        if (name && found < 0)
            sql_message_add(&absent, "%s%s", absent.n ? ", " : "", name);
        mem_free(name);
    }
    for (int k = 0; k < n; k++) {
        bool found = false;
        for (size_t i = 0; i < columns->n && !found; i++) {
            char *name = name_of(columns->p[i].name);
            found = name && strcasecmp(sqlite3_column_name(stmt, k), name) == 0;
            if (found && ordered && (int)i != k)
                rc = -1;
            mem_free(name);
        }
        if (!found)
            sql_message_add(&undeclared, "%s%s", undeclared.n ? ", " : "", sqlite3_column_name(stmt, k));
    }
    if (absent.n && undeclared.n)
        rc = exec_fail(x, at,
                       "the following columns are declared in the schema, but do not exist: %s; and the following "
                       "columns exist, but are not declared: %s",
                       absent.p, undeclared.p);
    else if (absent.n)
        rc = exec_fail(x, at, "the following columns are declared in the schema, but do not exist: %s", absent.p);
    else if (undeclared.n)
        rc = exec_fail(x, at, "the following columns are missing from the schema: %s", undeclared.p);
    else if (rc || (ordered && (size_t)n != columns->n))
        rc = exec_fail(x, at, "the SELECT returns its columns in another order than they are declared in");
    vec_free(&absent);
    vec_free(&undeclared);
    return rc;
}

/* ---- tables ---- */

static int schema_type(struct exec *x, const struct parsed_field *f, uint8_t *type)
{
    static const uint8_t map[VALUE_TYPE_COUNT] = {
        [VALUE_BOOL] = RUNTIME_LONG,     [VALUE_LONG] = RUNTIME_LONG, [VALUE_DOUBLE] = RUNTIME_DOUBLE,
        [VALUE_STRING] = RUNTIME_STRING, [VALUE_BYTES] = RUNTIME_ANY, [VALUE_ANY] = RUNTIME_ANY};
    int t = value_type_find(f->type->text, f->type->len);
    if (t < 0)
        return exec_fail(x, f->type, "Unknown column type: %.*s", (int)f->type->len, f->type->text);
    if (t == VALUE_ANY)
        return exec_fail(x, f->type, "a column of a table cannot be of type ANY");
    *type = map[t];
    return 0;
}

/* The declared types in the order of the statement's columns. */
static int declared_types(struct exec *x, const struct parsed *p, sqlite3_stmt *stmt, uint8_t *types)
{
    int n = sqlite3_column_count(stmt);
    for (size_t i = 0; i < p->columns.n; i++) {
        uint8_t type = 0;
        int rc = schema_type(x, &p->columns.p[i], &type);
        if (rc)
            return rc;
        char *name = name_of(p->columns.p[i].name);
        for (int k = 0; name && k < n; k++)
            if (strcasecmp(sqlite3_column_name(stmt, k), name) == 0)
                types[k] = type;
        mem_free(name);
    }
    return 0;
}

int exec_table(struct exec *x, const struct parsed *p)
{
    sqlite3_stmt *stmt = NULL;
    struct runtime_table *t = NULL;
    uint8_t *types = NULL;
    const char **names = NULL;
    char *name = name_of(p->name);
    int rc = name ? exec_plan_table(x, p->body, p->n_body, &stmt) : -MRD_ENOMEM;
    int n = stmt ? sqlite3_column_count(stmt) : 0;
    if (rc == 0 && n == 0)
        rc = exec_fail(x, p->body, "CREATE PERFETTO TABLE needs a statement that returns columns; use SELECT");
    if (rc == 0 && p->has_columns) {
        rc = exec_check_columns(x, stmt, &p->columns, false, p->name);
        types = mem_zalloc((size_t)n);
        names = mem_zalloc((size_t)n * sizeof *names);
        if (rc == 0)
            rc = types && names ? declared_types(x, p, stmt, types) : -MRD_ENOMEM;
    }
    if (rc == 0 && !p->replace && object_kind(x, name))
        rc = exec_fail(x, p->name, "table %s already exists", name);
    if (rc == 0) {
        for (int i = 0; names && i < n; i++)
            names[i] = sqlite3_column_name(stmt, i);
        struct runtime_schema schema = {(uint32_t)n, names, types};
        const struct runtime_schema *declared = p->has_columns ? &schema : NULL;
        rc = plan_materialise(x->d->e, stmt, declared, &t, x->err);
        if (rc == 0)
            rc = engine_materialise(x->d->e, stmt, declared, &t, x->err);
        rc = rc > 0 ? 0 : rc;
        if (rc)
            rc = exec_fail_offset(x, x->p, x->n, -1);
    }
    sqlite3_finalize(stmt);
    struct replaced old = {0};
    if (rc == 0 && (rc = replaced_take(x, p, name, &old)) == 0) {
        rc = engine_add_table(x->d->e, name, t, x->err);
        t = NULL;
        if (rc)
            rc = exec_fail_offset(x, x->p, x->n, -1);
        if (rc == 0 && !old.sql)
            rc = undo_note(x, UNDO_TABLE, name, 0);
        rc = replaced_settle(x, &old, rc);
    }
    runtime_table_unref(t);
    mem_free(types);
    mem_free(names);
    mem_free(name);
    return rc;
}

/* ---- views ---- */

/* A view that is put in the place of what it reads would read itself: SQLite notices only when it is used. */
static int check_not_circular(struct exec *x, const char *name)
{
    sqlite3_stmt *stmt = NULL;
    char *sql = sqlite3_mprintf("SELECT * FROM \"%w\"", name);
    int rc = sql ? engine_compile(x->d->e, sql, -1, 0, &stmt, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    sqlite3_finalize(stmt);
    if (rc == 0)
        return 0;
    engine_sqlite_error(x->d->e, rc, x->err);
    return exec_fail_offset(x, x->p, x->n, -1);
}

static int make_view(struct exec *x, const struct sql_tokens *text, const char *name, bool replaces)
{
    sqlite3_stmt *stmt;
    int rc = exec_prepare(x, text->p, text->n, &stmt);
    if (rc)
        return rc;
    rc = engine_step(x->d->e, stmt, x->err);
    sqlite3_finalize(stmt);
    if (rc < 0)
        return exec_fail_offset(x, x->p, x->n, -1);
    if (!replaces)
        return undo_note(x, UNDO_VIEW, name, 0);
    if ((rc = check_not_circular(x, name)) != 0)
        undo_make(x->d, UNDO_VIEW, name, 0);
    return rc;
}

int exec_view(struct exec *x, const struct parsed *p)
{
    struct sql_tokens text = {0};
    sqlite3_stmt *stmt = NULL;
    char *name = name_of(p->name);
    struct sql_token made = *p->name;
    made.made = true;
    made.text = "CREATE VIEW ";
    made.len = (uint32_t)strlen(made.text);
    bool ok = name && sql_tokens_append(&text, &made, 1) && sql_tokens_append(&text, p->name, 1);
    made.text = " AS ";
    made.len = (uint32_t)strlen(made.text);
    ok = ok && sql_tokens_append(&text, &made, 1) && sql_tokens_append(&text, p->body, p->n_body);
    int rc = ok ? exec_prepare(x, p->body, p->n_body, &stmt) : -MRD_ENOMEM;
    for (size_t i = 0; rc == 0 && i < p->columns.n; i++)
        if (value_type_find(p->columns.p[i].type->text, p->columns.p[i].type->len) < 0)
            rc = exec_fail(x, p->columns.p[i].type, "Unknown column type: %.*s", (int)p->columns.p[i].type->len,
                           p->columns.p[i].type->text);
    if (rc == 0 && p->has_columns)
        rc = exec_check_columns(x, stmt, &p->columns, false, p->name);
    sqlite3_finalize(stmt);
    struct replaced old = {0};
    if (rc == 0 && (rc = replaced_take(x, p, name, &old)) == 0)
        rc = replaced_settle(x, &old, make_view(x, &text, name, old.sql != NULL));
    sql_tokens_free(&text);
    mem_free(name);
    return rc;
}

/* ---- macros ---- */

enum { MACRO_MAX_PARAMS = 2000 }; /* as many as a table has columns; each name is compared with those before */

int exec_macro(struct exec *x, const struct parsed *p)
{
    const struct sql_token *body = p->body;
    size_t n = p->n_body, len;
    char *name = name_of(p->name);
    struct slice *params = mem_zalloc((p->args.n + 1) * sizeof *params);
    if (!name || !params) {
        mem_free(name);
        mem_free(params);
        return error_set(x->err, -MRD_ENOMEM, "out of memory");
    }
    int rc = p->args.n > MACRO_MAX_PARAMS
                 ? exec_fail(x, p->name, "Macro \"%s\" has more than %d arguments", name, MACRO_MAX_PARAMS)
                 : 0;
    for (size_t i = 0; i < p->args.n && rc == 0; i++) {
        const struct sql_token *t = p->args.p[i].name;
        params[i] = slice_of(t->text, t->len);
        for (size_t k = 0; k < i && rc == 0; k++)
            if (params[k].len == t->len && strncasecmp((const char *)params[k].p, t->text, t->len) == 0)
                rc = exec_fail(x, t, "Macro \"%s\" has two arguments named %.*s", name, (int)t->len, t->text);
    }
    sql_tokens_trim(&body, &n);
    char *text = sql_tokens_join(&x->run->arena, body, n, &len);
    bool replaces = macro_find(&x->d->macros, name, strlen(name)) != NULL;
    if (rc == 0 && !p->replace && replaces)
        rc = exec_fail(x, p->name, "Macro \"%s\" already exists; CREATE OR REPLACE would replace it", name);
    if (rc == 0 && (!text || !macro_define(&x->d->macros, name, params, p->args.n, slice_of(text, len))))
        rc = error_set(x->err, -MRD_ENOMEM, "out of memory");
    if (rc == 0 && !replaces)
        rc = undo_note(x, UNDO_MACRO, name, 0);
    mem_free(name);
    mem_free(params);
    return rc;
}
