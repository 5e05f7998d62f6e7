/* Rows of constants as a source: VALUES (1, 'a'), (2, 'b'), and the one row of a SELECT without FROM. */
#include "sql/plan/plan_private.h"

static bool read_row(struct reader *r, const struct sql_expr *row, struct plan_values *v, uint32_t at)
{
    uint32_t k = 0;
    for (const struct sql_expr *x = row->args; x; x = x->next, k++) {
        struct plan_expr *c = k < v->n_columns ? read_constant(r, x) : NULL;
        if (!c)
            return false;
        enum plan_type type = (enum plan_type)c->type;
        if (v->types[k] == PLAN_NULL && type != PLAN_NULL) { /* NULLs so far */
            v->types[k] = type;
            for (uint32_t i = 0; i < at; i++)
                v->words[i * v->n_columns + k] = plan_null(type);
        }
        if (type != PLAN_NULL && type != v->types[k])
            return false;
        v->words[at * v->n_columns + k] = type == PLAN_NULL ? plan_null(v->types[k]) : c->word;
    }
    return k == v->n_columns;
}

static uint32_t length(const struct sql_expr *x)
{
    uint32_t n = 0;
    for (; x; x = x->next)
        n++;
    return n;
}

bool read_values(struct reader *r, const struct sql_expr *rows)
{
    struct query_plan *p = r->plan;
    struct plan_source *s = &p->sources[0];
    struct plan_values *v = arena_zalloc(&p->arena, sizeof *v);
    if (!v)
        return false;
    v->n_rows = rows ? length(rows) : 1;
    v->n_columns = rows ? length(rows->args) : 1;
    if (v->n_columns > PLAN_MAX_ITEMS || v->n_columns == 0)
        return false;
    v->types = arena_zalloc(&p->arena, v->n_columns * sizeof *v->types);
    v->words = arena_zalloc(&p->arena, (size_t)v->n_rows * v->n_columns * sizeof *v->words);
    if (!v->types || !v->words)
        return false;
    uint32_t at = 0;
    for (const struct sql_expr *row = rows; row; row = row->next)
        if (!read_row(r, row, v, at++))
            return false;
    *s = (struct plan_source){.values = v, .n_columns = v->n_columns};
    p->n_sources = 1;
    return true;
}

struct table *values_run(struct run *r, const struct plan_values *v)
{
    struct table *t = stage_new(r, v->types, v->n_columns);
    const int64_t *columns[PLAN_MAX_ITEMS];
    for (uint32_t i = 0; t && i < v->n_rows; i++) {
        for (uint32_t k = 0; k < v->n_columns; k++)
            columns[k] = &v->words[i * v->n_columns + k];
        if (!stage_append(r, t, columns, 1))
            break;
    }
    if (t)
        table_finalize(t);
    return t;
}
