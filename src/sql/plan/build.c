/* From a query of the tree to its plan: reads the clauses in the order in which they are computed, then moves each
 * expression to the part that can compute it (rows of the sources, groups, or rows with their windows). */
#include "sql/plan/build_private.h"
#include "sql/plan/varied.h"

#include <stdio.h>
#include <string.h>

void plan_free(void *plan)
{
    struct query_plan *p = plan;
    if (!p)
        return;
    for (uint32_t i = 0; i < p->n_sources; i++) {
        pointer_free(p->sources[i].pointer);
        if (p->sources[i].sub)
            plan_free(p->sources[i].sub);
        else
            plan_table_close(&p->sources[i].table);
    }
    for (uint32_t i = 0; i < p->n_lookups; i++)
        plan_free(p->lookups[i].sub);
    plan_free(p->next_arm);
    plan_free(p->step);
    if (p->e && p->e->plan == p) {
        p->e->plan = NULL;
        p->e->plan_statement = NULL;
    }
    arena_free(&p->arena);
    mem_free(p);
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

/* Items become columns of a table, whose readers know no mixed numbers. */
bool plan_add_item(struct reader *r, struct plan_expr *x, const char *name, size_t len)
{
    return x && !x->mixed && add_item(r, x, name, len);
}

/* Are the items those of the answer, row by row, and no columns of a table? */
static bool answers_by_row(const struct reader *r, const struct sql_select *s)
{
    return r->whole && r->depth == 1 && !r->loop_arm && !s->distinct;
}

static bool add_star(struct reader *r, const struct sql_item *item)
{
    bool any = false;
    for (uint32_t k = 0; k < r->scope->n_entries; k++) {
        const struct scope_entry *e = &r->scope->entries[k];
        if (item->table.len && !sql_name_equal(item->table, e->alias))
            continue;
        any = true;
        for (uint32_t c = 0; c < e->n_columns; c++) {
            struct scope_column *column = &e->columns[c];
            if (!scope_star_takes(column, item))
                continue;
            if (!plan_add_item(r, scope_column_value(column, !item->table.len), column->name.p, column->name.len))
                return false;
        }
    }
    return any;
}

/* How it compares shows where the rows are only those of the answer, each for itself. */
static struct plan_expr *read_item(struct reader *r, const struct sql_select *s, const struct sql_expr *x)
{
    enum collation c = collate_take(&x);
    if (c != COLLATE_NONE && (c == COLLATE_UNKNOWN || !answers_by_row(r, s)))
        return NULL;
    struct plan_expr *json = read_json_item(r, x);
    if (json)
        return json;
    if (answers_by_row(r, s) && !r->always)
        return read_mixed(r, x);
    return r->whole && r->depth == 1 && !r->loop_arm && !r->always ? read_varied(r, x) : read_expr(r, x);
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
            name = sql_item_text(r->tree, r->planner->arena, i->at, &len);
        if (!name || !add_item(r, read_item(r, s, i->expr), name, len))
            return false;
    }
    return true;
}

bool plan_read_groups(struct reader *r, const struct sql_select *s)
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

bool plan_add_order(struct reader *r, const struct sql_order *o, struct plan_expr *x)
{
    struct query_plan *p = r->plan;
    struct plan_expr *nulls = read_null_order(r, o, x);
    if (p->n_orders + 2 > PLAN_MAX_ORDER)
        return false;
    if (nulls) {
        p->orders[p->n_orders] = nulls;
        p->orders_desc[p->n_orders++] = o->desc;
    }
    p->orders[p->n_orders] = x;
    p->orders_desc[p->n_orders++] = o->desc;
    return true;
}

bool plan_read_orders(struct reader *r, const struct sql_select *s)
{
    for (const struct sql_order *o = s->query->order; o; o = o->next) {
        struct plan_expr *x = read_term(r, s, o->expr, true);
        if (!x || !plan_add_order(r, o, x))
            return false;
    }
    return true;
}

/* SQLite turns the groups round when as many terms order the answer, or the rows for windows: the order of ties shows
 * it. */
static void turn_groups(struct query_plan *p, const struct sql_order *order)
{
    const struct plan_level *l = p->n_windows ? &p->levels[p->n_levels - 1] : NULL;
    uint32_t n = l ? l->n : 0;
    for (const struct sql_order *o = order; !l && o; o = o->next)
        n++;
    for (uint32_t i = 0; i < p->n_keys && p->n_keys == n; i++, order = order ? order->next : NULL)
        p->keys_desc[i] = l ? l->order[i].desc : order->desc;
}

bool plan_read_limit(struct reader *r, const struct sql_query *q)
{
    struct query_plan *p = r->plan;
    struct plan_expr *limit = q->limit ? read_argument(r, q->limit) : NULL;
    struct plan_expr *offset = q->offset ? read_argument(r, q->offset) : NULL;
    if ((limit && limit->op != X_CONST) || (offset && offset->op != X_CONST))
        return false;
    if ((q->limit && (!limit || limit->type != PLAN_INT)) || (q->offset && (!offset || offset->type != PLAN_INT)))
        return false;
    p->limit = limit && limit->word >= 0 ? limit->word : -1;
    p->offset = offset && offset->word > 0 ? offset->word : 0;
    return true;
}

/* ---- a core ---- */

/* Rows of a source with LIMIT that an order around it chooses, the query's or that of a window. */
static bool order_chooses(const struct query_plan *p, const struct sql_select *s)
{
    bool sorts = p->n_orders && p->limit < 0 && !s->distinct && !p->grouped;
    for (uint32_t i = 0; i < p->n_levels; i++)
        sorts |= p->levels[i].n > 0;
    return p->limited && sorts && !s->where && !s->from->next;
}

/* Queries within expressions, and functions made by SQL, whose tables may be larger. */
static bool has_query(const struct reader *r, const struct sql_expr *x)
{
    for (; x; x = x->next)
        if (x->query || has_query(r, x->args) || (x->kind == EXPR_FUNCTION && is_sql_function(r, x)))
            return true;
    return false;
}

static bool has_queries(const struct reader *r, const struct sql_select *s)
{
    bool found = has_query(r, s->where) || has_query(r, s->having);
    for (const struct sql_item *i = s->items; i && !found; i = i->next)
        found = !i->star && has_query(r, i->expr);
    return found;
}

enum { FEW_VALUES = 1 << 16 };

/* Is it cheap to find equal rows by the values of their columns? */
static bool has_few_values(const struct query_plan *p)
{
    uint64_t product = 1;
    for (uint32_t i = 0; i < p->n_items; i++) {
        const struct plan_expr *x = p->items[i].expr;
        if (x->op != X_COLUMN || x->type == PLAN_REAL || x->column < 0 || !p->sources[x->source].table.name)
            return false;
        const struct column *c = &p->sources[x->source].table.table->columns[x->column];
        uint64_t width = column_width(c);
        product = width < FEW_VALUES ? product * (width + 2) : FEW_VALUES;
        if (product >= FEW_VALUES)
            return false;
    }
    return true;
}

/* The columns of VALUES: column1, column2, … */
static bool add_value_items(struct reader *r)
{
    const struct plan_values *v = r->plan->sources[0].values;
    for (uint32_t k = 0; k < v->n_columns; k++) {
        char name[24];
        struct plan_expr *x = v->types[k] == PLAN_NULL ? plan_const(r->plan, PLAN_NULL, COL_NULL)
                                                       : plan_column(r->plan, 0, (int16_t)k, v->types[k]);
        int n = snprintf(name, sizeof name, "column%u", k + 1);
        if (x)
            x->letter = 'c';
        if (!plan_add_item(r, x, name, (size_t)n))
            return false;
    }
    return true;
}

static bool read_core(struct reader *r, const struct sql_select *s)
{
    struct query_plan *p = r->plan;
    bool once = r->once;
    r->once = false;
    r->core = s;
    r->aliases_allowed = false;
    bool queries = has_queries(r, s);
    if (!s->from && !read_values(r, s->rows))
        return false;
    if ((s->from && !read_from(r, s->from)) || (!queries && plan_is_small(r)))
        return false;
    r->aliases_allowed = true; /* not in the list itself */
    if (s->where && !read_conjunction(r, s->where, p->where, &p->n_where))
        return false;
    if (!plan_read_groups(r, s))
        return false;
    r->aggregates_allowed = r->windows_allowed = true;
    r->aliases_allowed = false;
    p->bare_constant = false;
    if (s->rows ? !add_value_items(r) : !read_items(r, s))
        return false;
    p->n_listed = p->n_aggregates;
    r->aliases_allowed = true;
    r->windows_allowed = false;
    if (s->having && (!(p->having = read_expr(r, s->having)) || p->having->type == PLAN_TEXT || !s->group))
        return false;
    r->windows_allowed = true;
    r->aggregates_allowed = p->grouped || p->n_aggregates; /* an order alone does not make groups */
    p->limit = -1;
    if (!r->loop_arm && (!plan_read_orders(r, s) || !plan_read_limit(r, s->query))) /* those are the compound's */
        return false;
    if (p->bare_constant && p->n_aggregates && !p->n_keys)
        return false;
    for (uint32_t i = 0; i < p->n_where; i++)
        if (p->where[i]->sources & (1u << PLAN_GROUPS | 1u << PLAN_WINDOWS))
            return false;
    if (!window_order_again(r, s) || order_chooses(p, s))
        return false;
    turn_groups(p, r->loop_arm ? NULL : s->query->order);
    p->distinct = s->distinct || (once && !p->grouped && !p->n_windows && has_few_values(p));
    plan_settle_distinct(r);
    if (queries && plan_is_small(r))
        return false;
    return plan_lift(p) && plan_steps(p) && plan_settle_extreme(p) && plan_settle_order(r) &&
           !plan_stops_after_groups(r) && !plan_stops_in_order(r);
}

/* ---- all of it ---- */

struct query_plan *plan_begin(struct reader *r, const struct reader *outer, const struct sql_tree *tree)
{
    struct query_plan *p = mem_zalloc(sizeof *p);
    struct scope *scope = arena_zalloc(outer->planner->arena, sizeof *scope);
    if (!p || !scope) {
        mem_free(p);
        return NULL;
    }
    *r = *outer;
    p->e = outer->planner->e;
    r->plan = p;
    r->tree = tree;
    r->scope = scope;
    r->depth++;
    r->in_aggregate = r->aggregates_allowed = r->windows_allowed = r->below_any = false;
    return p;
}

/* GROUP BY, or calls that may be aggregates. */
static bool may_have_groups(const struct sql_select *s)
{
    bool found = s->group != NULL;
    for (const struct sql_item *i = s->items; i && !found; i = i->next)
        found = !i->star && i->expr->kind == EXPR_FUNCTION && !i->expr->over;
    return found && !s->windows;
}

/* Reads a core; `below_any`: for groups that do not show in which order rows come. */
static struct query_plan *try_core(struct reader *outer, const struct sql_query *q, const struct sql_select *s,
                                   const struct sql_tree *tree, const struct cte_scope *ctes, const struct asked *asked,
                                   bool below_any)
{
    struct cte_scope own = {q, tree, ctes};
    struct reader r;
    struct query_plan *p = plan_begin(&r, outer, tree);
    if (!p)
        return NULL;
    r.ctes = &own;
    r.below_any = below_any;
    bool ok = asked->keyed        ? plan_read_keyed_core(&r, outer, s, asked->keyed)
              : asked->correlated ? plan_read_correlated_core(&r, s, asked->correlated)
              : asked->list       ? plan_read_list_core(&r, s, asked->list)
                                  : read_core(&r, s);
    if (ok && !p->arena.failed && plan_is_worth_it(p, outer->plan || outer->always || outer->loop_arm, outer->direct))
        return p;
    plan_free(p);
    return NULL;
}

enum { MAX_RETRIES = 12 /* in a statement */ };

struct query_plan *plan_build_core(struct reader *outer, const struct sql_query *q, const struct sql_select *s,
                                   const struct sql_tree *tree, const struct cte_scope *ctes, const struct asked *asked)
{
    bool part = asked->keyed || asked->correlated || asked->list;
    bool constants = !s->from && !part; /* of use within another query only */
    if ((!s->from && !(constants && (outer->plan || outer->loop_arm))) || outer->depth >= PLAN_MAX_DEPTH)
        return NULL;
    struct query_plan *p = try_core(outer, q, s, tree, ctes, asked, false);
    bool queries = false;
    for (const struct sql_from *f = s->from; f; f = f->next)
        queries |= f->form != SOURCE_FUNCTION;
    if (p || !queries || part || !may_have_groups(s) || outer->planner->n_retries++ >= MAX_RETRIES)
        return p;
    return try_core(outer, q, s, tree, ctes, asked, true);
}

struct query_plan *plan_build(struct reader *outer, const struct sql_query *q, const struct sql_tree *tree,
                              const struct cte_scope *ctes)
{
    return q->selects->next ? plan_build_compound(outer, q, tree, ctes)
                            : plan_build_core(outer, q, q->selects, tree, ctes, &plan_asked_whole);
}
