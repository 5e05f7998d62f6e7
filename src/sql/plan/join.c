/* The rows of the sources: one is scanned, each further one is joined by its row number or by a hash of its keys.
 * Batches of row numbers go from step to step; values are fetched when an expression asks for them. */
#include "base/hash.h"
#include "sql/plan/plan_private.h"

#include <string.h>

enum { FAR = 16 }; /* rows ahead, to fetch memory for */

/* The rows of a source by key: rows of one key stand together, ascending. */
struct table_hash {
    uint32_t *slots; /* first row of a key, + 1 */
    uint32_t *next;  /* by place in rows: the next of the same key, + 1 */
    uint32_t *rows;
    int64_t *keys[PLAN_MAX_KEYS]; /* by place */
    uint32_t n, cap, mask;
    uint8_t *passes; /* by row number: for joins by row with tests; NULL: all do */
};

struct step_state {
    struct table_hash hash;
    uint32_t *out[PLAN_ALL_SOURCES]; /* rows of the batch being made */
    uint32_t n_out;
    uint32_t *filtered[PLAN_ALL_SOURCES]; /* rows of it that pass `where` */
    int64_t *keys[PLAN_MAX_KEYS];         /* of the batch being joined; what follows evaluates, too */
    uint32_t *keep;
};

struct join {
    struct run *r;
    struct sink *sink;
    struct step_state steps[PLAN_MAX_SOURCES];
    bool enough;
    uint64_t pairs; /* looked at */
};

static bool alloc_rows(struct run *r, uint32_t **out, uint64_t n)
{
    if (!run_alloc(r, (n + 1) * sizeof **out))
        return false;
    *out = mem_alloc((n + 1) * sizeof **out);
    if (!*out)
        r->rc = SQLITE_NOMEM;
    return *out != NULL;
}

static void hash_free(struct table_hash *h)
{
    mem_free(h->slots);
    mem_free(h->next);
    mem_free(h->rows);
    mem_free(h->passes);
    for (int i = 0; i < PLAN_MAX_KEYS; i++)
        mem_free(h->keys[i]);
    *h = (struct table_hash){0};
}

/* ---- scanning ---- */

struct scan {
    struct test tests[PLAN_MAX_TESTS];
    uint32_t n_tests;
    struct plan_expr *others[PLAN_MAX_TESTS]; /* tests that the scan does not know */
    uint32_t n_others;
    uint32_t lo, hi;
};

/* column OP constant as a test of packed values; false: it is to be computed. */
static bool push_down(struct run *r, struct scan *s, const struct table *t, const struct plan_expr *x)
{
    struct test *test = &s->tests[s->n_tests];
    const struct plan_expr *c = x->args ? x->args[0] : NULL, *v = x->n_args == 2 ? x->args[1] : NULL;
    uint8_t op = x->sql;
    *test = (struct test){.strings = &r->e->storage->strings};
    if (x->op == X_IS_NULL && c->op == X_COLUMN && c->column >= 0) {
        test->kind = x->negated ? TEST_NOT_NULL : TEST_NULL;
    } else {
        if (x->op != X_COMPARE)
            return false;
        if (c->op == X_CONST) {
            const struct plan_expr *swap = c;
            static const uint8_t turned[] = {[SQL_EQ] = SQL_EQ, [SQL_NE] = SQL_NE, [SQL_LT] = SQL_GT,
                                             [SQL_LE] = SQL_GE, [SQL_GT] = SQL_LT, [SQL_GE] = SQL_LE};
            c = v;
            v = swap;
            if (op > SQL_GE)
                return false;
            op = turned[op];
        }
        if (c->op != X_COLUMN || v->op != X_CONST || c->type != v->type || c->type == PLAN_REAL)
            return false;
        int64_t w = v->word;
        if (c->type == PLAN_TEXT && op != SQL_EQ && op != SQL_NE)
            return false;
        test->kind = op == SQL_NE ? TEST_NE : TEST_RANGE;
        test->lo = op == SQL_EQ || op == SQL_GE || op == SQL_NE ? w : op == SQL_GT ? w + 1 : INT64_MIN + 1;
        test->hi = op == SQL_EQ || op == SQL_LE || op == SQL_NE ? w : op == SQL_LT ? w - 1 : INT64_MAX;
        if (op > SQL_GE || (op == SQL_GT && w == INT64_MAX) || test->hi < test->lo)
            return false;
    }
    test->column = c->column;
    test->type = c->column == VTAB_ROW ? COL_U32 : t->columns[c->column].type;
    return true;
}

/* Cuts the range of rows by tests on what is sorted. */
static bool narrow(struct scan *s, const struct table *t, const struct test *test)
{
    if (test->kind != TEST_RANGE)
        return false;
    int64_t lo = test->lo, hi = test->hi;
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

static void scan_open(struct run *r, const struct plan_step *step, struct scan *s)
{
    const struct table *t = r->tables[step->source];
    *s = (struct scan){.hi = t->n_rows};
    for (uint32_t i = 0; i < step->n_tests; i++) {
        if (!push_down(r, s, t, step->tests[i]))
            s->others[s->n_others++] = step->tests[i];
        else if (!narrow(s, t, &s->tests[s->n_tests]))
            s->n_tests++;
    }
}

/* The rows of the next chunk that pass, in `rows` (BATCH of them, and some room); false at the end. */
static bool scan_next(struct run *r, struct scan *s, uint8_t source, uint32_t *rows, uint32_t *n)
{
    uint32_t keep[BATCH];
    if (s->lo >= s->hi || run_stopped(r))
        return false;
    uint32_t hi = (s->lo | COL_CHUNK_MASK) + 1;
    hi = hi > s->hi ? s->hi : hi;
    *n = hi - s->lo;
    if (s->n_tests)
        *n = scan_chunk(r->tables[source], s->tests, s->n_tests, s->lo, hi, rows);
    else
        for (uint32_t i = 0; i < *n; i++)
            rows[i] = s->lo + i;
    s->lo = hi;
    if (s->n_others && *n) {
        struct batch b = {.n = *n, .serial = ++r->serial};
        b.rows[source] = rows;
        *n = eval_filter(r, s->others, s->n_others, &b, keep);
        for (uint32_t i = 0; i < *n; i++)
            rows[i] = rows[keep[i]];
    }
    return !r->rc;
}

/* ---- hashing a source ---- */

static uint64_t hash_keys(const int64_t *const *keys, uint32_t n_keys, uint32_t i)
{
    uint64_t h = (uint64_t)keys[0][i] * 0x9e3779b97f4a7c15ull;
    for (uint32_t k = 1; k < n_keys; k++)
        h = (h ^ (h >> 29) ^ (uint64_t)keys[k][i]) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 32;
}

static bool is_null_key(const struct plan_step *s, const int64_t *const *keys, uint32_t i)
{
    for (uint32_t k = 0; k < s->n_keys; k++)
        if (keys[k][i] == plan_null((enum plan_type)s->keys[k]->type))
            return true;
    return false;
}

static bool grow_array(struct run *r, void **p, uint64_t size)
{
    void *bigger = run_alloc(r, size / 2) ? mem_realloc(*p, size) : NULL;
    if (!bigger) {
        r->rc = r->rc ? r->rc : SQLITE_NOMEM;
        return false;
    }
    *p = bigger;
    return true;
}

/* Room for n more rows, and one batch beyond them. */
static bool reserve_rows(struct run *r, const struct plan_step *step, struct table_hash *h, uint32_t n)
{
    if (h->n + n <= h->cap)
        return true;
    h->cap = h->cap ? h->cap * 2 : 4 * BATCH;
    bool ok = grow_array(r, (void **)&h->rows, (uint64_t)h->cap * sizeof *h->rows);
    for (uint32_t k = 0; ok && k < step->n_keys; k++)
        ok = grow_array(r, (void **)&h->keys[k], (uint64_t)h->cap * sizeof(int64_t));
    return ok;
}

static bool reserve_slots(struct run *r, struct table_hash *h)
{
    uint32_t slots = 64, cap = h->n;
    bool ok = alloc_rows(r, &h->next, cap);
    while (slots < cap * 2ull && slots < 1u << 30)
        slots *= 2;
    h->mask = slots - 1;
    ok = ok && alloc_rows(r, &h->slots, slots);
    if (ok)
        memset(h->slots, 0, slots * sizeof *h->slots);
    return ok;
}

static bool same_keys(const struct table_hash *h, uint32_t n_keys, uint32_t a, const int64_t *const *keys, uint32_t i)
{
    for (uint32_t k = 0; k < n_keys; k++)
        if (h->keys[k][a] != keys[k][i])
            return false;
    return true;
}

/* The first place of the keys, + 1, or 0; *slot is where it is kept. */
static uint32_t hash_find(const struct table_hash *h, uint32_t n_keys, const int64_t *const *keys, uint32_t i,
                          uint32_t *slot)
{
    uint32_t at = (uint32_t)hash_keys(keys, n_keys, i) & h->mask;
    while (h->slots[at] && !same_keys(h, n_keys, h->slots[at] - 1, keys, i))
        at = (at + 1) & h->mask;
    *slot = at;
    return h->slots[at];
}

/* From the last row to the first, each in front of those of its key: they stand ascending then. */
static void link_rows(struct run *r, const struct plan_step *step, struct table_hash *h)
{
    const int64_t *keys[PLAN_MAX_KEYS];
    for (uint32_t k = 0; k < step->n_keys; k++)
        keys[k] = h->keys[k];
    for (uint32_t i = h->n; i-- > 0 && !(i % BATCH == 0 && run_stopped(r));) {
        if (step->n_keys && i >= FAR) /* most of the time goes into waiting for memory */
            __builtin_prefetch(&h->slots[(uint32_t)hash_keys(keys, step->n_keys, i - FAR) & h->mask], 1);
        uint32_t slot, first = step->n_keys ? hash_find(h, step->n_keys, keys, i, &slot) : h->slots[slot = 0];
        h->next[i] = first;
        h->slots[slot] = i + 1;
    }
}

/* Keeps rows whose partner in a later join by row, which only they decide, passes that one's tests. */
static uint32_t keep_partnered(struct join *j, const struct plan_step *step, uint32_t *rows, uint32_t n)
{
    const struct query_plan *p = j->r->plan;
    for (uint32_t at = 1; at < p->n_steps && n; at++) {
        const struct plan_step *s = &p->steps[at];
        const struct table_hash *h = &j->steps[at].hash;
        if (!s->by_row || !h->passes || s->keys[0]->sources != 1u << step->source || p->sources[s->source].left)
            continue;
        struct batch b = {.n = n, .serial = ++j->r->serial};
        b.rows[step->source] = rows;
        const int64_t *keys = eval(j->r, s->keys[0], &b);
        int64_t n_rows = j->r->tables[s->source]->n_rows;
        uint32_t left = 0;
        for (uint32_t i = 0; i < n; i++) {
            rows[left] = rows[i];
            left += keys[i] >= 0 && keys[i] < n_rows && h->passes[keys[i]];
        }
        n = left;
    }
    return n;
}

static bool hash_build(struct join *j, const struct plan_step *step, struct table_hash *h)
{
    struct run *r = j->r;
    struct scan scan;
    uint32_t rows[BATCH + 8], n;
    const struct table *t = r->tables[step->source];
    bool inner = !r->plan->sources[step->source].left;
    scan_open(r, step, &scan);
    while (scan_next(r, &scan, step->source, rows, &n)) {
        const int64_t *keys[PLAN_MAX_KEYS];
        n = inner ? keep_partnered(j, step, rows, n) : n;
        if (!reserve_rows(r, step, h, n))
            return false;
        for (uint32_t k = 0; k < step->n_keys && n; k++) { /* those that are NULL are written over */
            int64_t *words = h->keys[k] + h->n;
            if (step->columns[k] == VTAB_ROW)
                for (uint32_t i = 0; i < n; i++)
                    words[i] = rows[i];
            else
                column_gather(&t->columns[step->columns[k]], rows, n, words);
            keys[k] = words;
        }
        for (uint32_t i = 0; i < n; i++) {
            if (is_null_key(step, keys, i))
                continue;
            for (uint32_t k = 0; k < step->n_keys; k++)
                h->keys[k][h->n] = keys[k][i];
            h->rows[h->n++] = rows[i];
        }
    }
    if (!step->n_keys && h->n > 64) /* every row with every row: SQLite may know better */
        r->rc = RUN_GAVE_UP;
    if (!r->rc && reserve_slots(r, h))
        link_rows(r, step, h);
    return !r->rc;
}

/* Which rows of a source that is joined by row pass its tests. */
static bool pass_build(struct run *r, const struct plan_step *step, struct table_hash *h)
{
    struct scan scan;
    uint32_t rows[BATCH + 8], n, n_rows = r->tables[step->source]->n_rows;
    if (!step->n_tests)
        return true;
    if (!run_alloc(r, n_rows) || !(h->passes = mem_zalloc((size_t)n_rows + 1))) {
        r->rc = r->rc ? r->rc : SQLITE_NOMEM;
        return false;
    }
    scan_open(r, step, &scan);
    while (scan_next(r, &scan, step->source, rows, &n))
        for (uint32_t i = 0; i < n; i++)
            h->passes[rows[i]] = 1;
    return !r->rc;
}

/* ---- from step to step ---- */

static void run_step(struct join *j, uint32_t at, const struct batch *b);

/* Filters the batch by what can be checked now, and hands it on. */
static void hand_on(struct join *j, uint32_t at, struct batch *b)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    struct step_state *st = &j->steps[at];
    uint32_t *keep = st->keep;
    if (!b->n || j->enough || run_stopped(j->r))
        return;
    b->serial = ++j->r->serial;
    if (s->n_where) {
        uint32_t n = eval_filter(j->r, s->where, s->n_where, b, keep);
        if (n < b->n) {
            for (uint32_t k = 0; k <= at; k++) {
                uint8_t source = j->r->plan->steps[k].source;
                for (uint32_t i = 0; i < n; i++)
                    st->filtered[source][i] = b->rows[source][keep[i]];
                b->rows[source] = st->filtered[source];
            }
            b->n = n;
            b->serial = ++j->r->serial;
        }
    }
    if (b->n && !j->r->rc)
        run_step(j, at + 1, b);
}

static void flush(struct join *j, uint32_t at)
{
    struct step_state *st = &j->steps[at];
    struct batch b = {.n = st->n_out};
    for (uint32_t k = 0; k <= at; k++)
        b.rows[j->r->plan->steps[k].source] = st->out[j->r->plan->steps[k].source];
    hand_on(j, at, &b);
    st->n_out = 0;
}

static inline void put(struct join *j, uint32_t at, const struct batch *b, uint32_t i, uint32_t row)
{
    struct step_state *st = &j->steps[at];
    const struct plan_step *steps = j->r->plan->steps;
    for (uint32_t k = 0; k < at; k++)
        st->out[steps[k].source][st->n_out] = b->rows[steps[k].source][i];
    st->out[steps[at].source][st->n_out] = row;
    if (++st->n_out == BATCH)
        flush(j, at);
}

/* Does one pair pass what ON says beyond the keys? */
static bool pair_passes(struct join *j, uint32_t at, const struct batch *b, uint32_t i, uint32_t row)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    uint32_t rows[PLAN_ALL_SOURCES], keep[1];
    if (!s->n_after)
        return true;
    struct batch one = {.n = 1, .serial = ++j->r->serial};
    for (uint32_t k = 0; k < at; k++) {
        uint8_t source = j->r->plan->steps[k].source;
        rows[source] = b->rows[source][i];
        one.rows[source] = &rows[source];
    }
    rows[s->source] = row;
    one.rows[s->source] = &rows[s->source];
    return eval_filter(j->r, s->after, s->n_after, &one, keep) == 1;
}

static void join_by_row(struct join *j, uint32_t at, const struct batch *b)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    const struct plan_source *source = &j->r->plan->sources[s->source];
    const struct table_hash *h = &j->steps[at].hash;
    int64_t *copy = j->steps[at].keys[0], n_rows = j->r->tables[s->source]->n_rows;
    memcpy(copy, eval(j->r, s->keys[0], b), b->n * sizeof *copy);
    for (uint32_t i = 0; i < b->n && !j->r->rc && !j->enough; i++) {
        bool there = copy[i] >= 0 && copy[i] < n_rows && (!h->passes || h->passes[copy[i]]) &&
                     pair_passes(j, at, b, i, (uint32_t)copy[i]);
        if (there || source->left)
            put(j, at, b, i, there ? (uint32_t)copy[i] : (uint32_t)NO_ROW);
    }
}

static void join_by_hash(struct join *j, uint32_t at, const struct batch *b)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    const struct plan_source *source = &j->r->plan->sources[s->source];
    const struct table_hash *h = &j->steps[at].hash;
    const int64_t *keys[PLAN_MAX_KEYS];
    for (uint32_t k = 0; k < s->n_keys; k++) {
        keys[k] = j->steps[at].keys[k];
        memcpy(j->steps[at].keys[k], eval(j->r, s->keys[k], b), b->n * sizeof(int64_t));
    }
    for (uint32_t i = 0; i < b->n && !j->r->rc && !j->enough; i++) {
        if (s->n_keys && i + FAR < b->n)
            __builtin_prefetch(&h->slots[(uint32_t)hash_keys(keys, s->n_keys, i + FAR) & h->mask]);
        uint32_t slot, place = 0;
        bool any = false;
        if (!is_null_key(s, keys, i))
            place = s->n_keys ? hash_find(h, s->n_keys, keys, i, &slot) : h->slots[0];
        for (; place && !j->r->rc && !j->enough; place = h->next[place - 1]) {
            if (++j->pairs % BATCH == 0 && run_stopped(j->r))
                break;
            if (!pair_passes(j, at, b, i, h->rows[place - 1]))
                continue;
            any = true;
            put(j, at, b, i, h->rows[place - 1]);
        }
        if (!any && source->left && !j->r->rc)
            put(j, at, b, i, (uint32_t)NO_ROW);
    }
}

static void run_step(struct join *j, uint32_t at, const struct batch *b)
{
    const struct query_plan *p = j->r->plan;
    if (at == p->n_steps) {
        j->enough = !j->sink->push(j->sink, b);
        return;
    }
    if (p->steps[at].by_row)
        join_by_row(j, at, b);
    else
        join_by_hash(j, at, b);
    /* Rows wait for a full batch here; the batch above is about to be overwritten, but they have been copied. */
}

static bool open_steps(struct join *j)
{
    const struct query_plan *p = j->r->plan;
    bool ok = true;
    for (uint32_t at = 0; ok && at < p->n_steps; at++) {
        struct step_state *st = &j->steps[at];
        for (uint32_t k = 0; ok && k <= at; k++) {
            uint8_t source = p->steps[k].source;
            ok = alloc_rows(j->r, &st->out[source], BATCH + 8) && alloc_rows(j->r, &st->filtered[source], BATCH);
        }
        ok = ok && alloc_rows(j->r, &st->keep, BATCH);
        for (uint32_t k = 0; ok && k < p->steps[at].n_keys; k++)
            if (!(st->keys[k] = mem_alloc(BATCH * sizeof(int64_t)))) {
                j->r->rc = SQLITE_NOMEM;
                ok = false;
            }
        if (ok && at && p->steps[at].by_row)
            ok = pass_build(j->r, &p->steps[at], &st->hash);
    }
    for (uint32_t at = 1; ok && at < p->n_steps; at++)
        if (!p->steps[at].by_row)
            ok = hash_build(j, &p->steps[at], &j->steps[at].hash);
    return ok;
}

static void close_steps(struct join *j)
{
    for (uint32_t at = 0; at < j->r->plan->n_steps; at++) {
        hash_free(&j->steps[at].hash);
        mem_free(j->steps[at].keep);
        for (uint32_t k = 0; k < PLAN_MAX_KEYS; k++)
            mem_free(j->steps[at].keys[k]);
        for (uint32_t k = 0; k < PLAN_ALL_SOURCES; k++) {
            mem_free(j->steps[at].out[k]);
            mem_free(j->steps[at].filtered[k]);
        }
    }
}

int join_run(struct run *r, struct sink *sink)
{
    struct join *j = mem_zalloc(sizeof *j);
    struct scan scan;
    const struct plan_step *first = &r->plan->steps[0];
    if (!j)
        return r->rc = SQLITE_NOMEM;
    j->r = r;
    j->sink = sink;
    if (open_steps(j)) {
        uint32_t n, *rows = j->steps[0].out[first->source];
        scan_open(r, first, &scan);
        while (!j->enough && scan_next(r, &scan, first->source, rows, &n)) {
            struct batch b = {.n = n};
            b.rows[first->source] = rows;
            hand_on(j, 0, &b);
        }
        for (uint32_t at = 1; at < r->plan->n_steps && !r->rc && !j->enough; at++)
            flush(j, at);
    }
    close_steps(j);
    mem_free(j);
    return r->rc;
}
