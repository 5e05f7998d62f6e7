/* Whose an aggregate is that stands in a query within an expression: SQLite takes it for one of the query around where
 * it names columns of that alone, which makes groups of the query around. */
#include "sql/plan/plan_private.h"

#include <string.h>

static bool is_aggregate(struct engine *e, const struct sql_expr *x)
{
    static const char *const names[] = {
        "count", "sum", "total", "avg", "group_concat", "string_agg", "json_group_array", "json_group_object"};
    char name[64];
    bool found = (sql_name_is(x->name, "min") || sql_name_is(x->name, "max")) && x->n_args == 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        found |= sql_name_is(x->name, names[i]);
    if (found || x->name.len >= sizeof name)
        return found;
    memcpy(name, x->name.p, x->name.len);
    name[x->name.len] = 0;
    const struct engine_function *own = engine_find_function(e, name, -2);
    return own && own->step;
}

/* May it be a column of a source of this scope? Nearer ones may hide it. */
static bool may_mean(const struct reader *r, const struct sql_expr *x)
{
    static const char *const row[] = {"rowid", "oid", "_rowid_"};
    bool may = !x->table.len && scope_column_of(r, x);
    for (size_t i = 0; i < sizeof row / sizeof *row && !x->table.len; i++)
        may |= sql_name_is(x->name, row[i]);
    for (uint32_t i = 0; i < r->scope->n_entries && x->table.len; i++)
        may |= sql_name_equal(x->table, r->scope->entries[i].alias);
    return may;
}

struct names {
    bool of_scope, of_others;
};

static void find_names(const struct reader *r, const struct sql_expr *x, struct names *n)
{
    for (; x; x = x->next) {
        if (x->query || (x->kind == EXPR_COLUMN && may_mean(r, x)))
            n->of_scope = true; /* of a query nobody knows */
        else if (x->kind == EXPR_COLUMN)
            n->of_others = true;
        find_names(r, x->args, n);
    }
}

static bool query_owes(const struct reader *r, const struct sql_query *q);

/* `within`: in a query within the expression. */
static bool owes(const struct reader *r, const struct sql_expr *x, bool within)
{
    for (; x; x = x->next) {
        struct names n = {0};
        if (within && x->kind == EXPR_FUNCTION && !x->over && is_aggregate(r->planner->e, x)) {
            find_names(r, x->args, &n);
            find_names(r, x->filter, &n);
        }
        if ((n.of_scope && !n.of_others) || (x->query && query_owes(r, x->query)) || owes(r, x->args, within) ||
            owes(r, x->filter, within))
            return true;
    }
    return false;
}

static bool from_owes(const struct reader *r, const struct sql_from *f)
{
    for (; f; f = f->next)
        if (owes(r, f->on, true) || owes(r, f->args, true) || (f->query && query_owes(r, f->query)) ||
            from_owes(r, f->group))
            return true;
    return false;
}

static bool query_owes(const struct reader *r, const struct sql_query *q)
{
    bool found = false;
    for (const struct sql_select *s = q->selects; s && !found; s = s->next) {
        for (const struct sql_item *i = s->items; i && !found; i = i->next)
            found = !i->star && owes(r, i->expr, true);
        found |= owes(r, s->where, true) || owes(r, s->group, true) || owes(r, s->having, true) ||
                 owes(r, s->rows, true) || from_owes(r, s->from);
    }
    for (const struct sql_order *o = q->order; o && !found; o = o->next)
        found = owes(r, o->expr, true);
    for (const struct sql_cte *c = q->ctes; c && !found; c = c->next)
        found = query_owes(r, c->query);
    return found;
}

bool owner_may_be(const struct reader *r, const struct sql_expr *x)
{
    return owes(r, x, false);
}
