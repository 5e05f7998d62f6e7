/* The indexes that CREATE PERFETTO INDEX makes: the rows of a table ordered by several columns.
 *
 * A lookup uses the leading columns that are tested for one value each, and a range on the column after them. */
#include "sql/engine_private.h"

#include "base/bisect.h"
#include "sql/vtab/vtab.h"

#include <string.h>

void named_index_forget_rows(struct vtab_source *src)
{
    for (size_t i = 0; i < src->named.n; i++) {
        mem_free(src->named.p[i].rows);
        src->named.p[i].rows = NULL;
    }
}

static void forget(struct named_index *x)
{
    mem_free(x->name);
    mem_free(x->rows);
}

void named_index_free(struct vtab_source *src)
{
    for (size_t i = 0; i < src->named.n; i++)
        forget(&src->named.p[i]);
    vec_free(&src->named);
}

static size_t find(const struct vtab_source *src, const char *name)
{
    size_t i = 0;
    while (i < src->named.n && sqlite3_stricmp(src->named.p[i].name, name) != 0)
        i++;
    return i;
}

bool named_index_exists(const struct vtab_source *src, const char *name)
{
    return find(src, name) < src->named.n;
}

void named_index_drop(struct vtab_source *src, const char *name)
{
    size_t i = find(src, name);
    if (i == src->named.n)
        return;
    forget(&src->named.p[i]);
    memmove(&src->named.p[i], &src->named.p[i + 1], (src->named.n - i - 1) * sizeof *src->named.p);
    src->named.n--;
}

bool named_index_add(struct vtab_source *src, const char *name, const struct plan_order *columns, uint32_t n)
{
    struct named_index x = {.name = mem_strdup(name), .n_columns = n};
    memcpy(x.columns, columns, n * sizeof *columns);
    if (x.name && vec_push(&src->named, x))
        return true;
    forget(&x);
    return false;
}

/* Orders the rows by the words of the columns; NULL, which no lookup asks for, is the least word. */
static bool make_rows(struct named_index *x, const struct table *t, stop_flag *stop)
{
    x->rows = mem_alloc(((size_t)t->n_rows + 1) * sizeof *x->rows);
    if (!x->rows)
        return false;
    for (uint32_t i = 0; i < t->n_rows; i++)
        x->rows[i] = i;
    if (order_rows(t, NULL, x->columns, x->n_columns, true, t->n_rows, x->rows, t->n_rows, stop))
        return true;
    mem_free(x->rows);
    x->rows = NULL;
    return false;
}

/* The range test on a column, or -1. */
static int test_on(const struct test *tests, uint32_t n_tests, int16_t column)
{
    for (uint32_t i = 0; i < n_tests; i++)
        if (tests[i].column == column && tests[i].kind == TEST_RANGE)
            return (int)i;
    return -1;
}

/* Chooses the tests that the index decides; how many. */
static uint32_t usable(const struct named_index *x, const struct test *tests, uint32_t n_tests, int *used)
{
    uint32_t n = 0;
    while (n < x->n_columns && (used[n] = test_on(tests, n_tests, x->columns[n].column)) >= 0) {
        const struct test *t = &tests[used[n++]];
        if (t->lo != t->hi)
            break;
    }
    return n;
}

/* Where the row stands to the tests: below them all (-1), above (1), among them (0). */
static int compare(const struct named_index *x, const struct table *t, const struct test *tests, const int *used,
                   uint32_t n, uint32_t row)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t word = column_get(&t->columns[x->columns[i].column], row);
        if (word < tests[used[i]].lo)
            return -1;
        if (word > tests[used[i]].hi)
            return 1;
    }
    return 0;
}

/* The first place whose row is not below the tests, or (after) is above them. */
static uint32_t place(const struct named_index *x, const struct table *t, const struct test *tests, const int *used,
                      uint32_t n, bool after)
{
    uint32_t at = t->n_rows;
    BISECT(at, mid, compare(x, t, tests, used, n, x->rows[mid]) < (after ? 1 : 0));
    return at;
}

bool named_index_find(struct vtab *v, const struct table *t, const struct test *tests, uint32_t n_tests,
                      struct named_match *best)
{
    *best = (struct named_match){.n = UINT32_MAX};
    for (size_t i = 0; i < v->source->named.n; i++) {
        struct named_index *x = &v->source->named.p[i];
        int used[PLAN_MAX_ORDER];
        uint32_t n = usable(x, tests, n_tests, used);
        if (n == 0 || (!x->rows && !make_rows(x, t, engine_stop(v->engine))))
            continue;
        uint32_t from = place(x, t, tests, used, n, false), to = place(x, t, tests, used, n, true);
        if (to - from >= best->n)
            continue;
        *best = (struct named_match){x->rows + from, to - from, 0};
        for (uint32_t k = 0; k < n; k++)
            best->decided |= 1ull << used[k];
    }
    return best->n != UINT32_MAX;
}
