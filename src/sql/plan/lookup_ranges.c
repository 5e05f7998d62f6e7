/* The rows of a query within an expression by keys and ranges: is there a wakeup of this thread in the millisecond
 * before (EXISTS), which is the last row before this time (ORDER BY … DESC LIMIT 1, max()), how many are between these
 * times?
 *
 * Rows of one key lie side by side, ascending by what the first range compares. Each range cuts them at one end by a
 * search. Where all ranges compare one expression the rows left are those that pass: sums are differences of
 * sums so far, the first row or the least value is found in a tree. Else they are tested one by one. */
#include "base/vectorised.h"
#include "sql/plan/lookup_list.h"
#include "sql/plan/range_words.h"

#include <string.h>

void lookup_ranges_free(struct lookup_ranges *l)
{
    if (!l)
        return;
    lookup_walk_free(l->walk);
    lookup_list_free(l);
    mem_free(l);
}

/* ---- where the rows come from ---- */

/* What has been found: places that pass, or the best of them, or sums. */
struct found {
    uint32_t n, best;
    uint32_t counted; /* values that are not NULL, or rows where there are none */
    uint64_t sum;
};

/* Are all rows of a table counted, by ranges of the column that sorts it? */
static bool is_sorted_count(struct run *r, struct lookup_ranges *l)
{
    const struct plan_lookup *of = l->of;
    const struct query_plan *sub = of->sub;
    const struct plan_expr *own = sub->items[item_of_range(of, 0)].expr;
    bool counts =
        of->kind == LOOKUP_EXISTS || (of->aggregate == AGG_COUNT && sub->items[of->n_keys].expr->op == X_CONST);
    if (!counts || of->n_keys || sub->n_sources != 1 || !sub->sources[0].table.name || sub->n_where ||
        sub->steps[0].n_tests || sub->steps[0].n_where || sub->limit >= 0 || sub->distinct || sub->grouped ||
        sub->n_windows || !steps_is_sorted_range(sub, &(struct plan_range){.own = (struct plan_expr *)own}))
        return false;
    for (uint32_t k = 0; k < of->n_ranges; k++)
        if (of->ops[k] == SQL_NE || !plan_expr_equal(sub->items[item_of_range(of, k)].expr, own))
            return false;
    const struct table *t = plan_table_rows(&sub->sources[0].table, r->e);
    if (!t || t->columns[own->column].has_null)
        return false;
    l->sorted = t;
    l->column = (uint32_t)own->column;
    for (uint32_t k = 0; k < of->n_ranges; k++)
        l->by[k] = (uint8_t)k;
    return true;
}

/* The rows of the table between the bounds. */
static struct found count_sorted(const struct lookup_ranges *l, const int64_t *others)
{
    uint32_t from = 0, to = l->sorted->n_rows;
    for (uint32_t k = 0; k < l->of->n_ranges; k++) {
        uint8_t op = l->of->ops[k];
        uint32_t at = table_lower_bound(l->sorted, l->column, others[k], range_is_beyond(op));
        if (range_is_lower(op))
            from = at > from ? at : from;
        else
            to = at < to ? at : to;
    }
    uint32_t n = to > from ? to - from : 0;
    return (struct found){.n = n, .counted = n};
}

static struct lookup_ranges *rows_of(struct run *r, const struct plan_lookup *of)
{
    struct lookup_ranges **place = &r->lookup_ranges[of - r->plan->lookups], *l = *place;
    if (l || r->rc)
        return l;
    if (!(l = *place = mem_zalloc(sizeof *l))) {
        r->rc = SQLITE_NOMEM;
        return NULL;
    }
    l->of = of;
    if (is_sorted_count(r, l) || (l->walk = lookup_walk_open(r, of)))
        return l;
    return lookup_list_make(r, l) ? l : NULL;
}

/* ---- looking ---- */

/* Is it one of those whose best is asked for? */
static bool wants_best(const struct lookup_ranges *l)
{
    return l->scores != NULL;
}

static uint32_t best_of(const struct lookup_ranges *l, uint32_t lo, uint32_t hi)
{
    if (l->best != BEST_IN_TREE)
        return l->best == BEST_AT_BEGIN ? lo : hi - 1;
    uint32_t best = lo;
    for (lo += l->n, hi += l->n; lo < hi; lo >>= 1, hi >>= 1) {
        if (lo & 1) {
            best = better(l, l->tree[lo], best) ? l->tree[lo] : best;
            lo++;
        }
        if (hi & 1) {
            hi--;
            best = better(l, l->tree[hi], best) ? l->tree[hi] : best;
        }
    }
    return best;
}

static struct found look_between(const struct lookup_ranges *l, uint32_t lo, uint32_t hi)
{
    struct found f = {.n = hi - lo, .counted = hi - lo};
    if (hi > lo && wants_best(l))
        f.best = best_of(l, lo, hi);
    else if (l->sums) {
        f.counted = l->counts[hi] - l->counts[lo];
        f.sum = l->sums[hi] - l->sums[lo];
    }
    return f;
}

static bool passes(const struct lookup_ranges *l, uint32_t place, const int64_t *others)
{
    for (uint32_t k = 0; k < l->of->n_ranges; k++) {
        int64_t own = l->own[k][place], other = others[k];
        switch (l->of->ops[l->by[k]]) {
        case SQL_NE:
            if (own == other)
                return false;
            break;
        case SQL_LT:
            if (own >= other)
                return false;
            break;
        case SQL_LE:
            if (own > other)
                return false;
            break;
        case SQL_GT:
            if (own <= other)
                return false;
            break;
        default:
            if (own < other)
                return false;
            break;
        }
    }
    return true;
}

enum { BLOCK = 256 /* places that are looked at together */ };

#define PASS_WORDS(name, test)                                                                                         \
    VECTORISED static void name(const int64_t *own, uint32_t n, int64_t other, uint8_t *mask)                          \
    {                                                                                                                  \
        for (uint32_t i = 0; i < n; i++)                                                                               \
            mask[i] &= (uint8_t)(own[i] test other);                                                                   \
    }
PASS_WORDS(pass_ne, !=)
PASS_WORDS(pass_lt, <)
PASS_WORDS(pass_le, <=)
PASS_WORDS(pass_gt, >)
PASS_WORDS(pass_ge, >=)

/* Which of n places from `at` on pass, n <= BLOCK. */
static void pass_block(const struct lookup_ranges *l, uint32_t at, uint32_t n, const int64_t *others, uint8_t *mask)
{
    static void (*const passes_of[])(const int64_t *, uint32_t, int64_t, uint8_t *) = {
        [SQL_NE] = pass_ne, [SQL_LT] = pass_lt, [SQL_LE] = pass_le, [SQL_GT] = pass_gt, [SQL_GE] = pass_ge};
    memset(mask, 1, n);
    for (uint32_t k = 0; k < l->of->n_ranges; k++)
        passes_of[l->of->ops[l->by[k]]](l->own[k] + at, n, others[k], mask);
}

/* How many pass, and the sums of their values. */
static struct found sum_through(struct run *r, struct lookup_ranges *l, uint32_t lo, uint32_t hi, const int64_t *others)
{
    struct found f = {0};
    uint8_t mask[BLOCK];
    bool any = l->of->kind == LOOKUP_EXISTS;
    for (uint32_t at = lo; at < hi && !(any && f.n); at += BLOCK) {
        uint32_t n = hi - at < BLOCK ? hi - at : BLOCK, passed = 0;
        l->looked += n;
        if (l->looked / BATCH != (l->looked - n) / BATCH && run_stopped(r))
            break;
        pass_block(l, at, n, others, mask);
        for (uint32_t i = 0; i < n; i++)
            passed += mask[i];
        f.n += passed;
        f.counted += l->counts ? 0 : passed;
        for (uint32_t i = 0; l->counts && i < n; i++)
            f.counted += mask[i] ? l->counts[at + i + 1] - l->counts[at + i] : 0;
        for (uint32_t i = 0; l->sums && i < n; i++)
            f.sum += mask[i] ? l->sums[at + i + 1] - l->sums[at + i] : 0;
    }
    return f;
}

/* One by one; the first that passes is enough where it is the best. */
static struct found look_through(struct run *r, struct lookup_ranges *l, uint32_t lo, uint32_t hi,
                                 const int64_t *others)
{
    struct found f = {0};
    if (!wants_best(l))
        return sum_through(r, l, lo, hi, others);
    bool backwards = l->best == BEST_AT_END;
    bool one = l->best != BEST_IN_TREE && !l->of->one;
    for (uint32_t i = lo; i < hi && !(one && f.n); i++) {
        uint32_t place = backwards ? hi - 1 - (i - lo) : i;
        if (++l->looked % BATCH == 0 && run_stopped(r))
            break;
        if (!passes(l, place, others))
            continue;
        if (!f.n || better(l, place, f.best))
            f.best = place;
        f.n++;
        f.counted++;
    }
    return f;
}

static struct found look(struct run *r, struct lookup_ranges *l, const int64_t *key, const int64_t *others)
{
    uint32_t group = lookup_keys_find(&l->keys, key);
    if (!group)
        return (struct found){0};
    uint32_t lo = l->starts[group - 1], hi = l->starts[group];
    if (l->differs)
        return (struct found){.n = lo < hi && (l->own[0][lo] != others[0] || l->own[0][hi - 1] != others[0])};
    for (uint32_t k = 0; k < l->of->n_ranges && lo < hi && l->cuts[k]; k++)
        range_cut(l->bounds[k] ? l->bounds[k] : l->own[k], &lo, &hi, others[k], l->of->ops[l->by[k]],
                  &l->near[k][group - 1]);
    return l->exact ? look_between(l, lo, hi) : look_through(r, l, lo, hi, others);
}

/* The word of what has been found. */
static int64_t word_of(const struct lookup_ranges *l, const struct found *f)
{
    const struct plan_lookup *of = l->of;
    if (of->kind == LOOKUP_EXISTS)
        return f->n != 0;
    switch (of->aggregate) {
    case AGG_COUNT:
        return f->counted;
    case AGG_SUM:
        return f->counted ? (int64_t)f->sum : of->missing;
    case AGG_TOTAL:
        return f->counted ? column_f64_word((double)(int64_t)f->sum) : of->missing;
    case AGG_AVG:
        return f->counted ? column_f64_word((double)(int64_t)f->sum / f->counted) : of->missing;
    case AGG_KINDS:
        return f->n ? l->values[f->best] : of->missing;
    default:
        return f->n && l->values[f->best] != null_of(of, of->n_keys) ? l->values[f->best] : of->missing;
    }
}

/* The result for arguments that are not NULL. */
static int64_t ask(struct run *r, struct lookup_ranges *l, const int64_t *words)
{
    const struct plan_lookup *of = l->of;
    int64_t others[PLAN_MAX_RANGES] = {0};
    if (l->walk) {
        int64_t word = lookup_walk_find(r, l->walk, words);
        if (!lookup_walk_is_dear(l->walk) || r->rc)
            return word;
        lookup_walk_free(l->walk);
        l->walk = NULL;
        if (!lookup_list_make(r, l))
            return of->missing;
    }
    for (uint32_t k = 0; k < of->n_ranges; k++)
        others[k] = words[of->n_keys + l->by[k]];
    struct found f = l->sorted ? count_sorted(l, others) : look(r, l, words, others);
    if (of->one && f.n > 1 && !r->rc)
        r->rc = RUN_GAVE_UP;
    return word_of(l, &f);
}

void eval_lookup_ranges(struct run *r, const struct plan_expr *x, const struct batch *b, int64_t *out)
{
    const int64_t *args[PLAN_MAX_KEYS + PLAN_MAX_RANGES] = {NULL};
    struct lookup_ranges *l = rows_of(r, x->lookup);
    const struct found nothing = {0};
    for (uint32_t k = 0; k < x->n_args; k++)
        args[k] = eval(r, x->args[k], b);
    for (uint32_t i = 0; l && !r->rc && i < b->n; i++) {
        int64_t words[PLAN_MAX_KEYS + PLAN_MAX_RANGES] = {0};
        bool null = false;
        if (++l->looked % BATCH == 0 && run_stopped(r))
            break;
        for (uint32_t k = 0; k < x->n_args; k++) {
            words[k] = args[k][i];
            null |= words[k] == plan_null((enum plan_type)x->args[k]->type);
        }
        out[i] = null ? word_of(l, &nothing) : ask(r, l, words);
    }
}
