/* The tables of the sources, before the rows of a plan are made of them: those of queries are computed, of the arms of
 * a compound one after the other, of a recursion round by round. */
#include "sql/plan/run_private.h"

enum { AHEAD = 1024 };

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

/* The rows of a plan whose answer would be these as they come. */
static void append_rows(struct run *r, struct table *t, const struct query_plan *p)
{
    struct run arm;
    const uint32_t before = t->n_rows;
    if (!run_open(&arm, p))
        arm.rc = SQLITE_NOMEM;
    if (!arm.rc)
        run_open_sources(&arm);
    if (!arm.rc)
        run_into(&arm, t);
    r->rc = arm.rc;
    run_alloc(r, (uint64_t)(t->n_rows - before) * t->def->n_columns * 4);
    r->visited += arm.visited;
    run_close(&arm);
}

static struct table *run_arms(struct run *r, const struct query_plan *arms)
{
    struct table *t = items_table(r, arms);
    for (const struct query_plan *arm = arms; t && arm && !r->rc; arm = arm->next_arm) {
        struct plan_answer a = {0};
        if (!arm->distinct && !arm->n_orders && arm->limit < 0 && !arm->offset) {
            append_rows(r, t, arm);
            continue;
        }
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
    SERIES = 1 << 15, /* so many rounds that read no table are made in a moment: what reads their rows is what counts */
    FEW_ROWS = 4,
    WORTH_A_ROW = 16 /* rows of tables that a round may go through for each row that has come; SQLite looks rows up */
};

int run_round(struct run *step, const struct query_plan *p, const struct table *round, struct plan_answer *out)
{
    bool first = !step->plan;
    const uint64_t most_found = step->most_found, most = step->most;
    *out = (struct plan_answer){0};
    if (first && !run_open(step, p))
        step->rc = SQLITE_NOMEM;
    step->most_found = most_found;
    step->most = most;
    step->keeps = true;
    if (first && !step->rc)
        run_open_sources(step);
    for (uint32_t i = 0; i < p->n_sources; i++)
        if (p->sources[i].round)
            step->tables[i] = round;
    stage_free(step->made[PLAN_GROUPS]); /* of the last round */
    step->made[PLAN_GROUPS] = NULL;
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
    const uint64_t many_rounds = first->step->n_sources == 1 ? SERIES : MANY_ROUNDS;
    r->rc = r->rc ? r->rc : plan_run(first, &a);
    for (uint64_t n = 0; t && !r->rc && a.n && !run_stopped(r); n++) {
        append_answer(r, t, &a);
        stage_free(round);
        round = r->rc ? NULL : settle(r, &a, first);
        plan_answer_free(&a);
        if (!r->rc && (t->n_rows > MOST_ROWS || (n > many_rounds && t->n_rows / n < FEW_ROWS) ||
                       (n > 1 && gone_through * (n - 1) / WORTH_A_ROW > t->n_rows)))
            r->rc = RUN_GAVE_UP;
        if (!round || r->rc)
            break;
        table_finalize(round);
        first->rows->rows = round;
        r->rc = run_round(&step, first->step, round, &a);
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

static void open_table(struct run *r, uint32_t source)
{
    r->tables[source] = plan_table_rows(&r->plan->sources[source].table, r->e);
    if (!r->tables[source])
        r->rc = engine_is_interrupted(r->e) ? SQLITE_INTERRUPT : RUN_GAVE_UP;
}

/* Others may tell which of their rows are needed. */
static void open_args(struct run *r)
{
    for (uint32_t i = 0; i < r->plan->n_sources && !r->rc; i++) {
        if (!r->plan->sources[i].table.outline)
            continue;
        r->tables[i] = r->made[i] = args_rows_run(r, (uint8_t)i);
        if (!r->made[i] && !r->rc)
            open_table(r, i);
    }
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
            if (!s->table.outline)
                open_table(r, i);
            continue;
        }
        r->tables[i] = r->made[i] = s->sub->step       ? run_recursion(r, s->sub)
                                    : s->sub->next_arm ? run_arms(r, s->sub)
                                                       : run_sub(r, s->sub);
        if (r->made[i])
            table_finalize(r->made[i]);
    }
    open_args(r);
}
