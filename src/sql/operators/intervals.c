/* Functions over spans:
 *
 *     __intrinsic_interval_tree_intervals_agg(id, ts, dur[, 'p', p]…): a set of spans, by their partition columns
 *     __intrinsic_interval_intersect(a, b, …, '(p, …)'): where spans of all sets overlap, in each partition
 *     __intrinsic_interval_create(starts, ends): each start with the first end behind it
 *
 * Spans are [ts, ts + dur). Two overlap when they share a moment; one of no length shares the moment it stands on. */
#include "sql/operators/rows.h"
#include "sql/operators/values.h"

#include "base/hash.h"
#include "base/saturate.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_INPUTS = 15, MAX_PARTITIONS = 4 };
#define INTERVAL_SET "INTERVAL_TREE_PARTITIONS"

struct interval {
    int64_t ts, end;
    int64_t id;
};

struct interval_list {
    struct interval *p;
    size_t n, cap;
};

/* One combination of partition values. */
struct group {
    int64_t keys[MAX_PARTITIONS];  /* words; strings by strid */
    uint8_t types[MAX_PARTITIONS]; /* SQLITE_… */
    struct interval_list list;
};

struct interval_set {
    char names[MAX_PARTITIONS][64];
    int n_names;
    struct u64map index; /* hash of keys -> index of the newest group with it + 1 */
    VEC(uint32_t)
    chain; /* [group] next with the same hash + 1 */
    VEC(struct group)
    groups;
    int64_t last_ts;
    bool any;
};

static void set_free(void *p)
{
    struct interval_set *s = p;
    if (!s)
        return;
    for (size_t i = 0; i < s->groups.n; i++)
        vec_free(&s->groups.p[i].list);
    vec_free(&s->groups);
    vec_free(&s->chain);
    u64map_free(&s->index);
    mem_free(s);
}

static uint64_t hash_keys(const int64_t *keys, const uint8_t *types, int n)
{
    uint64_t h = hash_secret();
    for (int i = 0; i < n; i++)
        h = hash_combine(h, (uint64_t)keys[i] ^ types[i]);
    return h;
}

static bool same_keys(const struct group *g, const int64_t *keys, const uint8_t *types, int n)
{
    for (int i = 0; i < n; i++)
        if (g->keys[i] != keys[i] || g->types[i] != types[i])
            return false;
    return true;
}

static struct group *find_group(const struct interval_set *s, const int64_t *keys, const uint8_t *types)
{
    const uint64_t *at = u64map_get(&s->index, hash_keys(keys, types, s->n_names));
    for (uint32_t i = at ? (uint32_t)*at : 0; i; i = s->chain.p[i - 1])
        if (same_keys(&s->groups.p[i - 1], keys, types, s->n_names))
            return &s->groups.p[i - 1];
    return NULL;
}

static struct group *add_group(struct interval_set *s, const int64_t *keys, const uint8_t *types)
{
    struct group *g = find_group(s, keys, types);
    if (g)
        return g;
    uint64_t *slot = u64map_put(&s->index, hash_keys(keys, types, s->n_names), NULL);
    if (!slot || !vec_push(&s->chain, (uint32_t)*slot) || !(g = vec_add(&s->groups)))
        return NULL;
    *slot = s->groups.n;
    memcpy(g->keys, keys, sizeof g->keys);
    memcpy(g->types, types, sizeof g->types);
    return g;
}

struct agg_state {
    struct interval_set *s;
};

/* The set that the first row asks for; NULL: the error has been told. */
static struct interval_set *new_set(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct interval_set *s = mem_zalloc(sizeof *s);
    if (!s) {
        sqlite3_result_error_nomem(ctx);
        return NULL;
    }
    s->n_names = (argc - 3) / 2;
    for (int i = 0; i < s->n_names; i++) {
        const char *name = (const char *)sqlite3_value_text(argv[3 + 2 * i]);
        if (!name) {
            function_error(ctx, "INTERVAL_TREE_INTERVALS_AGG: the name of partition column %d is NULL; use a string",
                           i + 1);
            mem_free(s);
            return NULL;
        }
        snprintf(s->names[i], sizeof s->names[i], "%s", name);
    }
    return s;
}

static void agg_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct agg_state *state = sqlite3_aggregate_context(ctx, sizeof *state);
    struct storage *st = engine_storage(function_engine(ctx));
    if (!state)
        return;
    if (argc < 3 || argc % 2 == 0 || argc > 3 + 2 * MAX_PARTITIONS) {
        function_error(ctx,
                       "INTERVAL_TREE_INTERVALS_AGG: expected id, ts, dur and at most %d pairs of partition column "
                       "and value",
                       MAX_PARTITIONS);
        return;
    }
    struct interval_set *s = state->s;
    if (!s && !(s = state->s = new_set(ctx, argc, argv)))
        return;
    for (int i = 0; i < 3; i++)
        if (sqlite3_value_type(argv[i]) != SQLITE_INTEGER) {
            function_error(ctx, "Interval intersect requires id, ts and dur to be integers");
            return;
        }
    struct interval v = {.id = sqlite3_value_int64(argv[0]), .ts = sqlite3_value_int64(argv[1])};
    int64_t dur = sqlite3_value_int64(argv[2]);
    if (dur < 0) {
        function_error(ctx, "Interval intersect only works on intervals with dur >= 0 (id %lld has %lld)",
                       (long long)v.id, (long long)dur);
        return;
    }
    if (s->any && v.ts < s->last_ts) {
        function_error(ctx, "Interval intersect requires intervals to be sorted by ts");
        return;
    }
    s->any = true;
    s->last_ts = v.ts;
    v.end = v.ts > INT64_MAX - dur ? INT64_MAX : v.ts + dur;
    int64_t keys[MAX_PARTITIONS] = {0};
    uint8_t types[MAX_PARTITIONS] = {0};
    for (int i = 0; i < s->n_names; i++) {
        sqlite3_value *k = argv[4 + 2 * i];
        types[i] = (uint8_t)sqlite3_value_type(k);
        if (types[i] == SQLITE_NULL)
            return; /* a NULL partition meets nothing */
        struct slice text = types[i] == SQLITE_TEXT ? function_text(k) : slice_of("", 0);
        if (!text.p) {
            sqlite3_result_error_nomem(ctx);
            return;
        }
        keys[i] = types[i] == SQLITE_FLOAT  ? column_f64_word(sqlite3_value_double(k))
                  : types[i] == SQLITE_TEXT ? (int64_t)strpool_intern(&st->strings, text.p, text.len)
                                            : sqlite3_value_int64(k);
    }
    struct group *g = add_group(s, keys, types);
    if (!g || !vec_push(&g->list, v))
        sqlite3_result_error_nomem(ctx);
}

/* The keys of a row, from words; false: one is NULL. */
static bool keys_of(struct group *g, const struct interval_set *s, const struct table *t, int64_t *const *words,
                    uint32_t i)
{
    static const uint8_t types[] = {
        [COL_I64] = SQLITE_INTEGER, [COL_U32] = SQLITE_INTEGER, [COL_STR] = SQLITE_TEXT, [COL_F64] = SQLITE_FLOAT};
    for (int k = 0; k < s->n_names; k++) {
        uint8_t type = t->columns[3 + k].type;
        g->keys[k] = words[3 + k][i];
        g->types[k] = types[type];
        if (g->keys[k] == column_null((enum col_type)type))
            return false;
    }
    return true;
}

/* Adds rows that lie in `words` by column; false: what is wrong is told row by row. */
static int add_rows(struct interval_set *s, const struct table *t, int64_t *const *words, uint32_t n)
{
    struct group key = {0}, *g = NULL;
    for (uint32_t i = 0; i < n; i++) {
        int64_t id = words[0][i], ts = words[1][i], dur = words[2][i];
        if (id == COL_NULL || ts == COL_NULL || dur < 0 || (s->any && ts < s->last_ts))
            return SQLITE_ERROR;
        s->any = true;
        s->last_ts = ts;
        if (!keys_of(&key, s, t, words, i))
            continue;
        if (!g || !same_keys(g, key.keys, key.types, s->n_names))
            g = add_group(s, key.keys, key.types);
        if (!g || !vec_push(&g->list, (struct interval){ts, ts > INT64_MAX - dur ? INT64_MAX : ts + dur, id}))
            return SQLITE_NOMEM;
    }
    return SQLITE_OK;
}

/* id, ts, dur, then pairs of a name and a column. */
static bool suits(const struct engine_columns *c, const struct table *t)
{
    if (c->n_args < 3 || c->n_args % 2 == 0 || c->n_args > 3 + 2 * MAX_PARTITIONS)
        return false;
    for (uint32_t i = 0; i < c->n_args; i++) {
        bool constant = i >= 3 && i % 2 == 1;
        if ((c->constants[i] != NULL) != constant)
            return false;
    }
    for (uint32_t i = 0; i < 3; i++)
        if (t->columns[i].type == COL_STR || t->columns[i].type == COL_F64)
            return false;
    return true;
}

static void *set_of_columns(struct engine *e, const struct engine_columns *c, int *rc)
{
    enum { BLOCK = 1024, MAX_COLUMNS = 3 + MAX_PARTITIONS };
    const struct table *t = c->table;
    int64_t *words[MAX_COLUMNS], *block;
    uint32_t rows[BLOCK];
    *rc = suits(c, t) ? SQLITE_OK : SQLITE_ERROR;
    if (*rc || !t->n_rows)
        return NULL;
    struct interval_set *s = mem_zalloc(sizeof *s);
    block = mem_alloc(MAX_COLUMNS * BLOCK * sizeof *block);
    if (!s || !block)
        *rc = SQLITE_NOMEM;
    for (uint32_t i = 3; s && i < c->n_args; i += 2)
        snprintf(s->names[s->n_names++], sizeof s->names[0], "%s", c->constants[i]);
    for (int k = 0; k < MAX_COLUMNS; k++)
        words[k] = block + k * BLOCK;
    for (uint32_t at = 0; !*rc && at < t->n_rows; at += BLOCK) {
        uint32_t n = t->n_rows - at < BLOCK ? t->n_rows - at : BLOCK;
        for (uint32_t i = 0; i < n; i++)
            rows[i] = at + i;
        for (int k = 0; k < 3 + s->n_names; k++)
            column_gather(&t->columns[k], rows, n, words[k]);
        *rc = stop_asked(engine_stop(e)) ? SQLITE_INTERRUPT : add_rows(s, t, words, n);
    }
    mem_free(block);
    if (!*rc)
        return s;
    set_free(s);
    return NULL;
}

static void agg_final(sqlite3_context *ctx)
{
    struct agg_state *state = sqlite3_aggregate_context(ctx, 0);
    if (state && state->s)
        sqlite3_result_pointer(ctx, state->s, INTERVAL_SET, set_free);
    if (state)
        state->s = NULL;
}

/* ---- intersection ---- */

/* A result so far: where the first k inputs overlap. `ids` are kept by row in a block of n_inputs numbers. */
struct overlap {
    int64_t ts, end;
    size_t ids; /* first of its numbers */
};

struct overlaps {
    struct overlap *p;
    size_t n, cap;
};

struct numbers {
    int64_t *p;
    size_t n, cap;
};

struct intersection {
    int n_inputs;
    stop_flag *stop;
    struct overlaps a, next;
    struct numbers ids, next_ids;
    VEC(uint32_t)
    active_a;
    VEC(uint32_t)
    active_b;
    uint64_t bytes, most; /* of all that was found, and what that may be: where all spans meet it is their product */
};

static bool add_overlap(struct intersection *x, const struct overlap *a, const struct interval *b, int k)
{
    int64_t ts = a->ts > b->ts ? a->ts : b->ts, end = a->end < b->end ? a->end : b->end;
    size_t ids = x->next_ids.n;
    x->bytes += sizeof *a + ((size_t)k + 1) * sizeof(int64_t);
    if (x->bytes > x->most || !vec_reserve(&x->next_ids, ids + (size_t)k + 1) ||
        !vec_push(&x->next, (struct overlap){ts, end, ids}))
        return false;
    memcpy(x->next_ids.p + ids, x->ids.p + a->ids, (size_t)k * sizeof(int64_t));
    x->next_ids.p[ids + (size_t)k] = b->id;
    x->next_ids.n += (size_t)k + 1;
    return true;
}

/* Do spans share a moment, given that `late` begins no earlier than `early`? */
static bool meets(int64_t early_ts, int64_t early_end, int64_t late_ts)
{
    return late_ts < early_end || (early_end == early_ts && late_ts == early_ts);
}

/* Intersects x->a (sorted by ts, of k inputs) with the list (sorted by ts): a sweep that keeps the spans of each side
 * that have not ended. Results come sorted by ts. */
static bool sweep(struct intersection *x, const struct interval_list *b, int k)
{
    size_t i = 0, j = 0;
    x->active_a.n = x->active_b.n = x->next.n = x->next_ids.n = 0;
    while (i < x->a.n || j < b->n) {
        if (stop_asked(x->stop))
            return false;
        bool from_a = j >= b->n || (i < x->a.n && x->a.p[i].ts <= b->p[j].ts);
        size_t keep = 0;
        if (from_a) {
            const struct overlap *o = &x->a.p[i];
            for (size_t m = 0; m < x->active_b.n; m++) {
                const struct interval *v = &b->p[x->active_b.p[m]];
                if (!meets(v->ts, v->end, o->ts))
                    continue;
                x->active_b.p[keep++] = x->active_b.p[m];
                if (!add_overlap(x, o, v, k))
                    return false;
            }
            x->active_b.n = keep;
            if (!vec_push(&x->active_a, (uint32_t)i++))
                return false;
        } else {
            const struct interval *v = &b->p[j];
            for (size_t m = 0; m < x->active_a.n; m++) {
                const struct overlap *o = &x->a.p[x->active_a.p[m]];
                if (!meets(o->ts, o->end, v->ts))
                    continue;
                x->active_a.p[keep++] = x->active_a.p[m];
                if (!add_overlap(x, o, v, k))
                    return false;
            }
            x->active_a.n = keep;
            if (!vec_push(&x->active_b, (uint32_t)j++))
                return false;
        }
    }
    struct overlaps a = x->a;
    struct numbers ids = x->ids;
    x->a = x->next;
    x->ids = x->next_ids;
    x->next = a;
    x->next_ids = ids;
    return true;
}

static int emit_group(struct intersection *x, struct table_builder *b, const struct storage *st, const struct group *g,
                      int n_keys, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < x->a.n && rc == 0; i++) {
        const struct overlap *o = &x->a.p[i];
        uint32_t column = 2;
        rc = table_builder_int(b, 0, o->ts, err);
        if (rc == 0)
            rc = table_builder_int(b, 1, saturating_sub(o->end, o->ts), err);
        for (int k = 0; k < x->n_inputs && rc == 0; k++)
            rc = table_builder_int(b, column++, x->ids.p[o->ids + (size_t)k], err);
        for (int k = 0; k < n_keys && rc == 0; k++) {
            if (g->types[k] == SQLITE_TEXT) {
                struct slice text = strpool_view(&st->strings, (strid)g->keys[k]);
                rc = table_builder_text(b, column, (const char *)text.p, text.len, err);
            } else if (g->types[k] == SQLITE_FLOAT) {
                rc = table_builder_double(b, column, column_f64(g->keys[k]), err);
            } else {
                rc = table_builder_int(b, column, g->keys[k], err);
            }
            column++;
        }
        if (rc == 0)
            rc = table_builder_commit(b, err);
    }
    return rc;
}

static int intersect_group(struct intersection *x, struct interval_set *const *sets, const struct group *g,
                           struct error *err)
{
    x->a.n = x->ids.n = 0;
    for (size_t i = 0; i < g->list.n; i++)
        if (!vec_push(&x->ids, g->list.p[i].id) ||
            !vec_push(&x->a, (struct overlap){g->list.p[i].ts, g->list.p[i].end, i}))
            return -MRD_ENOMEM;
    for (int k = 1; k < x->n_inputs && x->a.n; k++) {
        const struct group *other = find_group(sets[k], g->keys, g->types);
        if (!other)
            x->a.n = 0;
        else if (!sweep(x, &other->list, k))
            return x->bytes > x->most
                       ? error_set(err, -MRD_ELIMIT,
                                   "INTERVAL_INTERSECT: too many spans meet: they are more than %llu MiB; partition "
                                   "them, or intersect fewer",
                                   (unsigned long long)(x->most >> 20))
                       : -MRD_ENOMEM;
    }
    return 0;
}

static void intersect(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct interval_set *sets[MAX_INPUTS] = {0};
    const char *names[2 + MAX_INPUTS + MAX_PARTITIONS] = {"ts", "dur"};
    char id_names[MAX_INPUTS][16];
    uint8_t types[2 + MAX_INPUTS + MAX_PARTITIONS];
    struct intersection x = {.n_inputs = argc - 1,
                             .stop = engine_stop(function_engine(ctx)),
                             .most = engine_rows_max_bytes(function_engine(ctx))};
    struct table_builder b;
    struct error err = {0};
    const struct interval_set *any = NULL;
    bool empty = false;
    if (argc < 2 || argc - 1 > MAX_INPUTS) {
        function_error(ctx, "INTERVAL_INTERSECT: expected 1 to %d tables and a list of columns", MAX_INPUTS);
        return;
    }
    for (int i = 0; i < x.n_inputs; i++) {
        sets[i] = sqlite3_value_pointer(argv[i], INTERVAL_SET);
        empty |= !sets[i]; /* an aggregate over no rows */
        if (sets[i])
            any = sets[i];
        snprintf(id_names[i], sizeof id_names[i], "id_%d", i);
        names[2 + i] = id_names[i];
    }
    int n_keys = any ? any->n_names : 0;
    memset(types, RUNTIME_LONG, sizeof types);
    for (int i = 0; i < n_keys; i++) {
        names[2 + x.n_inputs + i] = any->names[i];
        types[2 + x.n_inputs + i] = RUNTIME_ANY;
    }
    for (int i = 0; i < x.n_inputs; i++)
        if (sets[i] && sets[i]->n_names != n_keys) {
            function_error(ctx, "INTERVAL_INTERSECT: the tables have different partition columns");
            return;
        }
    if (!any)
        return; /* all inputs are empty: a NULL table has no rows */
    if (!value_builder(ctx, &b, (uint32_t)(2 + x.n_inputs + n_keys), names, types))
        return;
    int rc = 0;
    for (size_t i = 0; !empty && i < sets[0]->groups.n && rc == 0; i++) {
        rc = intersect_group(&x, sets, &sets[0]->groups.p[i], &err);
        if (rc == 0)
            rc = emit_group(&x, &b, engine_storage(function_engine(ctx)), &sets[0]->groups.p[i], n_keys, &err);
    }
    value_builder_result(ctx, &b, rc, &err);
    vec_free(&x.a);
    vec_free(&x.next);
    vec_free(&x.ids);
    vec_free(&x.next_ids);
    vec_free(&x.active_a);
    vec_free(&x.active_b);
}

static void create(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    static const char *const names[] = {"ts", "dur"};
    const struct array_value *starts = value_long_array(argv[0]), *ends = value_long_array(argv[1]);
    struct table_builder b;
    struct error err = {0};
    int rc = 0;
    size_t k = 0;
    (void)argc;
    if (!value_builder(ctx, &b, 2, names, NULL))
        return;
    for (size_t i = 0; starts && ends && i < starts->n && rc == 0; i++) {
        while (k < ends->n && ends->words[k] <= starts->words[i])
            k++;
        if (k == ends->n)
            break;
        rc = table_builder_int(&b, 0, starts->words[i], &err);
        if (rc == 0)
            rc = table_builder_int(&b, 1, saturating_sub(ends->words[k], starts->words[i]), &err);
        if (rc == 0)
            rc = table_builder_commit(&b, &err);
    }
    value_builder_result(ctx, &b, rc, &err);
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_interval_tree_intervals_agg",
     .n_args = -1,
     .takes = "vvv*vv",
     .step = agg_step,
     .final = agg_final,
     .of_columns = set_of_columns,
     .pointer = INTERVAL_SET,
     .destroy = set_free},
    {.name = "__intrinsic_interval_intersect", .n_args = -1, .takes = "pp*v", .scalar = intersect},
    {.name = "__intrinsic_interval_create", .n_args = 2, .takes = "pp", .scalar = create},
};

FUNCTION_ROWS(intervals, rows);
