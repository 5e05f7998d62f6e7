/* From a query of the tree to its plan: reads the clauses in the order in which they are computed, then moves each
 * expression to the part that can compute it (rows of the sources, groups, or rows with their windows). */
#include "sql/plan/plan_private.h"

#include <string.h>

void plan_free(void *plan)
{
    struct query_plan *p = plan;
    if (!p)
        return;
    for (uint32_t i = 0; i < p->n_sources; i++) {
        if (p->sources[i].sub)
            plan_free(p->sources[i].sub);
        else
            plan_table_close(&p->sources[i].table);
    }
    for (uint32_t i = 0; i < p->n_lookups; i++)
        plan_free(p->lookups[i].sub);
    if (p->e && p->e->plan == p) {
        p->e->plan = NULL;
        p->e->plan_statement = NULL;
    }
    arena_free(&p->arena);
    mem_free(p);
}

/* ---- stages ---- */

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
        if (c)
            c->letter = x->letter;
        return c;
    }
    if (x->n_args == 0)
        return (struct plan_expr *)(uintptr_t)x;
    struct plan_expr *copy = plan_expr_new(p, (enum expr_op)x->op, (enum plan_type)x->type, x->n_args);
    if (!copy)
        return NULL;
    uint32_t slot = copy->slot;
    struct plan_expr **args = copy->args;
    *copy = *x;
    copy->slot = slot;
    copy->args = args;
    copy->sources = 0;
    for (uint32_t i = 0; i < x->n_args; i++) {
        if (!(args[i] = lift(p, s, source, x->args[i])))
            return NULL;
        copy->sources |= args[i]->sources;
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

static bool lift_all(struct query_plan *p)
{
    if (p->grouped) {
        for (uint32_t i = 0; i < p->n_keys; i++)
            p->groups.columns[p->groups.n_columns++] = p->keys[i];
        bool ok = lift_in_place(p, &p->groups, PLAN_GROUPS, &p->having) && lift_results(p, &p->groups, PLAN_GROUPS);
        for (uint32_t i = 0; ok && i < p->window_rows.n_columns; i++)
            ok = lift_in_place(p, &p->groups, PLAN_GROUPS, &p->window_rows.columns[i]);
        if (!ok)
            return false;
    }
    return !p->n_windows || lift_results(p, &p->window_rows, PLAN_WINDOWS);
}

/* ---- clauses ---- */

static bool add_item(struct reader *r, struct plan_expr *x, const char *name, size_t len)
{
    struct query_plan *p = r->plan;
    if (!x || p->n_items == PLAN_MAX_ITEMS)
        return false;
    struct plan_item *i = &p->items[p->n_items];
    *i = (struct plan_item){x, arena_strndup(&p->arena, name, len)};
    p->n_items++;
    return i->name != NULL;
}

static bool add_star(struct reader *r, const struct sql_item *item)
{
    bool any = false;
    for (uint32_t k = 0; k < r->scope->n_entries; k++) {
        const struct scope_entry *e = &r->scope->entries[k];
        if (item->table.len && !sql_name_equal(item->table, e->alias))
            continue;
        any = true;
        for (uint32_t c = 0; c < e->n_columns; c++)
            if (!e->columns[c].hidden && (item->table.len || !e->columns[c].joined) &&
                !add_item(r, e->columns[c].expr, e->columns[c].name.p, e->columns[c].name.len))
                return false;
    }
    return any;
}

static bool read_items(struct reader *r, const struct sql_select *s)
{
    for (const struct sql_item *i = s->items; i; i = i->next) {
        if (i->star) {
            if (!add_star(r, i))
                return false;
            continue;
        }
        size_t len = i->alias.len;
        const char *name = i->alias.p;
        if (!len && i->expr->kind == EXPR_COLUMN) {
            const struct scope_column *c = scope_column_of(r, i->expr);
            name = c ? c->name.p : NULL;
            len = c ? c->name.len : 0;
        }
        if (!len)
            name = sql_tree_text(r->tree, r->planner->arena, i->at, &len);
        if (!name || !add_item(r, read_expr(r, i->expr), name, len))
            return false;
    }
    return true;
}

/* The item that a number names, or an alias in ORDER BY; -1: none. */
static int item_of(const struct reader *r, const struct sql_select *s, const struct sql_expr *x, bool aliases)
{
    int at = 0, found = -1;
    for (const struct sql_item *i = s->items; i; i = i->next, at++) {
        if (i->star)
            return -2;
        if (aliases && x->kind == EXPR_COLUMN && !x->table.len && i->alias.len && sql_name_equal(i->alias, x->name) &&
            found < 0)
            found = at;
    }
    if (x->kind != EXPR_INTEGER)
        return found;
    const struct sql_token *t = &r->tree->tokens[x->at.first];
    int place = 0;
    for (uint32_t i = 0; i < t->len && place < 1000; i++)
        place = place * 10 + (t->text[i] - '0');
    return place >= 1 && place <= at ? place - 1 : -2;
}

static bool has_star(const struct sql_select *s)
{
    for (const struct sql_item *i = s->items; i; i = i->next)
        if (i->star)
            return true;
    return false;
}

/* An expression of GROUP BY or ORDER BY. A literal in it would mean a place. */
static struct plan_expr *read_term(struct reader *r, const struct sql_select *s, const struct sql_expr *x, bool order)
{
    int item = x->kind == EXPR_INTEGER || !has_star(s) ? item_of(r, s, x, order) : -1;
    for (const struct sql_item *i = s->items; order && i && x->kind == EXPR_COLUMN && has_star(s); i = i->next)
        if (i->alias.len && sql_name_equal(i->alias, x->name)) /* which it means, whatever * has */
            return NULL;
    if (item == -2)
        return NULL;
    if (item < 0)
        return read_expr(r, x);
    const struct sql_item *i = s->items;
    for (int k = 0; k < item; k++)
        i = i->next;
    return read_expr(r, i->expr);
}

static bool read_groups(struct reader *r, const struct sql_select *s)
{
    struct query_plan *p = r->plan;
    for (const struct sql_expr *x = s->group; x; x = x->next) {
        struct plan_expr *key = read_term(r, s, x, false);
        if (!key || key->type == PLAN_NULL || !key->sources || p->n_keys == PLAN_MAX_KEYS)
            return false;
        for (uint32_t i = 0; i < p->n_keys; i++)
            if (plan_expr_equal(p->keys[i], key))
                return false;
        p->keys[p->n_keys++] = key;
        p->grouped = true;
    }
    return true;
}

static bool read_orders(struct reader *r, const struct sql_select *s)
{
    struct query_plan *p = r->plan;
    for (const struct sql_order *o = s->query->order; o; o = o->next) {
        struct plan_expr *x = p->n_orders < PLAN_MAX_ORDER ? read_term(r, s, o->expr, true) : NULL;
        if (!x || o->nulls_first || o->nulls_last)
            return false;
        p->orders[p->n_orders] = x;
        p->orders_desc[p->n_orders++] = o->desc;
    }
    return true;
}

/* SQLite turns the groups round when as many terms order the answer, or the rows for windows: the order of ties shows
 * it. */
static void turn_groups(struct query_plan *p)
{
    uint32_t n = p->n_windows ? p->n_window_order : p->n_orders;
    for (uint32_t i = 0; i < p->n_keys && p->n_keys == n; i++)
        p->keys_desc[i] = p->n_windows ? p->window_order[i].desc : p->orders_desc[i];
}

static bool read_limit(struct reader *r, const struct sql_query *q)
{
    struct query_plan *p = r->plan;
    struct plan_expr *limit = q->limit ? read_constant(r, q->limit) : NULL;
    struct plan_expr *offset = q->offset ? read_constant(r, q->offset) : NULL;
    if ((q->limit && (!limit || limit->type != PLAN_INT)) || (q->offset && (!offset || offset->type != PLAN_INT)))
        return false;
    p->limit = limit && limit->word >= 0 ? limit->word : -1;
    p->offset = offset && offset->word > 0 ? offset->word : 0;
    return true;
}

/* ---- the order of rows ---- */

static bool is_key_of_group(const struct query_plan *p, const struct plan_expr *x)
{
    for (uint32_t i = 0; i < p->n_keys; i++)
        if (plan_expr_equal(p->keys[i], x))
            return true;
    return false;
}

/* Sources of which all rows of a group have the same row. */
static uint32_t determined(const struct query_plan *p)
{
    uint32_t known = 0;
    for (uint32_t i = 0; i < p->n_keys; i++)
        if (p->keys[i]->op == X_COLUMN && p->keys[i]->column == VTAB_ROW)
            known |= p->keys[i]->sources;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct plan_step *s = &p->steps[i];
        if (!s->by_row)
            continue;
        if (is_key_of_group(p, s->keys[0]) || (s->keys[0]->sources & ~known) == 0)
            known |= 1u << s->source;
    }
    return known;
}

/* Do sums, lists or bare columns show in which order rows came? */
static bool groups_show_order(const struct query_plan *p)
{
    uint32_t known = determined(p);
    for (uint32_t i = 0; i < p->n_keys; i++)
        if (p->keys[i]->type == PLAN_REAL)
            return true;
    for (uint32_t i = p->n_keys; i < p->groups.n_columns; i++)
        if (p->groups.columns[i]->sources & ~known)
            return true;
    for (uint32_t i = 0; i < p->n_aggregates; i++) {
        const struct plan_aggregate *a = &p->aggregates[i];
        if (a->kind == AGG_CONCAT || (a->arg && a->arg->type == PLAN_REAL && a->kind >= AGG_SUM && a->kind <= AGG_MAX))
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
        if (s->sub)
            return !s->sub->grouped && !s->sub->n_windows && s->sub->limit < 0;
        return s->table.table->columns[x->column].sorted;
    }
    return false;
}

/* Of one source there is nothing to ask. */
static bool order_of_loops(struct reader *r)
{
    return loops_order(r->loops, r->plan->n_sources == 1 ? 0 : loops_parent(r), r->plan);
}

/* Does the order leave nothing open? SQLite sorts equal rows away in orders of its own. */
static bool orders_all(const struct query_plan *p)
{
    for (uint32_t i = 0; i < p->n_items; i++) {
        bool ordered = p->items[i].expr->op == X_CONST;
        for (uint32_t k = 0; k < p->n_orders; k++)
            ordered |= plan_expr_equal(p->items[i].expr, p->orders[k]);
        if (!ordered || p->items[i].expr->type == PLAN_REAL)
            return false;
    }
    return true;
}

static bool settle_order(struct reader *r)
{
    struct query_plan *p = r->plan;
    bool open = r->any_order && p->limit < 0 && !p->offset && !p->n_windows;
    bool shows = p->grouped ? groups_show_order(p) : !open;
    if (p->distinct && !open && !orders_all(p))
        return false;
    if (!p->grouped && !p->n_windows && !open && p->n_orders == 1 && p->orders_desc[0] &&
        may_be_reversed(p, p->orders[0]))
        return false;
    if (!p->grouped && p->n_windows && p->n_window_order == 1 && p->window_order[0].desc &&
        may_be_reversed(p, p->window_rows.columns[p->window_order[0].column]))
        return false;
    for (uint32_t i = 0; shows && i < p->n_keys; i++)
        if (p->keys_desc[i])
            return false;
    if (!shows) {
        p->unordered = p->n_sources > 1;
        return true;
    }
    if (p->order_unknown || !order_of_loops(r))
        return false;
    p->restore_order = !loops_agree(p);
    return true;
}

/* With one min() or max() bare columns come from its row; with several SQLite has rules of its own. */
static bool settle_extreme(struct query_plan *p)
{
    int n = 0;
    p->extreme = -1;
    for (uint32_t i = 0; i < p->n_aggregates; i++)
        if (p->aggregates[i].kind == AGG_MIN || p->aggregates[i].kind == AGG_MAX) {
            p->extreme = (int)i;
            n++;
        }
    bool bare = p->groups.n_columns > p->n_keys;
    if (bare && (n > 1 || (n == 1 && (p->n_keys == 0 || p->aggregates[p->extreme].filter))))
        return false;
    if (!bare)
        p->extreme = -1;
    return true;
}

/* ---- a core ---- */

static bool is_worth_it(const struct query_plan *p, bool inner)
{
    return inner || p->grouped || p->n_windows || p->n_sources > 1 || p->distinct || p->n_orders ||
           (p->n_lookups && p->limit < 0);
}

/* Small tables are not worth it, unless a larger one is there. */
static bool is_small(const struct reader *r)
{
    bool derived = false;
    for (uint32_t i = 0; i < r->plan->n_sources; i++)
        derived |= r->plan->sources[i].sub != NULL;
    return !derived && r->depth == 1 && *r->rows < PLANNER_MIN_ROWS;
}

static bool read_core(struct reader *r, const struct sql_select *s)
{
    struct query_plan *p = r->plan;
    r->core = s;
    r->aliases_allowed = false;
    if (!read_from(r, s->from) || is_small(r))
        return false;
    r->aliases_allowed = true; /* not in the list itself */
    if (s->where && !read_conjunction(r, s->where, p->where, &p->n_where))
        return false;
    if (!read_groups(r, s))
        return false;
    r->aggregates_allowed = r->windows_allowed = true;
    r->aliases_allowed = false;
    if (!read_items(r, s))
        return false;
    r->aliases_allowed = true;
    r->windows_allowed = false;
    if (s->having && (!(p->having = read_expr(r, s->having)) || p->having->type == PLAN_TEXT || !s->group))
        return false;
    r->windows_allowed = true;
    if (!read_orders(r, s) || !read_limit(r, s->query))
        return false;
    for (uint32_t i = 0; i < p->n_where; i++)
        if (p->where[i]->sources & (1u << PLAN_GROUPS | 1u << PLAN_WINDOWS))
            return false;
    turn_groups(p);
    p->distinct = s->distinct;
    if (p->distinct && (p->grouped || p->n_windows))
        return false;
    return lift_all(p) && plan_steps(p) && settle_extreme(p) && settle_order(r);
}

/* ---- by keys ---- */

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

/* inner = outer, in either order. */
static bool read_key(struct reader *r, struct reader *outer, const struct sql_expr *x, struct keyed *k)
{
    const struct sql_expr *sides[] = {x->args, x->args ? x->args->next : NULL};
    for (int i = 0; i < 2 && x->kind == EXPR_BINARY && x->op == SQL_EQ && k->n < PLAN_MAX_KEYS; i++) {
        if (!is_outside(r, sides[1 - i]))
            continue;
        struct plan_expr *inside = read_expr(r, sides[i]), *outside = inside ? read_expr(outer, sides[1 - i]) : NULL;
        if (!outside || !inside->sources || !outside->sources || inside->type != outside->type ||
            inside->type == PLAN_REAL || inside->type == PLAN_NULL)
            return false;
        k->inner[k->n] = inside;
        k->outer[k->n++] = outside;
        return true;
    }
    return false;
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
    return read_key(r, outer, x, k);
}

/* The value is an aggregate by key, without another column, or a column. */
static bool read_keyed_value(struct reader *r, const struct sql_select *s, struct keyed *k)
{
    struct query_plan *p = r->plan;
    r->aggregates_allowed = true;
    r->aliases_allowed = false;
    if (!add_item(r, read_expr(r, k->value), "value", 5))
        return false;
    r->aliases_allowed = true;
    r->aggregates_allowed = false;
    if (!p->grouped)
        return read_orders(r, s);
    for (uint32_t i = 0; i < k->n; i++) {
        for (uint32_t j = 0; j < i; j++)
            if (plan_expr_equal(k->inner[i], k->inner[j]))
                return false;
        p->keys[p->n_keys++] = k->inner[i];
    }
    return !s->query->order && !s->query->limit;
}

static bool read_keyed_core(struct reader *r, struct reader *outer, const struct sql_select *s, struct keyed *k)
{
    struct query_plan *p = r->plan;
    r->core = s;
    r->aliases_allowed = false;
    if (!read_from(r, s->from))
        return false;
    r->aliases_allowed = true;
    if (s->where && !read_keyed_where(r, outer, s->where, k))
        return false;
    for (uint32_t i = 0; i < k->n; i++)
        if (!add_item(r, k->inner[i], "key", 3))
            return false;
    if (!k->value && !k->n && !add_item(r, plan_const(p, PLAN_INT, 1), "any", 3))
        return false;
    if (k->value && !read_keyed_value(r, s, k))
        return false;
    p->limit = k->n ? -1 : 1; /* one will do */
    if (!lift_all(p) || (p->grouped && p->groups.n_columns > p->n_keys))
        return false;
    return plan_steps(p) && settle_extreme(p) && settle_order(r);
}

/* ---- all of it ---- */

static struct query_plan *build(struct reader *outer, const struct sql_query *q, const struct sql_tree *tree,
                                const struct cte_scope *ctes, struct keyed *k)
{
    const struct sql_select *s = q->selects;
    struct cte_scope own = {q, tree, ctes};
    if (s->next || s->rows || !s->from || outer->depth >= PLAN_MAX_DEPTH)
        return NULL;
    struct query_plan *p = mem_zalloc(sizeof *p);
    struct scope *scope = arena_zalloc(outer->planner->arena, sizeof *scope);
    struct reader r = *outer;
    if (!p || !scope) {
        mem_free(p);
        return NULL;
    }
    p->e = outer->planner->e;
    r.plan = p;
    r.tree = tree;
    r.ctes = &own;
    r.scope = scope;
    r.depth++;
    r.in_aggregate = r.aggregates_allowed = r.windows_allowed = false;
    bool ok = k ? read_keyed_core(&r, outer, s, k) : read_core(&r, s);
    if (ok && !p->arena.failed && is_worth_it(p, outer->plan || outer->always))
        return p;
    plan_free(p);
    return NULL;
}

struct query_plan *plan_build(struct reader *outer, const struct sql_query *q, const struct sql_tree *tree,
                              const struct cte_scope *ctes)
{
    return build(outer, q, tree, ctes, NULL);
}

struct query_plan *plan_build_keyed(struct reader *outer, const struct sql_query *q, struct keyed *k)
{
    const struct sql_select *s = q->selects;
    return s->group || s->having || s->windows || s->distinct ? NULL : build(outer, q, outer->tree, outer->ctes, k);
}
