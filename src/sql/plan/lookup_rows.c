/* The rows of a query within an expression, by their keys. They are made when the first row asks for them. */
#include "sql/plan/lookup_private.h"

#include <string.h>

struct lookup_rows {
    struct table *t; /* keys, then the value */
    struct lookup_keys
        keys;        /* rows with a NULL among them are left out; of those with one key the first stays, or the last */
    int64_t *values; /* by place of the key; NULL: there are none */
    int64_t *orders; /* by place, n_ties each: what ordered the row of that value; NULL: no matter */
    bool any, any_null; /* rows; rows with a NULL */
};

void lookup_rows_free(struct lookup_rows *l)
{
    if (!l)
        return;
    stage_free(l->t);
    lookup_keys_free(&l->keys);
    mem_free(l->values);
    mem_free(l->orders);
    mem_free(l);
}

/* The first row of a key stays, or another one gives way to it. False: that one is its equal, but has another value:
 * which of them SQLite would find first is not known. */
static bool settle_tie(struct lookup_rows *l, const struct plan_lookup *of, int64_t *const *words, uint32_t i,
                       uint32_t place, bool first)
{
    uint32_t before = of->n_keys + 1;
    int64_t *orders = l->orders + (size_t)(place - 1) * of->n_ties;
    bool equal = !first && words[of->n_keys][i] != l->values[place - 1];
    for (uint32_t k = 0; k < of->n_ties; k++) {
        int64_t word = words[before + k][i];
        if (of->sub->items[before + k].expr->type == PLAN_REAL && word == column_f64_word(-0.0))
            word = 0;
        if (first)
            orders[k] = word;
        equal &= orders[k] == word;
    }
    return !equal;
}

/* Adds rows [at, at + n) of the table, whose words lie in `words`. */
static bool add_rows(struct run *r, struct lookup_rows *l, const struct plan_lookup *of, int64_t *const *words,
                     uint32_t n)
{
    uint32_t n_keys = of->n_keys;
    int64_t key[PLAN_MAX_KEYS] = {0};
    for (uint32_t i = 0; i < n; i++) {
        bool null = false;
        lookup_keys_fetch(&l->keys, (const int64_t *const *)words, i, n);
        for (uint32_t k = 0; k < n_keys; k++) {
            key[k] = words[k][i];
            null |= key[k] == plan_null((enum plan_type)of->sub->items[k].expr->type);
        }
        l->any_null |= null;
        if (null)
            continue;
        uint32_t before = l->keys.n, place = lookup_keys_add(r, &l->keys, key);
        if (!place)
            return false;
        if (l->values && (place > before || of->last))
            l->values[place - 1] = words[n_keys][i];
        if ((of->one && place <= before) || (l->orders && !settle_tie(l, of, words, i, place, place > before))) {
            r->rc = RUN_GAVE_UP;
            return false;
        }
    }
    return !run_stopped(r);
}

static void add_all(struct run *r, struct lookup_rows *l, const struct plan_lookup *of)
{
    uint32_t rows[BATCH], n_words = of->n_keys + (l->values != NULL) + of->n_ties, n_rows = l->t->n_rows;
    int64_t *words[PLAN_MAX_KEYS + 1 + PLAN_MAX_ORDER] = {NULL};
    int64_t *all = mem_alloc((n_words + 1) * (size_t)BATCH * sizeof *all);
    bool more = all != NULL;
    if (!all)
        r->rc = SQLITE_NOMEM;
    for (uint32_t k = 0; all && k < n_words; k++)
        words[k] = all + (size_t)k * BATCH;
    for (uint32_t at = 0; more && at < n_rows; at += BATCH) {
        uint32_t n = n_rows - at < BATCH ? n_rows - at : BATCH;
        for (uint32_t i = 0; i < n; i++)
            rows[i] = at + i;
        for (uint32_t k = 0; k < n_words; k++)
            column_gather(&l->t->columns[k], rows, n, words[k]);
        more = add_rows(r, l, of, words, n);
    }
    mem_free(all);
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
    uint32_t n = l->t->n_rows;
    l->any = n != 0;
    l->keys.n_keys = of->n_keys;
    if (of->n_keys && !lookup_keys_number(r, &l->keys, &l->t->columns[0], n))
        return NULL;
    if (of->kind == LOOKUP_VALUE && !(l->values = lookup_alloc(r, n, sizeof *l->values)))
        return NULL;
    if (of->n_ties && !(l->orders = lookup_alloc(r, (uint64_t)n * of->n_ties, sizeof *l->orders)))
        return NULL;
    add_all(r, l, of);
    stage_free(l->t);
    l->t = NULL;
    return r->rc ? NULL : l;
}

int64_t *lookup_list(struct run *r, const struct plan_expr *x, uint32_t most, uint32_t *n)
{
    const struct lookup_rows *l = x->lookup->n_keys == 1 ? rows_of(r, x->lookup) : NULL;
    if (!l || r->rc || l->keys.n > most)
        return NULL;
    int64_t *out = mem_alloc(((size_t)l->keys.n + 1) * sizeof *out);
    if (!out)
        r->rc = SQLITE_NOMEM;
    else if (l->keys.n)
        memcpy(out, l->keys.keys, l->keys.n * sizeof *out);
    *n = l->keys.n;
    return out;
}

/* NULL, as SQL has it: x IN () is false whatever x is; else NULL on either side leaves the answer open. */
static int64_t is_in(struct run *r, const struct plan_expr *x, const struct lookup_rows *l, const int64_t *key,
                     bool null)
{
    if (!l->any)
        return x->negated;
    if (!null && lookup_keys_find(&l->keys, key))
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
    if (of->n_ranges || of->by_rounds) {
        of->by_rounds ? eval_correlated(r, x, b, out) : eval_lookup_ranges(r, x, b, out);
        return;
    }
    const int64_t *args[PLAN_MAX_KEYS] = {NULL};
    const struct lookup_rows *l = rows_of(r, of);
    int64_t key[PLAN_MAX_KEYS] = {0};
    for (uint32_t k = 0; k < x->n_args; k++)
        args[k] = eval(r, x->args[k], b);
    for (uint32_t i = 0; l && !r->rc && i < b->n; i++) {
        bool null = false;
        lookup_keys_fetch(&l->keys, args, i, b->n);
        for (uint32_t k = 0; k < x->n_args; k++) {
            key[k] = args[k][i];
            null |= key[k] == plan_null((enum plan_type)x->args[k]->type);
        }
        if (of->kind == LOOKUP_IN) {
            out[i] = is_in(r, x, l, key, null);
            continue;
        }
        uint32_t place = null ? 0 : lookup_keys_find(&l->keys, key);
        if (of->kind == LOOKUP_EXISTS)
            out[i] = place != 0;
        else
            out[i] = place ? l->values[place - 1] : of->missing;
    }
}
