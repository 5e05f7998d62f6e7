/* Queries in expressions that look at nothing outside: computed once in each run, by a plan of their own where they
 * have one row by what they say, else by SQLite. Which type they have is known before from their columns, or from the
 * aggregate. */
#include "sql/plan/plan_private.h"

#include <strings.h>

static bool has_quoted(const struct reader *r, struct sql_span at)
{
    for (uint32_t i = at.first; i < at.end; i++)
        if (r->tree->tokens[i].text[0] == '"')
            return true;
    return false;
}

static bool has_parameter(const struct reader *r, struct sql_span at)
{
    for (uint32_t i = at.first; i < at.end; i++)
        if (r->tree->tokens[i].kind == TOKEN_VARIABLE)
            return true;
    return false;
}

/* Could a word of the text be the name of a table of WITH around it? */
static bool may_name_cte(const struct reader *r, struct sql_span at)
{
    for (uint32_t i = at.first; i < at.end; i++) {
        const struct sql_token *t = &r->tree->tokens[i];
        if (t->text[0] == '[' || t->text[0] == '`')
            return true;
        for (const struct cte_scope *s = r->ctes; s; s = s->up)
            for (const struct sql_cte *c = s->query->ctes; c; c = c->next)
                if (t->len == c->name.len && strncasecmp(t->text, c->name.p, t->len) == 0)
                    return true;
    }
    return false;
}

/* The bounds of the trace are declared without types. */
static bool asks_for_bounds(const struct sql_select *core)
{
    const struct sql_from *f = core->from;
    return f && !f->next && f->form == SOURCE_TABLE &&
           (sql_name_is(f->name, "trace_bounds") || sql_name_is(f->name, "_trace_bounds"));
}

/* Arithmetic of columns and integers: of columns that are integers it gives one. */
static bool is_whole(const struct sql_expr *x)
{
    if (x->kind != EXPR_BINARY)
        return x->kind == EXPR_COLUMN || x->kind == EXPR_INTEGER;
    bool arithmetic = x->op == SQL_ADD || x->op == SQL_SUBTRACT || x->op == SQL_MULTIPLY || x->op == SQL_DIVIDE ||
                      x->op == SQL_REMAINDER;
    return arithmetic && is_whole(x->args) && is_whole(x->args->next);
}

/* What an aggregate gives as a rule, or a column of the bounds. Where it gives something else (max() of a text), the
 * plan gives up when it runs. */
static enum plan_type usual_type(const struct sql_query *q)
{
    static const struct {
        const char *name;
        enum plan_type type;
    } aggregates[] = {{"count", PLAN_INT}, {"min", PLAN_INT},    {"max", PLAN_INT},     {"sum", PLAN_INT},
                      {"avg", PLAN_REAL},  {"total", PLAN_REAL}, {"median", PLAN_REAL}, {"percentile", PLAN_REAL}};
    const struct sql_select *core = q->selects;
    if (core->next || core->n_items != 1 || core->items->star)
        return PLAN_NULL;
    if (core->items->expr->kind != EXPR_FUNCTION || core->items->expr->over)
        return asks_for_bounds(core) && is_whole(core->items->expr) ? PLAN_INT : PLAN_NULL;
    for (size_t i = 0; i < sizeof aggregates / sizeof *aggregates; i++)
        if (sql_name_is(core->items->expr->name, aggregates[i].name))
            return aggregates[i].type;
    return PLAN_NULL;
}

/* Has the query one row at most, by what it says itself? Then a plan of its own gives what SQLite takes from it. */
static bool has_one_row(const struct reader *r, const struct sql_query *q)
{
    const struct sql_select *core = q->selects;
    if (q->offset || core->next || core->rows || core->n_items != 1 || core->items->star)
        return false;
    if (q->limit) {
        const struct sql_token *t = &r->tree->tokens[q->limit->at.first];
        return q->limit->kind == EXPR_INTEGER && t->len == 1 && t->text[0] == '1';
    }
    return !core->group && usual_type(q) != PLAN_NULL && !asks_for_bounds(core);
}

/* (SELECT column …) that looks at nothing outside: SQLite computes it once in each run. Its type is that of the column,
 * which must be declared, or that of an aggregate. */
struct plan_expr *read_query(struct reader *r, const struct sql_expr *x)
{
    size_t len;
    sqlite3_stmt *stmt = NULL;
    enum plan_type type = PLAN_NULL;
    bool asks = has_parameter(r, x->at);
    const struct plan_arguments *arguments = asks ? read_arguments(r, &r->plan->arena) : NULL;
    if (x->query->ctes || may_name_cte(r, x->at) || has_quoted(r, x->at) || (asks && !arguments))
        return NULL;
    const char *query = sql_tree_text(r->tree, r->planner->arena, x->at, &len);
    char *text = query ? arena_printf(&r->plan->arena, "SELECT * FROM %s LIMIT 1", query) : NULL;
    if (text && engine_compile(r->planner->e, text, -1, 0, &stmt, NULL) == SQLITE_OK &&
        sqlite3_column_count(stmt) == 1) {
        const char *declared = sqlite3_column_decltype(stmt, 0);
        if (declared && (sqlite3_stricmp(declared, "BIGINT") == 0 || sqlite3_stricmp(declared, "INTEGER") == 0))
            type = PLAN_INT;
        else if (declared && sqlite3_stricmp(declared, "DOUBLE") == 0)
            type = PLAN_REAL;
        else if (declared && sqlite3_stricmp(declared, "TEXT") == 0)
            type = PLAN_TEXT;
        else if (!declared)
            type = usual_type(x->query);
    }
    sqlite3_finalize(stmt);
    text = type != PLAN_NULL ? arena_printf(&r->plan->arena, "SELECT %s", query) : NULL;
    struct plan_expr *out = text ? plan_make_call(r->plan, type, text, NULL, 0) : NULL;
    if (!out)
        return NULL;
    out->arguments = arguments;
    if (has_one_row(r, x->query) && query[0] == '(' && query[len - 1] == ')')
        out->query = arena_strndup(&r->plan->arena, query + 1, len - 2);
    return out;
}
