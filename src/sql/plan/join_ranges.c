/* Joins by range: the rows of a source between bounds, by an index of them (range_index.c), by the column that sorts
 * the table, or one by one while few rows ask. */
#include "sql/plan/join_private.h"
#include "sql/plan/range_words.h"

#include "base/bisect.h"

#include <string.h>

/* The list of rows in [lo, hi) of the index, ascending. */
static const uint32_t *rows_between(struct join *j, struct range_index *x, uint32_t lo, uint32_t hi)
{
    if (!x->turned || hi - lo < 2)
        return x->rows + lo;
    memcpy(x->sorted, x->rows + lo, (hi - lo) * sizeof *x->sorted);
    if (!order_ascending(x->sorted, hi - lo, engine_stop(j->r->e)))
        j->r->rc = engine_gave_up(j->r->e);
    return x->sorted;
}

/* Rows [lo, hi) of the source that have the keys, of a step without tests: what an index would have found, and more,
 * which the conditions behind the join leave out. */
static bool put_walked(struct join *j, uint32_t at, const struct batch *b, uint32_t i, const int64_t *key, uint32_t lo,
                       uint32_t hi)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    const struct table *t = j->r->tables[s->source];
    struct test tests[PLAN_MAX_KEYS];
    uint32_t *list = j->steps[at].list, to;
    bool any = false;
    for (uint32_t k = 0; k < s->n_keys; k++)
        tests[k] = (struct test){.kind = TEST_RANGE,
                                 .column = s->columns[k],
                                 .type = s->columns[k] == VTAB_ROW ? COL_U32 : t->columns[s->columns[k]].type,
                                 .strings = &j->r->e->storage->strings,
                                 .lo = key[k],
                                 .hi = key[k]};
    for (uint32_t from = lo; from < hi && !j->enough && !run_stopped(j->r); from = to) {
        to = (from | COL_CHUNK_MASK) + 1 < hi ? (from | COL_CHUNK_MASK) + 1 : hi;
        uint32_t n = s->n_keys ? scan_chunk(t, tests, s->n_keys, from, to, list) : to - from;
        j->r->visited += to - from;
        any |= join_put_rows(j, at, b, i, s->n_keys ? list : NULL, from, n);
    }
    return any;
}

static void build(struct join *j, uint32_t at)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    struct step_state *st = &j->steps[at];
    st->walks = st->waits = false;
    key_index_free(&st->index);
    range_index_free(&st->ranges);
    if (join_index_build(j, s, &st->index, st->only, st->n_only) && st->index.n)
        range_index_finish(j->r, s, &st->index, &st->ranges);
}

/* Does the index have the rows of all n keys? NULL has none. */
static bool has_all(const struct step_state *st, const int64_t *keys, uint32_t n)
{
    bool all = true;
    for (uint32_t i = 0; i < n && all; i++) {
        uint32_t at = st->n_only;
        BISECT(at, k, st->only[k] < keys[i]);
        all = keys[i] == COL_NULL || (at < st->n_only && st->only[at] == keys[i]);
    }
    return all;
}

/* The first rows ask: where they have few keys, only the rows of those are put into the index. */
static void build_for(struct join *j, uint32_t at, const int64_t *keys, uint32_t n)
{
    struct step_state *st = &j->steps[at];
    int64_t *only = run_alloc(j->r, n * sizeof *only) ? mem_alloc(n * sizeof *only) : NULL;
    uint32_t n_only = 0;
    for (uint32_t i = 0; only && i < n; i++) {
        only[n_only] = keys[i];
        n_only += keys[i] != COL_NULL;
    }
    n_only = only ? words_sort(only, n_only) : 0;
    if (!only)
        j->r->rc = j->r->rc ? j->r->rc : SQLITE_NOMEM;
    if (!n_only || !narrow_is_worth(j->r, &j->r->plan->steps[at], n_only)) {
        mem_free(only);
        only = NULL;
    }
    st->only = only;
    st->n_only = n_only;
    if (n_only && !j->r->rc)
        build(j, at);
}

/* Later rows ask for keys that the index does not have: then it is to have all. */
static void build_whole(struct join *j, uint32_t at)
{
    struct step_state *st = &j->steps[at];
    mem_free(st->only);
    st->only = NULL;
    build(j, at);
}

/* Builds the index when the rows that would be looked at without it have become too many. */
static bool may_walk(struct join *j, uint32_t at, uint32_t n)
{
    enum { SEARCH = 64 /* rows that can be looked at meanwhile */ };
    struct step_state *st = &j->steps[at];
    st->walked += SEARCH + n;
    if (st->walked <= st->may_walk)
        return true;
    build(j, at);
    return false;
}

void join_by_ranges(struct join *j, uint32_t at, const struct batch *b)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    struct step_state *st = &j->steps[at];
    const int64_t *columns[PLAN_MAX_KEYS], *others[PLAN_MAX_RANGES];
    bool left = j->r->plan->sources[s->source].left;
    for (uint32_t k = 0; k < s->n_keys; k++)
        columns[k] = eval(j->r, s->keys[k], b);
    if (s->n_keys && !j->r->rc)
        join_zip_keys(columns, s->n_keys, b->n, st->keys);
    if (st->waits && !j->r->rc)
        build_for(j, at, st->keys, b->n);
    else if (st->only && !j->r->rc && !has_all(st, st->keys, b->n))
        build_whole(j, at);
    for (uint32_t k = 0; k < s->n_ranges && !j->r->rc; k++)
        others[k] = memcpy(st->keys + (size_t)(s->n_keys + k) * BATCH, eval(j->r, s->ranges[k].other, b),
                           b->n * sizeof(int64_t));
    for (uint32_t i = 0; i < b->n && !j->r->rc && !j->enough; i++) {
        const int64_t *key = st->keys + (size_t)i * s->n_keys;
        uint32_t lo = 0, hi = 0;
        bool any = false;
        if (s->by_sorted || st->walks)
            range_index_find_rows(j->r, s, others, i, &lo, &hi);
        if (s->by_sorted) {
            any = join_put_rows(j, at, b, i, NULL, lo, hi - lo);
        } else if (!join_is_null_key(s, key) && st->walks && may_walk(j, at, hi - lo)) {
            any = put_walked(j, at, b, i, key, lo, hi);
        } else if (!join_is_null_key(s, key) && st->index.n && !j->r->rc) {
            range_index_find(s, &st->ranges, key_index_first(&st->index, s->n_keys, key), others, i, &lo, &hi);
            any = join_put_rows(j, at, b, i, rows_between(j, &st->ranges, lo, hi), 0, hi - lo);
        }
        if (!any && left && !j->r->rc)
            join_put_none(j, at, b, i);
    }
}
