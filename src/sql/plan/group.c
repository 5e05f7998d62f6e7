/* GROUP BY: numbers the groups as they come, adds each row to its group's aggregates, and gives the groups as a table:
 * keys, bare columns, aggregates. Keys and bare columns are read from one row of the group that is remembered. */
#include "base/hash.h"
#include "sql/plan/aggregate.h"
#include "sql/plan/varied.h"

#include <string.h>

enum { MAX_DIRECT = 1 << 22, NO_DIRECT = 0 };

struct groups {
    struct sink base;
    struct run *r;
    uint32_t n, cap;
    uint32_t *slots, mask;         /* by hash: group + 1 */
    uint64_t secret;               /* of the hashes: nobody knows which keys belong into one slot */
    int64_t *keys[PLAN_MAX_KEYS];  /* by group; zeros have one sign */
    int64_t *equal[PLAN_MAX_KEYS]; /* of a batch: what is the same for all that is equal; NULL: the words themselves */
    uint32_t *direct;              /* by code: group + 1; NULL: by hash */
    uint64_t codes[PLAN_MAX_KEYS];
    int64_t bases[PLAN_MAX_KEYS];
    uint32_t *rows[PLAN_MAX_SOURCES]; /* by group: the row remembered */
    struct accumulator accumulators[PLAN_MAX_AGGREGATES];
    uint32_t ids[BATCH];
};

static bool fail(struct groups *g, int rc)
{
    if (!g->r->rc)
        g->r->rc = rc;
    return false;
}

/* ---- numbering ---- */

static bool resize(struct groups *g, void **p, size_t size, uint32_t cap)
{
    if (!run_alloc(g->r, (uint64_t)size * (cap - g->cap)))
        return false;
    void *bigger = mem_realloc(*p, size * cap);
    if (!bigger)
        return fail(g, SQLITE_NOMEM);
    *p = bigger;
    return true;
}

static uint64_t hash_group(const struct groups *g, const int64_t *const *keys, uint32_t i)
{
    uint64_t h = g->secret;
    for (uint32_t k = 0; k < g->r->plan->n_keys; k++)
        h = (h ^ (h >> 29) ^ (uint64_t)keys[k][i]) * 0x9e3779b97f4a7c15ull;
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull; /* reals of even distances would lie in few places without */
    return h ^ h >> 32;
}

static bool rehash(struct groups *g)
{
    uint32_t mask = g->cap * 2 - 1;
    if (!run_alloc(g->r, (uint64_t)g->cap * 2 * sizeof *g->slots))
        return false;
    mem_free(g->slots);
    g->slots = mem_zalloc(((size_t)mask + 1) * sizeof *g->slots);
    g->mask = mask;
    if (!g->slots)
        return fail(g, SQLITE_NOMEM);
    g->secret = hash_secret();
    for (uint32_t i = 0; i < g->n; i++) {
        uint32_t at = (uint32_t)hash_group(g, (const int64_t *const *)g->keys, i) & mask;
        while (g->slots[at])
            at = (at + 1) & mask;
        g->slots[at] = i + 1;
    }
    return true;
}

static bool grow(struct groups *g)
{
    const struct query_plan *p = g->r->plan;
    uint32_t cap = g->cap ? g->cap * 2 : 1024;
    bool ok = true;
    for (uint32_t k = 0; ok && k < p->n_keys; k++)
        ok = resize(g, (void **)&g->keys[k], sizeof(int64_t), cap);
    for (uint32_t s = 0; ok && s < p->n_sources; s++)
        ok = resize(g, (void **)&g->rows[s], sizeof(uint32_t), cap);
    for (uint32_t a = 0; ok && a < p->n_aggregates; a++)
        ok = accumulator_grow(&g->accumulators[a], g->r, g->cap, cap);
    if (!ok)
        return false;
    g->cap = cap;
    return g->direct || rehash(g);
}

static void remember(struct groups *g, uint32_t group, const struct batch *b, uint32_t i)
{
    for (uint32_t s = 0; s < g->r->plan->n_sources; s++)
        g->rows[s][group] = b->rows[s] ? b->rows[s][i] : (uint32_t)NO_ROW;
}

static bool add_group(struct groups *g, const int64_t *const *keys, const struct batch *b, uint32_t i)
{
    if (g->n == g->cap && !grow(g))
        return false;
    for (uint32_t k = 0; k < g->r->plan->n_keys; k++)
        g->keys[k][g->n] = keys[k][i];
    remember(g, g->n, b, i);
    g->n++;
    return true;
}

static bool number_by_hash(struct groups *g, const int64_t *const *keys, const struct batch *b)
{
    uint32_t n_keys = g->r->plan->n_keys;
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t at = (uint32_t)hash_group(g, keys, i) & g->mask;
        for (;; at = (at + 1) & g->mask) {
            uint32_t group = g->slots[at];
            bool same = group != 0;
            for (uint32_t k = 0; same && k < n_keys; k++)
                same = g->keys[k][group - 1] == keys[k][i];
            if (same || !group)
                break;
        }
        if (!g->slots[at]) {
            bool grows = g->n == g->cap;
            if (!add_group(g, keys, b, i))
                return false;
            if (grows) { /* places have changed; rehash() has not seen this one */
                at = (uint32_t)hash_group(g, keys, i) & g->mask;
                while (g->slots[at])
                    at = (at + 1) & g->mask;
            }
            g->slots[at] = g->n;
        }
        g->ids[i] = g->slots[at] - 1;
    }
    return true;
}

static bool number_directly(struct groups *g, const int64_t *const *keys, const struct batch *b)
{
    uint32_t codes[BATCH], n_keys = g->r->plan->n_keys;
    memset(codes, 0, b->n * sizeof *codes);
    for (uint32_t k = 0; k < n_keys; k++) {
        int64_t null = plan_null((enum plan_type)g->r->plan->keys[k]->type);
        for (uint32_t i = 0; i < b->n; i++)
            codes[i] = codes[i] * (uint32_t)g->codes[k] +
                       (keys[k][i] == null ? 0 : (uint32_t)((uint64_t)keys[k][i] - (uint64_t)g->bases[k]) + 1);
    }
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t *group = &g->direct[codes[i]];
        if (!*group) {
            if (!add_group(g, keys, b, i))
                return false;
            *group = g->n;
        }
        g->ids[i] = *group - 1;
    }
    return true;
}

/* Keys that are columns of few values need no hash. */
static bool choose_direct(struct groups *g)
{
    const struct query_plan *p = g->r->plan;
    uint64_t product = 1;
    for (uint32_t k = 0; k < p->n_keys; k++) {
        const struct plan_expr *x = p->keys[k];
        if (x->op != X_COLUMN || x->type == PLAN_REAL)
            return true;
        const struct table *t = g->r->tables[x->source];
        int64_t min = x->column == VTAB_ROW ? 0 : t->columns[x->column].min;
        int64_t max = x->column == VTAB_ROW ? t->n_rows : t->columns[x->column].max;
        uint64_t width = min > max ? 0 : (uint64_t)max - (uint64_t)min;
        if (width >= MAX_DIRECT)
            return true;
        g->bases[k] = min;
        g->codes[k] = width + 2;
        product *= width + 2;
        if (product > MAX_DIRECT)
            return true;
    }
    if (!run_alloc(g->r, product * sizeof *g->direct))
        return false;
    g->direct = mem_zalloc((product + 1) * sizeof *g->direct);
    return g->direct || fail(g, SQLITE_NOMEM);
}

static bool comparable(struct groups *g, int64_t *words, const int64_t *from, uint32_t n)
{
    struct strpool *strings = &g->r->e->storage->strings;
    const uint32_t before = strings->n;
    for (uint32_t i = 0; i < n && !g->r->rc; i++)
        varied_comparable(strings, from[i], &words[i], &g->r->rc);
    run_note_texts(g->r, before, 0);
    return !g->r->rc;
}

/* Equal zeros are one group. */
static void one_zero(int64_t *words, const int64_t *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        words[i] = from[i] == column_f64_word(-0.0) ? 0 : from[i];
}

static bool number(struct groups *g, const struct batch *b)
{
    const struct query_plan *p = g->r->plan;
    const int64_t *keys[PLAN_MAX_KEYS];
    for (uint32_t k = 0; k < p->n_keys; k++) {
        keys[k] = eval(g->r, p->keys[k], b);
        if (!g->equal[k] || g->r->rc)
            continue;
        if (p->keys[k]->varied)
            comparable(g, g->equal[k], keys[k], b->n);
        else
            one_zero(g->equal[k], keys[k], b->n);
        keys[k] = g->equal[k];
    }
    if (g->r->rc)
        return false;
    if (!p->n_keys) {
        memset(g->ids, 0, b->n * sizeof *g->ids);
        return g->n || add_group(g, keys, b, 0);
    }
    return g->direct ? number_directly(g, keys, b) : number_by_hash(g, keys, b);
}

/* ---- the sink ---- */

/* Does row i of the batch come before the one remembered, by SQLite's loops? */
static bool comes_before(const struct groups *g, const struct batch *b, uint32_t i, uint32_t group)
{
    const struct query_plan *p = g->r->plan;
    for (uint32_t k = 0; k < p->n_loops; k++) {
        uint8_t s = p->loops[k];
        if (b->rows[s][i] != g->rows[s][group])
            return b->rows[s][i] < g->rows[s][group];
    }
    return false;
}

/* Remembers the rows that stand for their groups: the first of equals, the last of those without a value. */
static void choose(struct groups *g, const struct batch *b, const uint8_t *extremes)
{
    bool picks = g->r->plan->picks_first;
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t group = g->ids[i];
        bool takes = extremes[i] == EXTREME_BETTER || (extremes[i] == EXTREME_NULL && !picks);
        if (picks && (extremes[i] == EXTREME_EQUAL || extremes[i] == EXTREME_NULL))
            takes = comes_before(g, b, i, group) == (extremes[i] == EXTREME_EQUAL);
        if (takes)
            remember(g, group, b, i);
    }
}

static bool push(struct sink *s, const struct batch *b)
{
    struct groups *g = (struct groups *)s;
    const struct query_plan *p = g->r->plan;
    if (!b->n)
        return true;
    if (!number(g, b))
        return false;
    for (uint32_t a = 0; a < p->n_aggregates && !g->r->rc; a++) {
        uint8_t extremes[BATCH];
        bool chooses = (int)a == p->extreme;
        if (chooses)
            memset(extremes, EXTREME_NOT, b->n);
        accumulate(&g->accumulators[a], g->r, b, g->ids, chooses ? extremes : NULL);
        if (chooses)
            choose(g, b, extremes);
    }
    if (p->picks_first && p->extreme < 0) {
        uint8_t equal[BATCH];
        memset(equal, EXTREME_EQUAL, b->n);
        choose(g, b, equal);
    }
    return !g->r->rc;
}

/* Room for keys of which different words are equal. */
static bool make_equals(struct groups *g)
{
    const struct query_plan *p = g->r->plan;
    for (uint32_t k = 0; k < p->n_keys; k++) {
        if (p->keys[k]->type != PLAN_REAL && !p->keys[k]->varied)
            continue;
        if (!(g->equal[k] = mem_alloc(BATCH * sizeof *g->equal[k])))
            return fail(g, SQLITE_NOMEM);
    }
    return true;
}

struct sink *group_open(struct run *r)
{
    struct groups *g = mem_zalloc(sizeof *g);
    if (!g) {
        r->rc = SQLITE_NOMEM;
        return NULL;
    }
    g->base.push = push;
    g->r = r;
    for (uint32_t a = 0; a < r->plan->n_aggregates; a++)
        g->accumulators[a].of = &r->plan->aggregates[a];
    if (!make_equals(g) || (r->plan->n_keys && !choose_direct(g)) || !grow(g)) {
        group_close(&g->base);
        return NULL;
    }
    return &g->base;
}

/* Keys and bare columns of the groups [at, at + n), then the aggregates. */
static bool append(struct groups *g, struct table *t, int64_t *const *results, uint32_t at, uint32_t n)
{
    const struct query_plan *p = g->r->plan;
    const int64_t *columns[PLAN_MAX_ITEMS + PLAN_MAX_AGGREGATES];
    struct batch b = {.n = n, .serial = ++g->r->serial};
    uint32_t k = 0;
    for (uint32_t s = 0; s < p->n_sources; s++)
        b.rows[s] = g->rows[s] + at;
    for (; k < p->groups.n_columns; k++)
        columns[k] = eval(g->r, p->groups.columns[k], &b);
    for (uint32_t a = 0; a < p->n_aggregates; a++)
        columns[k++] = results[a] + at;
    return !g->r->rc && stage_append(g->r, t, columns, n);
}

struct table *group_finish(struct sink *s)
{
    struct groups *g = (struct groups *)s;
    const struct query_plan *p = g->r->plan;
    enum plan_type types[PLAN_MAX_ITEMS + PLAN_MAX_AGGREGATES];
    int64_t *results[PLAN_MAX_AGGREGATES] = {NULL};
    uint32_t k = 0;
    if (!p->n_keys && g->n == 0) { /* one group, of no rows */
        for (uint32_t i = 0; i < p->n_sources; i++)
            g->rows[i][0] = (uint32_t)NO_ROW;
        g->n = 1;
    }
    for (; k < p->groups.n_columns; k++)
        types[k] = (enum plan_type)p->groups.columns[k]->type;
    for (uint32_t a = 0; a < p->n_aggregates; a++) {
        types[k++] = accumulator_type(&g->accumulators[a]);
        if (!g->r->rc)
            results[a] = accumulator_results(&g->accumulators[a], g->r, g->n);
    }
    struct table *t = g->r->rc ? NULL : stage_new(g->r, types, k);
    for (uint32_t at = 0; t && at < g->n && !g->r->rc; at += BATCH)
        append(g, t, results, at, g->n - at < BATCH ? g->n - at : BATCH);
    for (uint32_t a = 0; a < p->n_aggregates; a++)
        mem_free(results[a]);
    if (t && g->r->rc) {
        stage_free(t);
        t = NULL;
    }
    if (t)
        table_finalize(t);
    return t;
}

void group_close(struct sink *s)
{
    struct groups *g = (struct groups *)s;
    if (!g)
        return;
    mem_free(g->slots);
    mem_free(g->direct);
    for (uint32_t k = 0; k < PLAN_MAX_KEYS; k++)
        mem_free(g->keys[k]);
    for (uint32_t k = 0; k < PLAN_MAX_KEYS; k++)
        mem_free(g->equal[k]);
    for (uint32_t i = 0; i < PLAN_MAX_SOURCES; i++)
        mem_free(g->rows[i]);
    for (uint32_t a = 0; a < PLAN_MAX_AGGREGATES; a++)
        accumulator_free(&g->accumulators[a]);
    mem_free(g);
}
