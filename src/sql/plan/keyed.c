/* Cores that answer lookups: their conditions `inner = outer` become keys, `inner < outer` and the like ranges, and are
 * taken out of them; and cores that are read for another list than their own. */
#include "sql/plan/build_private.h"

/* Do the names of an expression mean nothing in this query? */
static bool is_outside(const struct reader *r, const struct sql_expr *x)
{
    struct plan_expr *found;
    if (x->query || x->in_table || (x->kind == EXPR_COLUMN && scope_find(r, x, &found) != 0))
        return false;
    for (const struct sql_item *i = r->core->items; x->kind == EXPR_COLUMN && !x->table.len && i; i = i->next)
        if (i->alias.len && sql_name_equal(i->alias, x->name))
            return false;
    for (const struct sql_expr *a = x->args; a; a = a->next)
        if (!is_outside(r, a))
            return false;
    return true;
}

/* ---- conditions ---- */

/* inner = outer: a key; other comparisons: a range. */
static bool add_pair(struct keyed *k, uint8_t op, struct plan_expr *inside, struct plan_expr *outside)
{
    if (!inside || !outside || !inside->sources || !outside->sources || inside->type != outside->type ||
        inside->type == PLAN_REAL || inside->type == PLAN_NULL)
        return false;
    if (op == SQL_EQ && k->n < PLAN_MAX_KEYS) {
        k->inner[k->n] = inside;
        k->outer[k->n++] = outside;
        return true;
    }
    if (op == SQL_EQ || k->n_ranges == PLAN_MAX_RANGES || (inside->type != PLAN_INT && op != SQL_NE))
        return false;
    k->ranges[k->n_ranges++] = (struct plan_range){inside, outside, op};
    return true;
}

/* `a op b`, where one of them looks outside, or none does. */
static bool read_pair(struct reader *r, struct reader *outer, uint8_t op, const struct sql_expr *a,
                      const struct sql_expr *b, struct keyed *k)
{
    static const uint8_t turned[] = {[SQL_EQ] = SQL_EQ, [SQL_NE] = SQL_NE, [SQL_LT] = SQL_GT,
                                     [SQL_LE] = SQL_GE, [SQL_GT] = SQL_LT, [SQL_GE] = SQL_LE};
    struct query_plan *p = r->plan;
    struct plan_expr *x = read_expr(r, a), *y = x || is_outside(r, a) ? read_expr(r, b) : NULL;
    if (x && y && (x->sources || y->sources)) {
        struct plan_expr *both = read_compare(r, op, x, y);
        if (!both || p->n_where == PLAN_MAX_TESTS)
            return false;
        p->where[p->n_where++] = both;
        return true;
    }
    if (x && is_outside(r, b))
        return add_pair(k, op, x, read_expr(outer, b));
    return y && is_outside(r, a) && add_pair(k, turned[op], y, read_expr(outer, a));
}

static bool read_keyed_where(struct reader *r, struct reader *outer, const struct sql_expr *x, struct keyed *k)
{
    struct query_plan *p = r->plan;
    if (x->kind == EXPR_BINARY && x->op == SQL_AND)
        return read_keyed_where(r, outer, x->args, k) && read_keyed_where(r, outer, x->args->next, k);
    uint32_t before = p->n_where;
    if (read_conjunction(r, x, p->where, &p->n_where))
        return true;
    p->n_where = before;
    if (x->kind == EXPR_BETWEEN && !x->negated)
        return read_pair(r, outer, SQL_GE, x->args, x->args->next, k) &&
               read_pair(r, outer, SQL_LE, x->args, x->args->next->next, k);
    return x->kind == EXPR_BINARY && x->op <= SQL_GE && read_pair(r, outer, x->op, x->args, x->args->next, k);
}

/* ---- values ---- */

/* An aggregate of rows within ranges, and what a row counts for; false: none that is known. */
static bool read_ranged_aggregate(struct reader *r, struct keyed *k, struct plan_expr **arg)
{
    static const struct {
        const char *name;
        uint8_t kind;
    } kinds[] = {{"count", AGG_COUNT}, {"sum", AGG_SUM}, {"total", AGG_TOTAL},
                 {"avg", AGG_AVG},     {"min", AGG_MIN}, {"max", AGG_MAX}};
    const struct sql_expr *x = k->value;
    if (x->kind != EXPR_FUNCTION || x->over || x->filter || x->distinct || x->n_args > 1)
        return false;
    bool star = sql_name_is(x->name, "count") && (x->star || x->n_args == 0);
    *arg = star ? plan_const(r->plan, PLAN_INT, 1) : x->n_args == 1 ? read_expr(r, x->args) : NULL;
    for (size_t i = 0; *arg && i < sizeof kinds / sizeof *kinds; i++) {
        bool counts = kinds[i].kind == AGG_COUNT && (*arg)->type != PLAN_NULL;
        bool extreme = (kinds[i].kind == AGG_MIN || kinds[i].kind == AGG_MAX) && (*arg)->type == PLAN_REAL;
        if (sql_name_is(x->name, kinds[i].name) && (counts || extreme || (*arg)->type == PLAN_INT)) {
            k->aggregate = kinds[i].kind;
            return true;
        }
    }
    return false;
}

static bool is_aggregate(const struct sql_expr *x)
{
    static const char *const names[] = {"count", "sum", "total", "avg", "min", "max"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && x->kind == EXPR_FUNCTION; i++)
        found |= sql_name_is(x->name, names[i]);
    return found && x->n_args < 2 && !x->over;
}

/* The only aggregate in an expression whose other parts mean nothing in this query; NULL: there are several, or none.
 */
static const struct sql_expr *only_aggregate(const struct reader *r, const struct sql_expr *x, bool *ok)
{
    const struct sql_expr *found = NULL;
    if (is_aggregate(x))
        return x;
    if (!x->args) {
        *ok &= is_outside(r, x);
        return NULL;
    }
    *ok &= !x->query && !x->in_table && !x->over && !x->filter;
    for (const struct sql_expr *a = x->args; a; a = a->next) {
        const struct sql_expr *within = only_aggregate(r, a, ok);
        *ok &= !within || !found;
        found = within ? within : found;
    }
    return found;
}

/* `s.ts - max(e.ts)`: the aggregate is looked up, and the rest computed outside. */
void plan_take_aggregate(const struct reader *r, const struct sql_expr **value, const struct sql_expr **whole)
{
    bool ok = !is_aggregate(*value);
    const struct sql_expr *a = ok ? only_aggregate(r, *value, &ok) : NULL;
    if (a && ok) {
        *whole = *value;
        *value = a;
    }
}

/* SQLite walks backwards through a table that is sorted by the only term, which it descends: equal rows come from the
 * last to the first. */
static bool read_turned_order(struct reader *r, struct keyed *k)
{
    struct query_plan *p = r->plan;
    const struct plan_expr *x = p->n_orders == 1 && p->orders_desc[0] ? p->orders[0] : NULL;
    if (!x || x->op != X_COLUMN || x->column < 0 || p->n_sources != 1 || !p->sources[0].table.name ||
        !p->sources[0].table.table->columns[x->column].sorted)
        return true;
    for (uint32_t i = 0; i < k->n; i++) /* it would leave the term out */
        if (plan_expr_equal(k->inner[i], x))
            return false;
    for (uint32_t i = 0; i < p->n_where; i++)
        if (p->where[i]->op != X_COMPARE ||
            ((p->where[i]->sql == SQL_EQ || p->where[i]->sql == SQL_IS) &&
             (plan_expr_equal(p->where[i]->args[0], x) || plan_expr_equal(p->where[i]->args[1], x))))
            return false;
    if (k->n || k->n_ranges) {
        k->last = true;
        p->n_orders = 0;
        return true;
    }
    p->orders_desc[1] = true;
    return (p->orders[p->n_orders++] = plan_column(p, 0, VTAB_ROW, PLAN_INT)) != NULL;
}

/* The value is an aggregate by key, without another column, or a column. */
static bool read_keyed_value(struct reader *r, const struct sql_select *s, struct keyed *k)
{
    struct query_plan *p = r->plan;
    struct plan_expr *arg = NULL;
    r->aliases_allowed = false;
    plan_take_aggregate(r, &k->value, &k->whole);
    if (k->n_ranges && read_ranged_aggregate(r, k, &arg)) {
        r->any_order = true;
        return plan_add_item(r, arg, "value", 5) && !s->query->order && !s->query->limit;
    }
    r->aggregates_allowed = !k->n_ranges;
    if (!plan_add_item(r, read_expr(r, k->value), "value", 5))
        return false;
    r->aliases_allowed = true;
    r->aggregates_allowed = false;
    if (!p->grouped)
        return plan_read_orders(r, s) && read_turned_order(r, k);
    for (uint32_t i = 0; i < k->n; i++) {
        for (uint32_t j = 0; j < i; j++)
            if (plan_expr_equal(k->inner[i], k->inner[j]))
                return false;
        p->keys[p->n_keys++] = k->inner[i];
    }
    return !s->query->order && !s->query->limit;
}

/* Of what SQLite computes first it makes an index, which is sorted by all columns, or hands the condition down into it:
 * which row of a key it finds first is not known. */
static bool is_computed(const struct query_plan *p)
{
    bool computed = false;
    for (uint32_t i = 0; i < p->n_sources; i++)
        computed |= p->sources[i].sub || p->sources[i].values;
    return computed;
}

bool plan_read_keyed_core(struct reader *r, struct reader *outer, const struct sql_select *s, struct keyed *k)
{
    struct query_plan *p = r->plan;
    r->core = s;
    r->aliases_allowed = false;
    if (!s->from || !read_from(r, s->from))
        return false;
    r->aliases_allowed = true;
    if (s->where && !read_keyed_where(r, outer, s->where, k))
        return false;
    for (uint32_t i = 0; i < k->n; i++)
        if (!plan_add_item(r, k->inner[i], "key", 3))
            return false;
    if (!k->value && !k->n && !k->n_ranges && !plan_add_item(r, plan_const(p, PLAN_INT, 1), "any", 3))
        return false;
    if (k->value && !read_keyed_value(r, s, k))
        return false;
    for (uint32_t i = 0; i < k->n_ranges; i++)
        if (!plan_add_item(r, k->ranges[i].own, "range", 5))
            return false;
    for (uint32_t i = 0; k->ties && i < p->n_orders; i++)
        if (!plan_add_item(r, p->orders[i], "order", 5))
            return false;
    p->limit = k->n || k->n_ranges ? -1 : 1; /* one will do */
    p->order_unknown |= (k->n || k->n_ranges) && is_computed(p);
    if (!plan_lift(p) || (p->grouped && p->groups.n_columns > p->n_keys))
        return false;
    return plan_steps(p) && plan_settle_extreme(p) && plan_settle_order(r);
}

/* ---- a list ---- */

/* The columns of a list over the rows of a core, whatever stands behind its SELECT. */
bool plan_read_list_core(struct reader *r, const struct sql_select *s, const struct list *list)
{
    struct query_plan *p = r->plan;
    r->core = s;
    r->aliases_allowed = false;
    if (!read_from(r, s->from) || (s->where && !read_conjunction(r, s->where, p->where, &p->n_where)))
        return false;
    for (uint32_t i = 0; i < list->n; i++)
        if (!plan_add_item(r, read_expr(r, list->items[i]), "value", 5))
            return false;
    p->limit = -1;
    return plan_steps(p) && plan_settle_extreme(p) && plan_settle_order(r);
}

struct query_plan *plan_build_keyed(struct reader *outer, const struct sql_query *q, struct keyed *k)
{
    const struct sql_select *s = q->selects;
    return s->next || s->group || s->having || s->windows || s->distinct
               ? NULL
               : plan_build_core(outer, q, s, outer->tree, outer->ctes, &(struct asked){.keyed = k});
}

struct query_plan *plan_build_list(struct reader *outer, const struct sql_query *q, const struct list *list)
{
    const struct sql_select *s = q->selects;
    return s->next || s->group || s->having || s->windows || s->distinct || q->order || q->limit
               ? NULL
               : plan_build_core(outer, q, s, outer->tree, outer->ctes, &(struct asked){.list = list});
}
