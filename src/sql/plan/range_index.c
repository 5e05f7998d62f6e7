/* The rows of a source between bounds that each row of the sources before it sets: `c.ts >= s.ts AND c.ts < s.ts +
 * s.dur` with or without equal keys.
 *
 * Rows of one key lie side by side, ascending by what the first condition compares. What another condition compares is
 * kept as its greatest so far, or its least from there on: those ascend, too, so that each condition cuts the places at
 * one end by a search. Spans that do not overlap are so found at once by their begin and their end. The conditions are
 * tested again behind the join; here they only leave out what cannot pass. */
#include "sql/plan/join_private.h"
#include "sql/plan/range_words.h"

#include <string.h>

void range_index_free(struct range_index *x)
{
    mem_free(x->rows);
    mem_free(x->starts);
    mem_free(x->ends);
    mem_free(x->sorted);
    for (uint32_t k = 0; k < PLAN_MAX_RANGES; k++) {
        mem_free(x->bounds[k]);
        mem_free(x->near[k]);
    }
    *x = (struct range_index){0};
}

/* Rows of one key, chained by the index, side by side. */
static bool lay_out(struct run *r, const struct plan_step *s, struct key_index *h, struct range_index *x)
{
    uint32_t place = 0;
    if (!run_alloc_rows(r, &x->rows, h->n) || !run_alloc_rows(r, &x->starts, h->n) ||
        !run_alloc_rows(r, &x->ends, h->n))
        return false;
    for (uint32_t i = 0; i < h->n && !(i % BATCH == 0 && run_stopped(r)); i++) {
        x->starts[i] = x->ends[i] = 0; /* of places that are no first ones */
        if (key_index_first(h, s->n_keys, h->keys + (size_t)i * s->n_keys) != i + 1)
            continue;
        x->starts[i] = place;
        for (uint32_t at = i + 1; at; at = h->next[at - 1])
            x->rows[place++] = h->rows[at - 1];
        x->ends[i] = place;
        uint32_t n = place - x->starts[i];
        x->longest = n > x->longest ? n : x->longest;
    }
    x->n = place;
    return !r->rc;
}

/* The words of an expression by place. */
static int64_t *words_of(struct run *r, const struct plan_step *s, const struct range_index *x,
                         const struct plan_expr *own)
{
    int64_t *out = run_alloc(r, x->n * 8ull) ? mem_alloc(((size_t)x->n + 1) * sizeof *out) : NULL;
    if (!out && !r->rc)
        r->rc = SQLITE_NOMEM;
    for (uint32_t at = 0; out && at < x->n && !run_stopped(r); at += BATCH) {
        struct batch b = {.n = x->n - at < BATCH ? x->n - at : BATCH, .serial = ++r->serial};
        b.rows[s->source] = x->rows + at;
        memcpy(out + at, eval(r, own, &b), b.n * sizeof *out);
    }
    return out;
}

/* Sorts the rows of a key by the words of the first condition. */
static bool sort_places(struct run *r, struct range_index *x, uint32_t from, uint32_t to, struct range_pair *pairs)
{
    if (range_ascends(x->bounds[0] + from, to - from))
        return true;
    x->turned = true;
    return range_sort(r, x->bounds[0] + from, x->rows + from, to - from, pairs);
}

bool range_index_finish(struct run *r, const struct plan_step *s, struct key_index *h, struct range_index *x)
{
    if (!lay_out(r, s, h, x) || !(x->bounds[0] = words_of(r, s, x, s->ranges[0].own)) || r->rc)
        return false;
    struct range_pair *pairs =
        run_alloc(r, x->longest * sizeof *pairs) ? mem_alloc(((size_t)x->longest + 1) * sizeof *pairs) : NULL;
    bool ok = pairs != NULL;
    for (uint32_t i = 0; ok && i < h->n; i++)
        if (x->ends[i] > x->starts[i])
            ok = sort_places(r, x, x->starts[i], x->ends[i], pairs);
    mem_free(pairs);
    if (ok && x->turned)
        ok = run_alloc_rows(r, &x->sorted, x->longest);
    for (uint32_t k = 0; ok && k < s->n_ranges; k++) {
        ok = run_alloc_rows(r, &x->near[k], h->n);
        if (ok)
            memset(x->near[k], 0, h->n * sizeof *x->near[k]);
    }
    for (uint32_t k = 1; ok && k < s->n_ranges; k++) {
        if (plan_expr_equal(s->ranges[k].own, s->ranges[0].own))
            continue;
        ok = (x->bounds[k] = words_of(r, s, x, s->ranges[k].own)) != NULL && !r->rc;
        for (uint32_t i = 0; ok && i < h->n; i++)
            if (x->ends[i] > x->starts[i])
                range_make_ascend(x->bounds[k], x->starts[i], x->ends[i], s->ranges[k].op);
    }
    if (!ok && !r->rc)
        r->rc = SQLITE_NOMEM;
    return ok;
}

/* ---- looking ---- */

void range_index_find(const struct plan_step *s, struct range_index *x, uint32_t first, const int64_t *const *others,
                      uint32_t i, uint32_t *lo, uint32_t *hi)
{
    *lo = *hi = 0;
    if (!first)
        return;
    uint32_t from = x->starts[first - 1], to = x->ends[first - 1];
    for (uint32_t k = 0; k < s->n_ranges && from < to; k++) {
        const int64_t *words = x->bounds[k] ? x->bounds[k] : x->bounds[0];
        int64_t word = others[k][i];
        if (word == COL_NULL)
            return;
        range_cut(words, &from, &to, word, s->ranges[k].op, &x->near[k][first - 1]);
    }
    *lo = from;
    *hi = to;
}

/* ---- by the rows of a sorted column ---- */

void range_index_find_rows(const struct run *r, const struct plan_step *s, const int64_t *const *others, uint32_t i,
                           uint32_t *lo, uint32_t *hi)
{
    const struct table *t = r->tables[s->source];
    uint32_t from = 0, to = t->n_rows;
    *lo = *hi = 0;
    for (uint32_t k = 0; k < s->n_ranges && from < to; k++) {
        int64_t word = others[k][i];
        if (word == COL_NULL)
            return;
        if (k && !plan_expr_equal(s->ranges[k].own, s->ranges[0].own))
            continue;
        uint8_t op = s->ranges[k].op;
        uint32_t at = (uint32_t)table_lower_bound(t, (uint32_t)s->ranges[k].own->column, word, range_is_beyond(op));
        if (range_is_lower(op))
            from = at > from ? at : from;
        else
            to = at < to ? at : to;
    }
    *lo = from;
    *hi = to < from ? from : to;
}
