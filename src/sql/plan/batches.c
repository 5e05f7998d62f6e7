/* Sources whose rows an operator gives as columns (span joins): a table of those that are asked for. */
#include "sql/plan/plan_private.h"

enum { AHEAD = 1024 /* rows that come at a time, at most */ };

struct batch_sink {
    struct run *r;
    struct table *t;
};

/* Columns that were not wanted are NULL throughout. */
static bool push_batch(void *to, const int64_t *const *words, uint32_t n)
{
    struct batch_sink *s = to;
    const int64_t *columns[PLAN_MAX_ITEMS];
    int64_t nulls[2][AHEAD];
    for (uint32_t i = 0; i < n; i++) {
        nulls[0][i] = COL_NULL;
        nulls[1][i] = 0;
    }
    for (uint32_t k = 0; k < s->t->def->n_columns; k++)
        columns[k] = words[k] ? words[k] : nulls[s->t->columns[k].type == COL_STR];
    return n <= AHEAD && stage_append(s->r, s->t, columns, n);
}

struct table *run_batches(struct run *r, uint8_t source)
{
    const struct plan_source *s = &r->plan->sources[source];
    const struct engine_batches *b = engine_find_batches(r->e, NULL, s->batches);
    enum plan_type types[PLAN_MAX_ITEMS];
    bool wanted[PLAN_MAX_ITEMS];
    for (uint32_t i = 0; b && i < s->n_columns; i++) {
        const char *name;
        enum col_type type;
        b->column(b->ctx, i, &name, &type);
        types[i] = plan_type_of(type);
        wanted[i] = plan_uses(r->plan, source, (int16_t)i);
    }
    struct batch_sink sink = {r, b ? stage_new(r, types, s->n_columns) : NULL};
    if (!sink.t || b->rows(b->ctx, wanted, push_batch, &sink) != 1) {
        r->rc = r->rc ? r->rc : engine_is_interrupted(r->e) ? SQLITE_INTERRUPT : RUN_GAVE_UP;
        return sink.t;
    }
    table_finalize(sink.t);
    return sink.t;
}
