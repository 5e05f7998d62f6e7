/* WITH RECURSIVE c AS (first UNION ALL step): the rows of `first`, then those that the step makes of them, then those
 * that it makes of these, until there are none.
 *
 * SQLite takes rows from a queue, one by one, and runs the step for each. The rows of one round come before all that
 * the step makes of them, so that whole rounds give the same rows in the same order, as long as the step's rows come in
 * the order of the rows that they are made of. */
#include "sql/plan/build_private.h"

static uint32_t n_names(const struct sql_from *from, struct sql_name name)
{
    uint32_t n = 0;
    for (const struct sql_from *f = from; f; f = f->next)
        n += f->form == SOURCE_TABLE && !f->schema.len && sql_name_equal(f->name, name);
    return n;
}

/* Does a query name the table anywhere? */
static bool asks_for(const struct sql_tree *t, const struct sql_query *q, struct sql_name name)
{
    bool found = false;
    for (const struct sql_select *s = t->cores; s && !found; s = s->next_core)
        found = s->query->at.first >= q->at.first && s->query->at.end <= q->at.end && n_names(s->from, name);
    return found;
}

bool recursion_is(const struct sql_tree *tree, const struct sql_cte *cte, const struct cte_scope *where)
{
    return where->query->recursive && asks_for(tree, cte->query, cte->name);
}

/* The step's list has the types of the first one's. */
static bool types_agree(const struct query_plan *first, struct query_plan *step)
{
    if (first->n_items != step->n_items)
        return false;
    for (uint32_t i = 0; i < first->n_items; i++) {
        enum plan_type type = (enum plan_type)first->items[i].expr->type;
        struct plan_expr **x = &step->items[i].expr;
        if ((*x)->type == PLAN_NULL)
            *x = plan_const(step, type, plan_null(type));
        if (type == PLAN_NULL || !*x || (*x)->type != type)
            return false;
    }
    return true;
}

/* The columns that the clause names. */
static bool rename_items(struct query_plan *first, const struct sql_expr *columns)
{
    uint32_t n = 0;
    for (const struct sql_expr *c = columns; c; c = c->next, n++) {
        if (n == first->n_items)
            return false;
        first->items[n].name = arena_strndup(&first->arena, c->name.p, c->name.len);
        if (!first->items[n].name)
            return false;
    }
    return !columns || n == first->n_items;
}

bool recursion_read(struct reader *r, const struct sql_cte *cte, const struct cte_scope *where, struct sql_name alias,
                    bool left)
{
    const struct sql_query *q = cte->query;
    const struct sql_select *first = q->selects, *step = first->next;
    if (r->depth >= PLAN_MAX_DEPTH || !step || step->next || step->compound != COMPOUND_UNION_ALL || q->order ||
        q->limit || q->ctes || n_names(first->from, cte->name) || n_names(step->from, cte->name) != 1 || step->group ||
        step->distinct || step->having || step->windows)
        return false;
    struct reader in = *r;
    struct recursion now = {.cte = cte, .core = step};
    in.loop_up = NULL;
    in.loops = NULL;
    in.loop_arm = 0;
    in.any_order = r->below_any;
    in.recursion = NULL;
    struct query_plan *p = plan_build_core(&in, q, first, where->tree, where, &plan_asked_whole);
    if (!p || !rename_items(p, cte->columns) || !(now.rows = arena_zalloc(&p->arena, sizeof *now.rows))) {
        plan_free(p);
        return false;
    }
    now.first = p;
    in.recursion = &now;
    p->rows = now.rows;
    p->step = plan_build_core(&in, q, step, where->tree, where, &plan_asked_whole);
    bool ok = p->step && !p->step->grouped && !p->step->n_windows && !p->step->distinct && types_agree(p, p->step);
    if (ok)
        return read_from_plan(r, p, alias, left);
    plan_free(p);
    return false;
}

bool recursion_settle(struct query_plan *p)
{
    uint8_t at = 0;
    while (at < p->n_sources && !p->sources[at].round)
        at++;
    if (at == p->n_sources || p->n_sources > 2 || (p->n_sources == 2 && !p->sources[!at].table.name))
        return false;
    for (uint32_t i = 0; i < p->n_where; i++)
        if (p->where[i]->op == X_OR)
            return false; /* SQLite may look its arms up one after the other */
    p->loops[0] = at;
    p->loops[1] = !at;
    p->n_loops = p->n_sources;
    p->restore_order = !loops_agree(p);
    return true;
}
