/* Compounds: UNION ALL, UNION, EXCEPT, INTERSECT. The arms are plans of their own, whose rows are those of one source.
 */
#include "sql/plan/build_private.h"

#include <string.h>

/* A column that is NULL in one arm has the type of the others. */
static bool agree_on_types(struct query_plan *arms)
{
    for (uint32_t k = 0; k < arms->n_items; k++) {
        enum plan_type type = PLAN_NULL;
        for (const struct query_plan *arm = arms; arm; arm = arm->next_arm) {
            enum plan_type of = (enum plan_type)arm->items[k].expr->type;
            if (of != PLAN_NULL && type != PLAN_NULL && of != type)
                return false;
            type = of != PLAN_NULL ? of : type;
        }
        for (struct query_plan *arm = arms; arm && type != PLAN_NULL; arm = arm->next_arm)
            if (arm->items[k].expr->type == PLAN_NULL && !(arm->items[k].expr = plan_const(arm, type, plan_null(type))))
                return false;
    }
    return true;
}

static struct query_plan *build_compound(struct reader *outer, const struct sql_query *q, const struct sql_tree *tree,
                                         const struct cte_scope *ctes, const struct sql_select *end);

enum compound plan_last_kind(const struct sql_query *q)
{
    const struct sql_select *s = q->selects;
    while (s->next)
        s = s->next;
    return (enum compound)s->compound;
}

/* Where the last operators of one kind begin, of the cores before `end`: what stands before is their first arm. */
static const struct sql_select *last_run(const struct sql_query *q, const struct sql_select *end)
{
    const struct sql_select *first = q->selects->next;
    for (const struct sql_select *s = first; s != end; s = s->next)
        if (s->compound != first->compound)
            first = s;
    return first;
}

/* The arms of the cores before `end`. `A EXCEPT B UNION ALL C` has two: the first is a compound of its own. */
static struct query_plan *build_arms(struct reader *outer, const struct sql_query *q, const struct sql_tree *tree,
                                     const struct cte_scope *ctes, const struct sql_select *end)
{
    const struct sql_select *run = last_run(q, end), *s = q->selects;
    enum compound kind = (enum compound)run->compound;
    struct query_plan *arms = NULL, **last = &arms;
    struct reader r = *outer;
    bool ok = true;
    r.once = kind != COMPOUND_UNION_ALL;
    r.any_order |= r.once;
    if (run != s->next) {
        *last = ++r.compounds < PLAN_MAX_DEPTH ? build_compound(&r, q, tree, ctes, run) : NULL;
        ok = *last != NULL;
        for (; s != run; s = s->next)
            r.loop_arm++;
        last = ok ? &(*last)->next_arm : last;
    }
    for (; ok && s != end; s = s->next) {
        *last = ++r.loop_arm <= PLAN_MAX_ARMS ? plan_build_core(&r, q, s, tree, ctes, &plan_asked_whole) : NULL;
        ok = *last && (*last)->n_items == arms->n_items;
        last = *last ? &(*last)->next_arm : last;
    }
    if (ok && agree_on_types(arms))
        return arms;
    plan_free(arms);
    return NULL;
}

struct query_plan *plan_build_arms(struct reader *outer, const struct sql_query *q, const struct sql_tree *tree,
                                   const struct cte_scope *ctes)
{
    return build_arms(outer, q, tree, ctes, NULL);
}

/* ORDER BY of a compound names a column of the answer, by its place or by its name. */
static struct plan_expr *read_column_order(struct reader *r, const struct sql_expr *x)
{
    const struct scope_entry *e = &r->scope->entries[0];
    struct plan_expr *place = x->kind == EXPR_INTEGER ? read_constant(r, x) : NULL;
    if (place)
        return place->type == PLAN_INT && place->word >= 1 && place->word <= e->n_columns
                   ? e->columns[place->word - 1].expr
                   : NULL;
    if (x->kind != EXPR_COLUMN || x->table.len || x->quoted)
        return NULL;
    for (uint32_t i = 0; i < e->n_columns; i++)
        if (sql_name_equal(e->columns[i].name, x->name))
            return e->columns[i].expr;
    return NULL;
}

/* UNION, EXCEPT and INTERSECT give rows in the order of all columns, those of ORDER BY first. */
static bool order_by_all(struct query_plan *p)
{
    for (uint32_t i = 0; i < p->n_items; i++) {
        bool ordered = false;
        for (uint32_t k = 0; k < p->n_orders; k++)
            ordered |= plan_expr_equal(p->items[i].expr, p->orders[k]);
        if (ordered)
            continue;
        if (p->n_orders == PLAN_MAX_ORDER)
            return false;
        p->orders_desc[p->n_orders] = false;
        p->orders[p->n_orders++] = p->items[i].expr;
    }
    return true;
}

/* A last column that tells the arms apart. */
static bool number_arms(struct query_plan *arms)
{
    int64_t number = 0;
    for (struct query_plan *arm = arms; arm; arm = arm->next_arm) {
        if (arm->n_items == PLAN_MAX_ITEMS)
            return false;
        struct plan_item *i = &arm->items[arm->n_items++];
        *i = (struct plan_item){plan_const(arm, PLAN_INT, ++number), arena_strndup(&arm->arena, "arm", 3)};
        if (!i->expr || !i->name)
            return false;
    }
    return true;
}

/* EXCEPT and INTERSECT: equal rows of all arms are a group, which stays when the last of its arms is the first one, or
 * when it has rows of all. */
static bool make_groups_of_arms(struct reader *r, const struct query_plan *arms, bool all)
{
    struct query_plan *p = r->plan;
    int64_t n_arms = 0;
    for (const struct query_plan *arm = arms; arm; arm = arm->next_arm)
        n_arms++;
    for (uint32_t i = 0; i < p->n_items; i++) {
        struct plan_expr *x = p->items[i].expr;
        if (x->type == PLAN_REAL || x->type == PLAN_NULL || p->n_keys == PLAN_MAX_KEYS)
            return false;
        p->keys[p->n_keys++] = x;
    }
    p->grouped = true;
    p->aggregates[p->n_aggregates++] =
        (struct plan_aggregate){.kind = all ? AGG_COUNT : AGG_MAX,
                                .distinct = all,
                                .arg = plan_column(p, 0, (int16_t)(arms->n_items - 1), PLAN_INT)};
    struct plan_expr *found = plan_column(p, PLAN_GROUPS, PLAN_MAX_ITEMS, PLAN_INT);
    struct plan_expr *wanted = plan_const(p, PLAN_INT, all ? n_arms : 1);
    p->having = found && wanted && p->aggregates[0].arg ? read_compare(r, SQL_EQ, found, wanted) : NULL;
    return p->having && plan_lift(p);
}

/* Would SQLite stop soon? Arms whose rows come in the order of the first term it merges, and reads no more of them than
 * LIMIT asks for. */
static bool is_merged(const struct query_plan *p, const struct query_plan *arms, enum compound kind)
{
    const struct plan_expr *first = p->n_orders ? p->orders[0] : NULL;
    bool merges = kind == COMPOUND_UNION_ALL || kind == COMPOUND_UNION;
    bool sorted = merges && p->limit >= 0 && first && first->op == X_COLUMN && first->column >= 0;
    for (const struct query_plan *arm = arms; sorted && arm; arm = arm->next_arm) {
        const struct plan_expr *x = (uint32_t)first->column < arm->n_items ? arm->items[first->column].expr : NULL;
        const struct plan_source *s =
            x && x->op == X_COLUMN && x->column >= 0 && arm->n_sources == 1 ? arm->sources : NULL;
        sorted = s && s->table.name && !arm->grouped && !arm->n_windows && !arm->distinct &&
                 s->table.table->columns[x->column].sorted && p->limit < (int64_t)s->table.table->n_rows / 16;
    }
    return sorted;
}

enum { FEW_FIRST = 1 << 16 };

/* What a term of the compound's order is in an arm; NULL: it is of no type, or there is no memory. */
static struct plan_expr *order_in_arm(struct query_plan *arm, const struct plan_expr *x)
{
    bool is_null = x->op == X_IS_NULL;
    const struct plan_expr *column = is_null ? x->args[0] : x;
    if (column->op != X_COLUMN || column->column < 0 || (uint32_t)column->column >= arm->n_items)
        return NULL;
    struct plan_expr *item = arm->items[column->column].expr;
    if (!is_null || item->type == PLAN_NULL)
        return item->type == PLAN_NULL ? NULL : item;
    struct plan_expr *out = plan_unary(arm, X_IS_NULL, PLAN_INT, item);
    if (out)
        out->negated = x->negated;
    return out;
}

/* The first rows of UNION ALL are among the first of each arm; equal ones stay as they come. */
static void ask_arms_for_first(const struct query_plan *p, struct query_plan *arms)
{
    if (p->limit < 0 || !p->n_orders || p->limit >= FEW_FIRST || p->offset >= FEW_FIRST)
        return;
    for (struct query_plan *arm = arms; arm; arm = arm->next_arm) {
        bool plain = !arm->grouped && !arm->n_windows && !arm->distinct && !arm->n_orders && arm->limit < 0 &&
                     !arm->offset && !arm->step;
        uint32_t n = 0;
        for (; plain && n < p->n_orders; n++) {
            arm->orders[n] = order_in_arm(arm, p->orders[n]);
            arm->orders_desc[n] = p->orders_desc[n];
            plain = arm->orders[n] != NULL;
        }
        if (!plain)
            continue;
        arm->n_orders = n;
        arm->limit = p->limit + p->offset;
    }
}

/* Of the whole compound, or of cores in front of others (`q` NULL), whose order and limit are not theirs. */
static bool read_compound(struct reader *r, struct query_plan *arms, const struct sql_query *q, enum compound kind)
{
    struct query_plan *p = r->plan;
    struct sql_name none = {"", 0, 0};
    p->limit = -1;
    bool sets = kind == COMPOUND_EXCEPT || kind == COMPOUND_INTERSECT;
    if (sets && !number_arms(arms)) {
        plan_free(arms);
        return false;
    }
    bool limited = false;
    for (const struct query_plan *arm = arms; arm; arm = arm->next_arm)
        limited |= arm->limited;
    if (!read_from_plan(r, arms, none, false) || (limited && (kind != COMPOUND_UNION_ALL || (q && q->order))))
        return false;
    struct scope_entry *e = &r->scope->entries[0];
    e->n_columns -= sets;
    for (uint32_t i = 0; i < e->n_columns; i++)
        if (!plan_add_item(r, e->columns[i].expr, arms->items[i].name, strlen(arms->items[i].name)))
            return false;
    for (const struct sql_order *o = q ? q->order : NULL; o; o = o->next) {
        struct plan_expr *x = read_column_order(r, o->expr);
        if (!x || !plan_add_order(r, o, x))
            return false;
    }
    p->distinct = kind == COMPOUND_UNION;
    if (kind != COMPOUND_UNION_ALL && !order_by_all(p))
        return false;
    if (sets && !make_groups_of_arms(r, arms, kind == COMPOUND_INTERSECT))
        return false;
    if ((q && !plan_read_limit(r, q)) || is_merged(p, arms, kind) || !plan_steps(p) || !plan_settle_extreme(p) ||
        !plan_settle_order(r))
        return false;
    if (kind == COMPOUND_UNION_ALL)
        ask_arms_for_first(p, arms);
    return true;
}

static struct query_plan *build_compound(struct reader *outer, const struct sql_query *q, const struct sql_tree *tree,
                                         const struct cte_scope *ctes, const struct sql_select *end)
{
    struct reader r;
    struct query_plan *arms = build_arms(outer, q, tree, ctes, end);
    struct query_plan *p = arms ? plan_begin(&r, outer, tree) : NULL;
    if (!p) {
        plan_free(arms);
        return NULL;
    }
    r.ctes = ctes;
    if (read_compound(&r, arms, end ? NULL : q, (enum compound)last_run(q, end)->compound) && !p->arena.failed)
        return p;
    plan_free(p);
    return NULL;
}

struct query_plan *plan_build_compound(struct reader *outer, const struct sql_query *q, const struct sql_tree *tree,
                                       const struct cte_scope *ctes)
{
    return build_compound(outer, q, tree, ctes, NULL);
}
