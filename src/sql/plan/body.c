/* Bodies of functions that SQLite runs: their arguments are constants of the plan, and stay $names in every text that
 * is left to SQLite, since it may choose other loops for literals. */
#include "sql/plan/plan_private.h"

#include <string.h>
#include <strings.h>

const struct plan_arguments *read_arguments(const struct reader *r, struct arena *arena)
{
    const struct parameters *p = r->parameters;
    struct plan_arguments *a = arena_zalloc(arena, sizeof *a);
    for (uint32_t i = 0; a && p && i < p->n; i++) {
        const struct plan_expr *x = p->values[i];
        const char *name = arena_strndup(arena, p->names[i], strlen(p->names[i]));
        if (x->op != X_CONST || !name)
            return NULL;
        a->of[a->n].name = name;
        a->of[a->n].type = x->type;
        a->of[a->n++].word = x->word;
    }
    return a;
}

void plan_bind_arguments(struct engine *e, sqlite3_stmt *stmt, const struct plan_arguments *a)
{
    for (int k = a && a->n ? sqlite3_bind_parameter_count(stmt) : 0; k > 0; k--) {
        const char *name = sqlite3_bind_parameter_name(stmt, k);
        for (uint32_t i = 0; name && name[0] == '$' && i < a->n; i++)
            if (strcasecmp(name + 1, a->of[i].name) == 0)
                plan_bind_word(e, stmt, k, (enum plan_type)a->of[i].type, a->of[i].word);
    }
}

/* The arguments as a reader knows them; NULL: no memory. */
static const struct parameters *parameters_of(struct arena *arena, const struct plan_arguments *a)
{
    struct parameters *p = arena_zalloc(arena, sizeof *p);
    struct plan_expr *values = arena_zalloc(arena, PLAN_MAX_PARAMETERS * sizeof *values);
    if (!p || !values)
        return NULL;
    for (uint32_t i = 0; i < a->n; i++) {
        values[i] = (struct plan_expr){.op = X_CONST, .type = a->of[i].type, .letter = 'c', .word = a->of[i].word};
        p->names[i] = a->of[i].name;
        p->values[i] = &values[i];
    }
    p->n = a->n;
    return p;
}

sqlite3_stmt *plan_prepare_arguments(struct engine *e, struct arena *arena, const char *sql,
                                     const struct plan_arguments *a)
{
    const struct parameters *p = a ? parameters_of(arena, a) : NULL;
    return a && !p ? NULL : plan_prepare_text(e, arena, sql, p);
}

/* A value as a constant; false: a plan cannot hold it. */
static bool take_value(struct engine *e, sqlite3_value *v, uint8_t *type, int64_t *word)
{
    switch (sqlite3_value_type(v)) {
    case SQLITE_INTEGER:
        *type = PLAN_INT;
        *word = sqlite3_value_int64(v);
        return *word != COL_NULL;
    case SQLITE_FLOAT:
        *type = PLAN_REAL;
        *word = column_f64_word(sqlite3_value_double(v));
        return true;
    case SQLITE_TEXT: {
        const void *text = sqlite3_value_text(v);
        *type = PLAN_TEXT;
        *word = text ? strpool_intern(&e->storage->strings, text, (size_t)sqlite3_value_bytes(v)) : 0;
        return *word != 0;
    }
    case SQLITE_NULL:
        *type = PLAN_NULL;
        *word = COL_NULL;
        return sqlite3_value_subtype(v) != 'p'; /* a pointer */
    default:
        return false;
    }
}

sqlite3_stmt *plan_prepare_body(struct engine *e, const struct plan_body *body)
{
    struct plan_arguments a = {.n = body->n};
    struct arena arena = {0};
    if (body->n > PLAN_MAX_PARAMETERS || e->planner_off)
        return NULL;
    for (uint32_t i = 0; i < a.n; i++) {
        a.of[i].name = body->names[i];
        if (!take_value(e, body->values[i], &a.of[i].type, &a.of[i].word))
            return NULL;
    }
    sqlite3_stmt *stmt = plan_prepare_arguments(e, &arena, body->sql, &a);
    if (stmt)
        plan_bind_arguments(e, stmt, &a);
    arena_free(&arena);
    return stmt;
}

bool plan_wants_every_call(const struct engine *e)
{
    return e->plan_every_call;
}
