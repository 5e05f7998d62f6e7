/* What scalar and table functions made by SQL have in common: their description and their prepared bodies. */
#include "sql/dialect/exec.h"

#include <strings.h>

static void params_free(struct param *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        mem_free(p[i].name);
}

void sql_function_clear(struct sql_function *f)
{
    params_free(f->params.p, f->params.n);
    params_free(f->columns.p, f->columns.n);
    for (size_t i = 0; i < f->idle.n; i++)
        sqlite3_finalize(f->idle.p[i]);
    for (size_t i = 0; i < f->results.n; i++)
        sqlite3_value_free(f->results.p[i]);
    vec_free(&f->params);
    vec_free(&f->columns);
    vec_free(&f->idle);
    vec_free(&f->results);
    u64map_free(&f->memo);
    mem_free(f->sql);
    f->sql = NULL;
    f->memoize = false;
}

struct sql_function *sql_function_new(struct dialect *d, const char *name)
{
    struct sql_function *f = mem_zalloc(sizeof *f);
    char *copy = f ? mem_strdup(name) : NULL;
    if (copy) {
        *f = (struct sql_function){.d = d, .name = copy, .refs = 1};
        return f;
    }
    mem_free(f);
    return NULL;
}

void sql_function_drop_body(struct sql_function *f)
{
    for (size_t i = 0; i < f->idle.n; i++)
        sqlite3_finalize(f->idle.p[i]);
    vec_free(&f->idle);
    mem_free(f->sql);
    f->sql = NULL;
    f->dropped = true;
    f->generation++;
}

void sql_function_unref(struct sql_function *f)
{
    if (!f || --f->refs)
        return;
    sql_function_clear(f);
    mem_free(f->name);
    mem_free(f);
}

static int add_fields(struct exec *x, const struct parsed_fields *from, const char *what, bool any, struct param **p,
                      size_t *n)
{
    *p = mem_zalloc((from->n + 1) * sizeof **p);
    if (!*p)
        return error_set(x->err, -MRD_ENOMEM, "out of memory");
    for (size_t i = 0; i < from->n; i++) {
        const struct parsed_field *f = &from->p[i];
        int type = value_type_find(f->type->text, f->type->len);
        if (type < 0 || (type == VALUE_ANY && !any))
            return exec_fail(x, f->type, "Unknown %s type: %.*s", what, (int)f->type->len, f->type->text);
        (*p)[i].name = token_name(f->name->text, f->name->len);
        (*p)[i].type = (uint8_t)type;
        (*p)[i].variadic = f->variadic;
        *n = i + 1;
        if (!(*p)[i].name)
            return error_set(x->err, -MRD_ENOMEM, "out of memory");
        for (size_t k = 0; k < i; k++)
            if (strcasecmp((*p)[k].name, (*p)[i].name) == 0)
                return exec_fail(x, f->name, "%s '%s' is declared twice", what, (*p)[i].name);
        if (f->variadic && i + 1 < from->n)
            return exec_fail(x, f->name, "only the last argument may be variadic");
    }
    return 0;
}

int sql_function_describe(struct exec *x, const struct parsed *p, struct sql_function *f)
{
    size_t len;
    int rc = add_fields(x, &p->args, "argument", true, &f->params.p, &f->params.n);
    if (rc == 0)
        rc = add_fields(x, &p->columns, "return", true, &f->columns.p, &f->columns.n);
    if (rc)
        return rc;
    if (!p->returns_table) {
        int type = value_type_find(p->returns->text, p->returns->len);
        if (type < 0)
            return exec_fail(x, p->returns, "Unknown return type: %.*s", (int)p->returns->len, p->returns->text);
        f->returns = (uint8_t)type;
    }
    char *text = p->n_body ? sql_tokens_join(&x->run->arena, p->body, p->n_body, &len) : NULL;
    f->sql = text ? mem_strndup(text, len) : NULL;
    return f->sql || p->n_body == 0 ? 0 : error_set(x->err, -MRD_ENOMEM, "out of memory");
}

int sql_function_param(const struct sql_function *f, const char *variable)
{
    if (variable[0] != '$')
        return -1;
    for (size_t i = 0; i < f->params.n; i++)
        if (strcasecmp(f->params.p[i].name, variable + 1) == 0)
            return (int)i;
    return -1;
}

int sql_function_check_variables(struct exec *x, const struct parsed *p, const struct sql_function *f)
{
    for (size_t i = 0; i < p->n_body; i++) {
        const struct sql_token *t = &p->body[i];
        if (t->kind != TOKEN_VARIABLE)
            continue;
        if (t->text[0] != '$')
            return exec_fail(x, t, "function '%s': arguments are written $name, not %.*s", f->name, (int)t->len,
                             t->text);
        char *name = mem_strndup(t->text, t->len);
        bool known = name && sql_function_param(f, name) >= 0;
        mem_free(name);
        if (!known)
            return exec_fail(x, t, "function '%s' has no argument %.*s", f->name, (int)t->len, t->text);
    }
    return 0;
}

int sql_function_take(struct sql_function *f, sqlite3_stmt **stmt, struct error *err)
{
    if (f->idle.n) {
        *stmt = f->idle.p[--f->idle.n];
        return 0;
    }
    int rc = engine_compile(f->d->e, f->sql, -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL);
    return rc ? engine_sqlite_error(f->d->e, rc, err) : 0;
}

void sql_function_give(struct sql_function *f, sqlite3_stmt *stmt, uint64_t generation)
{
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    if (f->generation != generation || !vec_push(&f->idle, stmt))
        sqlite3_finalize(stmt);
}

bool value_fits(sqlite3_value *v, enum value_type type)
{
    int t = sqlite3_value_type(v);
    if (t == SQLITE_NULL || type == VALUE_ANY)
        return true;
    switch (type) {
    case VALUE_BOOL:
    case VALUE_LONG:
        return t == SQLITE_INTEGER;
    case VALUE_DOUBLE:
        return t == SQLITE_FLOAT || t == SQLITE_INTEGER;
    case VALUE_STRING:
        return t == SQLITE_TEXT;
    default:
        return t == SQLITE_BLOB;
    }
}
