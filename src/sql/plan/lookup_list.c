/* Makes the list of a lookup by ranges. Rows of one key lie side by side, ascending by what the first range compares;
 * what other expressions it compares is kept as its greatest so far, or its least from there on, as in range_index.c.
 * Beside them lie the values: sums so far, or a tree of the best. */
#include "sql/plan/lookup_list.h"
#include "sql/plan/range_words.h"

#include <string.h>

enum { NO_GROUP = 0 };

void lookup_list_free(struct lookup_ranges *l)
{
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
}

/* ---- groups ---- */

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
        l->starts[groups[i]]++; /* how many rows, until they are summed up below */
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

bool lookup_list_make(struct run *r, struct lookup_ranges *l)
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
