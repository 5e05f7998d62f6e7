/* The rows of the sources: one is scanned, each further one is joined by its row number or by a hash of its keys.
 * Batches of row numbers go from step to step; values are fetched when an expression asks for them. */
#include "base/hash.h"
#include "sql/plan/plan_private.h"

#include <string.h>

enum { FAR = 16 }; /* rows ahead, to fetch memory for */

/* The rows of a source by key: rows of one key are chained, ascending. Most of the time goes into waiting for memory,
 * so a slot holds a part of the hash beside the place, and the keys of a place lie side by side. */
struct table_hash {
    uint64_t *slots; /* the upper half of the hash, then the place of the first row of a key, + 1 */
    uint32_t *next;  /* by place in rows: the next of the same key, + 1 */
    uint32_t *rows;
    int64_t *keys; /* by place, n_keys each */
    uint32_t n, cap, mask;
    uint8_t *passes; /* by row number: for joins by row with tests; NULL: all do */
    int sorted_by;   /* the key by which the places ascend; -1: none, or looking by hash is quicker */
    uint32_t at;     /* where the last one was found in that order */
    uint64_t looked, jumped;
};

struct step_state {
    struct table_hash hash;
    uint32_t *out[PLAN_ALL_SOURCES]; /* rows of the batch being made */
    uint32_t n_out;
    uint32_t *filtered[PLAN_ALL_SOURCES]; /* rows of it that pass `where` */
    int64_t *keys;                        /* of the batch being joined */
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
    mem_free(h->keys);
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

static inline uint64_t hash_key(const int64_t *key, uint32_t n_keys)
{
    uint64_t h = (uint64_t)key[0] * 0x9e3779b97f4a7c15ull;
    for (uint32_t k = 1; k < n_keys; k++)
        h = (h ^ (h >> 29) ^ (uint64_t)key[k]) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 32;
}

/* The keys of the rows of a batch, side by side. */
static void zip_keys(const int64_t *const *keys, uint32_t n_keys, uint32_t n, int64_t *out)
{
    if (n_keys == 1) {
        memcpy(out, keys[0], n * sizeof *out);
        return;
    }
    for (uint32_t k = 0; k < n_keys; k++)
        for (uint32_t i = 0; i < n; i++)
            out[(size_t)i * n_keys + k] = keys[k][i];
}

static inline bool is_null_key(const struct plan_step *s, const int64_t *key)
{
    for (uint32_t k = 0; k < s->n_keys; k++)
        if (key[k] == plan_null((enum plan_type)s->keys[k]->type))
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
    return grow_array(r, (void **)&h->rows, (uint64_t)h->cap * sizeof *h->rows) &&
           grow_array(r, (void **)&h->keys, ((uint64_t)h->cap * step->n_keys + 1) * sizeof *h->keys);
}

static bool reserve_slots(struct run *r, struct table_hash *h)
{
    uint32_t slots = 64, cap = h->n;
    bool ok = alloc_rows(r, &h->next, cap);
    while (slots < cap * 2ull && slots < 1u << 30)
        slots *= 2;
    h->mask = slots - 1;
    ok = ok && run_alloc(r, slots * sizeof *h->slots);
    h->slots = ok ? mem_zalloc(slots * sizeof *h->slots) : NULL;
    if (ok && !h->slots)
        r->rc = SQLITE_NOMEM;
    return h->slots != NULL;
}

/* The slot of a key: of its first row, or a free one. */
static inline uint64_t *hash_find(const struct table_hash *h, uint32_t n_keys, const int64_t *key, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & h->mask;
    uint64_t tag = hash >> 32;
    for (;; at = (at + 1) & h->mask) {
        uint64_t slot = h->slots[at];
        if (!slot)
            return &h->slots[at];
        if (slot >> 32 != tag)
            continue;
        const int64_t *there = h->keys + (size_t)((uint32_t)slot - 1) * n_keys;
        bool same = true;
        for (uint32_t k = 0; k < n_keys; k++)
            same &= there[k] == key[k];
        if (same)
            return &h->slots[at];
    }
}

/* From the last row to the first, each in front of those of its key: they stand ascending then. */
static void link_rows(struct run *r, const struct plan_step *step, struct table_hash *h)
{
    uint32_t n_keys = step->n_keys;
    for (uint32_t i = h->n; i-- > 0 && !(i % BATCH == 0 && run_stopped(r));) {
        if (!n_keys) {
            h->next[i] = (uint32_t)h->slots[0];
            h->slots[0] = i + 1;
            continue;
        }
        if (i >= FAR)
            __builtin_prefetch(&h->slots[(uint32_t)hash_key(h->keys + (size_t)(i - FAR) * n_keys, n_keys) & h->mask],
                               1);
        const int64_t *key = h->keys + (size_t)i * n_keys;
        uint64_t hash = hash_key(key, n_keys), *slot = hash_find(h, n_keys, key, hash);
        h->next[i] = (uint32_t)*slot;
        *slot = hash >> 32 << 32 | (i + 1);
    }
}

/* ---- keys in order ---- */

/* The key by which the rows ascend as they stand (times, most often); -1: none. Of several keys, one that alone tells
 * most rows apart. */
static int find_order(const struct table_hash *h, uint32_t n_keys)
{
    for (uint32_t k = 0; k < n_keys; k++) {
        uint32_t i = 1, runs = 1;
        for (; i < h->n; i++) {
            int64_t before = h->keys[(size_t)(i - 1) * n_keys + k], word = h->keys[(size_t)i * n_keys + k];
            if (word < before)
                break;
            runs += word != before;
        }
        if (i >= h->n && h->n && (n_keys == 1 || runs * 8ull >= h->n))
            return (int)k;
    }
    return -1;
}

/* The first place whose key is not below the word, from where the last one was: rows often come in the same order. */
static uint32_t seek(struct table_hash *h, uint32_t n_keys, int64_t word)
{
    const int64_t *keys = h->keys + h->sorted_by;
    uint32_t lo = 0, hi = h->n, step = 1, at = h->at;
    h->looked++;
    if (at < h->n && keys[(size_t)at * n_keys] < word) {
        for (lo = at + 1; step < h->n - at; step *= 2) {
            if (keys[(size_t)(at + step) * n_keys] >= word) {
                hi = at + step;
                break;
            }
            lo = at + step + 1;
        }
    } else {
        for (hi = at; step <= at; step *= 2) {
            if (keys[(size_t)(at - step) * n_keys] < word) {
                lo = at - step + 1;
                break;
            }
            hi = at - step;
        }
    }
    h->jumped += step;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (keys[(size_t)mid * n_keys] < word)
            lo = mid + 1;
        else
            hi = mid;
    }
    return h->at = lo;
}

/* ---- joined rows ---- */

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
    int64_t *words = mem_alloc((step->n_keys + 1) * (size_t)BATCH * 2 * sizeof *words);
    if (!words)
        r->rc = SQLITE_NOMEM;
    while (words && scan_next(r, &scan, step->source, rows, &n)) {
        const int64_t *keys[PLAN_MAX_KEYS];
        int64_t *zipped = words + (size_t)step->n_keys * BATCH;
        n = inner ? keep_partnered(j, step, rows, n) : n;
        if (!reserve_rows(r, step, h, n))
            break;
        for (uint32_t k = 0; k < step->n_keys && n; k++) {
            int64_t *column = words + (size_t)k * BATCH;
            if (step->columns[k] == VTAB_ROW)
                for (uint32_t i = 0; i < n; i++)
                    column[i] = rows[i];
            else
                column_gather(&t->columns[step->columns[k]], rows, n, column);
            keys[k] = column;
        }
        if (step->n_keys)
            zip_keys(keys, step->n_keys, n, zipped);
        for (uint32_t i = 0; i < n; i++) {
            const int64_t *key = zipped + (size_t)i * step->n_keys;
            if (is_null_key(step, key))
                continue;
            memcpy(h->keys + (size_t)h->n * step->n_keys, key, step->n_keys * sizeof *key);
            h->rows[h->n++] = rows[i];
        }
    }
    mem_free(words);
    if (!step->n_keys && h->n > 64) /* every row with every row: SQLite may know better */
        r->rc = RUN_GAVE_UP;
    h->sorted_by = r->rc ? -1 : find_order(h, step->n_keys);
    if (!r->rc && h->sorted_by < 0 && reserve_slots(r, h))
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
    int64_t *copy = j->steps[at].keys, n_rows = j->r->tables[s->source]->n_rows;
    memcpy(copy, eval(j->r, s->keys[0], b), b->n * sizeof *copy);
    for (uint32_t i = 0; i < b->n && !j->r->rc && !j->enough; i++) {
        bool there = copy[i] >= 0 && copy[i] < n_rows && (!h->passes || h->passes[copy[i]]) &&
                     pair_passes(j, at, b, i, (uint32_t)copy[i]);
        if (there || source->left)
            put(j, at, b, i, there ? (uint32_t)copy[i] : (uint32_t)NO_ROW);
    }
}

/* Fetches what the probes of the rows ahead will touch: first slots, then the keys they point to. */
static inline void fetch_ahead(const struct table_hash *h, uint32_t n_keys, const int64_t *keys, uint32_t i, uint32_t n)
{
    if (i + FAR < n)
        __builtin_prefetch(&h->slots[(uint32_t)hash_key(keys + (size_t)(i + FAR) * n_keys, n_keys) & h->mask]);
    if (i + FAR / 2 < n) {
        uint64_t slot = h->slots[(uint32_t)hash_key(keys + (size_t)(i + FAR / 2) * n_keys, n_keys) & h->mask];
        if (slot)
            __builtin_prefetch(h->keys + (size_t)((uint32_t)slot - 1) * n_keys);
    }
}

enum { FEW_STEPS = 64, ENOUGH_LOOKS = 4 * BATCH };

/* Rows that come in another order are found by hash. */
static void choose_hash(struct join *j, const struct plan_step *s, struct table_hash *h)
{
    if (h->sorted_by < 0 || h->looked < ENOUGH_LOOKS || h->jumped < h->looked * FEW_STEPS)
        return;
    h->sorted_by = -1;
    if (reserve_slots(j->r, h))
        link_rows(j->r, s, h);
}

/* The first place, + 1, that may have the key; 0: none. */
static inline uint32_t first_place(struct table_hash *h, uint32_t n_keys, const int64_t *key)
{
    if (!n_keys)
        return (uint32_t)h->slots[0];
    if (h->sorted_by < 0)
        return (uint32_t)*hash_find(h, n_keys, key, hash_key(key, n_keys));
    uint32_t at = seek(h, n_keys, key[h->sorted_by]);
    return at < h->n ? at + 1 : 0;
}

/* The place itself or the next, + 1, that has the key; 0: none. */
static inline uint32_t next_place(const struct table_hash *h, uint32_t n_keys, const int64_t *key, uint32_t place)
{
    for (; h->sorted_by >= 0 && place; place = place < h->n ? place + 1 : 0) {
        const int64_t *there = h->keys + (size_t)(place - 1) * n_keys;
        if (there[h->sorted_by] != key[h->sorted_by])
            return 0;
        bool same = true;
        for (uint32_t k = 0; k < n_keys; k++)
            same &= there[k] == key[k];
        if (same)
            break;
    }
    return place;
}

/* The pairs of one row. */
static void join_row(struct join *j, uint32_t at, const struct batch *b, uint32_t i, const int64_t *key)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    struct table_hash *h = &j->steps[at].hash;
    bool any = false;
    uint32_t place = is_null_key(s, key) ? 0 : next_place(h, s->n_keys, key, first_place(h, s->n_keys, key));
    while (place && !j->r->rc && !j->enough) {
        if (++j->pairs % BATCH == 0 && run_stopped(j->r))
            break;
        if (pair_passes(j, at, b, i, h->rows[place - 1])) {
            any = true;
            put(j, at, b, i, h->rows[place - 1]);
        }
        if (h->sorted_by < 0)
            place = h->next[place - 1];
        else
            place = next_place(h, s->n_keys, key, place < h->n ? place + 1 : 0);
    }
    if (!any && j->r->plan->sources[s->source].left && !j->r->rc)
        put(j, at, b, i, (uint32_t)NO_ROW);
}

static void join_by_keys(struct join *j, uint32_t at, const struct batch *b)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    struct table_hash *h = &j->steps[at].hash;
    const int64_t *columns[PLAN_MAX_KEYS];
    int64_t *keys = j->steps[at].keys; /* what follows evaluates, too */
    for (uint32_t k = 0; k < s->n_keys; k++)
        columns[k] = eval(j->r, s->keys[k], b);
    if (s->n_keys)
        zip_keys(columns, s->n_keys, b->n, keys);
    choose_hash(j, s, h);
    for (uint32_t i = 0; i < b->n && !j->r->rc && !j->enough; i++) {
        if (s->n_keys && h->sorted_by < 0)
            fetch_ahead(h, s->n_keys, keys, i, b->n);
        join_row(j, at, b, i, keys + (size_t)i * s->n_keys);
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
        join_by_keys(j, at, b);
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
        if (ok && !(st->keys = mem_alloc((p->steps[at].n_keys + 1) * (size_t)BATCH * sizeof *st->keys))) {
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
        mem_free(j->steps[at].keys);
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
