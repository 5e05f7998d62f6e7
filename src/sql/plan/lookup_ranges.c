/* The rows of a query within an expression by keys and ranges: is there a wakeup of this thread in the millisecond
 * before (EXISTS), which is the last row before this time (ORDER BY … DESC LIMIT 1, max()), how many are between these
 * times?
 *
 * Rows of one key lie side by side, ascending by what the first range compares. Each range cuts them at one end by a
 * search; what other expressions it compares is kept as its greatest so far, or its least from there on, as in
 * range_index.c. Where all ranges compare one expression the rows left are those that pass: sums are differences of
 * sums so far, the first row or the least value is found in a tree. Else they are tested one by one. */
#include "base/vectorised.h"
#include "sql/plan/lookup_private.h"
#include "sql/plan/range_words.h"

#include <string.h>

enum { NO_GROUP = 0 };
enum best { BEST_AT_BEGIN, BEST_AT_END, BEST_IN_TREE };

struct lookup_ranges {
    const struct plan_lookup *of;
    const struct table *sorted; /* all rows of this table count, which its column sorts: there is nothing to be made */
    uint32_t column;
    struct lookup_walk *walk;         /* or few rows have asked: they need no list */
    struct lookup_keys keys;          /* places are groups */
    uint32_t *starts, n;              /* by group, and the end; rows that may be found */
    uint32_t *rows;                   /* by place: of the table */
    uint8_t by[PLAN_MAX_RANGES];      /* ranges in the order in which they are looked at */
    bool cuts[PLAN_MAX_RANGES];       /* by that order: by search */
    int64_t *own[PLAN_MAX_RANGES];    /* by place: what they compare */
    int64_t *bounds[PLAN_MAX_RANGES]; /* what ascends, where that is not the same; NULL: own */
    uint32_t *near[PLAN_MAX_RANGES];  /* by group: where the last search ended */
    bool exact;                       /* what the searches leave passes */
    bool differs;                     /* EXISTS of another value: it is the least or the greatest */
    int64_t *values, *scores;         /* the least score is the best */
    uint64_t *sums;                   /* of the values before the place */
    uint32_t *counts;                 /* of those that are not NULL */
    uint32_t *tree;                   /* the best place of each node */
    uint8_t best;                     /* enum best: where it is among places */
    uint64_t looked;
};

void lookup_ranges_free(struct lookup_ranges *l)
{
    if (!l)
        return;
    lookup_walk_free(l->walk);
    lookup_keys_free(&l->keys);
    for (uint32_t k = 0; k < PLAN_MAX_RANGES; k++) {
        mem_free(l->own[k]);
        mem_free(l->bounds[k]);
        mem_free(l->near[k]);
    }
    mem_free(l->starts);
    mem_free(l->rows);
    mem_free(l->values);
    mem_free(l->scores);
    mem_free(l->sums);
    mem_free(l->counts);
    mem_free(l->tree);
    mem_free(l);
}

/* ---- groups ---- */

/* Where the words of a range stand in the list of the query. */
static uint32_t item_of_range(const struct plan_lookup *of, uint32_t range)
{
    return of->n_keys + (of->kind == LOOKUP_VALUE) + range;
}

static int64_t null_of(const struct plan_lookup *of, uint32_t item)
{
    return plan_null((enum plan_type)of->sub->items[item].expr->type);
}

/* The group of each row, + 1; 0: one of its keys or of what ranges compare is NULL, so that it passes nowhere. */
static bool find_groups(struct run *r, struct lookup_ranges *l, const struct table *t, uint32_t *groups)
{
    const struct plan_lookup *of = l->of;
    uint32_t rows[BATCH], items[PLAN_MAX_KEYS + PLAN_MAX_RANGES], n_items = 0;
    int64_t nulls[PLAN_MAX_KEYS + PLAN_MAX_RANGES];
    int64_t *words = lookup_alloc(r, (PLAN_MAX_KEYS + PLAN_MAX_RANGES) * (uint64_t)BATCH, sizeof *words);
    for (uint32_t k = 0; k < of->n_keys; k++)
        items[n_items++] = k;
    for (uint32_t k = 0; k < of->n_ranges; k++)
        items[n_items++] = item_of_range(of, k);
    for (uint32_t k = 0; k < n_items; k++)
        nulls[k] = null_of(of, items[k]);
    for (uint32_t at = 0; words && at < t->n_rows && !run_stopped(r); at += BATCH) {
        uint32_t n = t->n_rows - at < BATCH ? t->n_rows - at : BATCH;
        for (uint32_t i = 0; i < n; i++)
            rows[i] = at + i;
        for (uint32_t k = 0; k < n_items; k++)
            column_gather(&t->columns[items[k]], rows, n, words + (size_t)k * BATCH);
        for (uint32_t i = 0; i < n; i++) {
            int64_t key[PLAN_MAX_KEYS + PLAN_MAX_RANGES];
            bool null = false;
            for (uint32_t k = 0; k < n_items; k++) {
                key[k] = words[(size_t)k * BATCH + i];
                null |= key[k] == nulls[k];
            }
            groups[at + i] = null ? NO_GROUP : of->n_keys || !l->keys.n ? lookup_keys_add(r, &l->keys, key) : 1;
        }
    }
    mem_free(words);
    return !r->rc;
}

/* Rows by their groups, ascending within each. */
static bool lay_out(struct run *r, struct lookup_ranges *l, const struct table *t)
{
    uint32_t *groups = lookup_alloc(r, t->n_rows, sizeof *groups);
    l->keys.n_keys = l->of->n_keys;
    bool ok = groups && (!l->of->n_keys || lookup_keys_number(r, &l->keys, &t->columns[0], t->n_rows)) &&
              find_groups(r, l, t, groups);
    if (ok)
        l->starts = lookup_alloc(r, l->keys.n + 1ull, sizeof *l->starts);
    if (ok && l->starts)
        l->rows = lookup_alloc(r, t->n_rows, sizeof *l->rows);
    ok = ok && l->starts && l->rows;
    if (ok)
        memset(l->starts, 0, (l->keys.n + 1ull) * sizeof *l->starts);
    for (uint32_t i = 0; ok && i < t->n_rows; i++)
        l->starts[groups[i]]++; /* of group g - 1, for now */
    if (ok)
        l->starts[0] = 0;
    for (uint32_t g = 1; ok && g <= l->keys.n; g++)
        l->starts[g] += l->starts[g - 1];
    l->n = ok ? l->starts[l->keys.n] : 0;
    for (uint32_t i = t->n_rows; ok && i-- > 0;)
        if (groups[i] != NO_GROUP)
            l->rows[--l->starts[groups[i]]] = i;
    if (ok) { /* starts[g] is that of group g - 1 now */
        memmove(l->starts, l->starts + 1, l->keys.n * sizeof *l->starts);
        l->starts[l->keys.n] = l->n;
    }
    mem_free(groups);
    return ok;
}

/* ---- their order ---- */

/* The words of an item by place. */
static int64_t *words_of(struct run *r, const struct lookup_ranges *l, const struct table *t, uint32_t item)
{
    int64_t *out = lookup_alloc(r, l->n, sizeof *out);
    for (uint32_t at = 0; out && at < l->n && !run_stopped(r); at += BATCH)
        column_gather(&t->columns[item], l->rows + at, l->n - at < BATCH ? l->n - at : BATCH, out + at);
    return out;
}

/* Rows of a group lie as they are ordered. Equals with different values: which of them SQLite would find first is not
 * known. */
static bool has_no_ties(struct run *r, const struct lookup_ranges *l, const struct table *t)
{
    const struct plan_lookup *of = l->of;
    uint32_t first = item_of_range(of, of->n_ranges);
    int64_t *words[PLAN_MAX_ORDER + 1] = {NULL};
    bool tie = false;
    for (uint32_t k = 0; k <= of->n_ties && !r->rc; k++)
        words[k] = words_of(r, l, t, k < of->n_ties ? first + k : of->n_keys);
    for (uint32_t g = 0; g < l->keys.n && !r->rc; g++)
        for (uint32_t i = l->starts[g] + 1; i < l->starts[g + 1]; i++) {
            bool equal = words[of->n_ties][i] != words[of->n_ties][i - 1];
            for (uint32_t k = 0; k < of->n_ties && equal; k++) {
                int64_t a = words[k][i - 1], b = words[k][i];
                bool zeros = t->columns[first + k].type == COL_F64 && column_f64(a) == 0 && column_f64(b) == 0;
                equal = a == b || zeros;
            }
            tie |= equal;
        }
    for (uint32_t k = 0; k <= of->n_ties; k++)
        mem_free(words[k]);
    if (tie && !r->rc)
        r->rc = RUN_GAVE_UP;
    return !r->rc;
}

/* Those whose rows are not in order yet. */
static bool sort_groups(struct run *r, struct lookup_ranges *l)
{
    struct range_pair *pairs = NULL;
    for (uint32_t g = 0; !r->rc && g < l->keys.n; g++) {
        uint32_t from = l->starts[g], n = l->starts[g + 1] - from;
        if (range_ascends(l->own[0] + from, n))
            continue;
        if (!pairs && !(pairs = lookup_alloc(r, l->n, sizeof *pairs)))
            break;
        range_sort(r, l->own[0] + from, l->rows + from, n, pairs);
    }
    mem_free(pairs);
    return !r->rc;
}

/* Do two ranges bound what this one compares, from below and from above? */
static bool is_bounded(const struct plan_lookup *of, uint32_t range)
{
    const struct plan_expr *own = of->sub->items[item_of_range(of, range)].expr;
    bool lower = false, upper = false;
    for (uint32_t k = 0; k < of->n_ranges; k++) {
        if (of->ops[k] == SQL_NE || !plan_expr_equal(of->sub->items[item_of_range(of, k)].expr, own))
            continue;
        lower |= range_is_lower(of->ops[k]);
        upper |= !range_is_lower(of->ops[k]);
    }
    return lower && upper;
}

/* Rows lie by what the first range compares. What has two bounds leaves the fewest of them, so it comes first: of
 * `b.dur > a.dur AND b.ts BETWEEN a.ts - 1000000 AND a.ts` the times. What orders nothing comes last. */
static void sort_ranges(struct lookup_ranges *l)
{
    const struct plan_lookup *of = l->of;
    uint32_t n = 0;
    for (int turn = 0; turn < 3; turn++)
        for (uint32_t k = 0; k < of->n_ranges; k++) {
            int comes = of->ops[k] == SQL_NE ? 2 : !is_bounded(of, k);
            if (comes == turn) {
                l->cuts[n] = turn < 2;
                l->by[n++] = (uint8_t)k;
            }
        }
    l->differs = of->kind == LOOKUP_EXISTS && of->n_ranges == 1 && !l->cuts[0];
    l->exact = l->cuts[0];
    for (uint32_t k = 1; k < of->n_ranges; k++)
        l->exact &= l->cuts[k] && plan_expr_equal(of->sub->items[item_of_range(of, l->by[k])].expr,
                                                  of->sub->items[item_of_range(of, l->by[0])].expr);
}

static bool make_bounds(struct run *r, struct lookup_ranges *l, const struct table *t)
{
    const struct plan_lookup *of = l->of;
    sort_ranges(l);
    if (!(l->own[0] = words_of(r, l, t, item_of_range(of, l->by[0]))) || r->rc)
        return false;
    if ((l->cuts[0] || l->differs) && !sort_groups(r, l))
        return false;
    for (uint32_t k = 0; k < of->n_ranges && l->cuts[k]; k++) {
        if (!(l->near[k] = lookup_alloc(r, l->keys.n, sizeof *l->near[k])))
            return false;
        memset(l->near[k], 0, l->keys.n * sizeof *l->near[k]);
    }
    for (uint32_t k = 1; k < of->n_ranges && !r->rc; k++) {
        if (!(l->own[k] = words_of(r, l, t, item_of_range(of, l->by[k]))))
            return false;
        if (!l->cuts[k] || l->exact)
            continue;
        if (!(l->bounds[k] = lookup_alloc(r, l->n, sizeof *l->bounds[k])))
            return false;
        memcpy(l->bounds[k], l->own[k], l->n * sizeof *l->bounds[k]);
        for (uint32_t g = 0; g < l->keys.n; g++)
            range_make_ascend(l->bounds[k], l->starts[g], l->starts[g + 1], of->ops[l->by[k]]);
    }
    return !r->rc;
}

/* ---- their values ---- */

static bool better(const struct lookup_ranges *l, uint32_t a, uint32_t b)
{
    return l->scores[a] < l->scores[b] || (l->scores[a] == l->scores[b] && a < b);
}

static bool make_tree(struct run *r, struct lookup_ranges *l)
{
    bool up = true, down = true;
    for (uint32_t g = 0; g < l->keys.n; g++)
        for (uint32_t i = l->starts[g] + 1; i < l->starts[g + 1]; i++) {
            up &= l->scores[i - 1] <= l->scores[i];
            down &= l->scores[i - 1] >= l->scores[i];
        }
    l->best = up ? BEST_AT_BEGIN : down ? BEST_AT_END : BEST_IN_TREE;
    if (l->best != BEST_IN_TREE || !l->exact)
        return true;
    if (!(l->tree = lookup_alloc(r, 2ull * l->n, sizeof *l->tree)))
        return false;
    l->tree[0] = 0;
    for (uint32_t i = 0; i < l->n; i++)
        l->tree[l->n + i] = i;
    for (uint32_t i = l->n; i-- > 1;)
        l->tree[i] = better(l, l->tree[2 * i + 1], l->tree[2 * i]) ? l->tree[2 * i + 1] : l->tree[2 * i];
    return true;
}

static bool make_scores(struct run *r, struct lookup_ranges *l)
{
    const struct plan_lookup *of = l->of;
    int64_t null = null_of(of, of->n_keys);
    bool real = of->aggregate != AGG_KINDS && of->sub->items[of->n_keys].expr->type == PLAN_REAL;
    if (!(l->scores = lookup_alloc(r, l->n, sizeof *l->scores)))
        return false;
    for (uint32_t i = 0; i < l->n; i++) {
        int64_t v = l->values[i];
        if (of->aggregate == AGG_KINDS)
            l->scores[i] = of->last ? -(int64_t)l->rows[i] : l->rows[i];
        else if (v == null)
            l->scores[i] = INT64_MAX;
        else if (real)
            l->scores[i] = of->aggregate == AGG_MIN ? column_f64_order(v) : ~column_f64_order(v);
        else
            l->scores[i] = of->aggregate == AGG_MIN ? v : ~v;
        if (real && v == column_f64_word(-0.0)) /* equals the other zero; which one comes first shows */
            r->rc = RUN_GAVE_UP;
        if (of->aggregate != AGG_KINDS && v != null && l->scores[i] == INT64_MAX) /* that of NULL */
            r->rc = RUN_GAVE_UP;
    }
    return !r->rc && make_tree(r, l);
}

/* Values and how many there are, up to each place. Where sums could overflow, or lose digits as SQLite adds them, it
 * shall do so itself. */
static bool make_sums(struct run *r, struct lookup_ranges *l)
{
    const struct plan_lookup *of = l->of;
    uint64_t most = of->aggregate == AGG_SUM ? 1ull << 62 : of->aggregate == AGG_COUNT ? UINT64_MAX : 1ull << 52;
    int64_t null = null_of(of, of->n_keys);
    bool counts_only = of->aggregate == AGG_COUNT;
    l->counts = lookup_alloc(r, l->n + 1ull, sizeof *l->counts);
    l->sums = l->counts ? lookup_alloc(r, l->n + 1ull, sizeof *l->sums) : NULL;
    if (l->sums)
        l->counts[0] = l->sums[0] = 0;
    for (uint32_t g = 0; l->sums && !r->rc && g < l->keys.n; g++) {
        uint64_t size = 0;
        for (uint32_t i = l->starts[g]; i < l->starts[g + 1]; i++) {
            bool there = l->values[i] != null;
            int64_t v = there && !counts_only ? l->values[i] : 0;
            l->counts[i + 1] = l->counts[i] + there;
            l->sums[i + 1] = l->sums[i] + (uint64_t)v;
            size += (uint64_t)(v < 0 ? -v : v);
            if (size >= most || size >= 1ull << 62)
                r->rc = RUN_GAVE_UP;
        }
    }
    return !r->rc;
}

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

static bool make_list(struct run *r, struct lookup_ranges *l)
{
    const struct plan_lookup *of = l->of;
    struct table *t = NULL;
    r->rc = r->rc ? r->rc : plan_run_to_table(of->sub, &t);
    bool ok = !r->rc && lay_out(r, l, t) && (!of->n_ties || has_no_ties(r, l, t)) && make_bounds(r, l, t);
    bool rows_only = of->aggregate == AGG_COUNT && of->sub->items[of->n_keys].expr->op == X_CONST;
    if (ok && of->kind == LOOKUP_VALUE && !rows_only)
        ok = (l->values = words_of(r, l, t, of->n_keys)) != NULL && !r->rc;
    if (ok && l->values) {
        bool best = of->aggregate == AGG_KINDS || of->aggregate == AGG_MIN || of->aggregate == AGG_MAX;
        ok = best ? make_scores(r, l) : make_sums(r, l);
    }
    stage_free(t);
    return ok && !r->rc;
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
    return make_list(r, l) ? l : NULL;
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
        if (!make_list(r, l))
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
