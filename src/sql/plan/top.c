/* ORDER BY with LIMIT over rows of the sources: what they are ordered by is computed for all, the list behind SELECT
 * for those that are left. Where the rows come in order, the first are enough. */
#include "sql/plan/plan_private.h"

#include <string.h>

enum { PIECE = 256, MANY = 1 << 16, TEXTS = 256 };

/* Rows that may be among the first: when there are many of them, all but the first are let go, and what comes is
 * measured by the last of those. */
struct collector {
    struct sink base;
    struct run *r;
    struct table *t;   /* row numbers by source, then the terms of ORDER BY */
    uint32_t prune_at; /* rows */
    bool bounded;      /* rows beyond `bound` in the first term are not among the first */
    int64_t bound;
    struct {
        strid text;
        bool kept;
    } texts[TEXTS]; /* how those compared last fell out, by the last bits of their number */
    uint32_t keep[BATCH];
    uint32_t *rows[PLAN_MAX_SOURCES]; /* of those kept */
};

static bool comes_after(const struct plan_expr *x, bool desc, int64_t word, int64_t bound)
{
    if (x->type == PLAN_REAL) {
        double a = column_f64(word), b = column_f64(bound);
        return desc ? a < b : a > b;
    }
    return desc ? word < bound : word > bound;
}

/* Does a text come before the bound, or is it the same? NULL, 0, is the first of all. */
static bool text_is_kept(struct collector *c, strid text)
{
    size_t at = text % TEXTS;
    if (text == (strid)c->bound || !text)
        return !c->r->plan->orders_desc[0] || text;
    if (c->texts[at].text != text) {
        struct slice a = strpool_view(&c->r->e->storage->strings, text),
                     b = strpool_view(&c->r->e->storage->strings, (strid)c->bound);
        int order = slice_cmp(a, b);
        c->texts[at].text = text;
        c->texts[at].kept = c->r->plan->orders_desc[0] ? order > 0 : order < 0;
    }
    return c->texts[at].kept;
}

/* Rows of the batch that are not known to come too late. NULLs are looked at again. */
static uint32_t filter(struct collector *c, const int64_t *first, uint32_t n)
{
    const struct query_plan *p = c->r->plan;
    const struct plan_expr *x = p->orders[0];
    int64_t null = plan_null((enum plan_type)x->type), bound = c->bound;
    bool desc = p->orders_desc[0];
    uint32_t kept = 0;
    if (c->bounded && x->type == PLAN_TEXT) {
        for (uint32_t i = 0; i < n; i++) {
            c->keep[kept] = i;
            kept += text_is_kept(c, (strid)first[i]);
        }
        return kept;
    }
    if (!c->bounded || x->type != PLAN_INT) {
        for (uint32_t i = 0; i < n; i++) {
            c->keep[kept] = i;
            kept += !c->bounded || first[i] == null || !comes_after(x, desc, first[i], bound);
        }
        return kept;
    }
    for (uint32_t i = 0; i < n; i++) { /* NULL is the least integer, and the first of all */
        c->keep[kept] = i;
        kept += desc ? first[i] >= bound : first[i] <= bound;
    }
    return kept;
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

/* Keeps the rows that are the first so far, as they came: equal ones stay in that order. */
static void prune(struct collector *c)
{
    const struct query_plan *p = c->r->plan;
    struct plan_answer top = {0};
    int64_t words[PLAN_MAX_SOURCES + PLAN_MAX_ORDER];
    const int64_t *columns[PLAN_MAX_SOURCES + PLAN_MAX_ORDER];
    struct table *t = table_of(c->r, false);
    table_finalize(c->t);
    if (t && run_order(c->r, &top, c->t, p->n_sources) && top.rows) {
        uint32_t n = top.first + top.n, last = top.rows[n - 1];
        const struct plan_expr *x = p->orders[0];
        c->bound = table_get(c->t, p->n_sources, last);
        c->bounded = c->bound != plan_null((enum plan_type)x->type);
        memset(c->texts, 0, sizeof c->texts);
        if (!order_ascending(top.rows, n, engine_stop(c->r->e)))
            c->r->rc = engine_gave_up(c->r->e);
        for (uint32_t k = 0; k < t->def->n_columns; k++)
            columns[k] = &words[k];
        for (uint32_t i = 0; i < n && !c->r->rc; i++) {
            for (uint32_t k = 0; k < t->def->n_columns; k++)
                words[k] = table_get(c->t, k, top.rows[i]);
            stage_append(c->r, t, columns, 1);
        }
        struct table *swap = c->t;
        c->t = t;
        t = swap;
    }
    mem_free(top.rows);
    stage_free(t);
}

/* The rows of `b` that are kept, as a batch. */
static struct batch kept_of(struct collector *c, const struct batch *b, uint32_t n)
{
    struct batch kept = {.n = n, .serial = ++c->r->serial};
    for (uint32_t k = 0; k < c->r->plan->n_sources; k++) {
        for (uint32_t i = 0; i < n; i++)
            c->rows[k][i] = b->rows[k][c->keep[i]];
        kept.rows[k] = c->rows[k];
    }
    return kept;
}

static bool collect(struct sink *s, const struct batch *b)
{
    struct collector *c = (struct collector *)s;
    const struct query_plan *p = c->r->plan;
    const int64_t *terms[PLAN_MAX_ORDER], *columns[PLAN_MAX_SOURCES + PLAN_MAX_ORDER];
    int64_t words[PLAN_MAX_SOURCES][PIECE];
    struct batch kept = *b;
    terms[0] = eval(c->r, p->orders[0], b);
    uint32_t n_kept = c->r->rc ? 0 : filter(c, terms[0], b->n);
    if (n_kept < b->n)
        kept = kept_of(c, b, n_kept);
    for (uint32_t k = 0; k < p->n_orders && n_kept && !c->r->rc; k++)
        terms[k] = eval(c->r, p->orders[k], &kept);
    for (uint32_t at = 0; at < n_kept && !c->r->rc; at += PIECE) {
        uint32_t n = n_kept - at < PIECE ? n_kept - at : PIECE;
        for (uint32_t k = 0; k < p->n_sources; k++) {
            for (uint32_t i = 0; i < n; i++)
                words[k][i] = kept.rows[k][at + i];
            columns[k] = words[k];
        }
        for (uint32_t k = 0; k < p->n_orders; k++)
            columns[p->n_sources + k] = terms[k] + at;
        stage_append(c->r, c->t, columns, n);
    }
    if (!c->r->rc && c->t->n_rows >= c->prune_at)
        prune(c);
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
    if (!x || !top_suits(p) || p->right || p->orders_desc[0] || p->restore_order || x->op != X_COLUMN ||
        x->source != p->steps[0].source)
        return false;
    const struct column *c = x->column == VTAB_ROW ? NULL : &r->tables[x->source]->columns[x->column];
    return !c || (c->sorted && c->type != COL_STR);
}

void top_run(struct run *r, struct plan_answer *out)
{
    const struct query_plan *p = r->plan;
    struct plan_answer top = {0};
    uint64_t wanted = (uint64_t)p->limit + (uint64_t)p->offset;
    struct collector c = {.base = {collect}, .r = r, .t = table_of(r, false), .prune_at = UINT32_MAX};
    if (wanted && wanted < MANY)
        c.prune_at = 8 * (uint32_t)wanted + 1024;
    struct lister l = {{list}, r, NULL};
    for (uint32_t k = 0; k < p->n_sources && !r->rc; k++)
        if (!(c.rows[k] = run_alloc(r, BATCH * sizeof *c.rows[k]) ? mem_alloc(BATCH * sizeof *c.rows[k]) : NULL))
            r->rc = r->rc ? r->rc : SQLITE_NOMEM;
    if (c.t && p->limit && !r->rc)
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
    for (uint32_t k = 0; k < p->n_sources; k++)
        mem_free(c.rows[k]);
    mem_free(top.rows);
    stage_free(c.t);
}
