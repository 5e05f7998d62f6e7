/* Runs a plan: sources, joins, groups, windows, then the list behind SELECT, its order and limit. */
#include "base/hash.h"
#include "sql/plan/run_private.h"
#include "sql/plan/varied.h"

#include <string.h>

/* ---- memory and time ---- */

bool run_alloc(struct run *r, uint64_t bytes)
{
    r->most = r->most ? r->most : engine_rows_max_bytes(r->e);
    r->bytes += bytes;
    if (r->bytes > r->most && !r->rc)
        r->rc = RUN_GAVE_UP;
    return !r->rc;
}

void run_note_texts(struct run *r, uint32_t before, size_t n)
{
    enum { A_TEXT = 80 /* bytes that one more takes */, MOST = 256 << 20 };
    const uint32_t added = r->e->storage->strings.n - before;
    if (!added)
        return;
    r->e->plan_text_bytes += n + (uint64_t)added * A_TEXT;
    if (r->e->plan_text_bytes > MOST && !r->rc)
        r->rc = RUN_GAVE_UP;
}

bool run_stopped(struct run *r)
{
    if (!r->rc && engine_is_interrupted(r->e))
        r->rc = SQLITE_INTERRUPT;
    return r->rc != 0;
}

/* ---- stages ---- */

struct stage {
    struct table table;
    struct table_def def;
    struct column_def columns[];
};

struct table *stage_new(struct run *r, const enum plan_type *types, uint32_t n)
{
    struct stage *s = mem_zalloc(sizeof *s + (n + 1) * sizeof *s->columns);
    for (uint32_t i = 0; s && i < n; i++)
        s->columns[i] = (struct column_def){"", (uint8_t)plan_col_type(types[i]), COL_NULLABLE, ""};
    if (s)
        s->def = (struct table_def){"", s->columns, n, ""};
    if (!s || table_init(&s->table, &s->def) != 0) {
        mem_free(s);
        r->rc = r->rc ? r->rc : SQLITE_NOMEM;
        return NULL;
    }
    return &s->table;
}

void stage_free(struct table *t)
{
    if (!t)
        return;
    table_free(t);
    mem_free(t);
}

bool stage_append(struct run *r, struct table *t, const int64_t *const *columns, uint32_t n)
{
    uint32_t n_columns = t->def->n_columns;
    if (!run_alloc(r, (uint64_t)n * n_columns * 4))
        return false;
    for (uint32_t done = 0; done < n;) {
        if (!table_room(t)) {
            r->rc = SQLITE_NOMEM;
            return false;
        }
        uint32_t at = t->n_rows & COL_CHUNK_MASK, room = t->tail_cap - at, take = n - done < room ? n - done : room;
        for (uint32_t k = 0; k < n_columns; k++)
            memcpy(t->columns[k].tail + at, columns[k] + done, take * sizeof(int64_t));
        t->n_rows += take;
        done += take;
    }
    return true;
}

/* ---- the rows of the answer ---- */

struct emitter {
    struct sink base;
    struct run *r;
    struct table *t;
    uint64_t wanted;           /* rows, when their order is that in which they come */
    uint32_t *seen, seen_mask; /* DISTINCT: row + 1 by hash, */
    uint64_t secret;           /* which nobody knows beforehand */
};

/* The word of what is equal to it, of varied values. */
static int64_t comparable(const struct emitter *e, uint32_t k, int64_t word)
{
    int64_t out = word;
    int rc = 0;
    if (e->r->plan->items[k].expr->varied && !varied_comparable(&e->r->e->storage->strings, word, &out, &rc))
        e->r->rc = e->r->rc ? e->r->rc : rc;
    return out;
}

static uint64_t hash_word(const struct emitter *e, uint32_t k, uint64_t h, int64_t word)
{
    word = comparable(e, k, word);
    bool zero = e->t->columns[k].type == COL_F64 && word == column_f64_word(-0.0);
    return hash_combine(h, zero ? 0 : (uint64_t)word);
}

static uint64_t hash_row(const struct emitter *e, uint32_t row)
{
    uint64_t h = e->secret;
    for (uint32_t k = 0; k < e->r->plan->n_items; k++)
        h = hash_word(e, k, h, table_get(e->t, k, row));
    return h;
}

/* Are the items of row i of a batch those of a row of the answer? */
static bool is_row(const struct emitter *e, uint32_t row, const int64_t *const *columns, uint32_t i)
{
    for (uint32_t k = 0; k < e->r->plan->n_items; k++) {
        int64_t x = table_get(e->t, k, row), y = columns[k][i];
        bool zeros = e->t->columns[k].type == COL_F64 && column_f64(x) == 0 && column_f64(y) == 0;
        if (x != y && !zeros && comparable(e, k, x) != comparable(e, k, y))
            return false;
    }
    return true;
}

static bool rehash(struct emitter *e)
{
    uint32_t mask = e->seen ? e->seen_mask * 2 + 1 : 4095;
    mem_free(e->seen);
    e->seen = run_alloc(e->r, ((uint64_t)mask + 1) * 4) ? mem_zalloc(((size_t)mask + 1) * sizeof *e->seen) : NULL;
    e->seen_mask = mask;
    if (!e->seen) {
        e->r->rc = e->r->rc ? e->r->rc : SQLITE_NOMEM;
        return false;
    }
    for (uint32_t i = 0; i < e->t->n_rows; i++) {
        uint32_t at = (uint32_t)hash_row(e, i) & mask;
        while (e->seen[at])
            at = (at + 1) & mask;
        e->seen[at] = i + 1;
    }
    return true;
}

/* Appends the rows whose items have not been seen. */
static bool append_distinct(struct emitter *e, const int64_t *const *columns, uint32_t n)
{
    const int64_t *one[PLAN_MAX_ITEMS + PLAN_MAX_ORDER];
    for (uint32_t i = 0; i < n; i++) {
        uint64_t h = e->secret;
        if ((!e->seen || e->t->n_rows * 2ull > e->seen_mask) && !rehash(e))
            return false;
        for (uint32_t k = 0; k < e->r->plan->n_items; k++)
            h = hash_word(e, k, h, columns[k][i]);
        uint32_t at = (uint32_t)h & e->seen_mask;
        while (e->seen[at] && !is_row(e, e->seen[at] - 1, columns, i))
            at = (at + 1) & e->seen_mask;
        if (e->seen[at])
            continue;
        for (uint32_t k = 0; k < e->t->def->n_columns; k++)
            one[k] = columns[k] + i;
        if (!stage_append(e->r, e->t, one, 1))
            return false;
        e->seen[at] = e->t->n_rows;
    }
    return true;
}

static bool emit(struct sink *s, const struct batch *b)
{
    struct emitter *e = (struct emitter *)s;
    const struct query_plan *p = e->r->plan;
    const int64_t *columns[PLAN_MAX_ITEMS + PLAN_MAX_ORDER];
    uint32_t k = 0;
    for (uint32_t i = 0; i < p->n_items; i++)
        columns[k++] = eval(e->r, p->items[i].expr, b);
    for (uint32_t i = 0; i < p->n_orders; i++)
        columns[k++] = eval(e->r, p->orders[i], b);
    if (e->r->rc)
        return false;
    bool ok = p->distinct ? append_distinct(e, columns, b->n) : stage_append(e->r, e->t, columns, b->n);
    return ok && e->t->n_rows < e->wanted;
}

static struct table *answer_table(struct run *r)
{
    const struct query_plan *p = r->plan;
    enum plan_type types[PLAN_MAX_ITEMS + PLAN_MAX_ORDER];
    uint32_t k = 0;
    for (uint32_t i = 0; i < p->n_items; i++)
        types[k++] = (enum plan_type)p->items[i].expr->type;
    for (uint32_t i = 0; i < p->n_orders; i++)
        types[k++] = (enum plan_type)p->orders[i]->type;
    return stage_new(r, types, k);
}

/* ---- the order of SQLite's loops ---- */

struct collector {
    struct sink base;
    struct run *r;
    struct table *t; /* row numbers, a column for each source; the lookup that finds the row first; index_terms */
};

/* Of each row, which of the lookups of an OR finds it first. */
static void find_arms(struct run *r, const struct batch *b, uint8_t *arms)
{
    uint32_t keep[BATCH];
    memset(arms, 0, b->n);
    for (uint32_t k = r->plan->n_arms; k-- > 0;)
        for (uint32_t i = 0, n = eval_filter(r, &r->plan->arms[k], 1, b, keep); i < n; i++)
            arms[keep[i]] = (uint8_t)k;
}

static bool collect(struct sink *s, const struct batch *b)
{
    struct collector *c = (struct collector *)s;
    const struct query_plan *p = c->r->plan;
    int64_t words[PLAN_MAX_SOURCES + 1][BATCH / 16];
    const int64_t *columns[PLAN_MAX_SOURCES + 1 + PLAN_MAX_ORDER], *terms[PLAN_MAX_ORDER];
    uint32_t n_sources = p->n_sources;
    uint8_t arms[BATCH];
    find_arms(c->r, b, arms);
    for (uint32_t k = 0; k < p->n_index_terms; k++)
        terms[k] = eval(c->r, p->index_terms[k], b);
    if (c->r->rc)
        return false;
    for (uint32_t at = 0; at < b->n; at += BATCH / 16) {
        uint32_t n = b->n - at < BATCH / 16 ? b->n - at : BATCH / 16;
        for (uint32_t k = 0; k < n_sources; k++) {
            for (uint32_t i = 0; i < n; i++)
                words[k][i] = b->rows[k][at + i];
            columns[k] = words[k];
        }
        for (uint32_t i = 0; i < n; i++)
            words[n_sources][i] = arms[at + i];
        columns[n_sources] = words[n_sources];
        for (uint32_t k = 0; k < p->n_index_terms; k++)
            columns[n_sources + 1 + k] = terms[k] + at;
        if (!stage_append(c->r, c->t, columns, n))
            return false;
    }
    return true;
}

void run_replay(struct run *r, const struct table *t, const uint32_t *order, uint32_t n, struct sink *to)
{
    const struct query_plan *p = r->plan;
    int64_t *words = mem_alloc(BATCH * sizeof *words);
    uint32_t *rows[PLAN_MAX_SOURCES] = {NULL};
    bool ok = words != NULL, more = true;
    for (uint32_t k = 0; ok && k < p->n_sources; k++)
        ok = (rows[k] = mem_alloc(BATCH * sizeof *rows[k])) != NULL;
    if (!ok)
        r->rc = SQLITE_NOMEM;
    for (uint32_t at = 0; more && at < n && !run_stopped(r); at += BATCH) {
        struct batch b = {.n = n - at < BATCH ? n - at : BATCH, .serial = ++r->serial};
        for (uint32_t k = 0; k < p->n_sources; k++) {
            column_gather(&t->columns[k], order + at, b.n, words);
            for (uint32_t i = 0; i < b.n; i++)
                rows[k][i] = (uint32_t)words[i];
            b.rows[k] = rows[k];
        }
        more = to->push(to, &b);
    }
    for (uint32_t k = 0; k < p->n_sources; k++)
        mem_free(rows[k]);
    mem_free(words);
}

static void run_in_order(struct run *r, struct sink *to)
{
    const struct query_plan *p = r->plan;
    enum plan_type types[PLAN_MAX_SOURCES + 1 + PLAN_MAX_ORDER];
    struct plan_order terms[PLAN_MAX_ORDER];
    uint32_t n_terms = 0, n_columns = p->n_sources + 1, term = 0;
    for (uint32_t k = 0; k < n_columns; k++)
        types[k] = PLAN_INT;
    for (uint32_t k = 0; k < p->n_index_terms; k++)
        types[n_columns + k] = (enum plan_type)p->index_terms[k]->type;
    struct collector c = {{collect}, r, stage_new(r, types, n_columns + p->n_index_terms)};
    uint32_t *order = NULL;
    if (!c.t || p->n_loops + p->n_index_terms + 1 > PLAN_MAX_ORDER) {
        r->rc = r->rc ? r->rc : RUN_GAVE_UP;
    } else if (join_run(r, &c.base) == 0) {
        uint32_t n = c.t->n_rows;
        table_finalize(c.t);
        order = run_alloc(r, n * 20ull) ? mem_alloc(((size_t)n + 1) * sizeof *order) : NULL;
        if (!order)
            r->rc = r->rc ? r->rc : SQLITE_NOMEM;
        for (uint32_t i = 0; order && i < n; i++)
            order[i] = i;
        if (p->n_arms)
            terms[n_terms++] = (struct plan_order){(int16_t)p->n_sources, false};
        for (uint32_t k = 0; k < p->n_loops; k++) {
            for (; term < p->n_index_terms && p->index_loops[term] == k; term++)
                terms[n_terms++] = (struct plan_order){(int16_t)(n_columns + term), false};
            terms[n_terms++] = (struct plan_order){p->loops[k], false};
        }
        if (order && !order_rows(c.t, &r->e->storage->strings, terms, n_terms, false, 0, order, n, engine_stop(r->e)))
            r->rc = engine_gave_up(r->e);
        if (order && !r->rc)
            run_replay(r, c.t, order, n, to);
    }
    mem_free(order);
    stage_free(c.t);
}

void run_sources(struct run *r, struct sink *to)
{
    if (r->plan->restore_order)
        run_in_order(r, to);
    else
        join_run(r, to);
}

/* ---- from part to part ---- */

/* Hands the rows of a stage on, in an order. */
static void hand_on(struct run *r, uint8_t source, const uint32_t *rows, uint32_t n, struct plan_expr *having,
                    struct sink *to)
{
    bool more = true;
    uint32_t keep[BATCH], kept[BATCH];
    for (uint32_t at = 0; more && at < n && !run_stopped(r); at += BATCH) {
        struct batch b = {.n = n - at < BATCH ? n - at : BATCH, .at = at, .serial = ++r->serial};
        b.rows[source] = rows + at;
        if (having) {
            uint32_t left = eval_filter(r, &having, 1, &b, keep);
            for (uint32_t i = 0; i < left; i++)
                kept[i] = rows[at + keep[i]];
            b.rows[source] = kept;
            b.n = left;
            b.serial = ++r->serial;
        }
        more = !r->rc && (!b.n || to->push(to, &b));
    }
}

static void run_groups(struct run *r, struct sink *to)
{
    const struct query_plan *p = r->plan;
    struct sink *groups = group_open(r);
    struct plan_order terms[PLAN_MAX_KEYS];
    if (!groups)
        return;
    run_sources(r, groups);
    struct table *t = r->rc ? NULL : group_finish(groups);
    group_close(groups);
    if (!t)
        return;
    r->tables[PLAN_GROUPS] = r->made[PLAN_GROUPS] = t;
    uint32_t n = t->n_rows, *rows = run_alloc(r, n * 20ull) ? mem_alloc(((size_t)n + 1) * sizeof *rows) : NULL;
    if (!rows)
        r->rc = r->rc ? r->rc : SQLITE_NOMEM;
    for (uint32_t i = 0; rows && i < n; i++)
        rows[i] = i;
    for (uint32_t k = 0; k < p->n_keys; k++)
        terms[k] = (struct plan_order){p->key_orders[k], p->keys_desc[k]};
    if (rows && p->n_keys && p->group_order != GROUPS_AS_FOUND &&
        !order_rows(t, &r->e->storage->strings, terms, p->n_keys, p->group_order == GROUPS_BY_CODE, 0, rows, n,
                    engine_stop(r->e)))
        r->rc = engine_gave_up(r->e);
    if (rows && !r->rc)
        hand_on(r, PLAN_GROUPS, rows, n, p->having, to);
    mem_free(rows);
}

static void run_core(struct run *r, struct sink *to)
{
    struct sink *windows = r->plan->n_windows ? window_open(r) : NULL;
    struct sink *next = windows ? windows : to;
    if (r->rc)
        return;
    if (r->plan->grouped)
        run_groups(r, next);
    else
        run_sources(r, next);
    if (windows && !r->rc) {
        uint32_t n, *rows = window_finish(windows, &n);
        if (rows)
            hand_on(r, PLAN_WINDOWS, rows, n, NULL, to);
    }
    window_close(windows);
}

/* The terms of ORDER BY are those columns. */
static bool order_by(struct run *r, struct plan_answer *out, const struct table *t, const int16_t *columns)
{
    const struct query_plan *p = r->plan;
    struct plan_order terms[PLAN_MAX_ORDER];
    uint32_t n = t->n_rows;
    uint64_t end = p->limit < 0 ? n : (uint64_t)p->offset + (uint64_t)p->limit;
    end = end > n ? n : end;
    out->first = (uint64_t)p->offset > end ? (uint32_t)end : (uint32_t)p->offset;
    out->n = (uint32_t)end - out->first;
    if (!p->n_orders || top_comes_in_order(r))
        return true;
    out->rows = run_alloc(r, n * 20ull) ? mem_alloc(((size_t)n + 1) * sizeof *out->rows) : NULL;
    if (!out->rows) {
        r->rc = r->rc ? r->rc : SQLITE_NOMEM;
        return false;
    }
    for (uint32_t i = 0; i < n; i++)
        out->rows[i] = i;
    for (uint32_t k = 0; k < p->n_orders; k++)
        terms[k] = (struct plan_order){columns[k], p->orders_desc[k]};
    if (!order_rows(t, &r->e->storage->strings, terms, p->n_orders, false, (uint32_t)end, out->rows, n,
                    engine_stop(r->e)))
        r->rc = engine_gave_up(r->e);
    return !r->rc;
}

bool run_order(struct run *r, struct plan_answer *out, const struct table *t, uint32_t first_order)
{
    int16_t columns[PLAN_MAX_ORDER];
    for (uint32_t k = 0; k < r->plan->n_orders; k++)
        columns[k] = (int16_t)(first_order + k);
    return order_by(r, out, t, columns);
}

/* ---- all of it ---- */

bool run_open(struct run *r, const struct query_plan *p)
{
    *r = (struct run){.e = p->e, .plan = p};
    r->values = mem_zalloc((p->n_slots + 1) * sizeof *r->values);
    r->serials = mem_zalloc((p->n_slots + 1) * sizeof *r->serials);
    r->memos = mem_zalloc((p->n_slots + 1) * sizeof(struct call_memo *));
    r->lookups = mem_zalloc((p->n_lookups + 1) * sizeof(struct lookup_rows *));
    r->lookup_ranges = mem_zalloc((p->n_lookups + 1) * sizeof(struct lookup_ranges *));
    r->correlated = mem_zalloc((p->n_lookups + 1) * sizeof(struct correlated_rows *));
    r->results = mem_zalloc((p->n_windows + 1) * sizeof *r->results);
    return r->lookup_ranges && r->correlated && r->values && r->serials && r->memos && r->lookups && r->results;
}

void run_close(struct run *r)
{
    for (uint32_t i = 0; i < r->plan->n_slots; i++) {
        if (r->values)
            mem_free(r->values[i]);
        if (r->memos)
            call_memo_free(r->memos[i]);
    }
    for (uint32_t i = 0; r->lookups && i < r->plan->n_lookups; i++)
        lookup_rows_free(r->lookups[i]);
    for (uint32_t i = 0; r->lookup_ranges && i < r->plan->n_lookups; i++)
        lookup_ranges_free(r->lookup_ranges[i]);
    for (uint32_t i = 0; r->correlated && i < r->plan->n_lookups; i++)
        correlated_rows_free(r->correlated[i]);
    for (uint32_t i = 0; r->results && i < r->plan->n_windows; i++)
        mem_free(r->results[i]);
    for (uint32_t i = 0; i < PLAN_ALL_SOURCES; i++)
        stage_free(r->made[i]);
    for (uint32_t i = 0; i < PLAN_MAX_SOURCES; i++)
        pointer_rows_free(r->pointers[i]);
    join_close(r);
    mem_free(r->values);
    mem_free(r->serials);
    mem_free(r->memos);
    mem_free(r->lookups);
    mem_free(r->lookup_ranges);
    mem_free(r->correlated);
    mem_free(r->results);
}

void run_into(struct run *r, struct table *t)
{
    struct emitter e = {.base = {emit}, .r = r, .t = t, .wanted = UINT64_MAX, .secret = hash_secret()};
    run_core(r, &e.base);
}

/* Is the answer the table that was made of the only source, in an order of its columns? */
static bool is_source(const struct run *r)
{
    const struct query_plan *p = r->plan;
    const struct table *t = p->n_sources == 1 ? r->made[0] : NULL;
    bool whole = t && t->def->n_columns == p->n_items && !p->grouped && !p->n_windows && !p->distinct &&
                 !p->steps[0].n_tests && !p->steps[0].n_where;
    for (uint32_t i = 0; whole && i < p->n_items; i++)
        whole = p->items[i].expr->op == X_COLUMN && p->items[i].expr->column == (int16_t)i;
    for (uint32_t i = 0; whole && i < p->n_orders; i++)
        whole = p->orders[i]->op == X_COLUMN && p->orders[i]->column >= 0;
    return whole;
}

static void take_source(struct run *r, struct plan_answer *out)
{
    int16_t columns[PLAN_MAX_ORDER];
    for (uint32_t k = 0; k < r->plan->n_orders; k++)
        columns[k] = r->plan->orders[k]->column;
    out->table = r->made[0];
    r->made[0] = NULL;
    order_by(r, out, out->table, columns);
}

void run_to_answer(struct run *r, struct plan_answer *out)
{
    const struct query_plan *p = r->plan;
    if (is_source(r)) {
        take_source(r, out);
        return;
    }
    if (!(out->table = answer_table(r)))
        return;
    struct emitter e = {.base = {emit}, .r = r, .t = out->table, .wanted = UINT64_MAX, .secret = hash_secret()};
    if (p->limit >= 0 && (!p->n_orders || top_comes_in_order(r)))
        e.wanted = (uint64_t)p->limit + (uint64_t)p->offset;
    if (e.wanted)
        run_core(r, &e.base);
    mem_free(e.seen);
    if (r->rc)
        return;
    table_finalize(out->table);
    run_order(r, out, out->table, p->n_items);
}

int plan_run(const struct query_plan *p, struct plan_answer *out)
{
    struct run r;
    *out = (struct plan_answer){0};
    if (!run_open(&r, p))
        r.rc = SQLITE_NOMEM;
    if (!r.rc)
        run_open_sources(&r);
    if (!r.rc && top_suits(p) && !top_comes_in_order(&r))
        top_run(&r, out);
    else if (!r.rc)
        run_to_answer(&r, out);
    p->e->plan_bytes = r.bytes;
    p->e->plan_gave_up = r.rc == RUN_GAVE_UP;
    p->e->plan_visited += r.visited;
    run_close(&r);
    if (r.rc)
        plan_answer_free(out);
    return r.rc;
}

void plan_answer_free(struct plan_answer *a)
{
    stage_free(a->table);
    mem_free(a->rows);
    *a = (struct plan_answer){0};
}
