/* The front end's loop: one statement at a time from text to SQLite, with tracebacks. */
#include "sql/dialect/exec.h"
#include "sql/dialect/ordered.h"
#include "sql/dialect/undo.h"
#include "sql/plan/plan.h"

#include <stdio.h>
#include <strings.h>

static struct text_run *run_new(const struct sql_frame *frame)
{
    struct text_run *r = mem_zalloc(sizeof *r);
    if (r) {
        r->refs = 1;
        r->frame = *frame;
        sql_source_ref(frame->source);
    }
    return r;
}

static void run_unref(struct text_run *r)
{
    if (!r || --r->refs > 0)
        return;
    sql_source_unref(r->frame.source);
    sql_tokens_free(&r->tokens);
    arena_free(&r->arena);
    mem_free(r);
}

/* ---- errors ---- */

int dialect_report(struct dialect *d, struct sql_message *m, int code, struct error *err)
{
    const char *text = m->p && !m->failed ? m->p : "out of memory";
    error_set(err, code, "%s", text);
    engine_set_error_text(d->e, text);
    vec_free(m);
    return code;
}

int exec_fail(struct exec *x, const struct sql_token *at, const char *fmt, ...)
{
    struct sql_message m = {0};
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (at && x->n && at >= x->p && at < x->p + x->n) {
        int64_t offset = 0;
        for (const struct sql_token *t = x->p; t < at; t++)
            offset += t->len;
        sql_traceback(&m, x->p, x->n, offset, text);
    } else if (at) {
        sql_traceback(&m, at, 1, 0, text);
    } else {
        sql_traceback(&m, x->p, x->n, -1, text);
    }
    return dialect_report(x->d, &m, -MRD_ESQL, x->err);
}

int exec_fail_offset(struct exec *x, const struct sql_token *p, size_t n, int64_t offset)
{
    struct sql_message m = {0};
    struct error own = x->err ? *x->err : (struct error){-MRD_ESQL, "SQL error"};
    if (own.code != -MRD_ESQL)
        return own.code;
    sql_traceback(&m, p, n, offset, own.text);
    return dialect_report(x->d, &m, -MRD_ESQL, x->err);
}

int exec_prepare(struct exec *x, const struct sql_token *p, size_t n, sqlite3_stmt **stmt)
{
    size_t len;
    struct error local = {0}, *caller = x->err;
    const char *text = sql_tokens_text(&x->run->arena, p, n, &len);
    *stmt = NULL;
    if (!text)
        return error_set(x->err, -MRD_ENOMEM, "out of memory");
    if (!x->err)
        x->err = &local;
    int rc = engine_prepare(x->d->e, slice_of(text, len), stmt, NULL, x->err);
    if (rc)
        rc = exec_fail_offset(
            x, p, n, strcmp(x->err->text, "incomplete input") == 0 ? (int64_t)len - 1 : engine_error_offset(x->d->e));
    else if (!*stmt)
        rc = exec_fail(x, NULL, "incomplete input");
    x->err = caller;
    return rc;
}

int exec_plan(struct exec *x, const struct sql_token *p, size_t n, sqlite3_stmt **stmt)
{
    *stmt = plan_prepare(x->d->e, &x->run->arena, p, n);
    return *stmt ? 0 : exec_prepare(x, p, n, stmt);
}

int exec_plan_table(struct exec *x, const struct sql_token *p, size_t n, sqlite3_stmt **stmt)
{
    *stmt = plan_prepare_table(x->d->e, &x->run->arena, p, n);
    return *stmt ? 0 : exec_prepare(x, p, n, stmt);
}

/* ---- one statement ---- */

static int exec_sqlite(struct exec *x, const struct parsed *p)
{
    return exec_plan(x, p->body, p->n_body, &x->stmt);
}

static int (*const executors[])(struct exec *x, const struct parsed *p) = {
    [STATEMENT_SQLITE] = exec_sqlite,         [STATEMENT_TABLE] = exec_table,     [STATEMENT_VIEW] = exec_view,
    [STATEMENT_FUNCTION] = exec_function,     [STATEMENT_MACRO] = exec_macro,     [STATEMENT_INDEX] = exec_index,
    [STATEMENT_DROP_INDEX] = exec_drop_index, [STATEMENT_INCLUDE] = exec_include,
};

static int exec_nomem(struct exec *x)
{
    return error_set(x->err, -MRD_ENOMEM, "out of memory");
}

/* Leaves out what separates the digits of numbers ("1_000"), which SQLite 3.40 does not read. */
static bool join_digits(struct sql_tokens *t, struct arena *arena)
{
    for (size_t i = 0; i < t->n; i++) {
        struct sql_token *k = &t->p[i];
        if (k->kind != TOKEN_NUMBER || !memchr(k->text, '_', k->len))
            continue;
        char *joined = arena_alloc_bytes(arena, k->len);
        uint32_t n = 0;
        if (!joined)
            return false;
        for (uint32_t c = 0; c < k->len; c++)
            if (k->text[c] != '_')
                joined[n++] = k->text[c];
        k->text = joined;
        k->len = n;
    }
    return true;
}

/* The tokens of the statement at source[from], macros, separators of digits and orders of aggregates replaced, to
 * run->tokens. *end is where the next one begins. */
static int read_statement(struct exec *x, size_t from, size_t *end, enum statement_kind *kind)
{
    struct text_run *run = x->run;
    struct macro_problem bad;
    int rc = 0;
    bool calls = false;
    run->tokens.n = 0;
    if (!statement_scan(&run->tokens, &run->frame, from, end))
        return exec_nomem(x);
    *kind = statement_classify(run->tokens.p, run->tokens.n);
    if (*kind == STATEMENT_BLANK || *kind == STATEMENT_MACRO)
        return 0;
    for (size_t i = 0; i < run->tokens.n; i++)
        calls |= run->tokens.p[i].kind == TOKEN_BANG;
    if (calls) {
        struct sql_tokens written = run->tokens;
        run->tokens = (struct sql_tokens){0};
        rc = macro_expand(&x->d->macros, &run->arena, written.p, written.n, &run->tokens, &bad);
        if (rc == -MRD_ESQL)
            rc = exec_fail(x, &bad.token, "%s", bad.text);
        else if (rc)
            rc = exec_nomem(x);
        sql_tokens_free(&written);
    }
    if (rc)
        return rc;
    bool ok = join_digits(&run->tokens, &run->arena) && ordered_rewrite(&run->tokens, &run->arena);
    return ok ? 0 : exec_nomem(x);
}

/* Executes the statement at source[from]. *blank: nothing stood there. */
static int exec_statement(struct exec *x, size_t from, size_t *end, bool *blank)
{
    struct text_run *run = x->run;
    struct parse_problem problem = {0};
    struct parsed parsed = {0};
    enum statement_kind kind = STATEMENT_BLANK;
    arena_free(&run->arena);
    run->stmt = NULL;
    int rc = read_statement(x, from, end, &kind);
    *blank = kind == STATEMENT_BLANK;
    if (rc || *blank)
        return rc;
    x->p = run->tokens.p;
    x->n = run->tokens.n;
    rc = statement_parse(x->p, x->n, &parsed, &problem);
    if (rc == -MRD_ESQL)
        return exec_fail(x, problem.token, "%s", problem.text);
    if (rc)
        return exec_nomem(x);
    if (parsed.kind != STATEMENT_BLANK)
        rc = executors[parsed.kind](x, &parsed);
    parsed_free(&parsed);
    run->stmt = x->stmt;
    return rc;
}

/* Why stepping failed, with the frames of its statement. */
static int explain_step(struct dialect *d, struct text_run *run, struct error *err)
{
    struct exec x = {.d = d, .run = run, .p = run->tokens.p, .n = run->tokens.n, .err = err};
    return exec_fail_offset(&x, x.p, x.n, -1);
}

/* A row that does not count: a function that returns nothing, or a column of that name. */
static bool is_void_row(sqlite3_stmt *stmt)
{
    if (sqlite3_column_count(stmt) != 1)
        return false;
    const char *name = sqlite3_column_name(stmt, 0);
    return sqlite3_value_pointer(sqlite3_column_value(stmt, 0), "VOID") ||
           (name && strcmp(name, "suppress_query_output") == 0);
}

static bool is_create(const struct exec *x)
{
    size_t i = 0;
    while (i < x->n && token_is_blank(x->p[i].kind))
        i++;
    return i < x->n && x->p[i].len == 6 && strncasecmp(x->p[i].text, "CREATE", 6) == 0;
}

static int step_to_end(struct exec *x, const char *silent)
{
    bool complained = false, noted = x->d->include_depth > 0 && is_create(x);
    int64_t before = noted ? undo_before(x) : 0;
    int rc;
    while ((rc = engine_step(x->d->e, x->stmt, x->err)) == 1)
        if (silent && !complained && !is_void_row(x->stmt)) {
            complained = true;
            break;
        }
    if (complained)
        rc = exec_fail(x, NULL, "%s", silent);
    else if (rc < 0)
        rc = explain_step(x->d, x->run, x->err);
    sqlite3_finalize(x->stmt);
    return rc == 0 && noted ? undo_after(x, before) : rc;
}

int dialect_run_frame(struct dialect *d, const struct sql_frame *frame, const char *silent, struct error *err)
{
    struct error local = {0};
    struct text_run *run = run_new(frame);
    if (!err)
        err = &local;
    if (!run)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < run->frame.source->len;) {
        struct exec x = {.d = d, .run = run, .err = err};
        size_t end = at;
        bool blank;
        rc = exec_statement(&x, at, &end, &blank);
        if (rc == 0 && x.stmt)
            rc = step_to_end(&x, silent);
        at = end;
    }
    run_unref(run);
    return rc;
}

/* ---- as the engine's front end ---- */

/* The run of this text, made anew at its beginning. */
static struct text_run *find_run(struct dialect *d, const char *origin, struct slice text, size_t at)
{
    struct text_run *r = d->run;
    if (r && at > 0 && r->origin_text == text.p && r->origin_len == text.len)
        return r;
    struct sql_frame frame = {.source = sql_source_new(SOURCE_FILE, origin ? origin : "stdin", text)};
    if (!frame.source)
        return NULL;
    r = run_new(&frame);
    sql_source_unref(frame.source);
    if (!r)
        return NULL;
    r->origin_text = text.p;
    r->origin_len = text.len;
    run_unref(d->run);
    d->run = r;
    return r;
}

static int dialect_next(void *ctx, struct engine *e, const char *origin, struct slice text, size_t *at,
                        struct engine_statement *out, struct error *err)
{
    struct dialect *d = ctx;
    (void)e;
    struct error local = {0};
    if (!err)
        err = &local;
    *out = (struct engine_statement){0};
    struct text_run *run = find_run(d, origin, text, *at);
    if (!run)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    run->refs++;
    int rc = 0;
    bool blank = true;
    while (rc == 0 && blank && *at < text.len) {
        struct exec x = {.d = d, .run = run, .err = err};
        size_t end = *at;
        rc = exec_statement(&x, *at, &end, &blank);
        out->stmt = x.stmt;
        *at = end;
    }
    out->none = rc == 0 && blank;
    run_unref(run);
    return rc;
}

static void dialect_explain(void *ctx, struct engine *e, sqlite3_stmt *stmt, struct error *err)
{
    struct dialect *d = ctx;
    (void)e;
    if (d->run && stmt && d->run->stmt == stmt)
        explain_step(d, d->run, err);
}

static void dialect_destroy(void *ctx)
{
    struct dialect *d = ctx;
    run_unref(d->run);
    for (size_t i = 0; i < d->scalars.n; i++)
        sql_function_unref(d->scalars.p[i]);
    for (size_t i = 0; i < d->tables.n; i++) { /* SQLite closes its tables later; no statement may be left by then */
        sql_function_drop_body(d->tables.p[i]);
        sql_function_unref(d->tables.p[i]);
    }
    for (size_t i = 0; i < d->indexes.n; i++) {
        mem_free(d->indexes.p[i].name);
        mem_free(d->indexes.p[i].table);
    }
    for (size_t i = 0; i < d->delegates.n; i++) {
        mem_free((char *)(uintptr_t)d->delegates.p[i]->name);
        mem_free(d->delegates.p[i]);
    }
    vec_free(&d->scalars);
    vec_free(&d->tables);
    vec_free(&d->indexes);
    vec_free(&d->delegates);
    vec_free(&d->undo);
    macro_table_free(&d->macros);
    module_registry_free(&d->modules);
    mem_free(d);
}

static bool copy_fields(const struct param *p, size_t n, struct engine_sql_function *out, bool params)
{
    static const char types[VALUE_TYPE_COUNT] = {'i', 'i', 'd', 't', 'b', 'a'};
    if (n > (params ? ENGINE_MAX_PARAMETERS : ENGINE_MAX_RETURNED))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (p[i].variadic)
            return false;
        if (params) {
            out->params[i].name = p[i].name;
            out->params[i].type = types[p[i].type];
        } else {
            out->columns[i].name = p[i].name;
            out->columns[i].type = types[p[i].type];
        }
    }
    *(params ? &out->n_params : &out->n_columns) = (uint32_t)n;
    return true;
}

static bool dialect_find_function(void *ctx, const char *name, int n_args, bool table, struct engine_sql_function *out)
{
    const struct dialect *d = ctx;
    for (size_t i = 0; i < (table ? d->tables.n : d->scalars.n); i++) {
        const struct sql_function *f = table ? d->tables.p[i] : d->scalars.p[i];
        if (strcasecmp(f->name, name) != 0 || f->params.n != (size_t)n_args || f->memoize || !f->sql)
            continue;
        out->sql = f->sql;
        return copy_fields(f->params.p, f->params.n, out, true) && copy_fields(f->columns.p, f->columns.n, out, false);
    }
    return false;
}

int dialect_attach(struct engine *e, struct error *err)
{
    struct dialect *d = mem_zalloc(sizeof *d);
    if (!d)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    d->e = e;
    int rc = module_registry_init(&d->modules, err);
    if (rc) {
        dialect_destroy(d);
        return rc;
    }
    engine_set_dialect(e, &(struct engine_dialect){d, dialect_next, dialect_explain, dialect_destroy,
                                                   dialect_find_function, ordered_column_name});
    rc = engine_register_module(e, "runtime_table_function", &table_function_module, err);
    return rc ? rc : legacy_functions_register(e, err);
}

struct module_registry *dialect_modules(struct engine *e)
{
    return &((struct dialect *)engine_dialect_ctx(e))->modules;
}
