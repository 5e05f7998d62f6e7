/* Slices above or below another: ancestor_slice(s.id), descendant_slice(s.id) behind what gives s. They are the table
 * of slices once more, whose rows are found by going up from each slice, or through the time that it takes. */
#include "sql/plan/plan_private.h"
#include "sql/slice_tree.h"

#include "base/vec.h"

#include <string.h>

/* The column of the table of slices that a column of the function is; the first one is the number of the row. */
static int16_t column_of(uint32_t column)
{
    return column ? (int16_t)(column - 1) : VTAB_ROW;
}

bool read_kin(struct reader *r, const struct sql_from *f, bool left)
{
    struct query_plan *p = r->plan;
    bool above = sql_name_is(f->name, "ancestor_slice"), below = sql_name_is(f->name, "descendant_slice");
    if ((!above && !below) || !f->args || f->args->next || p->right || r->recursion || left)
        return false;
    struct plan_expr *of = read_expr(r, f->args);
    struct plan_source *s = p->n_sources < PLAN_MAX_SOURCES ? &p->sources[p->n_sources] : NULL;
    if (!s || !of || of->type != PLAN_INT || !of->sources)
        return false;
    struct sql_name alias = f->alias.len ? f->alias : f->name;
    *s = (struct plan_source){.printed = {alias}, .n_printed = 1, .kin = above ? KIN_ABOVE : KIN_BELOW, .kin_of = of};
    struct scope_entry *e = scope_add_entry(r, alias, SLICE_FUNCTION_COLUMNS);
    if (!e || !plan_table_open(&s->table, p->e, "__intrinsic_slice"))
        return false;
    p->n_sources++;
    if (!s->table.table->final)
        table_finalize((struct table *)(uintptr_t)s->table.table);
    if (s->table.table != &p->e->storage->t[T_slice])
        return false;
    for (uint32_t i = 0; i < SLICE_FUNCTION_COLUMNS; i++) {
        const struct column_def *c = &slice_function_columns[i];
        struct plan_expr *x =
            plan_column(p, (uint8_t)(p->n_sources - 1), column_of(i), plan_type_of((enum col_type)c->type));
        struct sql_name name = {c->name, (uint32_t)strlen(c->name), 0};
        e->columns[e->n_columns++] = (struct scope_column){.name = name, .expr = x};
    }
    p->order_unknown = true; /* those above come from the nearest to the farthest */
    if (s->table.table->n_rows > *r->rows)
        *r->rows = s->table.table->n_rows;
    return true;
}

bool kin_find(struct run *r, const struct plan_source *s, int64_t slice, struct row_list *out)
{
    const struct table *t = s->table.table;
    int rc = 0;
    out->n = 0;
    if (slice == COL_NULL)
        return true;
    if (slice < 0 || slice >= t->n_rows) { /* an error, which is SQLite's to tell */
        r->rc = RUN_GAVE_UP;
        return false;
    }
    uint32_t row = (uint32_t)slice;
    if (s->kin == KIN_BELOW)
        rc = slice_descendants(t, row, out, engine_stop(r->e));
    for (int64_t up; s->kin == KIN_ABOVE && (up = table_get(t, slice_c_parent_id, row)) != COL_NULL && up < row;) {
        row = (uint32_t)up;
        if (!vec_push(out, row)) {
            rc = -MRD_ENOMEM;
            break;
        }
    }
    if (rc)
        r->rc = rc == -MRD_ENOMEM ? SQLITE_NOMEM : SQLITE_INTERRUPT;
    return rc == 0;
}
