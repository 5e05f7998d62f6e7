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
#include "sql/plan/plan.h"
#include "sql/planner/planner.h"

#include <stdio.h>
#include <strings.h>
#include <time.h>

enum { MAX_PARAMS = 100 }; /* plan letters stay within a byte */

static struct sql_function *find_table(struct dialect *d, const char *name)
{
    for (size_t i = 0; i < d->tables.n; i++)
        if (strcasecmp(d->tables.p[i]->name, name) == 0)
            return d->tables.p[i];
    return NULL;
}

/* Calls that were planned, and calls that SQLite ran: what the last of each took, from its start to its last row. */
enum { CALL_SQLITE, CALL_PLANNED, CALL_WAYS };

struct function_table {
    sqlite3_vtab base;
    struct sql_function *f;
    uint64_t calls;
    int64_t took_ns[CALL_WAYS]; /* 0: not known */
    uint32_t without_plan;      /* calls in a row for which there was none */
};

struct function_cursor {
    sqlite3_vtab_cursor base;
    sqlite3_stmt *stmt;    /* of the call at hand: `own`, or `planned` */
    sqlite3_stmt *own;     /* the body as it is */
    sqlite3_stmt *planned; /* the body with plans, for the arguments `of` */
    sqlite3_value **of;    /* [n_of] */
    size_t n_of;
    uint64_t generation;
    int64_t row, start_ns;
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

static void drop_plan(struct function_cursor *c)
{
    for (size_t i = 0; i < c->n_of; i++)
        sqlite3_value_free(c->of[i]);
    mem_free(c->of);
    sqlite3_finalize(c->planned);
    c->of = NULL;
    c->n_of = 0;
    c->planned = NULL;
}

static int cursor_close(sqlite3_vtab_cursor *base)
{
    struct function_cursor *c = (struct function_cursor *)base;
    struct sql_function *f = ((struct function_table *)base->pVtab)->f;
    drop_plan(c);
    if (c->own)
        sql_function_give(f, c->own, c->generation);
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

/* ---- plans for bodies ---- */

enum { FIRST_PLANS = 4, MAX_PLANNED_DEPTH = 3 };

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Shall this call have plans? The first do; later ones go the way that was the faster last time. Each power of two goes
 * the other way, since tables grow and arguments differ. */
static bool wants_plan(const struct function_table *t)
{
    const struct engine *e = t->f->d->e;
    bool again = (t->calls & (t->calls - 1)) == 0;
    if (t->f->d->function_depth >= MAX_PLANNED_DEPTH || !planner_is_on(e))
        return false;
    if (t->calls < FIRST_PLANS || plan_wants_every_call(e))
        return true;
    if (t->without_plan >= FIRST_PLANS)
        return again;
    bool faster = t->took_ns[CALL_SQLITE] && t->took_ns[CALL_PLANNED] < t->took_ns[CALL_SQLITE];
    return again && t->took_ns[CALL_SQLITE] ? !faster : faster;
}

static bool same_value(sqlite3_value *a, sqlite3_value *b)
{
    int type = sqlite3_value_type(a);
    if (type != sqlite3_value_type(b))
        return false;
    switch (type) {
    case SQLITE_INTEGER:
        return sqlite3_value_int64(a) == sqlite3_value_int64(b);
    case SQLITE_FLOAT: {
        double x = sqlite3_value_double(a), y = sqlite3_value_double(b);
        return memcmp(&x, &y, sizeof x) == 0;
    }
    case SQLITE_TEXT: {
        const void *x = sqlite3_value_text(a), *y = sqlite3_value_text(b);
        int n = sqlite3_value_bytes(a);
        return x && y && n == sqlite3_value_bytes(b) && memcmp(x, y, (size_t)n) == 0;
    }
    default:
        return type == SQLITE_NULL;
    }
}

/* The body with plans for the arguments, args[i] that of parameter i; false: there is none. */
static bool plan_call(struct function_cursor *c, struct function_table *t, sqlite3_value *const *args)
{
    struct sql_function *f = t->f;
    size_t n = f->params.n, same = 0;
    const char *names[MAX_PARAMS];
    while (c->planned && same < n && same_value(c->of[same], args[same]))
        same++;
    if (c->planned && same == n) {
        sqlite3_reset(c->planned);
        return true;
    }
    drop_plan(c);
    if (!f->sql) /* dropped */
        return false;
    for (size_t i = 0; i < n; i++)
        names[i] = f->params.p[i].name;
    c->of = mem_zalloc((n + 1) * sizeof *c->of);
    bool ok = c->of != NULL;
    for (; ok && c->n_of < n; c->n_of++)
        ok = (c->of[c->n_of] = sqlite3_value_dup(args[c->n_of])) != NULL;
    if (ok)
        c->planned = plan_prepare_body(f->d->e, &(struct plan_body){f->sql, names, args, (uint32_t)n});
    t->without_plan = c->planned ? 0 : t->without_plan + 1;
    return c->planned != NULL;
}

/* ---- a call ---- */

/* The call has given its last row. One that was disturbed counts as twice the one before. */
static void note_time(struct function_cursor *c, struct function_table *t)
{
    int64_t took = now_ns() - c->start_ns, *last = &t->took_ns[c->stmt == c->own ? CALL_SQLITE : CALL_PLANNED];
    took = took < 1 ? 1 : took;
    *last = *last && took / 2 > *last ? *last * 2 : took;
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
    struct function_cursor *c = (struct function_cursor *)base;
    struct function_table *t = (struct function_table *)base->pVtab;
    struct sql_function *f = t->f;
    if (f->d->function_depth >= DIALECT_MAX_FUNCTION_DEPTH)
        return fail(base, f->name, "function calls are nested too deeply; check for endless recursion");
    f->d->function_depth++;
    int rc = sqlite3_step(c->stmt);
    f->d->function_depth--;
    c->row++;
    c->eof = rc != SQLITE_ROW;
    if (rc == SQLITE_DONE && c->start_ns)
        note_time(c, t);
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        return SQLITE_OK;
    return fail(base, f->name, sqlite3_errmsg(engine_db(f->d->e)));
}

static int take_body(struct function_cursor *c, struct sql_function *f)
{
    struct error err = {0};
    if (c->own) {
        sqlite3_reset(c->own);
        return SQLITE_OK;
    }
    if (sql_function_take(f, &c->own, &err))
        return fail(&c->base, f->name, err.text);
    c->generation = f->generation;
    return SQLITE_OK;
}

static int cursor_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc, sqlite3_value **argv)
{
    struct function_cursor *c = (struct function_cursor *)base;
    struct function_table *t = (struct function_table *)base->pVtab;
    struct sql_function *f = t->f;
    sqlite3_value *args[MAX_PARAMS] = {NULL};
    c->eof = true;
    c->row = -1;
    if (number)
        return fail(base, f->name, "an argument is missing");
    int rc = take_body(c, f);
    if (rc)
        return rc;
    for (int i = 0; i < argc; i++) {
        const struct param *p = &f->params.p[plan[i] - 'a'];
        args[plan[i] - 'a'] = argv[i];
        if (!value_fits(argv[i], (enum value_type)p->type)) {
            char text[160];
            snprintf(text, sizeof text, "argument %d (%s) has the wrong type, %s is expected", plan[i] - 'a' + 1,
                     p->name, value_type_name((enum value_type)p->type));
            return fail(base, f->name, text);
        }
        for (int k = sqlite3_bind_parameter_count(c->own); k > 0; k--)
            if (sql_function_param(f, sqlite3_bind_parameter_name(c->own, k)) == plan[i] - 'a')
                sqlite3_bind_value(c->own, k, argv[i]);
    }
    c->start_ns = t->without_plan >= FIRST_PLANS ? 0 : now_ns();
    c->stmt = wants_plan(t) && plan_call(c, t, args) ? c->planned : c->own;
    t->calls++;
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
