/* json_object(), json_array() and json_group_array() in the list behind SELECT.
 *
 * SQLite marks what they give as JSON, and another JSON function takes what is marked without quotes. A value of a plan
 * has no mark. So they are read at the top of the list only, and their arguments must be values that never have one. */
#include "sql/plan/plan_private.h"

#include <string.h>

static const char quote[] = "SELECT json_quote(?1)", list[] = "SELECT '[' || coalesce(?1, '') || ']'";

bool is_json_call(const struct plan_expr *x)
{
    return x->op == X_CALL && strncmp(x->text, "SELECT json_", 12) == 0;
}

/* Could SQLite see a mark on the value? */
static bool is_marked(const struct reader *r, const struct plan_expr *x)
{
    const struct query_plan *p = r->plan;
    if (x->type != PLAN_TEXT || x->op == X_CONST)
        return false;
    if (x->op == X_CALL)
        return is_json_call(x);
    if (x->op == X_COLUMN && x->source < p->n_sources)
        return !p->sources[x->source].table.name;
    if (x->op == X_COLUMN && x->source == PLAN_GROUPS && x->column >= PLAN_MAX_ITEMS) {
        const struct plan_aggregate *a = &p->aggregates[x->column - PLAN_MAX_ITEMS];
        return a->kind != AGG_CONCAT && is_marked(r, a->arg);
    }
    return true;
}

/* The list behind SELECT of a statement that is a plan as a whole: its values go to nobody but the caller. */
static bool is_seen_by_nobody(const struct reader *r)
{
    return r->whole && r->depth == 1 && !r->loop_arm && !r->parameters && r->windows_allowed && r->aggregates_allowed;
}

static bool is_of(const struct sql_expr *x, const char *name)
{
    return x->kind == EXPR_FUNCTION && sql_name_is(x->name, name) && !x->over && !x->star;
}

static bool is_json_list(const struct sql_expr *x)
{
    return is_of(x, "json_group_array") && x->n_args == 1;
}

struct plan_expr *read_json(struct reader *r, const struct sql_expr *x)
{
    struct plan_expr *args[PLAN_MAX_CALL_ARGS];
    bool object = is_of(x, "json_object");
    const char *text = object ? "SELECT json_object(" : "SELECT json_array(";
    uint32_t n = 0;
    if ((!object && !is_of(x, "json_array")) || x->distinct || x->filter || !x->n_args ||
        x->n_args > PLAN_MAX_CALL_ARGS)
        return NULL;
    for (const struct sql_expr *a = x->args; a && text; a = a->next) {
        args[n] = read_expr(r, a);
        if (!args[n] || is_marked(r, args[n]))
            return NULL;
        n++;
        text = arena_printf(&r->plan->arena, "%s?%u%s", text, n, a->next ? ", " : ")");
    }
    struct plan_expr *out = text ? plan_make_call(r->plan, PLAN_TEXT, text, args, n) : NULL;
    if (out)
        format_read_json(r->plan, out, object);
    return out;
}

struct plan_expr *read_json_value(struct reader *r, const struct sql_expr *x)
{
    struct plan_expr *out = read_json(r, x);
    if (out)
        return out;
    out = read_expr(r, x);
    out =
        out && out->type != PLAN_NULL && !is_marked(r, out) ? plan_make_call(r->plan, PLAN_TEXT, quote, &out, 1) : NULL;
    if (out)
        format_read_quote(r->plan, out);
    return out;
}

/* The same where each is to be listed once: reals that are not equal may stand there alike. */
static struct plan_expr *read_json_kind(struct reader *r, const struct sql_expr *x)
{
    struct plan_expr *out = read_json_value(r, x);
    return out && out->text == quote && out->args[0]->type == PLAN_REAL ? NULL : out;
}

/* json_group_array(value): also of no rows. */
static struct plan_expr *read_json_list(struct reader *r, const struct sql_expr *x)
{
    struct plan_expr *values = read_concat(r, x, x->distinct ? read_json_kind : read_json_value);
    return values ? plan_make_call(r->plan, PLAN_TEXT, list, &values, 1) : NULL;
}

struct plan_expr *read_json_item(struct reader *r, const struct sql_expr *x)
{
    if (!is_seen_by_nobody(r))
        return NULL;
    return is_json_list(x) ? read_json_list(r, x) : read_json(r, x);
}
