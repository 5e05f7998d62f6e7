/* Moves expressions to the part of a plan that can compute them: what does not look at groups or windows becomes a
 * column of the stage before. */
#include "sql/plan/varied.h"

int plan_stage_column(struct query_plan *p, struct plan_stage *s, struct plan_expr *x)
{
    (void)p;
    for (uint32_t i = 0; i < s->n_columns; i++)
        if (plan_expr_equal(s->columns[i], x))
            return (int)i;
    if (s->n_columns == PLAN_MAX_ITEMS)
        return -1;
    s->columns[s->n_columns] = x;
    return (int)s->n_columns++;
}

/* The expression over the columns of a stage: what does not look at the stage itself becomes one of them. */
static struct plan_expr *lift(struct query_plan *p, struct plan_stage *s, uint8_t source, const struct plan_expr *x)
{
    bool looks = (x->sources & (1u << source | 1u << PLAN_WINDOWS)) != 0;
    if (!x->sources)
        return (struct plan_expr *)(uintptr_t)x;
    if (!looks) {
        int at = plan_stage_column(p, s, (struct plan_expr *)(uintptr_t)x);
        struct plan_expr *c = at < 0 ? NULL : plan_column(p, source, (int16_t)at, (enum plan_type)x->type);
        if (c) {
            c->letter = x->letter;
            c->mixed = x->mixed;
            c->varied = x->varied;
        }
        return c;
    }
    if (x->n_args == 0)
        return (struct plan_expr *)(uintptr_t)x;
    struct plan_expr *copy = plan_expr_like(p, x);
    for (uint32_t i = 0; copy && i < x->n_args; i++) {
        if (!(copy->args[i] = lift(p, s, source, x->args[i])))
            return NULL;
        copy->sources |= copy->args[i]->sources;
    }
    return copy;
}

static bool lift_in_place(struct query_plan *p, struct plan_stage *s, uint8_t source, struct plan_expr **x)
{
    return !*x || (*x = lift(p, s, source, *x)) != NULL;
}

static bool lift_results(struct query_plan *p, struct plan_stage *s, uint8_t source)
{
    bool ok = true;
    for (uint32_t i = 0; ok && i < p->n_items; i++)
        ok = lift_in_place(p, s, source, &p->items[i].expr);
    for (uint32_t i = 0; ok && i < p->n_orders; i++)
        ok = lift_in_place(p, s, source, &p->orders[i]);
    return ok;
}

/* Keys, then what varied ones are compared by. */
static bool add_keys(struct query_plan *p)
{
    bool ok = true;
    for (uint32_t i = 0; i < p->n_keys; i++)
        p->groups.columns[p->groups.n_columns++] = p->keys[i];
    for (uint32_t i = 0; ok && i < p->n_keys; i++) {
        struct plan_expr *x = p->keys[i]->varied ? varied_compared(p, p->keys[i]) : p->keys[i];
        int at = x ? plan_stage_column(p, &p->groups, x) : -1;
        p->key_orders[i] = (int16_t)at;
        ok = at >= 0;
    }
    return ok;
}

bool plan_lift(struct query_plan *p)
{
    if (p->grouped) {
        bool ok = add_keys(p) && lift_in_place(p, &p->groups, PLAN_GROUPS, &p->having) &&
                  lift_results(p, &p->groups, PLAN_GROUPS);
        for (uint32_t i = 0; ok && i < p->window_rows.n_columns; i++)
            ok = lift_in_place(p, &p->groups, PLAN_GROUPS, &p->window_rows.columns[i]);
        if (!ok)
            return false;
    }
    return !p->n_windows || lift_results(p, &p->window_rows, PLAN_WINDOWS);
}

/* ---- which columns are read ---- */

static bool reads(const struct plan_expr *x, uint8_t source, int16_t column)
{
    if (x && x->op == X_COLUMN && x->source == source && x->column == column)
        return true;
    for (uint32_t i = 0; x && i < x->n_args; i++)
        if (reads(x->args[i], source, column))
            return true;
    return false;
}

static bool any_reads(struct plan_expr *const *list, uint32_t n, uint8_t source, int16_t column)
{
    for (uint32_t i = 0; i < n; i++)
        if (reads(list[i], source, column))
            return true;
    return false;
}

bool plan_uses(const struct query_plan *p, uint8_t source, int16_t column)
{
    bool used = any_reads(p->where, p->n_where, source, column) || any_reads(p->keys, p->n_keys, source, column) ||
                any_reads(p->orders, p->n_orders, source, column) ||
                any_reads(p->groups.columns, p->groups.n_columns, source, column) ||
                any_reads(p->window_rows.columns, p->window_rows.n_columns, source, column) ||
                reads(p->having, source, column);
    for (uint32_t i = 0; i < p->n_items; i++)
        used |= reads(p->items[i].expr, source, column);
    for (uint32_t i = 0; i < p->n_aggregates; i++)
        used |= reads(p->aggregates[i].arg, source, column) || reads(p->aggregates[i].filter, source, column);
    for (uint32_t i = 0; i < p->n_sources; i++)
        used |= any_reads(p->sources[i].on, p->sources[i].n_on, source, column) ||
                reads(p->sources[i].kin_of, source, column);
    return used;
}
