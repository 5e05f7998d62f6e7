/* ORDER BY with LIMIT over rows of the sources: what they are ordered by is computed for all, the list behind SELECT
 * for those that are left. Where the rows come in order, the first are enough. */
#include "sql/plan/plan_private.h"

struct collector {
    struct sink base;
    struct run *r;
    struct table *t; /* row numbers by source, then the terms of ORDER BY */
};

static bool collect(struct sink *s, const struct batch *b)
{
    enum { PIECE = 256 };
    struct collector *c = (struct collector *)s;
    const struct query_plan *p = c->r->plan;
    const int64_t *terms[PLAN_MAX_ORDER], *columns[PLAN_MAX_SOURCES + PLAN_MAX_ORDER];
    int64_t words[PLAN_MAX_SOURCES][PIECE];
    for (uint32_t k = 0; k < p->n_orders; k++)
        terms[k] = eval(c->r, p->orders[k], b);
    for (uint32_t at = 0; at < b->n && !c->r->rc; at += PIECE) {
        uint32_t n = b->n - at < PIECE ? b->n - at : PIECE;
        for (uint32_t k = 0; k < p->n_sources; k++) {
            for (uint32_t i = 0; i < n; i++)
                words[k][i] = b->rows[k][at + i];
            columns[k] = words[k];
        }
        for (uint32_t k = 0; k < p->n_orders; k++)
            columns[p->n_sources + k] = terms[k] + at;
        stage_append(c->r, c->t, columns, n);
    }
    return !c->r->rc;
}

struct lister {
    struct sink base;
    struct run *r;
    struct table *t;
};

static bool list(struct sink *s, const struct batch *b)
{
    struct lister *l = (struct lister *)s;
    const struct query_plan *p = l->r->plan;
    const int64_t *columns[PLAN_MAX_ITEMS];
    for (uint32_t i = 0; i < p->n_items; i++)
        columns[i] = eval(l->r, p->items[i].expr, b);
    return !l->r->rc && stage_append(l->r, l->t, columns, b->n);
}

bool top_suits(const struct query_plan *p)
{
    return p->limit >= 0 && p->n_orders && !p->grouped && !p->n_windows && !p->distinct;
}

bool top_comes_in_order(const struct run *r)
{
    const struct query_plan *p = r->plan;
    const struct plan_expr *x = p->n_orders == 1 ? p->orders[0] : NULL;
    if (!x || !top_suits(p) || p->orders_desc[0] || p->restore_order || x->op != X_COLUMN ||
        x->source != p->steps[0].source)
        return false;
    const struct column *c = x->column == VTAB_ROW ? NULL : &r->tables[x->source]->columns[x->column];
    return !c || (c->sorted && c->type != COL_STR);
}

static struct table *table_of(struct run *r, bool items)
{
    const struct query_plan *p = r->plan;
    enum plan_type types[PLAN_MAX_ITEMS + PLAN_MAX_SOURCES + PLAN_MAX_ORDER];
    uint32_t n = 0;
    for (uint32_t k = 0; items && k < p->n_items; k++)
        types[n++] = (enum plan_type)p->items[k].expr->type;
    for (uint32_t k = 0; !items && k < p->n_sources; k++)
        types[n++] = PLAN_INT;
    for (uint32_t k = 0; !items && k < p->n_orders; k++)
        types[n++] = (enum plan_type)p->orders[k]->type;
    return stage_new(r, types, n);
}

void top_run(struct run *r, struct plan_answer *out)
{
    const struct query_plan *p = r->plan;
    struct plan_answer top = {0};
    struct collector c = {{collect}, r, table_of(r, false)};
    struct lister l = {{list}, r, NULL};
    if (c.t && p->limit)
        run_sources(r, &c.base);
    if (c.t && !r->rc) {
        table_finalize(c.t);
        run_order(r, &top, c.t, p->n_sources);
    }
    if (!r->rc && (l.t = table_of(r, true)) != NULL) {
        run_replay(r, c.t, top.rows + top.first, top.n, &l.base);
        table_finalize(l.t);
        *out = (struct plan_answer){.table = l.t, .n = l.t->n_rows};
    }
    mem_free(top.rows);
    stage_free(c.t);
}
