/* Functions that SQL has made: their bodies are read in the place of the call.
 *
 *     CREATE PERFETTO FUNCTION f(a LONG) RETURNS LONG AS SELECT $a * 2;                         an expression
 *     CREATE PERFETTO FUNCTION g(a LONG) RETURNS STRING AS SELECT name FROM t WHERE id = $a;    a query by key
 *     CREATE PERFETTO FUNCTION h(a LONG) RETURNS TABLE(b LONG) AS SELECT b FROM t WHERE c < $a; a query: arguments of
 *                                                                                               its calls are constants
 *
 * A value whose type the declaration does not allow is an error, which SQLite shall tell. */
#include "sql/plan/plan_private.h"

#include <string.h>
#include <strings.h>

static bool fits(const struct plan_expr *x, char type)
{
    switch (x->type) {
    case PLAN_NULL:
        return true;
    case PLAN_INT:
        return type == 'i' || type == 'd' || type == 'a';
    case PLAN_REAL:
        return type == 'd' || type == 'a';
    default:
        return type == 't' || type == 'a';
    }
}

/* The function of that name; false: there is none, or its body is not known. */
static bool find(const struct reader *r, struct sql_name of, uint32_t n_args, bool table, struct engine_sql_function *f)
{
    const struct engine *e = r->planner->e;
    char name[128];
    if (!e->dialect.find_function || of.len >= sizeof name || n_args > PLAN_MAX_PARAMETERS)
        return false;
    memcpy(name, of.p, of.len);
    name[of.len] = 0;
    *f = (struct engine_sql_function){.sql = NULL};
    return e->dialect.find_function(e->dialect.ctx, name, (int)n_args, table, f) && f->sql && f->n_params == n_args;
}

static bool bind(struct reader *r, const struct sql_expr *args, const struct engine_sql_function *f, bool constants,
                 struct parameters *out)
{
    struct arena *arena = r->planner->arena;
    *out = (struct parameters){.plan = r->plan, .depth = r->parameters ? r->parameters->depth + 1 : 1};
    if (out->depth > PLAN_MAX_DEPTH)
        return false;
    for (const struct sql_expr *a = args; a; a = a->next) {
        struct plan_expr *x = constants ? read_argument(r, a) : read_expr(r, a);
        const char *name = arena_strndup(arena, f->params[out->n].name, strlen(f->params[out->n].name));
        if (!x || !name || !fits(x, f->params[out->n].type) || (constants && x->op != X_CONST))
            return false;
        out->names[out->n] = name;
        out->values[out->n++] = x;
    }
    return true;
}

/* A reader of the body, in which no name of the statement means anything. */
static bool open_body(const struct reader *r, const struct engine_sql_function *f, const struct parameters *p,
                      struct reader *out)
{
    struct arena *arena = r->planner->arena;
    const struct sql_tree *tree = plan_parse_text(r, f->sql);
    struct scope *scope = arena_zalloc(arena, sizeof *scope);
    if (!tree || !scope)
        return false;
    *out = *r;
    out->tree = tree;
    out->ctes = NULL;
    out->scope = scope;
    out->core = NULL;
    out->parameters = p;
    out->depth++;
    out->aggregates_allowed = out->windows_allowed = out->aliases_allowed = false;
    return out->depth < PLAN_MAX_DEPTH;
}

static bool is_expression(const struct sql_query *q)
{
    const struct sql_select *s = q->selects;
    return !q->ctes && !q->order && !q->limit && !s->next && !s->rows && !s->from && !s->where && !s->group &&
           !s->having && s->items && !s->items->next && !s->items->star;
}

struct plan_expr *read_argument(struct reader *r, const struct sql_expr *x)
{
    const struct parameters *p = r->parameters;
    if (x->kind != EXPR_PARAMETER)
        return read_constant(r, x);
    const struct sql_token *t = &r->tree->tokens[x->at.first];
    for (uint32_t i = 0; p && i < p->n; i++) {
        if (t->len != strlen(p->names[i]) + 1 || t->text[0] != '$' ||
            strncasecmp(t->text + 1, p->names[i], t->len - 1) != 0)
            continue;
        struct plan_expr *v = p->values[i];
        if (v->op == X_CONST)
            return plan_const(r->plan, (enum plan_type)v->type, v->word);
        if (r->plan != p->plan) /* a query within the body looks at it: by keys, or not at all */
            return NULL;
        struct plan_expr *copy = plan_expr_new(r->plan, X_COLUMN, (enum plan_type)v->type, 0);
        if (!copy)
            return NULL;
        *copy = *v; /* computed once, wherever it stands: the slot is the same */
        copy->letter = 'c';
        return copy;
    }
    return NULL;
}

bool is_sql_function(const struct reader *r, const struct sql_expr *x)
{
    struct engine_sql_function f;
    return find(r, x->name, x->n_args, false, &f);
}

struct plan_expr *read_sql_function(struct reader *r, const struct sql_expr *x)
{
    struct engine_sql_function f;
    struct parameters p;
    struct reader body;
    struct plan_expr *out = NULL;
    if (x->over || !find(r, x->name, x->n_args, false, &f) || !bind(r, x->args, &f, false, &p) ||
        !open_body(r, &f, &p, &body))
        return NULL;
    struct parameters *kept = arena_alloc(r->planner->arena, sizeof *kept);
    if (!kept)
        return NULL;
    *kept = p;
    body.parameters = kept;
    const struct sql_query *q = body.tree->query;
    if (is_expression(q)) {
        out = read_expr(&body, q->selects->items->expr);
    } else {
        struct sql_expr query = {.kind = EXPR_SELECT, .query = (struct sql_query *)(uintptr_t)q, .at = q->at};
        out = read_lookup_of_one(&body, &query);
    }
    if (!out || out->letter == 'c')
        return out;
    struct plan_expr *copy = plan_expr_new(r->plan, X_COLUMN, (enum plan_type)out->type, 0);
    if (!copy)
        return NULL;
    *copy = *out; /* the value of a call has no affinity; computed once all the same */
    copy->letter = 'c';
    return copy;
}

bool read_sql_table(struct reader *r, const struct sql_from *from, struct sql_name alias, bool left)
{
    struct engine_sql_function f;
    struct parameters p, *kept;
    struct reader body;
    uint32_t n_args = 0, k = 0;
    for (const struct sql_expr *a = from->args; a; a = a->next)
        n_args++;
    if (!find(r, from->name, n_args, true, &f) || !bind(r, from->args, &f, true, &p) || !open_body(r, &f, &p, &body) ||
        !(kept = arena_alloc(r->planner->arena, sizeof *kept)))
        return false;
    const char *text = arena_strndup(r->planner->arena, f.sql, strlen(f.sql));
    *kept = p;
    body.parameters = kept;
    body.loops = text ? loops_new(r->planner, text, false) : NULL;
    body.loop_up = NULL;
    body.loop_arm = 0;
    body.any_order = r->below_any;
    body.always = true;
    struct query_plan *sub = plan_build(&body, body.tree->query, body.tree, NULL);
    if (sub && sub->n_items != f.n_columns) {
        plan_free(sub);
        sub = NULL;
    }
    if (!sub || !read_from_plan(r, sub, alias, left))
        return false;
    struct scope_entry *e = &r->scope->entries[r->scope->n_entries - 1];
    for (; k < e->n_columns; k++) {
        const char *name = arena_strndup(r->planner->arena, f.columns[k].name, strlen(f.columns[k].name));
        char type = f.columns[k].type;
        if (!name)
            return false;
        e->columns[k].name = (struct sql_name){name, (uint32_t)strlen(name), 0};
        e->columns[k].expr->letter = type == 'i' || type == 'd' || type == 't' ? type : 'c';
    }
    return true;
}
