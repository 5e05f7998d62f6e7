/* Which rows of the first table are worth looking at: `thread_state JOIN thread USING (utid) WHERE thread.tid = 12`
 * knows the few utids that can be joined before a row of the states is read. Those rows come from the index of the
 * column where there is one, or where as many scans have passed as make one worth it; else the scan tests for them,
 * where they are numbers of rows. */
#include "sql/plan/join_private.h"
#include "sql/vtab/vtab.h"

#include <string.h>

enum {
    LEAST_ROWS = 2 * BATCH, /* of a scan */
    MOST_KEYS = 4096,
    KEYS_OF_COLUMN = 8 /* a column has that many times as many values, going by the least and the greatest */
};

/* The keys of a step, ascending, each once. */
static uint32_t list_keys(const struct plan_step *s, const struct key_index *h, uint32_t n_rows, int64_t *out)
{
    uint32_t n = 0;
    if (s->by_row) {
        for (uint32_t row = 0; row < n_rows && n < h->n; row++)
            if (h->passes[row])
                out[n++] = row;
        return n;
    }
    memcpy(out, h->keys, h->n * sizeof *out);
    return words_sort(out, h->n);
}

/* The rows of the keys from an index, ascending. False: there is none, or it is not worth it. */
static bool rows_by_index(struct run *r, struct scan *scan, const char *name, const struct table *t, uint32_t column,
                          const int64_t *keys, uint32_t n_keys)
{
    const struct engine_known_table *known = name ? engine_find_known(r->e, name) : NULL;
    const uint32_t *rows;
    uint64_t total = 0;
    uint32_t n = 0, scanned = scan->hi - scan->lo;
    if (!known || !known->vtab || known->table != t)
        return false;
    const struct column_index *x = index_peek(known->vtab, t, column);
    if (!x && index_is_due(known->vtab, t, column, scanned))
        x = index_get(known->vtab, t, column);
    for (uint32_t k = 0; x && k < n_keys; k++)
        total += index_find(x, t, column, keys[k], &rows);
    if (!x || total > scanned / KEYS_OF_COLUMN || !run_alloc_rows(r, &scan->rows, total))
        return false;
    for (uint32_t k = 0; k < n_keys; k++)
        for (uint32_t i = 0, found = index_find(x, t, column, keys[k], &rows); i < found && n < total; i++)
            if (rows[i] >= scan->lo && rows[i] < scan->hi)
                scan->rows[n++] = rows[i];
    scan->n_rows = n;
    if (n_keys > 1 && !order_ascending(scan->rows, n, engine_stop(r->e)))
        r->rc = engine_gave_up(r->e);
    return true;
}

/* Adds a test for the keys, which it takes. */
static void test_keys(struct scan *scan, const struct table *t, int16_t column, int64_t *keys, uint32_t n)
{
    struct test *test = &scan->tests[scan->n_tests++];
    *test = (struct test){.column = column, .type = t->columns[column].type};
    if (n > 1) {
        test_make_set(test, keys, n);
        return;
    }
    test->kind = TEST_RANGE;
    test->lo = test->hi = keys[0];
    mem_free(keys);
}

/* Are the keys of that step known, few, and those of a column of the scan? */
static bool suits(const struct run *r, const struct scan *scan, const struct plan_step *first,
                  const struct plan_step *later, const struct key_index *h)
{
    const struct plan_expr *x = later->n_keys == 1 ? later->keys[0] : NULL;
    bool known = later->by_row ? h->passes != NULL : !later->by_sorted && h->keys;
    if (!x || !known || x->op != X_COLUMN || x->source != first->source || x->column < 0 || x->type != PLAN_INT ||
        r->plan->sources[later->source].left || r->plan->right || scan->rows || scan->n_tests == PLAN_MAX_TESTS ||
        !h->n || h->n > MOST_KEYS || scan->hi < scan->lo || scan->hi - scan->lo < LEAST_ROWS)
        return false;
    const struct column *c = &r->tables[first->source]->columns[x->column];
    return c->type != COL_STR && c->type != COL_F64 && (uint64_t)h->n * KEYS_OF_COLUMN <= column_width(c);
}

void narrow_scan(struct run *r, struct scan *scan, const struct plan_step *first, const struct plan_step *later,
                 const struct key_index *h)
{
    const struct table *t = r->tables[first->source];
    if (r->rc || !suits(r, scan, first, later, h))
        return;
    int16_t column = later->keys[0]->column;
    int64_t *keys = mem_alloc(((size_t)h->n + 1) * sizeof *keys);
    uint32_t n = keys ? list_keys(later, h, r->tables[later->source]->n_rows, keys) : 0;
    if (!n) {
        r->rc = keys ? r->rc : SQLITE_NOMEM;
        mem_free(keys);
    } else if (rows_by_index(r, scan, r->plan->sources[first->source].table.name, t, (uint32_t)column, keys, n) ||
               r->rc || !later->by_row) { /* to look a key up takes less than to test for several */
        mem_free(keys);
    } else {
        test_keys(scan, t, column, keys, n);
    }
}

bool narrow_is_worth(const struct run *r, const struct plan_step *step, uint32_t n)
{
    const struct column *c = &r->tables[step->source]->columns[step->columns[0]];
    return n <= MOST_KEYS && c->type != COL_STR && c->type != COL_F64 &&
           (uint64_t)n * KEYS_OF_COLUMN <= column_width(c);
}

void narrow_to_keys(struct run *r, struct scan *scan, const struct plan_step *step, const int64_t *keys, uint32_t n)
{
    const struct table *t = r->tables[step->source];
    const char *name = r->plan->sources[step->source].table.name;
    if (r->rc || scan->rows || scan->n_tests == PLAN_MAX_TESTS ||
        rows_by_index(r, scan, name, t, (uint32_t)step->columns[0], keys, n) || r->rc)
        return;
    int64_t *own = mem_alloc(n * sizeof *own);
    if (own)
        test_keys(scan, t, step->columns[0], memcpy(own, keys, n * sizeof *own), n);
    else
        r->rc = SQLITE_NOMEM;
}
