/* The rows of a query within an expression, by their keys. They are made when the first row asks for them. */
#include "base/hash.h"
#include "sql/plan/plan_private.h"

#include <string.h>

struct lookup_rows {
    struct table *t; /* keys, then the value */
    int64_t *keys;   /* n_keys words a row; rows with a NULL among them are left out */
    int64_t *values; /* NULL: there are none */
    uint64_t *slots; /* the upper half of the hash, then row + 1 */
    uint32_t n, mask;
    bool any, any_null; /* rows; rows with a NULL */
};

void lookup_rows_free(struct lookup_rows *l)
{
    if (!l)
        return;
    stage_free(l->t);
    mem_free(l->keys);
    mem_free(l->values);
    mem_free(l->slots);
    mem_free(l);
}

static uint64_t hash_of(const int64_t *key, uint32_t n)
{
    uint64_t h = 0;
    for (uint32_t k = 0; k < n; k++) {
        h = (h ^ (uint64_t)key[k]) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 32;
        h *= 0xd6e8feb86659fd93ull;
        h ^= h >> 29;
    }
    return h;
}

/* The place of a key: of the row that has it, or a free one. */
static uint64_t *find(const struct lookup_rows *l, const int64_t *key, uint32_t n)
{
    uint64_t hash = hash_of(key, n);
    uint32_t at = (uint32_t)hash & l->mask;
    while (l->slots[at] && (l->slots[at] >> 32 != hash >> 32 ||
                            memcmp(l->keys + (uint64_t)((uint32_t)l->slots[at] - 1) * n, key, n * sizeof *key) != 0))
        at = (at + 1) & l->mask;
    return &l->slots[at];
}

enum { AHEAD = 16 }; /* keys whose slots are being fetched while one is looked at */

/* Fetches the slot of the key behind the one at hand, of words[k][i]. */
static void fetch(const struct lookup_rows *l, const int64_t *const *words, uint32_t n_keys, uint32_t i, uint32_t n)
{
    int64_t key[PLAN_MAX_KEYS];
    if (i + AHEAD >= n || !l->slots)
        return;
    for (uint32_t k = 0; k < n_keys; k++)
        key[k] = words[k][i + AHEAD];
    __builtin_prefetch(&l->slots[(uint32_t)hash_of(key, n_keys) & l->mask], 1);
}

static void *alloc(struct run *r, uint64_t n, size_t size)
{
    void *p = run_alloc(r, n * size) ? mem_zalloc((n + 1) * size) : NULL;
    if (!p && !r->rc)
        r->rc = SQLITE_NOMEM;
    return p;
}

/* Adds rows [at, at + n); of those with one key the first stays. */
static bool add_rows(struct run *r, struct lookup_rows *l, const struct plan_lookup *of, uint32_t at, uint32_t n)
{
    const struct query_plan *sub = of->sub;
    uint32_t n_keys = of->n_keys;
    bool one = of->one;
    int64_t *words[PLAN_MAX_KEYS + 1] = {NULL}, key[PLAN_MAX_KEYS] = {0};
    uint32_t rows[BATCH], n_words = n_keys + (l->values != NULL);
    bool ok = true;
    for (uint32_t i = 0; i < n; i++)
        rows[i] = at + i;
    for (uint32_t k = 0; ok && k < n_words; k++) {
        ok = (words[k] = mem_alloc(BATCH * sizeof(int64_t))) != NULL;
        if (ok)
            column_gather(&l->t->columns[k], rows, n, words[k]);
    }
    for (uint32_t i = 0; ok && i < n; i++) {
        bool null = false;
        fetch(l, (const int64_t *const *)words, n_keys, i, n);
        for (uint32_t k = 0; k < n_keys; k++) {
            key[k] = words[k][i];
            null |= key[k] == plan_null((enum plan_type)sub->items[k].expr->type);
        }
        l->any_null |= null;
        uint64_t *place = null ? NULL : find(l, key, n_keys);
        if (one && place && *place) {
            ok = false;
            r->rc = RUN_GAVE_UP;
            break;
        }
        if (null || *place)
            continue;
        memcpy(l->keys + (uint64_t)l->n * n_keys, key, n_keys * sizeof *key);
        if (l->values)
            l->values[l->n] = words[n_keys][i];
        *place = (hash_of(key, n_keys) >> 32 << 32) | ++l->n;
    }
    for (uint32_t k = 0; k < n_words; k++)
        mem_free(words[k]);
    if (!ok && !r->rc)
        r->rc = SQLITE_NOMEM;
    return ok && !run_stopped(r);
}

static struct lookup_rows *rows_of(struct run *r, const struct plan_lookup *of)
{
    uint32_t at = (uint32_t)(of - r->plan->lookups);
    struct lookup_rows *l = r->lookups[at];
    if (l || r->rc)
        return l;
    l = r->lookups[at] = mem_zalloc(sizeof *l);
    if (!l) {
        r->rc = SQLITE_NOMEM;
        return NULL;
    }
    r->rc = plan_run_to_table(of->sub, &l->t);
    if (r->rc)
        return NULL;
    uint32_t n = l->t->n_rows, slots = 64;
    while (slots < n * 2ull)
        slots *= 2;
    l->any = n != 0;
    l->mask = slots - 1;
    l->keys = alloc(r, (uint64_t)n * of->n_keys, sizeof *l->keys);
    l->values = of->kind == LOOKUP_VALUE ? alloc(r, n, sizeof *l->values) : NULL;
    l->slots = alloc(r, slots, sizeof *l->slots);
    for (uint32_t i = 0; !r->rc && i < n; i += BATCH)
        add_rows(r, l, of, i, n - i < BATCH ? n - i : BATCH);
    stage_free(l->t);
    l->t = NULL;
    return r->rc ? NULL : l;
}

/* NULL, as SQL has it: x IN () is false whatever x is; else NULL on either side leaves the answer open. */
static int64_t is_in(struct run *r, const struct plan_expr *x, const struct lookup_rows *l, const int64_t *key,
                     bool null)
{
    if (!l->any)
        return x->negated;
    if (!null && *find(l, key, x->n_args))
        return !x->negated;
    if (!null && !l->any_null)
        return x->negated;
    if (x->n_args > 1) /* it depends on the other parts */
        r->rc = r->rc ? r->rc : RUN_GAVE_UP;
    return COL_NULL;
}

void eval_lookup(struct run *r, const struct plan_expr *x, const struct batch *b, int64_t *out)
{
    const struct plan_lookup *of = x->lookup;
    const int64_t *args[PLAN_MAX_KEYS] = {NULL};
    const struct lookup_rows *l = rows_of(r, of);
    int64_t key[PLAN_MAX_KEYS] = {0};
    for (uint32_t k = 0; k < x->n_args; k++)
        args[k] = eval(r, x->args[k], b);
    for (uint32_t i = 0; l && !r->rc && i < b->n; i++) {
        bool null = false;
        fetch(l, args, x->n_args, i, b->n);
        for (uint32_t k = 0; k < x->n_args; k++) {
            key[k] = args[k][i];
            null |= key[k] == plan_null((enum plan_type)x->args[k]->type);
        }
        if (of->kind == LOOKUP_IN) {
            out[i] = is_in(r, x, l, key, null);
            continue;
        }
        uint32_t place = null ? 0 : (uint32_t)*find(l, key, x->n_args);
        if (of->kind == LOOKUP_EXISTS)
            out[i] = place != 0;
        else
            out[i] = place ? l->values[place - 1] : of->missing;
    }
}
