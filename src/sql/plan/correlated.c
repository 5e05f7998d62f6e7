/* Queries within expressions whose conditions or values mix what they read with columns of the rows outside:
 *
 *     (SELECT sum(min(c.ts + c.dur, s.ts + s.dur) - max(c.ts, s.ts)) FROM sched c WHERE c.utid = s.utid AND …)
 *     (SELECT state FROM thread_state t WHERE t.utid = s.utid GROUP BY state ORDER BY sum(dur) DESC LIMIT 1)
 *     (SELECT count(*) FROM ancestor_slice(s.id))
 *
 * The rows outside that ask are one more source, which comes first: its columns are what the query reads of them. It
 * runs once for each batch of them, as the step of a recursion does, and its groups are kept apart by their numbers
 * (correlated_rows.c). */
#include "sql/plan/build_private.h"

/* The place among the columns of the rows that ask; -1: there are too many. */
static int place_of(struct correlated *c, struct plan_expr *x)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (plan_expr_equal(c->args[i], x))
            return (int)i;
    if (c->n == PLAN_MAX_KEYS)
        return -1;
    c->args[c->n] = x;
    return (int)c->n++;
}

struct plan_expr *read_correlated_column(struct reader *r, const struct sql_expr *x)
{
    struct correlated *c = r->correlated;
    if (!c || c->core != r->core || x->kind != EXPR_COLUMN)
        return NULL;
    for (const struct sql_item *i = r->core->items; !x->table.len && i; i = i->next)
        if (i->alias.len && sql_name_equal(i->alias, x->name))
            return NULL; /* it may mean that */
    struct plan_expr *of = read_expr(c->outer, x);
    if (!of || of->type == PLAN_NULL || of->mixed || of->varied)
        return NULL;
    if (of->op == X_CONST)
        return plan_const(r->plan, (enum plan_type)of->type, of->word);
    int at = place_of(c, of);
    struct plan_expr *out = at < 0 ? NULL : plan_column(r->plan, 0, (int16_t)at, (enum plan_type)of->type);
    if (out)
        out->letter = of->letter;
    return out;
}

static bool add_asking_rows(struct query_plan *p)
{
    struct plan_round *rows = arena_zalloc(&p->arena, sizeof *rows);
    if (!rows)
        return false;
    p->rows = rows;
    p->sources[p->n_sources++] = (struct plan_source){.round = rows};
    return true;
}

/* An aggregate of nothing but columns of a query outside is that query's. */
static bool owns_aggregates(const struct query_plan *p)
{
    for (uint32_t i = 0; i < p->n_aggregates; i++) {
        const struct plan_aggregate *a = &p->aggregates[i];
        uint32_t sources = (a->arg ? a->arg->sources : 0) | (a->filter ? a->filter->sources : 0);
        if (sources & 1 && (!a->arg || !(a->arg->sources & ~1u)))
            return false;
    }
    return true;
}

/* The rows that ask are told apart by the first key. */
static bool key_by_row(struct query_plan *p, struct plan_expr *row)
{
    if (p->n_keys == PLAN_MAX_KEYS)
        return false;
    for (uint32_t i = p->n_keys++; i > 0; i--)
        p->keys[i] = p->keys[i - 1];
    p->keys[0] = row;
    p->grouped = true;
    return true;
}

/* What stands in a group beside keys and aggregates may be of the row that asks only: which of the others SQLite would
 * take is not known. */
static bool has_no_bare_columns(const struct query_plan *p)
{
    for (uint32_t i = p->n_keys; i < p->groups.n_columns; i++)
        if (p->groups.columns[i]->sources & ~1u)
            return false;
    return true;
}

/* Terms of GROUP BY and ORDER BY see nothing outside, but for the names that the list gives. */
static bool is_inside(const struct reader *r, const struct sql_expr *x)
{
    struct plan_expr *found;
    bool known = x->kind != EXPR_COLUMN || scope_find(r, x, &found) > 0;
    for (const struct sql_item *i = r->core->items; !known && !x->table.len && i; i = i->next)
        known = i->alias.len && sql_name_equal(i->alias, x->name);
    if (!known || x->query || x->in_table)
        return false;
    for (const struct sql_expr *a = x->args; a; a = a->next)
        if (!is_inside(r, a))
            return false;
    return true;
}

static bool terms_are_inside(const struct reader *r, const struct sql_select *s)
{
    bool inside = true;
    for (const struct sql_expr *x = s->group; x && inside; x = x->next)
        inside = is_inside(r, x);
    for (const struct sql_order *o = s->query->order; o && inside; o = o->next)
        inside = is_inside(r, o->expr);
    return inside;
}

static bool read_value(struct reader *r, const struct sql_select *s, struct correlated *c)
{
    struct query_plan *p = r->plan;
    r->aggregates_allowed = true;
    r->aliases_allowed = false;
    if (!s->group)
        plan_take_aggregate(r, &c->value, &c->whole);
    return plan_add_item(r, read_expr(r, c->value), "value", 5) && (!p->grouped || s->group || !s->query->order);
}

bool plan_read_correlated_core(struct reader *r, const struct sql_select *s, struct correlated *c)
{
    struct query_plan *p = r->plan;
    struct plan_expr *row = plan_column(p, 0, VTAB_ROW, PLAN_INT);
    r->core = s;
    r->correlated = c;
    r->aliases_allowed = false;
    if (!s->from || !row || !add_asking_rows(p) || !read_from(r, s->from) || p->right || p->n_sources < 2 ||
        !terms_are_inside(r, s))
        return false;
    r->aliases_allowed = true;
    if ((s->where && !read_conjunction(r, s->where, p->where, &p->n_where)) || !plan_read_groups(r, s) ||
        !plan_add_item(r, row, "row", 3) || (c->value && !read_value(r, s, c)))
        return false;
    r->aggregates_allowed = r->aliases_allowed = true;
    if (s->having && (!s->group || !(p->having = read_expr(r, s->having)) || p->having->type == PLAN_TEXT))
        return false;
    r->aggregates_allowed = p->grouped;
    if (!plan_read_orders(r, s) || !c->n || !owns_aggregates(p))
        return false;
    if ((p->grouped || !c->value) && !key_by_row(p, row)) /* EXISTS asks for one row of each */
        return false;
    for (uint32_t i = 0; i < p->n_orders; i++)
        if (!plan_add_item(r, p->orders[i], "order", 5))
            return false;
    p->limit = -1;
    return plan_lift(p) && (!p->grouped || has_no_bare_columns(p)) && plan_steps(p) && plan_settle_extreme(p) &&
           plan_settle_order(r);
}

/* Of one table SQLite finds the rows in their order, for each row that asks; not where it looks them up one by one, or
 * sorts them into groups. */
bool correlated_settle(struct query_plan *p)
{
    for (uint32_t i = 0; i < p->n_where; i++)
        if (p->where[i]->op == X_IN || p->where[i]->op == X_LOOKUP)
            return false;
    return p->n_keys == 1 && recursion_settle(p);
}

struct query_plan *plan_build_correlated(const struct sql_query *q, struct correlated *c)
{
    const struct sql_select *s = q->selects;
    c->core = s;
    return s->next || s->rows || s->windows || s->distinct || q->offset || (q->order && !c->value)
               ? NULL
               : plan_build_core(c->outer, q, s, c->outer->tree, c->outer->ctes, &(struct asked){.correlated = c});
}
