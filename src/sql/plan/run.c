/* Runs a plan: sources, joins, groups, windows, then the list behind SELECT, its order and limit. */
#include "base/hash.h"
#include "sql/plan/plan_private.h"

#include <string.h>

enum { AHEAD = 1024 };

/* ---- memory and time ---- */

bool run_alloc(struct run *r, uint64_t bytes)
{
    r->most = r->most ? r->most : engine_rows_max_bytes(r->e);
    r->bytes += bytes;
    if (r->bytes > r->most && !r->rc)
        r->rc = RUN_GAVE_UP;
    return !r->rc;
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
    uint32_t *seen, seen_mask; /* DISTINCT: row + 1 by hash */
};

static bool rehash(struct emitter *e);

static uint64_t hash_row(const struct emitter *e, uint32_t row)
{
    uint64_t h = 0;
    for (uint32_t k = 0; k < e->r->plan->n_items; k++) {
        int64_t word = table_get(e->t, k, row);
        if (e->t->columns[k].type == COL_F64 && word == column_f64_word(-0.0))
            word = 0;
        h = hash_combine(h, (uint64_t)word);
    }
    return h;
}

static bool same_rows(const struct emitter *e, uint32_t a, uint32_t b)
{
    for (uint32_t k = 0; k < e->r->plan->n_items; k++) {
        int64_t x = table_get(e->t, k, a), y = table_get(e->t, k, b);
        bool zeros = e->t->columns[k].type == COL_F64 && column_f64(x) == 0 && column_f64(y) == 0;
        if (x != y && !zeros)
            return false;
    }
    return true;
}

/* The place of a row in the set of rows seen: that of an equal one, or a free one. */
static uint32_t *find_seen(const struct emitter *e, uint32_t row)
{
    uint32_t at = (uint32_t)hash_row(e, row) & e->seen_mask;
    while (e->seen[at] && !same_rows(e, e->seen[at] - 1, row))
        at = (at + 1) & e->seen_mask;
    return &e->seen[at];
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
    for (uint32_t i = 0; i < e->t->n_rows; i++)
        *find_seen(e, i) = i + 1;
    return true;
}

/* Appends row by row; one that has been seen is taken back. */
static bool append_distinct(struct emitter *e, const int64_t *const *columns, uint32_t n)
{
    const int64_t *one[PLAN_MAX_ITEMS + PLAN_MAX_ORDER];
    for (uint32_t i = 0; i < n; i++) {
        if ((!e->seen || e->t->n_rows * 2ull > e->seen_mask) && !rehash(e))
            return false;
        for (uint32_t k = 0; k < e->t->def->n_columns; k++)
            one[k] = columns[k] + i;
        if (!stage_append(e->r, e->t, one, 1))
            return false;
        uint32_t row = e->t->n_rows - 1, *place = find_seen(e, row);
        if (*place)
            e->t->n_rows--;
        else
            *place = row + 1;
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
    struct table *t; /* row numbers, a column for each source; then the lookup that finds the row first */
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
    int64_t words[PLAN_MAX_SOURCES + 1][BATCH / 16];
    const int64_t *columns[PLAN_MAX_SOURCES + 1];
    uint32_t n_sources = c->r->plan->n_sources;
    uint8_t arms[BATCH];
    find_arms(c->r, b, arms);
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
    enum plan_type types[PLAN_MAX_SOURCES + 1];
    struct plan_order terms[PLAN_MAX_SOURCES + 1];
    uint32_t n_terms = 0;
    for (uint32_t k = 0; k <= p->n_sources; k++)
        types[k] = PLAN_INT;
    struct collector c = {{collect}, r, stage_new(r, types, p->n_sources + 1)};
    uint32_t *order = NULL;
    if (!c.t || p->n_loops + 1 > PLAN_MAX_ORDER) {
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
        for (uint32_t k = 0; k < p->n_loops; k++)
            terms[n_terms++] = (struct plan_order){p->loops[k], false};
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
        terms[k] = (struct plan_order){(int16_t)k, p->keys_desc[k]};
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

bool run_order(struct run *r, struct plan_answer *out, const struct table *t, uint32_t first_order)
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
        terms[k] = (struct plan_order){(int16_t)(first_order + k), p->orders_desc[k]};
    if (!order_rows(t, &r->e->storage->strings, terms, p->n_orders, false, (uint32_t)end, out->rows, n,
                    engine_stop(r->e)))
        r->rc = engine_gave_up(r->e);
    return !r->rc;
}

/* ---- sources ---- */

/* Adds the rows of an answer to a table, in their order. */
static void append_answer(struct run *r, struct table *t, const struct plan_answer *a)
{
    const int64_t *columns[PLAN_MAX_ITEMS];
    uint32_t rows[AHEAD], n_items = t->def->n_columns;
    int64_t *words = mem_alloc((n_items + 1) * AHEAD * sizeof *words);
    if (!words && !r->rc)
        r->rc = SQLITE_NOMEM;
    for (uint32_t at = 0; words && at < a->n && !run_stopped(r); at += AHEAD) {
        uint32_t n = a->n - at < AHEAD ? a->n - at : AHEAD;
        for (uint32_t i = 0; i < n; i++)
            rows[i] = a->rows ? a->rows[a->first + at + i] : a->first + at + i;
        for (uint32_t k = 0; k < n_items; k++) {
            column_gather(&a->table->columns[k], rows, n, words + k * AHEAD);
            columns[k] = words + k * AHEAD;
        }
        if (!stage_append(r, t, columns, n))
            break;
    }
    mem_free(words);
}

static struct table *items_table(struct run *r, const struct query_plan *p)
{
    enum plan_type types[PLAN_MAX_ITEMS];
    for (uint32_t k = 0; k < p->n_items; k++)
        types[k] = (enum plan_type)p->items[k].expr->type;
    return stage_new(r, types, p->n_items);
}

/* The rows of an answer as a table in their order. */
static struct table *settle(struct run *r, struct plan_answer *a, const struct query_plan *p)
{
    if (!a->rows && a->first == 0 && a->n == a->table->n_rows) {
        struct table *t = a->table;
        a->table = NULL;
        return t;
    }
    struct table *t = items_table(r, p);
    if (t)
        append_answer(r, t, a);
    return t;
}

int plan_run_to_table(const struct query_plan *p, struct table **out)
{
    struct run r = {.e = p->e, .plan = p};
    struct plan_answer a = {0};
    *out = NULL;
    r.rc = plan_run(p, &a);
    if (!r.rc)
        *out = settle(&r, &a, p);
    plan_answer_free(&a);
    if (r.rc) {
        stage_free(*out);
        *out = NULL;
    } else {
        table_finalize(*out);
    }
    return r.rc;
}

static struct table *run_sub(struct run *r, const struct query_plan *sub)
{
    struct plan_answer a = {0};
    r->rc = plan_run(sub, &a);
    struct table *t = r->rc ? NULL : settle(r, &a, sub);
    if (t)
        run_alloc(r, (uint64_t)t->n_rows * t->def->n_columns * 4);
    plan_answer_free(&a);
    return t;
}

static struct table *run_arms(struct run *r, const struct query_plan *arms)
{
    struct table *t = items_table(r, arms);
    for (const struct query_plan *arm = arms; t && arm && !r->rc; arm = arm->next_arm) {
        struct plan_answer a = {0};
        r->rc = plan_run(arm, &a);
        if (!r->rc)
            append_answer(r, t, &a);
        plan_answer_free(&a);
    }
    return t;
}

enum {
    MOST_ROWS = 4000000, /* of a recursion: SQLite may stop sooner, where it is asked for a few */
    MANY_ROUNDS = 64,    /* take longer than SQLite, where they have few rows each */
    FEW_ROWS = 4,
    WORTH_A_ROW = 16 /* rows of tables that a round may go through for each row that has come; SQLite looks rows up */
};

static void run_to_answer(struct run *r, struct plan_answer *out);

/* The rows that the step makes of those of a round. What it finds them by stays from round to round. */
static int run_step(struct run *step, const struct query_plan *p, const struct table *round, struct plan_answer *out)
{
    bool first = !step->plan;
    *out = (struct plan_answer){0};
    if (first && !run_open(step, p))
        step->rc = SQLITE_NOMEM;
    step->keeps = true;
    if (first && !step->rc)
        run_open_sources(step);
    for (uint32_t i = 0; i < p->n_sources; i++)
        if (p->sources[i].round)
            step->tables[i] = round;
    if (!step->rc)
        run_to_answer(step, out);
    if (step->rc)
        plan_answer_free(out);
    return step->rc;
}

static struct table *run_recursion(struct run *r, const struct query_plan *first)
{
    struct plan_answer a = {0};
    struct run step = {.e = r->e};
    struct table *t = items_table(r, first), *round = NULL;
    const uint64_t gone_through = plan_rows_of_round(first->step);
    r->rc = r->rc ? r->rc : plan_run(first, &a);
    for (uint64_t n = 0; t && !r->rc && a.n && !run_stopped(r); n++) {
        append_answer(r, t, &a);
        stage_free(round);
        round = r->rc ? NULL : settle(r, &a, first);
        plan_answer_free(&a);
        if (!r->rc && (t->n_rows > MOST_ROWS || (n > MANY_ROUNDS && t->n_rows / n < FEW_ROWS) ||
                       (n > 1 && gone_through * (n - 1) / WORTH_A_ROW > t->n_rows)))
            r->rc = RUN_GAVE_UP;
        if (!round || r->rc)
            break;
        table_finalize(round);
        first->rows->rows = round;
        r->rc = run_step(&step, first->step, round, &a);
        first->rows->rows = NULL;
    }
    plan_answer_free(&a);
    stage_free(round);
    r->visited += step.visited;
    r->bytes += step.bytes;
    if (step.plan)
        run_close(&step);
    return t;
}

void run_open_sources(struct run *r)
{
    const struct query_plan *p = r->plan;
    for (uint32_t i = 0; i < p->n_sources && !r->rc; i++) {
        const struct plan_source *s = &p->sources[i];
        if (s->batches) {
            r->tables[i] = r->made[i] = run_batches(r, (uint8_t)i);
            continue;
        }
        if (s->round) {
            r->tables[i] = s->round->rows;
            r->rc = s->round->rows ? r->rc : RUN_GAVE_UP;
            continue;
        }
        if (s->values) {
            r->tables[i] = r->made[i] = values_run(r, s->values);
            continue;
        }
        if (s->pointer) {
            r->tables[i] = pointer_run(r, (uint8_t)i);
            continue;
        }
        if (!s->sub) {
            r->tables[i] = plan_table_rows(&s->table, r->e);
            if (!r->tables[i])
                r->rc = RUN_GAVE_UP;
            continue;
        }
        r->tables[i] = r->made[i] = s->sub->step       ? run_recursion(r, s->sub)
                                    : s->sub->next_arm ? run_arms(r, s->sub)
                                                       : run_sub(r, s->sub);
        if (r->made[i])
            table_finalize(r->made[i]);
    }
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
    r->results = mem_zalloc((p->n_windows + 1) * sizeof *r->results);
    return r->lookup_ranges && r->values && r->serials && r->memos && r->lookups && r->results;
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
    mem_free(r->results);
}

/* Plans without what top.c is for. */
static void run_to_answer(struct run *r, struct plan_answer *out)
{
    const struct query_plan *p = r->plan;
    if (!(out->table = answer_table(r)))
        return;
    struct emitter e = {.base = {emit}, .r = r, .t = out->table, .wanted = UINT64_MAX};
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
