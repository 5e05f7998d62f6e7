/* CREATE PERFETTO FUNCTION … RETURNS TABLE(…): a virtual table whose rows are those of a SELECT with its arguments
 * bound.
 *
 * The table of f(a, b) returning (x, y) is: x, y, in_a HIDDEN, in_b HIDDEN, _primary_key HIDDEN. SQLite turns the
 * arguments of FROM f(1, 2) into equality constraints on the hidden columns. idxStr has a letter for each value that
 * xFilter gets: 'a' + number of the argument. */
#include "sql/dialect/exec.h"
#include "sql/dialect/pointer.h"
#include "sql/dialect/replace.h"
#include "sql/dialect/undo.h"

#include <stdio.h>
#include <strings.h>

enum { MAX_PARAMS = 100 }; /* plan letters stay within a byte */

static struct sql_function *find_table(struct dialect *d, const char *name)
{
    for (size_t i = 0; i < d->tables.n; i++)
        if (strcasecmp(d->tables.p[i]->name, name) == 0)
            return d->tables.p[i];
    return NULL;
}

struct function_table {
    sqlite3_vtab base;
    struct sql_function *f;
};

struct function_cursor {
    sqlite3_vtab_cursor base;
    sqlite3_stmt *stmt;
    uint64_t generation;
    int64_t row;
    bool eof;
};

static char *table_schema(const struct sql_function *f)
{
    sqlite3_str *s = sqlite3_str_new(NULL);
    static const char *const types[VALUE_TYPE_COUNT] = {"INTEGER", "INTEGER", "DOUBLE", "TEXT", "BLOB", ""};
    sqlite3_str_appendall(s, "CREATE TABLE x(");
    for (size_t i = 0; i < f->columns.n; i++)
        sqlite3_str_appendf(s, "\"%w\" %s, ", f->columns.p[i].name, types[f->columns.p[i].type]);
    for (size_t i = 0; i < f->params.n; i++)
        sqlite3_str_appendf(s, "\"in_%w\" %s HIDDEN, ", f->params.p[i].name, types[f->params.p[i].type]);
    sqlite3_str_appendall(s, "_primary_key INTEGER HIDDEN)");
    return sqlite3_str_finish(s);
}

static int table_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out, char **err)
{
    struct dialect *d = engine_dialect_ctx(aux);
    struct sql_function *f = argc >= 3 ? find_table(d, argv[2]) : NULL;
    if (!f) {
        *err = sqlite3_mprintf("runtime_table_function: use CREATE PERFETTO FUNCTION ... RETURNS TABLE instead");
        return SQLITE_ERROR;
    }
    char *schema = table_schema(f);
    int rc = schema ? engine_declare_vtab(db, schema) : SQLITE_NOMEM;
    sqlite3_free(schema);
    if (rc)
        return rc;
    struct function_table *t = sqlite3_malloc(sizeof *t);
    if (!t)
        return SQLITE_NOMEM;
    *t = (struct function_table){.f = f};
    f->refs++;
    *out = &t->base;
    return SQLITE_OK;
}

static int table_disconnect(sqlite3_vtab *base)
{
    sql_function_unref(((struct function_table *)base)->f);
    sqlite3_free(base);
    return SQLITE_OK;
}

static int table_destroy(sqlite3_vtab *base)
{
    struct sql_function *f = ((struct function_table *)base)->f;
    struct dialect *d = f->d;
    for (size_t i = 0; i < d->tables.n; i++)
        if (d->tables.p[i] == f) {
            d->tables.p[i] = *vec_last(&d->tables);
            d->tables.n--;
            sql_function_unref(f);
            break;
        }
    return table_disconnect(base);
}

static int table_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    const struct sql_function *f = ((struct function_table *)base)->f;
    int first = (int)f->columns.n, n = (int)f->params.n, used = 0;
    char *plan = sqlite3_malloc(n + 1);
    bool present[MAX_PARAMS] = {0};
    if (!plan)
        return SQLITE_NOMEM;
    memset(plan, 0, (size_t)n + 1);
    int missing = n, unusable = 0;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        int a = c->iColumn - first;
        if (a < 0 || a >= n || c->op != SQLITE_INDEX_CONSTRAINT_EQ || present[a])
            continue;
        if (!c->usable) {
            unusable++;
            continue;
        }
        present[a] = true;
        missing--;
        info->aConstraintUsage[i].argvIndex = used + 1;
        info->aConstraintUsage[i].omit = 1;
        plan[used++] = (char)('a' + a);
    }
    info->idxStr = plan;
    info->needToFreeIdxStr = 1;
    if (missing && unusable)
        return SQLITE_CONSTRAINT;
    /* for a part of an OR SQLite asks without the arguments: a plan that is never the best, and fails when it is run */
    info->idxNum = missing > 0;
    info->estimatedCost = missing ? 1e99 : 1000;
    info->estimatedRows = 100;
    return SQLITE_OK;
}

static int cursor_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    struct function_cursor *c = sqlite3_malloc(sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    *c = (struct function_cursor){0};
    *out = &c->base;
    return SQLITE_OK;
}

static int cursor_close(sqlite3_vtab_cursor *base)
{
    struct function_cursor *c = (struct function_cursor *)base;
    struct sql_function *f = ((struct function_table *)base->pVtab)->f;
    if (c->stmt)
        sql_function_give(f, c->stmt, c->generation);
    sqlite3_free(c);
    return SQLITE_OK;
}

/* A function that calls itself names itself once. */
static int fail(sqlite3_vtab_cursor *base, const char *name, const char *text)
{
    size_t len = strlen(name);
    bool named = strncmp(text, name, len) == 0 && strncmp(text + len, ": ", 2) == 0;
    char *message = named ? sqlite3_mprintf("%s", text) : sqlite3_mprintf("%s: %s", name, text);
    sqlite3_free(base->pVtab->zErrMsg);
    base->pVtab->zErrMsg = message;
    return SQLITE_ERROR;
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
    struct function_cursor *c = (struct function_cursor *)base;
    struct sql_function *f = ((struct function_table *)base->pVtab)->f;
    if (f->d->function_depth >= DIALECT_MAX_FUNCTION_DEPTH)
        return fail(base, f->name, "function calls are nested too deeply; check for endless recursion");
    f->d->function_depth++;
    int rc = sqlite3_step(c->stmt);
    f->d->function_depth--;
    c->row++;
    c->eof = rc != SQLITE_ROW;
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        return SQLITE_OK;
    return fail(base, f->name, sqlite3_errmsg(engine_db(f->d->e)));
}

static int cursor_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc, sqlite3_value **argv)
{
    struct function_cursor *c = (struct function_cursor *)base;
    struct sql_function *f = ((struct function_table *)base->pVtab)->f;
    struct error err = {0};
    c->eof = true;
    c->row = -1;
    if (number)
        return fail(base, f->name, "an argument is missing");
    if (c->stmt) {
        sqlite3_reset(c->stmt);
    } else {
        if (sql_function_take(f, &c->stmt, &err))
            return fail(base, f->name, err.text);
        c->generation = f->generation;
    }
    for (int i = 0; i < argc; i++) {
        const struct param *p = &f->params.p[plan[i] - 'a'];
        if (!value_fits(argv[i], (enum value_type)p->type)) {
            char text[160];
            snprintf(text, sizeof text, "argument %d (%s) has the wrong type, %s is expected", plan[i] - 'a' + 1,
                     p->name, value_type_name((enum value_type)p->type));
            return fail(base, f->name, text);
        }
        for (int k = sqlite3_bind_parameter_count(c->stmt); k > 0; k--)
            if (sql_function_param(f, sqlite3_bind_parameter_name(c->stmt, k)) == plan[i] - 'a')
                sqlite3_bind_value(c->stmt, k, argv[i]);
    }
    return cursor_next(base);
}

static int cursor_eof(sqlite3_vtab_cursor *base)
{
    return ((struct function_cursor *)base)->eof;
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
    struct function_cursor *c = (struct function_cursor *)base;
    const struct sql_function *f = ((struct function_table *)base->pVtab)->f;
    int n = (int)f->columns.n, a = column - n;
    if (column < n && column < sqlite3_column_count(c->stmt)) /* a body SELECT * may have lost columns since */
        result_of_statement(ctx, sqlite3_column_value(c->stmt, column));
    else if (a == (int)f->params.n)
        sqlite3_result_int64(ctx, c->row);
    return SQLITE_OK; /* in_x: equality was taken by xFilter; its value is not asked for again */
}

static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *row)
{
    *row = ((struct function_cursor *)base)->row;
    return SQLITE_OK;
}

const sqlite3_module table_function_module = {
    .iVersion = 1,
    .xCreate = table_connect,
    .xConnect = table_connect,
    .xBestIndex = table_best_index,
    .xDisconnect = table_disconnect,
    .xDestroy = table_destroy,
    .xOpen = cursor_open,
    .xClose = cursor_close,
    .xFilter = cursor_filter,
    .xNext = cursor_next,
    .xEof = cursor_eof,
    .xColumn = cursor_column,
    .xRowid = cursor_rowid,
};

/* ---- making one ---- */

static int create_table(struct exec *x, const struct parsed *p, struct sql_function *f)
{
    struct dialect *d = x->d;
    sqlite3_stmt *stmt;
    int rc = exec_prepare(x, p->body, p->n_body, &stmt);
    if (rc)
        return rc;
    rc = exec_check_columns(x, stmt, &p->columns, true, p->name);
    sqlite3_finalize(stmt);
    if (rc)
        return rc;
    bool ours = find_table(d, f->name) != NULL;
    if (ours && !p->replace)
        return exec_fail(x, p->name, "function '%s' already exists; CREATE OR REPLACE would replace it", f->name);
    if (!ours && object_kind(x, f->name))
        return exec_fail(x, p->name, "a table or view of the name '%s' already exists", f->name);
    struct replaced old;
    if ((rc = ours ? 0 : undo_note(x, UNDO_TABLE, f->name, 0)) != 0 || (rc = replaced_take(x, p, f->name, &old)) != 0)
        return rc;
    if (!vec_push(&d->tables, f))
        return replaced_settle(x, &old, error_set(x->err, -MRD_ENOMEM, "out of memory"));
    char *sql = sqlite3_mprintf("CREATE VIRTUAL TABLE \"%w\" USING runtime_table_function", f->name);
    int made = sql ? sqlite3_exec(engine_db(d->e), sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (made == SQLITE_OK)
        return replaced_settle(x, &old, 0);
    for (size_t i = 0; i < d->tables.n; i++)
        if (d->tables.p[i] == f) {
            d->tables.p[i] = *vec_last(&d->tables);
            d->tables.n--;
            break;
        }
    engine_sqlite_error(d->e, made, x->err);
    return replaced_settle(x, &old, exec_fail_offset(x, p->name, 1, 0));
}

int exec_table_function(struct exec *x, const struct parsed *p, const char *name)
{
    struct sql_function *f = sql_function_new(x->d, name);
    if (!f)
        return error_set(x->err, -MRD_ENOMEM, "out of memory");
    int rc = sql_function_describe(x, p, f);
    if (rc == 0 && f->params.n > MAX_PARAMS)
        rc = exec_fail(x, p->name, "function '%s' has more than %d arguments", name, MAX_PARAMS);
    if (rc == 0)
        rc = sql_function_check_variables(x, p, f);
    if (rc == 0)
        rc = create_table(x, p, f);
    if (rc)
        sql_function_unref(f);
    return rc;
}
