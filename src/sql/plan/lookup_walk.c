/* Lookups by ranges of few rows: what lies between the bounds in a table that their column sorts is looked at row by
 * row, so that no list of the query's rows is made. Each probe costs something, and so does each row; when that is as
 * much as the table has rows, a list is made after all (lookup_ranges.c). */
#include "sql/plan/join_private.h"
#include "sql/plan/lookup_private.h"
#include "sql/plan/range_words.h"

#include <string.h>

enum {
    PROBE_COST = 64, /* in rows of the list that is made else */
    NEAREST_COST = 32,
    FIRST_LOOK = 32 /* rows; twice as many each time that none of them is it */
};

/* Which of the rows between the bounds are looked at: from one end until one of them is found, or all. */
enum walk_way { WALK_NONE, WALK_ALL, WALK_UP, WALK_DOWN };

struct lookup_walk {
    const struct plan_lookup *of;
    struct run run; /* of the query */
    bool opened;
    struct scan scan;
    uint8_t way;                  /* enum walk_way */
    uint32_t first, end;          /* rows that its tests of sorted columns leave */
    bool bounds[PLAN_MAX_RANGES]; /* ranges of the column that sorts the table */
    uint32_t column;
    uint64_t cost, may_cost;
};

void lookup_walk_free(struct lookup_walk *w)
{
    if (!w)
        return;
    if (w->opened)
        scan_close(&w->scan);
    run_close(&w->run);
    mem_free(w);
}

/* Where the words of a range stand in the list of the query. */
static const struct plan_expr *own_of_range(const struct plan_lookup *of, uint32_t range)
{
    return of->sub->items[of->n_keys + (of->kind == LOOKUP_VALUE) + range].expr;
}

static bool is_known_aggregate(const struct plan_lookup *of)
{
    if (of->kind == LOOKUP_EXISTS || of->aggregate == AGG_COUNT)
        return true;
    bool known = of->aggregate == AGG_SUM || of->aggregate == AGG_TOTAL || of->aggregate == AGG_AVG ||
                 of->aggregate == AGG_MIN || of->aggregate == AGG_MAX;
    return known && of->sub->items[of->n_keys].expr->type == PLAN_INT;
}

/* Do the rows of the query come as those of its only table? */
static bool comes_as_it_lies(const struct query_plan *sub, uint32_t column)
{
    const struct plan_expr *x = sub->n_orders == 1 && !sub->orders_desc[0] ? sub->orders[0] : NULL;
    return !sub->n_orders || (x && x->op == X_COLUMN && x->column == (int16_t)column);
}

/* Of which bounds of the sorted column the row that is asked for is the nearest; WALK_ALL: all of them count. */
static enum walk_way way_of(const struct plan_lookup *of, uint32_t column, bool lower, bool upper)
{
    const struct plan_expr *value = of->kind == LOOKUP_VALUE ? of->sub->items[of->n_keys].expr : NULL;
    bool sorts = value && value->op == X_COLUMN && value->column == (int16_t)column;
    bool first =
        of->aggregate == AGG_KINDS ? !of->last && comes_as_it_lies(of->sub, column) : of->aggregate == AGG_MIN && sorts;
    bool last = of->aggregate == AGG_KINDS ? of->last : of->aggregate == AGG_MAX && sorts;
    bool any = of->kind == LOOKUP_EXISTS;
    if (!of->n_ties && lower && (any || first))
        return WALK_UP;
    if (!of->n_ties && upper && (any || last))
        return WALK_DOWN;
    return lower && upper && is_known_aggregate(of) ? WALK_ALL : WALK_NONE;
}

/* Rows of one table with its tests, cut by ranges of the column that sorts it. */
static enum walk_way suits(const struct plan_lookup *of, bool *bounds, uint32_t *column)
{
    const struct query_plan *sub = of->sub;
    bool lower = false, upper = false;
    if (sub->n_sources != 1 || !sub->sources[0].table.name || sub->next_arm || sub->steps[0].n_where || sub->grouped ||
        sub->n_windows || sub->distinct || sub->limit >= 0 || sub->offset || sub->n_lookups || of->kind == LOOKUP_IN ||
        of->one)
        return WALK_NONE;
    for (uint32_t k = 0; k < of->n_ranges; k++) {
        struct plan_expr *own = (struct plan_expr *)own_of_range(of, k);
        bounds[k] = of->ops[k] != SQL_NE && steps_is_sorted_range(sub, &(struct plan_range){.own = own});
        if (!bounds[k])
            continue;
        *column = (uint32_t)own->column;
        lower |= range_is_lower(of->ops[k]);
        upper |= !range_is_lower(of->ops[k]);
    }
    for (uint32_t k = 0; k < of->n_ranges; k++) /* a table may be sorted by several columns */
        bounds[k] = bounds[k] && (uint32_t)own_of_range(of, k)->column == *column;
    return way_of(of, *column, lower, upper);
}

struct lookup_walk *lookup_walk_open(struct run *r, const struct plan_lookup *of)
{
    bool bounds[PLAN_MAX_RANGES] = {false};
    uint32_t column = 0;
    enum walk_way way = r->rc ? WALK_NONE : suits(of, bounds, &column);
    if (way == WALK_NONE)
        return NULL;
    struct lookup_walk *w = mem_zalloc(sizeof *w);
    if (!w || !run_open(&w->run, of->sub)) {
        lookup_walk_free(w);
        r->rc = SQLITE_NOMEM;
        return NULL;
    }
    w->of = of;
    w->way = (uint8_t)way;
    w->column = column;
    memcpy(w->bounds, bounds, sizeof bounds);
    run_open_sources(&w->run);
    const struct table *t = w->run.rc ? NULL : w->run.tables[0];
    if (t && !t->columns[column].has_null) {
        scan_open(&w->run, &of->sub->steps[0], &w->scan);
        w->opened = true;
        w->first = w->scan.lo;
        w->end = w->scan.hi;
        w->may_cost = t->n_rows;
    }
    r->rc = w->run.rc;
    if (r->rc || !w->opened || w->scan.rows) {
        lookup_walk_free(w);
        return NULL;
    }
    return w;
}

bool lookup_walk_is_dear(const struct lookup_walk *w)
{
    return w->cost > w->may_cost;
}

/* ---- one probe ---- */

static bool compare(int64_t own, uint8_t op, int64_t other)
{
    switch (op) {
    case SQL_NE:
        return own != other;
    case SQL_LT:
        return own < other;
    case SQL_LE:
        return own <= other;
    case SQL_GT:
        return own > other;
    default:
        return own >= other;
    }
}

/* Keeps the rows whose words pass. */
static uint32_t keep(struct lookup_walk *w, const struct plan_expr *own, uint8_t op, int64_t other, uint32_t *rows,
                     uint32_t n)
{
    struct batch b = {.n = n, .serial = ++w->run.serial};
    uint32_t left = 0;
    b.rows[0] = rows;
    const int64_t *words = n ? eval(&w->run, own, &b) : NULL;
    for (uint32_t i = 0; i < n && !w->run.rc; i++) {
        rows[left] = rows[i];
        left += words[i] != plan_null((enum plan_type)own->type) &&
                (op == SQL_EQ ? words[i] == other : compare(words[i], op, other));
    }
    return left;
}

static uint32_t keep_matching(struct lookup_walk *w, const int64_t *words, uint32_t *rows, uint32_t n)
{
    const struct plan_lookup *of = w->of;
    for (uint32_t k = 0; k < of->n_keys; k++)
        n = keep(w, of->sub->items[k].expr, SQL_EQ, words[k], rows, n);
    for (uint32_t k = 0; k < of->n_ranges; k++)
        if (!w->bounds[k])
            n = keep(w, own_of_range(of, k), of->ops[k], words[of->n_keys + k], rows, n);
    return n;
}

/* Sums that could overflow, or be rounded, are SQLite's: as in lookup_ranges.c. */
struct gathered {
    uint32_t n, counted;
    uint64_t sum, size;
    int64_t least, greatest;
};

static void gather(struct lookup_walk *w, uint32_t *rows, uint32_t n, struct gathered *g)
{
    const struct plan_lookup *of = w->of;
    uint64_t most = of->aggregate == AGG_SUM ? 1ull << 62 : 1ull << 52;
    const struct plan_expr *value = of->kind == LOOKUP_VALUE ? of->sub->items[of->n_keys].expr : NULL;
    struct batch b = {.n = n, .serial = ++w->run.serial};
    g->n += n;
    b.rows[0] = rows;
    const int64_t *words = value && n ? eval(&w->run, value, &b) : NULL;
    for (uint32_t i = 0; words && i < n && !w->run.rc; i++) {
        int64_t v = words[i];
        if (v == plan_null((enum plan_type)value->type))
            continue;
        g->counted++;
        if (of->aggregate == AGG_COUNT)
            continue;
        g->least = v < g->least ? v : g->least;
        g->greatest = v > g->greatest ? v : g->greatest;
        if (of->aggregate == AGG_MIN || of->aggregate == AGG_MAX)
            continue;
        g->sum += (uint64_t)v;
        g->size += (uint64_t)(v < 0 ? -v : v);
        if (g->size >= most)
            w->run.rc = RUN_GAVE_UP;
    }
}

/* The rows between the bounds, from the lower one on. */
static void walk_all(struct lookup_walk *w, const int64_t *words, struct gathered *g)
{
    uint32_t rows[BATCH + 8], n = 0;
    if (w->scan.hi > w->scan.lo)
        w->cost += w->scan.hi - w->scan.lo;
    while (!lookup_walk_is_dear(w) && scan_next(&w->run, &w->scan, 0, rows, &n))
        gather(w, rows, keep_matching(w, words, rows, n), g);
}

/* The nearest row to a bound that passes, if any: more and more of them are looked at. */
static bool walk_to_nearest(struct lookup_walk *w, const int64_t *words, uint32_t *row)
{
    uint32_t rows[BATCH + 8], n = 0, lo = w->scan.lo, hi = w->scan.hi, size = FIRST_LOOK;
    bool found = false;
    while (!found && lo < hi && !lookup_walk_is_dear(w) && !w->run.rc) {
        uint32_t take = hi - lo < size ? hi - lo : size;
        w->scan.lo = w->way == WALK_UP ? lo : hi - take;
        w->scan.hi = w->way == WALK_UP ? lo + take : hi;
        lo = w->way == WALK_UP ? w->scan.hi : lo;
        hi = w->way == WALK_UP ? hi : w->scan.lo;
        w->cost += take;
        size = size < BATCH ? 2 * size : size;
        while (!(found && w->way == WALK_UP) && scan_next(&w->run, &w->scan, 0, rows, &n)) {
            n = keep_matching(w, words, rows, n);
            if (n)
                *row = rows[w->way == WALK_UP ? 0 : n - 1];
            found |= n > 0;
        }
    }
    return found && !w->run.rc;
}

static int64_t nearest_word(struct lookup_walk *w, const int64_t *words)
{
    const struct plan_lookup *of = w->of;
    uint32_t row;
    bool found = walk_to_nearest(w, words, &row);
    if (of->kind == LOOKUP_EXISTS)
        return found;
    if (!found)
        return of->missing;
    struct batch b = {.n = 1, .serial = ++w->run.serial};
    b.rows[0] = &row;
    const int64_t *value = eval(&w->run, of->sub->items[of->n_keys].expr, &b);
    return w->run.rc ? of->missing : *value;
}

static int64_t word_of(const struct plan_lookup *of, const struct gathered *g)
{
    if (of->aggregate == AGG_COUNT)
        return g->counted;
    if (!g->counted)
        return of->missing;
    switch (of->aggregate) {
    case AGG_MIN:
        return g->least;
    case AGG_MAX:
        return g->greatest;
    case AGG_SUM:
        return (int64_t)g->sum;
    case AGG_TOTAL:
        return column_f64_word((double)(int64_t)g->sum);
    default:
        return column_f64_word((double)(int64_t)g->sum / g->counted);
    }
}

int64_t lookup_walk_find(struct run *r, struct lookup_walk *w, const int64_t *words)
{
    const struct plan_lookup *of = w->of;
    const struct table *t = w->run.tables[0];
    struct gathered g = {.least = INT64_MAX, .greatest = INT64_MIN};
    w->scan.lo = w->first;
    w->scan.hi = w->end;
    w->cost += w->way == WALK_ALL ? PROBE_COST : NEAREST_COST;
    for (uint32_t k = 0; k < of->n_ranges; k++) {
        if (!w->bounds[k])
            continue;
        uint32_t at = table_lower_bound(t, w->column, words[of->n_keys + k], range_is_beyond(of->ops[k]));
        if (range_is_lower(of->ops[k]))
            w->scan.lo = at > w->scan.lo ? at : w->scan.lo;
        else
            w->scan.hi = at < w->scan.hi ? at : w->scan.hi;
    }
    int64_t word = of->missing;
    if (w->way == WALK_ALL) {
        walk_all(w, words, &g);
        word = word_of(of, &g);
    } else {
        word = nearest_word(w, words);
    }
    r->visited += w->run.visited;
    w->run.visited = 0;
    r->rc = r->rc ? r->rc : w->run.rc;
    return word;
}
