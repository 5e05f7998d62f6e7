/* Window functions: the rows are kept as a table and sorted by partition and order; each function then goes over the
 * partitions once. Functions over other partitions or orders are computed before, level by level. */
#include "sql/plan/window_private.h"

#include <math.h>
#include <string.h>

bool window_fail(struct run *r, int rc)
{
    if (!r->rc)
        r->rc = rc;
    return false;
}

static bool push(struct sink *s, const struct batch *b)
{
    struct windows *w = (struct windows *)s;
    const struct query_plan *p = w->r->plan;
    const int64_t *columns[PLAN_MAX_ITEMS];
    for (uint32_t k = 0; k < p->window_rows.n_columns; k++)
        columns[k] = eval(w->r, p->window_rows.columns[k], b);
    return !w->r->rc && stage_append(w->r, w->t, columns, b->n);
}

struct sink *window_open(struct run *r)
{
    const struct query_plan *p = r->plan;
    struct windows *w = mem_zalloc(sizeof *w);
    enum plan_type types[PLAN_MAX_ITEMS];
    for (uint32_t k = 0; k < p->window_rows.n_columns; k++)
        types[k] = (enum plan_type)p->window_rows.columns[k]->type;
    if (w)
        w->t = stage_new(r, types, p->window_rows.n_columns);
    if (!w || !w->t) {
        mem_free(w);
        window_fail(r, SQLITE_NOMEM);
        return NULL;
    }
    w->base.push = push;
    w->r = r;
    return &w->base;
}

void window_close(struct sink *s)
{
    struct windows *w = (struct windows *)s;
    if (!w)
        return;
    mem_free(w->starts);
    mem_free(w->rows);
    stage_free(w->t);
    mem_free(w);
}

/* ---- partitions ---- */

/* The words of a column in the order of the rows. */
static int64_t *sorted_words(struct windows *w, int column)
{
    int64_t *out = NULL;
    if (run_alloc(w->r, w->n * 8ull))
        out = mem_alloc(((size_t)w->n + 1) * sizeof *out);
    if (!out) {
        window_fail(w->r, SQLITE_NOMEM);
        return NULL;
    }
    for (uint32_t at = 0; at < w->n && !run_stopped(w->r); at += BATCH)
        column_gather(&w->t->columns[column], w->rows + at, w->n - at < BATCH ? w->n - at : BATCH, out + at);
    return out;
}

static bool find_starts(struct windows *w)
{
    const struct plan_level *l = w->level;
    if (!w->starts)
        w->starts = run_alloc(w->r, w->n) ? mem_alloc((size_t)w->n + 1) : NULL;
    if (!w->starts)
        return window_fail(w->r, SQLITE_NOMEM);
    memset(w->starts, 0, (size_t)w->n + 1);
    for (uint32_t k = 0; k < l->n; k++) {
        int64_t *words = sorted_words(w, l->order[k].column);
        uint8_t mark = k < l->n_partition ? 3 : 2;
        if (!words)
            return false;
        if (w->t->columns[l->order[k].column].type == COL_F64)
            for (uint32_t i = 0; i < w->n; i++)
                words[i] = words[i] == column_f64_word(-0.0) ? 0 : words[i];
        for (uint32_t i = 1; i < w->n; i++)
            w->starts[i] |= words[i] != words[i - 1] ? mark : 0;
        mem_free(words);
    }
    if (w->n)
        w->starts[0] = 3;
    return true;
}

/* ---- functions ---- */

uint32_t window_peers_end(const struct partition *p, uint32_t at)
{
    while (++at < p->to && !(p->w->starts[at] & 2))
        ;
    return at;
}

/* rank and its like: one value for rows that are equal. */
static void rank_rows(const struct partition *p)
{
    uint32_t n = p->to - p->from;
    int64_t dense = 0;
    for (uint32_t at = p->from, end; at < p->to; at = end) {
        end = window_peers_end(p, at);
        int64_t v = at - p->from + 1;
        dense++;
        if (p->of->kind == WIN_DENSE_RANK)
            v = dense;
        else if (p->of->kind == WIN_PERCENT_RANK)
            v = column_f64_word(n > 1 ? (double)(at - p->from) / (double)(n - 1) : 0.0);
        else if (p->of->kind == WIN_CUME_DIST)
            v = column_f64_word((double)(end - p->from) / (double)n);
        for (uint32_t i = at; i < end; i++)
            p->out[i] = v;
    }
}

static void number_rows(const struct partition *p)
{
    int64_t n = p->to - p->from, parts = p->of->offset, size = n / parts, large = n - parts * size;
    int64_t small_from = large * (size + 1);
    for (uint32_t i = p->from; i < p->to; i++) {
        int64_t row = i - p->from;
        if (p->of->kind == WIN_ROW_NUMBER || size == 0)
            p->out[i] = row + 1;
        else
            p->out[i] = 1 + (row < small_from ? row / (size + 1) : large + (row - small_from) / size);
    }
}

static void look_aside(const struct partition *p)
{
    int64_t step = p->of->kind == WIN_LAG ? -p->of->offset : p->of->offset;
    for (uint32_t i = p->from; i < p->to; i++) {
        int64_t at = (int64_t)i + step;
        bool there = at >= p->from && at < p->to;
        p->out[i] = there ? p->args[at] : p->fallbacks ? p->fallbacks[i] : p->null;
    }
}

static int64_t add_saturated(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static void find_range(const struct partition *p, uint32_t i, struct walk *w, int64_t *lo, int64_t *hi)
{
    int64_t from = add_saturated(p->keys[i], p->of->from), to = add_saturated(p->keys[i], p->of->to);
    w->lo = w->lo < p->from ? p->from : w->lo;
    w->hi = w->hi < p->from ? p->from : w->hi;
    if (p->of->from != -FRAME_FAR)
        while (w->lo < p->to && p->keys[w->lo] < from)
            w->lo++;
    while (w->hi < p->to && (p->of->to == FRAME_FAR || p->keys[w->hi] <= to))
        w->hi++;
    *lo = w->lo;
    *hi = w->hi < w->lo ? w->lo : w->hi;
}

static void find_groups(const struct partition *p, uint32_t i, struct walk *w, int64_t *lo, int64_t *hi)
{
    int64_t n = p->n_groups;
    while (w->group + 1 < n && p->groups[w->group + 1] <= i)
        w->group++;
    int64_t from = w->group + p->of->from, to = w->group + p->of->to + 1;
    *lo = p->groups[from < 0 ? 0 : from > n ? n : from];
    *hi = p->groups[to < 0 ? 0 : to > n ? n : to];
    *hi = *hi < *lo ? *lo : *hi;
}

void window_frame_of(const struct partition *p, uint32_t i, struct walk *w, int64_t *lo, int64_t *hi)
{
    *lo = p->from;
    *hi = p->to;
    switch (p->of->frame) {
    case FRAME_PEERS:
        if (i >= w->peers_end)
            w->peers_end = window_peers_end(p, i);
        *hi = w->peers_end;
        break;
    case FRAME_ROWS:
        *hi = (int64_t)i + 1;
        break;
    case FRAME_SLIDING:
        *lo = (int64_t)i + p->of->from > *lo ? (int64_t)i + p->of->from : *lo;
        *hi = (int64_t)i + p->of->to + 1 < *hi ? (int64_t)i + p->of->to + 1 : *hi;
        *hi = *hi < *lo ? *lo : *hi;
        break;
    case FRAME_RANGE:
        find_range(p, i, w, lo, hi);
        break;
    case FRAME_GROUPS:
        find_groups(p, i, w, lo, hi);
        break;
    default:
        break;
    }
}

static void pick_rows(const struct partition *p)
{
    struct walk walk = {.peers_end = p->from};
    for (uint32_t i = p->from; i < p->to; i++) {
        int64_t lo, hi, at;
        window_frame_of(p, i, &walk, &lo, &hi);
        at = p->of->kind == WIN_FIRST ? lo : p->of->kind == WIN_LAST ? hi - 1 : lo + p->of->offset - 1;
        p->out[i] = at >= lo && at < hi ? p->args[at] : p->null;
    }
}

bool window_less(const struct partition *p, int64_t a, int64_t b)
{
    return p->of->type == PLAN_REAL ? column_f64(a) < column_f64(b) : a < b;
}

/* The rows that may still be the extreme stand in line, the best first: one that is worse than a later one goes. */
static void keep_extremes(const struct partition *p)
{
    bool largest = p->of->kind == WIN_MAX;
    struct walk walk = {.peers_end = p->from};
    uint32_t first = 0, n = 0, *line = NULL;
    int64_t done = p->from;
    if (run_alloc(p->w->r, (p->to - p->from) * 4ull))
        line = mem_alloc(((size_t)(p->to - p->from) + 1) * sizeof *line);
    if (!line) {
        window_fail(p->w->r, SQLITE_NOMEM);
        return;
    }
    for (uint32_t i = p->from; i < p->to; i++) {
        int64_t lo, hi;
        window_frame_of(p, i, &walk, &lo, &hi);
        for (; done < hi; done++) {
            int64_t v = p->args[done];
            if (v == p->null || (p->filter && p->filter[done] != 1))
                continue;
            while (n > first &&
                   (largest ? window_less(p, p->args[line[n - 1]], v) : window_less(p, v, p->args[line[n - 1]])))
                n--;
            line[n++] = (uint32_t)done;
        }
        while (first < n && line[first] < lo)
            first++;
        p->out[i] = first < n ? p->args[line[first]] : p->null;
    }
    mem_free(line);
}

void window_add(struct window_running *s, const struct partition *p, bool real, int64_t at, int sign)
{
    int64_t word = p->args ? p->args[at] : 0;
    if (p->filter && p->filter[at] != 1)
        return;
    if (p->args && word == (real ? COL_NULL_F64 : p->of->kind == WIN_COUNT ? p->null : COL_NULL))
        return;
    s->n += sign;
    if (!p->args || p->of->kind == WIN_COUNT)
        return;
    if (real) {
        s->d = sign > 0 ? s->d + column_f64(word) : s->d - column_f64(word);
    } else {
        s->i += sign * (__int128)word;
        s->d += sign * (double)word;
        s->sizes += word < 0 ? -(double)word : (double)word;
    }
}

int64_t window_result(const struct window_running *s, const struct partition *p, bool real)
{
    switch (p->of->kind) {
    case WIN_COUNT:
    case WIN_COUNT_ROWS:
        return s->n;
    case WIN_TOTAL:
        return column_f64_word(s->d);
    case WIN_AVG:
        return s->n ? column_f64_word(s->d / (double)s->n) : COL_NULL_F64;
    default:
        if (real)
            return s->n ? column_f64_word(s->d) : COL_NULL_F64;
        if (s->n && (s->i > INT64_MAX || s->i <= INT64_MIN))
            window_fail(p->w->r, RUN_GAVE_UP);
        return s->n ? (int64_t)s->i : COL_NULL;
    }
}

/* Takes out the rows that leave the frame, then adds those that it takes in: so does SQLite, where the frame holds the
 * row itself. Of reals the order shows. */
static void sum_up(const struct partition *p, bool real)
{
    struct window_running s = {0};
    int64_t in = p->from, out = p->from;
    struct walk walk = {.peers_end = p->from};
    bool counts = p->of->kind == WIN_COUNT || p->of->kind == WIN_COUNT_ROWS, sliding = p->of->frame >= FRAME_SLIDING;
    bool exact = sliding && real && !counts && p->of->from != -FRAME_FAR;
    if (exact && (p->of->from > 0 || p->of->to < 0)) {
        window_fail(p->w->r, RUN_GAVE_UP);
        return;
    }
    for (uint32_t i = p->from; i < p->to && !p->w->r->rc; i++) {
        int64_t lo, hi;
        window_frame_of(p, i, &walk, &lo, &hi);
        for (; out < lo && out < in; out++)
            window_add(&s, p, real, out, -1);
        if (in < lo) /* the frame lies behind all rows so far */
            in = out = lo;
        for (; in < hi; in++)
            window_add(&s, p, real, in, 1);
        p->out[i] = window_result(&s, p, real);
        if (exact && !isfinite(s.d))
            window_fail(p->w->r, RUN_GAVE_UP);
    }
    if (sliding && !counts && s.sizes >= WINDOW_EXACT)
        window_fail(p->w->r, RUN_GAVE_UP);
}

static void run_partition(const struct partition *p, enum plan_type arg)
{
    if (p->of->exclude) {
        window_exclude(p, arg == PLAN_REAL);
        return;
    }
    switch (p->of->kind) {
    case WIN_ROW_NUMBER:
    case WIN_NTILE:
        number_rows(p);
        break;
    case WIN_RANK:
    case WIN_DENSE_RANK:
    case WIN_PERCENT_RANK:
    case WIN_CUME_DIST:
        rank_rows(p);
        break;
    case WIN_LAG:
    case WIN_LEAD:
        look_aside(p);
        break;
    case WIN_FIRST:
    case WIN_LAST:
    case WIN_NTH:
        pick_rows(p);
        break;
    case WIN_MIN:
    case WIN_MAX:
        keep_extremes(p);
        break;
    case WIN_CONCAT:
        window_concat(p, arg);
        break;
    default:
        sum_up(p, arg == PLAN_REAL);
        break;
    }
}

/* The words of ORDER BY, so that they ascend. NULL in them has frames of its own. */
static int64_t *range_keys(struct windows *w)
{
    const struct plan_order *o = &w->level->order[w->level->n_partition];
    int64_t *keys = sorted_words(w, o->column);
    for (uint32_t i = 0; keys && i < w->n; i++) {
        if (keys[i] == COL_NULL)
            window_fail(w->r, RUN_GAVE_UP);
        else
            keys[i] = o->desc ? -keys[i] : keys[i];
    }
    return keys;
}

/* Where the equal rows of a partition begin. */
static void list_groups(struct partition *p)
{
    p->n_groups = 0;
    for (uint32_t i = p->from; i < p->to; i++)
        if (i == p->from || p->w->starts[i] & 2)
            p->groups[p->n_groups++] = i;
    p->groups[p->n_groups] = p->to;
}

static void run_partitions(struct windows *w, struct partition *p, enum plan_type arg)
{
    for (uint32_t from = 0; from < w->n && !run_stopped(w->r); from = p->to) {
        p->from = from;
        p->to = from + 1;
        while (p->to < w->n && !(w->starts[p->to] & 1))
            p->to++;
        if (p->groups)
            list_groups(p);
        run_partition(p, arg);
    }
}

/* By place. */
static bool run_window(struct windows *w, uint32_t at)
{
    const struct plan_window *of = &w->r->plan->windows[at];
    struct partition p = {.w = w, .of = of};
    int64_t *args = NULL, *fallbacks = NULL, *filter = NULL, *keys = of->frame == FRAME_RANGE ? range_keys(w) : NULL;
    enum plan_type arg = PLAN_INT;
    if (of->frame == FRAME_GROUPS && run_alloc(w->r, w->n * 4ull) &&
        !(p.groups = mem_alloc(((size_t)w->n + 1) * sizeof *p.groups)))
        window_fail(w->r, SQLITE_NOMEM);
    if (of->arg >= 0) {
        arg = plan_type_of((enum col_type)w->t->columns[of->arg].type);
        args = sorted_words(w, of->arg);
    }
    if (of->fallback >= 0)
        fallbacks = sorted_words(w, of->fallback);
    if (of->filter >= 0)
        filter = sorted_words(w, of->filter);
    if (run_alloc(w->r, w->n * 8ull) && !(w->r->results[at] = mem_alloc(((size_t)w->n + 1) * sizeof(int64_t))))
        window_fail(w->r, SQLITE_NOMEM);
    p.args = args;
    p.fallbacks = fallbacks;
    p.filter = filter;
    p.keys = keys;
    p.null = plan_null(arg);
    p.out = w->r->results[at];
    run_partitions(w, &p, arg);
    mem_free(args);
    mem_free(fallbacks);
    mem_free(filter);
    mem_free(keys);
    mem_free(p.groups);
    return !w->r->rc;
}

/* Results of a level by place become results by row, before rows are sorted anew; or those of all other levels results
 * by place. */
static bool turn_results(struct windows *w, uint8_t level, bool to_rows)
{
    struct run *r = w->r;
    for (uint32_t at = 0; at < r->plan->n_windows; at++) {
        uint8_t of = r->plan->windows[at].level;
        if (to_rows ? of != level : of == level)
            continue;
        int64_t *turned = run_stopped(r) ? NULL : mem_alloc(((size_t)w->n + 1) * sizeof *turned);
        if (!turned)
            return window_fail(r, SQLITE_NOMEM);
        for (uint32_t i = 0; i < w->n; i++)
            turned[to_rows ? w->rows[i] : i] = r->results[at][to_rows ? i : w->rows[i]];
        mem_free(r->results[at]);
        r->results[at] = turned;
    }
    return true;
}

static bool sort_by(struct windows *w, const struct plan_level *l, bool first)
{
    struct run *r = w->r;
    const struct strpool *strings = &r->e->storage->strings;
    if (first ? !order_rows(w->t, strings, l->order, l->n, false, 0, w->rows, w->n, engine_stop(r->e))
              : !order_rows_anew(w->t, strings, l->order, l->n, w->rows, w->n, engine_stop(r->e)))
        window_fail(r, engine_gave_up(r->e));
    return !r->rc;
}

static bool run_level(struct windows *w, uint8_t at)
{
    struct run *r = w->r;
    bool first = at + 1u == r->plan->n_levels;
    w->level = &r->plan->levels[at];
    bool ok = sort_by(w, w->level, first) && find_starts(w);
    for (uint32_t i = 0; ok && i < r->plan->n_windows; i++)
        if (r->plan->windows[i].level == at)
            ok = run_window(w, i);
    return ok && (at == 0 || turn_results(w, at, true));
}

uint32_t *window_finish(struct sink *s, uint32_t *n)
{
    struct windows *w = (struct windows *)s;
    struct run *r = w->r;
    w->n = *n = w->t->n_rows;
    table_finalize(w->t);
    w->rows = run_alloc(r, w->n * 16ull) ? mem_alloc(((size_t)w->n + 1) * sizeof *w->rows) : NULL;
    if (!w->rows) {
        window_fail(r, SQLITE_NOMEM);
        return NULL;
    }
    for (uint32_t i = 0; i < w->n; i++)
        w->rows[i] = i;
    bool ok = true;
    for (uint32_t at = r->plan->n_levels; ok && at-- > 0;)
        ok = run_level(w, (uint8_t)at);
    ok = ok && turn_results(w, 0, false);
    r->tables[PLAN_WINDOWS] = w->t;
    return ok ? w->rows : NULL;
}
