/* The bounds of the trace behind FROM. Their table has one row, so its columns are constants of each run: they bound a
 * scan, and are no source of rows. */
#include "sql/plan/plan_private.h"

static const struct {
    struct sql_name name;
    const char *value;
} columns[] = {{{"start_ts", 8, 0}, "SELECT start_ts FROM _trace_bounds"},
               {{"end_ts", 6, 0}, "SELECT end_ts FROM _trace_bounds"}};

enum { N_COLUMNS = sizeof columns / sizeof *columns };

bool bounds_are_named(const struct query_plan *p, struct sql_name printed)
{
    for (uint32_t i = 0; i < p->n_bounds; i++)
        if (sql_name_equal(p->bounds[i], printed))
            return true;
    return false;
}

bool read_bounds_table(struct reader *r, const struct sql_from *f, bool left)
{
    struct query_plan *p = r->plan;
    struct sql_name alias = f->alias.len ? f->alias : f->name;
    if (left || !sql_name_is(f->name, "_trace_bounds") || !schema_has_none(r->planner->e, f->name) ||
        p->n_bounds == PLAN_MAX_NAMES)
        return false;
    struct scope_entry *e = scope_add_entry(r, alias, N_COLUMNS);
    for (uint32_t i = 0; e && i < N_COLUMNS; i++) {
        struct plan_expr *x = plan_make_call(p, PLAN_INT, columns[i].value, NULL, 0);
        if (!x)
            return false;
        e->columns[e->n_columns++] = (struct scope_column){.name = columns[i].name, .expr = x};
    }
    p->bounds[p->n_bounds++] = alias;
    return e != NULL;
}
