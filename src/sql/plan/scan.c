/* Scans of tables: conditions on packed columns are tested without unpacking, ranges of sorted ones are searched. */
#include "sql/plan/join_private.h"

#include <string.h>

static bool is_value(const struct plan_expr *x)
{
    return x->op == X_CONST || !x->sources;
}

/* What looks at no row has one value in each run: `ts > (SELECT min(ts) FROM …)`. */
static int64_t value_of(struct run *r, const struct plan_expr *x)
{
    struct batch one = {.n = 1, .serial = ++r->serial};
    const int64_t *words = x->op == X_CONST ? &x->word : eval(r, x, &one);
    return r->rc ? plan_null((enum plan_type)x->type) : words[0];
}

/* The bounds of `column op w`; false: no value passes, or it is to be computed. */
static bool make_range(struct test *test, uint8_t op, int64_t w)
{
    if (op == SQL_GT && w == INT64_MAX)
        return false;
    test->kind = op == SQL_NE ? TEST_NE : TEST_RANGE;
    test->lo = op == SQL_EQ || op == SQL_GE || op == SQL_NE ? w : op == SQL_GT ? w + 1 : INT64_MIN + 1;
    test->hi = op == SQL_EQ || op == SQL_LE || op == SQL_NE ? w : op == SQL_LT ? w - 1 : INT64_MAX;
    return op <= SQL_GE && test->hi >= test->lo;
}

static bool compare_with_value(struct run *r, struct scan *s, struct test *test, const struct plan_expr *x)
{
    static const uint8_t turned[] = {[SQL_EQ] = SQL_EQ, [SQL_NE] = SQL_NE, [SQL_LT] = SQL_GT,
                                     [SQL_LE] = SQL_GE, [SQL_GT] = SQL_LT, [SQL_GE] = SQL_LE};
    const struct plan_expr *c = x->args[0], *v = x->args[1];
    uint8_t op = x->sql;
    if (op > SQL_GE)
        return false;
    if (is_value(c)) {
        const struct plan_expr *swap = c;
        c = v;
        v = swap;
        op = turned[op];
    }
    if (c->op != X_COLUMN || !is_value(v) || c->type != v->type || c->type == PLAN_REAL ||
        (c->type == PLAN_TEXT && op != SQL_EQ && op != SQL_NE))
        return false;
    int64_t w = value_of(r, v);
    test->column = c->column;
    if (!r->rc && w == plan_null((enum plan_type)v->type))
        s->lo = s->hi = 0; /* no comparison with NULL holds */
    return !r->rc && s->hi && make_range(test, op, w);
}

/* IN (…) of constants. */
static bool is_in_list(struct run *r, struct test *test, const struct plan_expr *x)
{
    const struct plan_expr *c = x->args[0];
    if (c->op != X_COLUMN || c->column < 0 || x->negated || x->list_has_null || x->n_list < 2)
        return false;
    int64_t *words = mem_alloc(x->n_list * sizeof *words);
    if (!words) {
        r->rc = SQLITE_NOMEM;
        return false;
    }
    memcpy(words, x->list, x->n_list * sizeof *words);
    test->column = c->column;
    test_make_set(test, words, x->n_list);
    return true;
}

enum { MOST_LISTED = 4096 };

/* IN (SELECT …) of few values. Those of the row number are the rows to be looked at. */
static bool is_in_query(struct run *r, struct scan *s, struct test *test, const struct plan_expr *x)
{
    const struct plan_expr *c = x->n_args == 1 ? x->args[0] : NULL;
    uint32_t n = 0;
    if (!c || x->lookup->kind != LOOKUP_IN || x->negated || c->op != X_COLUMN || c->type == PLAN_REAL ||
        (c->column == VTAB_ROW && s->listed))
        return false;
    int64_t *words = lookup_list(r, x, MOST_LISTED, &n);
    if (!words)
        return false;
    test->column = c->column;
    n = words_sort(words, n);
    if (!n)
        s->lo = s->hi = 0;
    if (n && c->column == VTAB_ROW) {
        s->listed = words;
        s->n_listed = n;
        return true;
    }
    if (n > 1) {
        test_make_set(test, words, n);
        return true;
    }
    test->kind = TEST_RANGE;
    test->lo = test->hi = n ? words[0] : 0;
    mem_free(words);
    return true;
}

/* A condition as a test of packed values; false: it is to be computed, or r->rc. */
static bool push_down(struct run *r, struct scan *s, const struct table *t, const struct plan_expr *x)
{
    struct test *test = &s->tests[s->n_tests];
    *test = (struct test){.strings = &r->e->storage->strings};
    bool known = false;
    if (x->op == X_IS_NULL && x->args[0]->op == X_COLUMN && x->args[0]->column >= 0) {
        test->kind = x->negated ? TEST_NOT_NULL : TEST_NULL;
        test->column = x->args[0]->column;
        known = true;
    } else if (x->op == X_COMPARE) {
        known = compare_with_value(r, s, test, x);
    } else if (x->op == X_IN) {
        known = is_in_list(r, test, x);
    } else if (x->op == X_LOOKUP) {
        known = is_in_query(r, s, test, x);
        if (known && s->listed && test->column == VTAB_ROW)
            return true;
    }
    test->type = !known ? 0 : test->column == VTAB_ROW ? COL_U32 : t->columns[test->column].type;
    return known;
}

/* Cuts the range of rows by tests on what is sorted. */
static bool narrow(struct scan *s, const struct table *t, const struct test *test)
{
    if (test->kind != TEST_RANGE)
        return false;
    int64_t lo = test->lo, hi = test->hi;
    if (test_is_outside(test, t)) {
        s->hi = s->lo;
        return true;
    }
    if (test->column != VTAB_ROW) {
        const struct column *c = &t->columns[test->column];
        if (!c->sorted || test->type == COL_STR)
            return false;
        lo = lo <= c->min ? 0 : table_lower_bound(t, (uint32_t)test->column, lo, false);
        hi = hi >= c->max ? t->n_rows : table_lower_bound(t, (uint32_t)test->column, hi, true);
    } else {
        lo = lo < 0 ? 0 : lo;
        hi = hi >= t->n_rows ? t->n_rows : hi + 1;
    }
    if (lo > s->lo)
        s->lo = lo > t->n_rows ? t->n_rows : (uint32_t)lo;
    if (hi < s->hi)
        s->hi = hi < 0 ? 0 : (uint32_t)hi;
    if (s->hi < s->lo)
        s->hi = s->lo;
    return true;
}

/* The rows that have been listed, of those that are left. */
static void list_rows(struct run *r, struct scan *s)
{
    if (!r->rc && run_alloc_rows(r, &s->rows, s->n_listed))
        for (uint32_t i = 0; i < s->n_listed; i++)
            if (s->listed[i] >= s->lo && s->listed[i] < s->hi)
                s->rows[s->n_rows++] = (uint32_t)s->listed[i];
    mem_free(s->listed);
    s->listed = NULL;
}

/* Does a condition that looks at no row hold? */
static bool passes_all(struct run *r, const struct plan_expr *x)
{
    struct batch one = {.n = 1, .serial = ++r->serial};
    uint32_t keep;
    return eval_filter(r, (struct plan_expr *[]){(struct plan_expr *)(uintptr_t)x}, 1, &one, &keep) == 1;
}

bool plan_looks_at_ends(const struct query_plan *p)
{
    if (p->n_sources != 1 || !p->sources[0].table.name || !p->grouped || p->n_keys || p->having ||
        p->groups.n_columns || p->steps[0].n_where || !p->n_aggregates)
        return false;
    for (uint32_t i = 0; i < p->n_aggregates; i++) {
        const struct plan_aggregate *a = &p->aggregates[i];
        if ((a->kind != AGG_MIN && a->kind != AGG_MAX) || a->filter || a->arg->op != X_COLUMN)
            return false;
        const struct column *c =
            a->arg->column == VTAB_ROW ? NULL : &p->sources[0].table.table->columns[a->arg->column];
        if (c && (!c->sorted || c->type == COL_STR))
            return false;
    }
    return true;
}

/* The first and the last row are all that matters. */
static void keep_ends(struct run *r, const struct table *t, struct scan *s)
{
    if (s->rows || s->n_tests || s->n_others || s->hi - s->lo <= 2 || t != r->plan->sources[0].table.table ||
        !plan_looks_at_ends(r->plan) || !run_alloc_rows(r, &s->rows, 2))
        return;
    s->rows[0] = s->lo;
    s->rows[1] = s->hi - 1;
    s->n_rows = 2;
}

void scan_open(struct run *r, const struct plan_step *step, struct scan *s)
{
    const struct table *t = r->tables[step->source];
    *s = (struct scan){.hi = t->n_rows};
    for (uint32_t i = 0; i < step->n_tests && !r->rc; i++) {
        bool listed = s->listed != NULL;
        if (!step->tests[i]->sources) {
            if (!passes_all(r, step->tests[i]))
                s->lo = s->hi = 0;
        } else if (!push_down(r, s, t, step->tests[i]))
            s->others[s->n_others++] = step->tests[i];
        else if (listed == (s->listed != NULL) && !narrow(s, t, &s->tests[s->n_tests]))
            s->n_tests++;
    }
    if (s->listed)
        list_rows(r, s);
    keep_ends(r, t, s);
}

static uint32_t next_chunk(struct run *r, struct scan *s, uint8_t source, uint32_t *rows)
{
    uint32_t hi = (s->lo | COL_CHUNK_MASK) + 1, n;
    hi = hi > s->hi ? s->hi : hi;
    n = hi - s->lo;
    r->visited += n;
    if (s->n_tests)
        n = scan_chunk(r->tables[source], s->tests, s->n_tests, s->lo, hi, rows);
    else
        for (uint32_t i = 0; i < n; i++)
            rows[i] = s->lo + i;
    s->lo = hi;
    return n;
}

static uint32_t next_listed(struct run *r, struct scan *s, uint8_t source, uint32_t *rows)
{
    uint32_t n = s->n_rows - s->at < BATCH ? s->n_rows - s->at : BATCH;
    memcpy(rows, s->rows + s->at, n * sizeof *rows);
    s->at += n;
    r->visited += n;
    return s->n_tests ? scan_rows(r->tables[source], s->tests, s->n_tests, rows, n) : n;
}

bool scan_next(struct run *r, struct scan *s, uint8_t source, uint32_t *rows, uint32_t *n)
{
    uint32_t keep[BATCH];
    if ((s->rows ? s->at >= s->n_rows : s->lo >= s->hi) || run_stopped(r))
        return false;
    *n = s->rows ? next_listed(r, s, source, rows) : next_chunk(r, s, source, rows);
    if (s->n_others && *n) {
        struct batch b = {.n = *n, .serial = ++r->serial};
        b.rows[source] = rows;
        *n = eval_filter(r, s->others, s->n_others, &b, keep);
        for (uint32_t i = 0; i < *n; i++)
            rows[i] = rows[keep[i]];
    }
    return !r->rc;
}

void scan_close(struct scan *s)
{
    for (uint32_t i = 0; i < s->n_tests; i++)
        test_free(&s->tests[i]);
    mem_free(s->rows);
    s->rows = NULL;
    s->n_tests = 0;
}
