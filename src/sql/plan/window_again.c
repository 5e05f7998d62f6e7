/* ORDER BY of windows where these are computed in several levels.
 *
 * A term of ORDER BY that is an item is a copy of it to SQLite. Windows of the first level stand nowhere beneath it, so
 * that those of the copy are computed once more, before all others: the rows come sorted for them to the levels above,
 * and where equal rows are ranked the copy may have other ranks than the item. SQLite sorts by the copy, and takes the
 * item from what it has sorted by. Windows of other levels are the same columns in both. */
#include "sql/plan/build_private.h"

#include <string.h>

/* The only item that is the expression; NULL: there is none, or more. */
static struct plan_item *item_of(struct query_plan *p, const struct plan_expr *x)
{
    struct plan_item *found = NULL;
    for (uint32_t i = 0; i < p->n_items; i++) {
        if (!plan_expr_equal(p->items[i].expr, x))
            continue;
        if (found)
            return NULL;
        found = &p->items[i];
    }
    return found;
}

/* The level of the copies, like the first one. False: there are too many. */
static bool add_level(struct query_plan *p, uint32_t *level)
{
    if (*level)
        return true;
    if (p->n_levels == PLAN_MAX_LEVELS)
        return false;
    p->levels[p->n_levels] = p->levels[0];
    *level = p->n_levels++;
    return true;
}

static struct plan_expr *copy_result(struct query_plan *p, const struct plan_expr *x, uint32_t *level)
{
    struct plan_window w;
    uint32_t same = 0;
    if (!add_level(p, level))
        return NULL;
    memcpy(&w, &p->windows[x->column], sizeof w); /* whole words are compared */
    w.level = (uint8_t)*level;
    while (same < p->n_windows && memcmp(&p->windows[same], &w, sizeof w) != 0)
        same++;
    struct plan_expr *out = same < PLAN_MAX_AGGREGATES ? plan_expr_like(p, x) : NULL;
    if (!out)
        return NULL;
    memcpy(&p->windows[same], &w, sizeof w);
    p->n_windows += same == p->n_windows;
    out->column = (int16_t)same;
    out->sources = x->sources;
    return out;
}

/* The expression with copies of the windows of the first level; itself where it has none. */
static struct plan_expr *copy(struct query_plan *p, struct plan_expr *x, uint32_t *level)
{
    if (!(x->sources >> PLAN_WINDOWS & 1))
        return x;
    if (x->op == X_RESULT)
        return p->windows[x->column].level ? x : copy_result(p, x, level);
    struct plan_expr *out = plan_expr_like(p, x);
    for (uint32_t i = 0; out && i < x->n_args; i++) {
        out->args[i] = copy(p, x->args[i], level);
        if (!out->args[i])
            return NULL;
        out->sources |= out->args[i]->sources;
    }
    return out;
}

bool window_order_again(const struct reader *r, const struct sql_select *s)
{
    struct query_plan *p = r->plan;
    struct plan_item *items[PLAN_MAX_ORDER] = {NULL};
    bool several = p->n_levels > 1;
    for (uint32_t k = 0; several && k < p->n_orders; k++)
        if ((p->orders[k]->sources >> PLAN_WINDOWS & 1) && !(items[k] = item_of(p, p->orders[k])))
            return false;
    uint32_t level = 0;
    for (uint32_t k = 0; several && k < p->n_orders; k++)
        if (items[k] && !(p->orders[k] = copy(p, p->orders[k], &level)))
            return false;
    if (!level)
        return true;
    for (uint32_t k = 0; k < p->n_orders; k++)
        if (items[k])
            items[k]->expr = p->orders[k];
    return r->whole && r->depth == 1 && !r->loop_arm && !s->distinct; /* else it takes the item itself */
}
