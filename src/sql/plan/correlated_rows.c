/* Runs what correlated.c reads: the rows of a batch that have not asked before become a table, for which the query runs
 * once. What it gives is kept by what they ask with, where that comes again. */
#include "sql/plan/lookup_private.h"
#include "sql/plan/run_private.h"

#include <string.h>

struct correlated_rows {
    struct run step;         /* what it finds rows by stays from batch to batch */
    struct lookup_keys keys; /* what has been asked with */
    int64_t *values;         /* by place of the key */
    uint32_t cap;
    uint64_t looked, asked; /* rows; of those, which the query has been run for */
    bool forgets;           /* each row asks anew */
};

void correlated_rows_free(struct correlated_rows *c)
{
    if (!c)
        return;
    if (c->step.plan)
        run_close(&c->step);
    lookup_keys_free(&c->keys);
    mem_free(c->values);
    mem_free(c);
}

static struct correlated_rows *rows_of(struct run *r, const struct plan_lookup *of)
{
    struct correlated_rows **place = &r->correlated[of - r->plan->lookups];
    if (!*place && !r->rc) {
        *place = mem_zalloc(sizeof **place);
        if (!*place) {
            r->rc = SQLITE_NOMEM;
            return NULL;
        }
        (*place)->step.e = r->e;
        (*place)->keys.n_keys = of->n_keys;
    }
    return *place;
}

/* Room for the values of all keys, of which those before `from` are there. */
static bool make_room(struct run *r, struct correlated_rows *c, uint32_t from)
{
    if (c->keys.n <= c->cap)
        return true;
    int64_t *values = lookup_alloc(r, c->keys.cap, sizeof *values);
    if (!values)
        return false;
    if (from)
        memcpy(values, c->values, from * sizeof *values);
    mem_free(c->values);
    c->values = values;
    c->cap = c->keys.cap;
    return true;
}

/* The table that the query reads: n rows of these columns. */
static struct table *asking_rows(struct run *r, const struct plan_expr *x, const int64_t *const *columns, uint32_t n)
{
    enum plan_type types[PLAN_MAX_KEYS];
    for (uint32_t k = 0; k < x->n_args; k++)
        types[k] = (enum plan_type)x->args[k]->type;
    struct table *t = stage_new(r, types, x->n_args);
    if (t && stage_append(r, t, columns, n))
        table_finalize(t);
    return t;
}

/* Is row `b` of the answer the equal of row `a`, in what orders them, with another value? Which of both SQLite would
 * find first is not known. */
static bool is_tie(const struct plan_lookup *of, const struct table *t, uint32_t a, uint32_t b)
{
    if (table_get(t, 1, a) == table_get(t, 1, b))
        return false;
    for (uint32_t k = 0; k < of->n_ties; k++) {
        int64_t x = table_get(t, 2 + k, a), y = table_get(t, 2 + k, b);
        bool zeros = t->columns[2 + k].type == COL_F64 && column_f64(x) == 0 && column_f64(y) == 0;
        if (x != y && !zeros)
            return false;
    }
    return true;
}

/* The first row of each that asks, in the order of the answer; n of them. */
static void take_answer(struct run *r, const struct plan_lookup *of, const struct plan_answer *a, uint32_t n,
                        int64_t *values)
{
    uint32_t *first = mem_zalloc(((size_t)n + 1) * sizeof *first);
    if (!first)
        r->rc = SQLITE_NOMEM;
    for (uint32_t i = 0; first && i < a->n && !r->rc; i++) {
        uint32_t row = a->rows ? a->rows[a->first + i] : a->first + i;
        uint32_t asks = (uint32_t)table_get(a->table, 0, row);
        if (!first[asks]) {
            first[asks] = row + 1;
            values[asks] = of->kind == LOOKUP_EXISTS ? 1 : table_get(a->table, 1, row);
        } else if (of->kind != LOOKUP_EXISTS && is_tie(of, a->table, first[asks] - 1, row)) {
            r->rc = RUN_GAVE_UP;
        }
    }
    mem_free(first);
}

enum { PAIRS_FREE = 1 << 20, PAIRS_PER_ROW = 64 };

/* SQLite stops at the first row where that is all it needs; here all are found. */
static bool may_stop(const struct plan_lookup *of)
{
    const struct query_plan *sub = of->sub;
    for (uint32_t i = 0; i < sub->n_aggregates; i++)
        if (sub->aggregates[i].kind != AGG_MIN && sub->aggregates[i].kind != AGG_MAX)
            return false;
    return true;
}

/* One round, which may hold what the plan around has left, and counts as that one's. */
static void run_query(struct run *r, const struct plan_lookup *of, struct correlated_rows *c, struct table *t,
                      struct plan_answer *out)
{
    const uint64_t before = c->step.bytes;
    if (!run_alloc(r, 0))
        return;
    c->step.most = before + (r->most - r->bytes);
    c->step.most_found = may_stop(of) ? PAIRS_FREE + PAIRS_PER_ROW * c->asked : 0;
    of->sub->rows->rows = t;
    r->rc = run_round(&c->step, of->sub, t, out);
    of->sub->rows->rows = NULL;
    r->visited += c->step.visited;
    c->step.visited = 0;
    run_alloc(r, c->step.bytes - before);
}

/* Runs the query for n rows of these columns, which are the arguments; their values. */
static void ask(struct run *r, const struct plan_expr *x, struct correlated_rows *c, const int64_t *const *columns,
                uint32_t n, int64_t *values)
{
    const struct plan_lookup *of = x->lookup;
    struct plan_answer a = {0};
    struct table *t = asking_rows(r, x, columns, n);
    for (uint32_t i = 0; i < n; i++)
        values[i] = of->missing;
    if (t && !r->rc) {
        c->asked += n;
        run_query(r, of, c, t, &a);
    }
    if (t && !r->rc)
        take_answer(r, of, &a, n, values);
    plan_answer_free(&a);
    stage_free(t);
}

/* The same for the keys from `from` on. */
static void ask_with_keys(struct run *r, const struct plan_expr *x, struct correlated_rows *c, uint32_t from)
{
    const int64_t *columns[PLAN_MAX_KEYS];
    uint32_t n = c->keys.n - from, n_keys = x->n_args;
    int64_t *words = make_room(r, c, from) ? mem_alloc(((size_t)n * n_keys + 1) * sizeof *words) : NULL;
    for (uint32_t k = 0; words && k < n_keys; k++) {
        int64_t *column = words + (size_t)k * n;
        for (uint32_t i = 0; i < n; i++)
            column[i] = c->keys.keys[(size_t)(from + i) * n_keys + k];
        columns[k] = column;
    }
    if (words)
        ask(r, x, c, columns, n, c->values + from);
    else
        r->rc = r->rc ? r->rc : SQLITE_NOMEM;
    mem_free(words);
}

enum { ENOUGH_ROWS = 4 * BATCH };

/* Has hardly any row asked for what another one has? Then nothing is gained by keeping that. */
static bool is_of_no_use(const struct correlated_rows *c)
{
    return c->looked >= ENOUGH_ROWS && c->keys.n > c->looked - c->looked / 4;
}

void eval_correlated(struct run *r, const struct plan_expr *x, const struct batch *b, int64_t *out)
{
    const int64_t *args[PLAN_MAX_KEYS] = {NULL};
    struct correlated_rows *c = rows_of(r, x->lookup);
    uint32_t places[BATCH], from = c ? c->keys.n : 0;
    for (uint32_t k = 0; k < x->n_args; k++)
        args[k] = eval(r, x->args[k], b);
    if (!c || r->rc)
        return;
    if (c->forgets) {
        ask(r, x, c, args, b->n, out);
        return;
    }
    for (uint32_t i = 0; !r->rc && i < b->n; i++) {
        int64_t key[PLAN_MAX_KEYS];
        for (uint32_t k = 0; k < x->n_args; k++)
            key[k] = args[k][i];
        places[i] = lookup_keys_add(r, &c->keys, key);
    }
    if (!r->rc && c->keys.n > from)
        ask_with_keys(r, x, c, from);
    for (uint32_t i = 0; !r->rc && i < b->n; i++)
        out[i] = c->values[places[i] - 1];
    c->looked += b->n;
    c->forgets = is_of_no_use(c);
    if (c->forgets)
        lookup_keys_free(&c->keys);
}
