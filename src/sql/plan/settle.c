/* The order of rows: whether the answer shows it, and whether it can be told which one SQLite would give. */
#include "sql/plan/plan_private.h"

static bool is_one_of(const struct plan_expr *x, struct plan_expr *const *terms, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (plan_expr_equal(terms[i], x))
            return true;
    return false;
}

/* Sources whose row the terms tell, and those that these find by row number. */
static uint32_t told_by(const struct query_plan *p, struct plan_expr *const *terms, uint32_t n)
{
    uint32_t known = 0;
    for (uint32_t i = 0; i < n; i++)
        if (terms[i]->op == X_COLUMN && terms[i]->column == VTAB_ROW)
            known |= terms[i]->sources;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct plan_step *s = &p->steps[i];
        if (!s->by_row || p->sources[s->source].right)
            continue;
        if (is_one_of(s->keys[0], terms, n) || (s->keys[0]->sources & ~known) == 0)
            known |= 1u << s->source;
    }
    return known;
}

/* Sources of which all rows of a group have the same row. */
static uint32_t determined(const struct query_plan *p)
{
    return told_by(p, p->keys, p->n_keys);
}

/* Zeros of both signs are one group, which shows that of its first row; so are 1 and 1.0 of varied values. */
static bool has_real_key(const struct query_plan *p)
{
    for (uint32_t i = 0; i < p->n_keys; i++)
        if (p->keys[i]->type == PLAN_REAL || p->keys[i]->varied)
            return true;
    return false;
}

/* Do bare columns show which row of a group came first? */
static bool bare_columns_show_order(const struct query_plan *p)
{
    uint32_t known = determined(p);
    for (uint32_t i = p->n_keys; i < p->groups.n_columns; i++)
        if (p->groups.columns[i]->sources & ~known)
            return true;
    return false;
}

/* Do sums or lists show in which order rows came? */
static bool aggregates_show_order(const struct query_plan *p)
{
    for (uint32_t i = 0; i < p->n_aggregates; i++) {
        const struct plan_aggregate *a = &p->aggregates[i];
        bool zeros = a->arg && (a->arg->type == PLAN_REAL || a->arg->varied); /* 1 and 1.0, too */
        if (a->kind == AGG_CONCAT || (zeros && a->kind >= AGG_SUM && a->kind <= AGG_MAX))
            return true;
    }
    return false;
}

/* A column that is sorted already may be walked backwards: equal values then come in another order. A query that SQLite
 * cannot take apart is computed first, in its own order. */
static bool may_be_reversed(const struct query_plan *p, const struct plan_expr *x)
{
    if (x->op == X_COLUMN && x->source < p->n_sources && x->column >= 0) {
        const struct plan_source *s = &p->sources[x->source];
        bool computed = false, reversed = false;
        for (const struct query_plan *arm = s->sub; arm; arm = arm->next_arm) {
            computed |= arm->grouped || arm->n_windows || arm->n_orders || arm->limit >= 0;
            reversed |= (uint32_t)x->column >= arm->n_items || may_be_reversed(arm, arm->items[x->column].expr);
        }
        if (!s->table.name)
            return s->sub && !computed && (reversed || !s->sub->next_arm);
        return s->table.table->columns[x->column].sorted;
    }
    return false;
}

/* Of one source there is nothing to ask. */
static bool order_of_loops(struct reader *r)
{
    if (r->recursion && r->recursion->core == r->core)
        return recursion_settle(r->plan);
    if (r->correlated && r->correlated->core == r->core)
        return correlated_settle(r->plan);
    return loops_order(r->loops, r->plan->n_sources == 1 ? 0 : loops_parent(r), r->plan);
}

/* The term of an order is the value, or what that is compared by. */
static bool orders_by(const struct plan_expr *term, const struct plan_expr *x)
{
    return plan_expr_equal(term->op == X_COMPARABLE ? term->args[0] : term, x);
}

static bool is_item(const struct query_plan *p, const struct plan_expr *x)
{
    for (uint32_t i = 0; i < p->n_items; i++)
        if (orders_by(x, p->items[i].expr))
            return true;
    return false;
}

/* Does the order leave nothing open? SQLite sorts equal rows away in orders of its own; which of them stays shows where
 * they are ordered by what is not an item. */
static bool orders_all(const struct query_plan *p)
{
    for (uint32_t k = 0; k < p->n_orders; k++)
        if (!is_item(p, p->orders[k]))
            return false;
    for (uint32_t i = 0; i < p->n_items; i++) {
        bool ordered = p->items[i].expr->op == X_CONST;
        for (uint32_t k = 0; k < p->n_orders; k++)
            ordered |= orders_by(p->orders[k], p->items[i].expr);
        if (!ordered || p->items[i].expr->type == PLAN_REAL)
            return false;
    }
    return true;
}

/* Does ORDER BY tell the rows of all sources apart? Then it is all the same how they were found. */
static bool orders_rows(const struct query_plan *p)
{
    return p->n_orders && !p->grouped && !p->n_windows && !p->distinct &&
           told_by(p, p->orders, p->n_orders) == (1u << p->n_sources) - 1;
}

/* The only term that orders rows, as SQLite sees it, which passes over constants. */
struct only_term {
    const struct plan_expr *expr;
    bool desc, several;
};

static void add_term(struct only_term *t, const struct plan_expr *x, bool desc)
{
    if (!x->sources)
        return;
    t->several |= t->expr != NULL;
    t->expr = x;
    t->desc = desc;
}

static bool may_be_walked_backwards(const struct query_plan *p, const struct only_term *t)
{
    return t->expr && !t->several && t->desc && may_be_reversed(p, t->expr);
}

static bool rows_are_walked_backwards(const struct query_plan *p)
{
    struct only_term t = {0};
    for (uint32_t k = 0; k < p->n_orders; k++)
        add_term(&t, p->orders[k], p->orders_desc[k]);
    return may_be_walked_backwards(p, &t);
}

static bool windows_are_walked_backwards(const struct query_plan *p)
{
    const struct plan_level *l = p->n_levels ? &p->levels[p->n_levels - 1] : NULL;
    struct only_term t = {0};
    for (uint32_t k = 0; l && k < l->n; k++)
        add_term(&t, p->window_rows.columns[l->order[k].column], l->order[k].desc);
    return may_be_walked_backwards(p, &t);
}

bool plan_settle_order(struct reader *r)
{
    struct query_plan *p = r->plan;
    bool open = r->any_order && p->limit < 0 && !p->offset && !p->n_windows;
    bool all_show = aggregates_show_order(p) || has_real_key(p) || p->group_order == GROUPS_AS_FOUND;
    bool shows = p->grouped ? all_show || bare_columns_show_order(p) : !open;
    if (r->below_any && (!p->grouped || shows))
        return false;
    shows &= !orders_rows(p);
    bool as_they_come = p->grouped || p->n_windows; /* DISTINCT looks through them so */
    if (p->distinct && !as_they_come && !open && !orders_all(p))
        return false;
    if (!p->grouped && (p->n_windows ? windows_are_walked_backwards(p) : !open && rows_are_walked_backwards(p)))
        return false;
    for (uint32_t i = 0; shows && i < p->n_keys; i++)
        if (p->keys_desc[i] && may_be_reversed(p, p->keys[i]))
            return false;
    if (!shows) {
        p->unordered = p->n_sources > 1 || r->below_any;
        return true;
    }
    if (p->order_unknown || !order_of_loops(r))
        return false;
    p->restore_order = p->n_arms || !loops_agree(p);
    p->picks_first = p->restore_order && p->grouped && !all_show && !p->n_arms && !p->n_index_terms;
    if (p->picks_first) {
        p->restore_order = false;
        p->unordered = true;
    }
    return true;
}

/* With one min() or max() bare columns come from its row; with several, from that of the last. */
bool plan_settle_extreme(struct query_plan *p)
{
    int n = 0;
    p->extreme = -1;
    for (uint32_t i = 0; i < p->n_aggregates; i++)
        if (p->aggregates[i].kind == AGG_MIN || p->aggregates[i].kind == AGG_MAX) {
            p->extreme = (int)i;
            n++;
        }
    uint32_t known = determined(p);
    bool bare = false; /* a column that its group does not determine */
    for (uint32_t i = p->n_keys; i < p->groups.n_columns; i++)
        bare |= (p->groups.columns[i]->sources & ~known) != 0;
    const struct plan_aggregate *only = n ? &p->aggregates[p->extreme] : NULL;
    if (bare && n && (p->n_keys == 0 || only->filter || only->distinct))
        return false;
    for (uint32_t i = 0; bare && n > 1 && i < p->n_aggregates; i++) /* SQLite looks at the list first, then the order */
        if ((p->aggregates[i].kind == AGG_MIN || p->aggregates[i].kind == AGG_MAX) &&
            (i >= p->n_listed || p->aggregates[i].filter || p->aggregates[i].distinct))
            return false;
    for (uint32_t i = 0; i < p->n_aggregates; i++) /* else it is all the same to them */
        if (p->aggregates[i].kind == AGG_MIN || p->aggregates[i].kind == AGG_MAX)
            p->aggregates[i].distinct = false;
    if (!bare)
        p->extreme = -1;
    return true;
}

/* Are these columns of one source the whole list? Then the keys take their order. */
static bool take_codes(struct query_plan *p, const int16_t *columns, uint32_t n)
{
    struct plan_expr *keys[PLAN_MAX_KEYS];
    uint8_t source = p->items[0].expr->source;
    if (n != p->n_items)
        return false;
    for (uint32_t k = 0; k < n; k++) {
        keys[k] = NULL;
        for (uint32_t i = 0; i < n; i++) {
            struct plan_expr *x = p->items[i].expr;
            if (x->op == X_COLUMN && x->source == source && x->column == columns[k])
                keys[k] = x;
        }
        if (!keys[k])
            return false;
    }
    for (uint32_t k = 0; k < n; k++)
        p->keys[k] = keys[k];
    return true;
}

/* Without ORDER BY rows come as SQLite finds the first of each kind. */
static bool settle_as_found(const struct reader *r)
{
    struct query_plan *p = r->plan;
    int16_t columns[PLAN_MAX_ORDER];
    uint32_t n;
    int parent = loops_parent(r);
    if (!loops_say(r->loops, parent, "USE TEMP B-TREE FOR DISTINCT") ||
        !loops_order_of_codes(r->loops, parent, columns, &n))
        return false;
    for (uint32_t i = 0; i < p->n_sources; i++)
        if (p->sources[i].batches)
            return false;
    p->group_order = n ? GROUPS_BY_CODE : GROUPS_AS_FOUND;
    return n == 0 || take_codes(p, columns, n);
}

/* DISTINCT as groups without aggregates, where rows come in the order of groups, in any, or as they are found. */
void plan_settle_distinct(const struct reader *r)
{
    struct query_plan *p = r->plan;
    bool open = r->any_order && p->limit < 0 && !p->offset;
    if (!p->distinct || p->grouped || p->n_windows || p->n_items > PLAN_MAX_KEYS)
        return;
    for (uint32_t i = 0; i < p->n_items; i++) {
        const struct plan_expr *x = p->items[i].expr;
        if (!x->sources || x->type == PLAN_REAL || x->type == PLAN_NULL)
            return;
        for (uint32_t k = 0; k < i; k++)
            if (plan_expr_equal(x, p->items[k].expr))
                return;
        p->keys[i] = p->items[i].expr;
    }
    for (uint32_t k = 0; k < p->n_orders; k++)
        if (!is_item(p, p->orders[k]))
            return;
    if (!open && !(p->n_orders && orders_all(p)) && (p->n_orders || p->limit >= 0 || !settle_as_found(r)))
        return;
    p->n_keys = p->n_items;
    p->grouped = true;
    p->distinct = false;
}
