/* CREATE PERFETTO FUNCTION … RETURNS TYPE: scalar functions whose body is a SELECT, and aliases of built-in ones. */
#include "sql/dialect/exec.h"
#include "sql/dialect/pointer.h"
#include "sql/dialect/undo.h"
#include "sql/planner/planner.h"

#include <stdio.h>
#include <strings.h>

static struct sql_function *find_scalar(struct dialect *d, const char *name, size_t n_params)
{
    for (size_t i = 0; i < d->scalars.n; i++)
        if (strcasecmp(d->scalars.p[i]->name, name) == 0 && d->scalars.p[i]->params.n == n_params)
            return d->scalars.p[i];
    return NULL;
}

static struct engine_function *find_alias(struct dialect *d, const char *name, int n_args)
{
    for (size_t i = 0; i < d->delegates.n; i++)
        if (strcasecmp(d->delegates.p[i]->name, name) == 0 && d->delegates.p[i]->n_args == n_args)
            return d->delegates.p[i];
    return NULL;
}

/* ---- a call ---- */

static void result_error(sqlite3_context *ctx, const char *fmt, const char *name, const char *text)
{
    char *m = sqlite3_mprintf(fmt, name, text);
    sqlite3_result_error(ctx, m ? m : "out of memory", -1);
    sqlite3_free(m);
}

/* An error that came up through calls of the function itself has its name already. */
static void body_error(sqlite3_context *ctx, const struct sql_function *f)
{
    const char *text = sqlite3_errmsg(engine_db(f->d->e));
    size_t len = strlen(f->name);
    bool named = strncasecmp(text, f->name, len) == 0 && strncmp(text + len, ": ", 2) == 0;
    if (named || f->d->function_depth > 1) /* in a chain of calls the innermost name is enough */
        sqlite3_result_error(ctx, text, -1);
    else
        result_error(ctx, "%s: %s", f->name, text);
}

static bool bind_arguments(sqlite3_context *ctx, struct sql_function *f, sqlite3_stmt *stmt, int argc,
                           sqlite3_value **argv)
{
    for (int i = 0; i < argc; i++)
        if (!value_fits(argv[i], (enum value_type)f->params.p[i].type)) {
            char text[160];
            snprintf(text, sizeof text, "[%s=%.60s]: argument %d has the wrong type, %s is expected",
                     f->params.p[i].name,
                     sqlite3_value_type(argv[i]) == SQLITE_BLOB ? "<blob>" : (const char *)sqlite3_value_text(argv[i]),
                     i + 1, value_type_name((enum value_type)f->params.p[i].type));
            result_error(ctx, "%s%s", f->name, text);
            return false;
        }
    for (int i = sqlite3_bind_parameter_count(stmt); i > 0; i--) {
        int a = sql_function_param(f, sqlite3_bind_parameter_name(stmt, i));
        if (a >= 0 && a < argc)
            sqlite3_bind_value(stmt, i, argv[a]);
    }
    return true;
}

/* Steps the body and hands its one value on. */
static void run_body(sqlite3_context *ctx, struct sql_function *f, sqlite3_stmt *stmt, uint64_t *memo_key)
{
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_DONE) {
        sqlite3_result_null(ctx);
        return;
    }
    if (rc != SQLITE_ROW) {
        body_error(ctx, f);
        return;
    }
    sqlite3_value *v = sqlite3_column_value(stmt, 0);
    if (value_is_pointer(v)) {
        result_error(ctx, "%s: %s", f->name, "a function cannot return a graph, table or array");
        return;
    }
    sqlite3_result_value(ctx, v);
    sqlite3_value *kept = memo_key ? sqlite3_value_dup(v) : NULL;
    rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        result_error(ctx, "%s: %s", f->name, "multiple values were returned when executing function body");
    else if (rc != SQLITE_DONE)
        body_error(ctx, f);
    else if (kept && vec_push(&f->results, kept)) {
        kept = NULL;
        u64map_set(&f->memo, *memo_key, f->results.n);
    }
    sqlite3_value_free(kept);
}

static void call(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct sql_function *f = sqlite3_user_data(ctx);
    sqlite3_stmt *stmt;
    struct error err = {0};
    uint64_t generation = f->generation, key = 0, *memo_key = NULL;
    if (f->memoize && argc == 1 && sqlite3_value_type(argv[0]) == SQLITE_INTEGER) {
        key = (uint64_t)sqlite3_value_int64(argv[0]);
        memo_key = &key;
        const uint64_t *at = u64map_get(&f->memo, key);
        if (at) {
            sqlite3_result_value(ctx, f->results.p[*at - 1]);
            return;
        }
    }
    if (!f->sql) {
        result_error(ctx, "%s: %s", f->name, "this function has no body");
        return;
    }
    if (f->d->function_depth >= DIALECT_MAX_FUNCTION_DEPTH) {
        result_error(ctx, "%s: %s", f->name, "function calls are nested too deeply; check for endless recursion");
        return;
    }
    if (sql_function_take(f, &stmt, &err)) {
        result_error(ctx, "%s: %s", f->name, err.text);
        return;
    }
    f->d->function_depth++;
    f->running++;
    if (bind_arguments(ctx, f, stmt, argc, argv))
        run_body(ctx, f, stmt, memo_key);
    f->running--;
    f->d->function_depth--;
    sql_function_give(f, stmt, generation);
}

/* ---- making one ---- */

/* The body must give exactly one column. Prepared once now, so that mistakes show at their place. */
static int check_body(struct exec *x, const struct parsed *p, struct sql_function *f)
{
    sqlite3_stmt *stmt;
    int rc = sql_function_check_variables(x, p, f);
    if (rc == 0)
        rc = exec_prepare(x, p->body, p->n_body, &stmt);
    if (rc)
        return rc;
    int n = sqlite3_column_count(stmt);
    sqlite3_finalize(stmt);
    if (n != 1)
        return exec_fail(x, p->body, "function '%s' must return exactly one column; its body returns %d", f->name, n);
    return 0;
}

/* ---- aliases ---- */

static void free_alias(struct dialect *d, struct engine_function *alias)
{
    engine_forget_function(d->e, alias);
    for (size_t i = 0; i < d->delegates.n; i++)
        if (d->delegates.p[i] == alias) {
            d->delegates.p[i] = *vec_last(&d->delegates);
            d->delegates.n--;
            break;
        }
    mem_free((char *)(uintptr_t)alias->name);
    mem_free(alias);
}

/* SQLite does not call it any more. */
static void free_scalar(struct dialect *d, struct sql_function *f)
{
    for (size_t i = 0; i < d->scalars.n; i++)
        if (d->scalars.p[i] == f) {
            d->scalars.p[i] = *vec_last(&d->scalars);
            d->scalars.n--;
            break;
        }
    sql_function_unref(f);
}

void exec_forget_function(struct dialect *d, const char *name, int n_args)
{
    struct sql_function *f = n_args < 0 ? NULL : find_scalar(d, name, (size_t)n_args);
    struct engine_function *alias = find_alias(d, name, n_args);
    if (!f && !alias)
        return;
    if (sqlite3_create_function_v2(engine_db(d->e), name, n_args, SQLITE_UTF8, NULL, NULL, NULL, NULL, NULL))
        return; /* a statement that is open calls it */
    if (f)
        free_scalar(d, f);
    if (alias)
        free_alias(d, alias);
}

/* The built-in function that a name with so many arguments stands for. */
static const struct engine_function *find_builtin(struct dialect *d, const char *name, int n_args)
{
    const struct engine_function *f = engine_find_function(d->e, name, n_args);
    return f || n_args < 0 ? f : engine_find_function(d->e, name, -1);
}

static int make_alias(struct exec *x, const struct engine_function *of, const char *name, int n_args)
{
    struct dialect *d = x->d;
    struct engine_function *old = find_alias(d, name, n_args);
    struct sql_function *scalar = n_args < 0 ? NULL : find_scalar(d, name, (size_t)n_args);
    struct engine_function *alias = mem_alloc(sizeof *alias);
    if (alias)
        *alias = *of;
    if (!alias || !(alias->name = mem_strdup(name)) || !vec_push(&d->delegates, alias)) {
        if (alias)
            mem_free((char *)(uintptr_t)alias->name);
        mem_free(alias);
        return error_set(x->err, -MRD_ENOMEM, "out of memory");
    }
    alias->n_args = n_args;
    planner_function_made(d->e, name);
    if (engine_register_functions(d->e, alias, 1, x->err)) {
        free_alias(d, alias);
        return exec_fail_offset(x, x->p, x->n, -1);
    }
    if (old)
        free_alias(d, old);
    if (scalar)
        free_scalar(d, scalar);
    return old || scalar ? 0 : undo_note(x, UNDO_FUNCTION, name, n_args);
}

static int delegate(struct exec *x, const struct parsed *p, const char *name)
{
    struct dialect *d = x->d;
    char *target = token_name(p->on->text, p->on->len);
    bool variadic = p->args.n && p->args.p[p->args.n - 1].variadic;
    int n_args = variadic ? -1 : (int)p->args.n, rc;
    const struct engine_function *of = target ? find_builtin(d, target, n_args) : NULL;
    bool ours = find_alias(d, name, n_args) || (!variadic && find_scalar(d, name, p->args.n));
    const struct engine_function *builtin = ours ? NULL : find_builtin(d, name, n_args);
    if (!of)
        rc = exec_fail(x, p->on, "no intrinsic function '%s' with %zu arguments to delegate to", target ? target : "",
                       p->args.n);
    else if (ours && !p->replace)
        rc = exec_fail(x, p->name, "function '%s' already exists; CREATE OR REPLACE would replace it", name);
    else if (builtin && (builtin->scalar != of->scalar || builtin->step != of->step))
        rc = exec_fail(x, p->name, "cannot redefine built-in function '%s'", name);
    else
        rc = builtin ? 0 : make_alias(x, of, name, n_args);
    mem_free(target);
    return rc;
}

/* ---- functions with a body ---- */

/* Puts the description of `from` into the function that SQLite knows. */
static void move_into(struct sql_function *f, struct sql_function *from)
{
    char *name = f->name;
    struct dialect *d = f->d;
    uint64_t generation = f->generation + 1;
    sql_function_clear(f);
    char *unused = from->name;
    int refs = f->refs;
    *f = *from;
    f->name = name;
    f->d = d;
    f->refs = refs;
    f->generation = generation;
    mem_free(unused);
    mem_free(from);
}

/* 1: f was taken over; 0, or an error: the caller has its reference still. */
static int create_scalar(struct exec *x, const struct parsed *p, struct sql_function *f)
{
    struct dialect *d = x->d;
    struct sql_function *old = find_scalar(d, f->name, f->params.n);
    struct engine_function *alias = find_alias(d, f->name, (int)f->params.n);
    if (!old && !alias && find_builtin(d, f->name, (int)f->params.n))
        return exec_fail(x, p->name, "cannot redefine built-in function '%s'", f->name);
    if (old && old->running)
        return exec_fail(x, p->name, "function '%s' is running: what it calls cannot replace it", f->name);
    if (((old && !old->dropped) || alias) && !p->replace)
        return exec_fail(x, p->name, "function '%s' already exists; CREATE OR REPLACE would replace it", f->name);
    if (old) {
        int rc = check_body(x, p, f);
        if (rc == 0)
            move_into(old, f);
        return rc ? rc : 1;
    }
    int rc = alias ? check_body(x, p, f) : 0;
    if (rc)
        return rc;
    if (!vec_push(&d->scalars, f))
        return error_set(x->err, -MRD_ENOMEM, "out of memory");
    f->refs++;
    planner_function_made(d->e, f->name);
    /* known before its body is prepared, so that it may call itself */
    rc = sqlite3_create_function_v2(engine_db(d->e), f->name, (int)f->params.n, SQLITE_UTF8 | SQLITE_INNOCUOUS, f, call,
                                    NULL, NULL, NULL);
    if (rc) {
        engine_sqlite_error(d->e, rc, x->err);
        rc = exec_fail_offset(x, x->p, x->n, -1);
        free_scalar(d, f);
        return rc;
    }
    rc = alias ? 0 : check_body(x, p, f);
    if (rc == 0 && !alias)
        rc = undo_note(x, UNDO_FUNCTION, f->name, (int)f->params.n);
    if (rc == 0) {
        if (alias)
            free_alias(d, alias);
        return 0;
    }
    /* SQLite forgets no function while a statement is open: then the name stays, and its calls fail */
    if (sqlite3_create_function_v2(engine_db(d->e), f->name, (int)f->params.n, SQLITE_UTF8, NULL, NULL, NULL, NULL,
                                   NULL) == SQLITE_OK)
        free_scalar(d, f);
    else
        sql_function_drop_body(f);
    return rc;
}

int exec_function(struct exec *x, const struct parsed *p)
{
    char *name = token_name(p->name->text, p->name->len);
    if (!name)
        return error_set(x->err, -MRD_ENOMEM, "out of memory");
    int rc;
    if (p->on) {
        rc = delegate(x, p, name);
        mem_free(name);
        return rc;
    }
    if (p->returns_table) {
        rc = exec_table_function(x, p, name);
        mem_free(name);
        return rc;
    }
    struct sql_function *f = sql_function_new(x->d, name);
    mem_free(name);
    if (!f)
        return error_set(x->err, -MRD_ENOMEM, "out of memory");
    rc = sql_function_describe(x, p, f);
    if (rc == 0)
        rc = create_scalar(x, p, f);
    if (rc == 1) /* taken over */
        return 0;
    sql_function_unref(f);
    return rc;
}
