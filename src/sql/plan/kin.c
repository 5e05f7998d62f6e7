/* Slices above or below another: ancestor_slice(s.id), descendant_slice(s.id) behind what gives s. They are the table
 * of slices once more, whose rows are found by going up from each slice, or through the time that it takes. Flows from
 * a slice or to it are the table of flows: following_flow(s.id), preceding_flow(s.id), directly_connected_flow(s.id).
 */
#include "sql/flow_graph.h"
#include "sql/plan/plan_private.h"

#include "base/vec.h"

#include <string.h>

static const struct {
    const char *name, *table;
    const struct column_def *columns;
    uint32_t n_columns;
    enum table_id id;
    uint8_t kin;        /* enum plan_kin */
    uint8_t directions; /* of flows */
    bool relatives;
} functions[] = {
    {"ancestor_slice", "__intrinsic_slice", slice_function_columns, SLICE_FUNCTION_COLUMNS, T_slice, KIN_ABOVE, 0,
     false},
    {"descendant_slice", "__intrinsic_slice", slice_function_columns, SLICE_FUNCTION_COLUMNS, T_slice, KIN_BELOW, 0,
     false},
    {"following_flow", "__intrinsic_flow", flow_function_columns, FLOW_FUNCTION_COLUMNS, T_flow, KIN_FLOW,
     FLOW_OUTGOING, true},
    {"preceding_flow", "__intrinsic_flow", flow_function_columns, FLOW_FUNCTION_COLUMNS, T_flow, KIN_FLOW,
     FLOW_INCOMING, true},
    {"directly_connected_flow", "__intrinsic_flow", flow_function_columns, FLOW_FUNCTION_COLUMNS, T_flow, KIN_FLOW,
     FLOW_INCOMING | FLOW_OUTGOING, false},
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

/* The columns of the function are the number of the row, then those of the table. Flows are numbered anew in each
 * answer, which a plan does not do: that column has no expression. */
static bool add_columns(struct query_plan *p, struct scope_entry *e, uint32_t function)
{
    uint8_t source = (uint8_t)(p->n_sources - 1);
    for (uint32_t i = 0; i < functions[function].n_columns; i++) {
        const struct column_def *c = &functions[function].columns[i];
        int16_t column = i ? (int16_t)(i - 1) : VTAB_ROW;
        bool known = i || functions[function].kin != KIN_FLOW;
        struct plan_expr *x = known ? plan_column(p, source, column, plan_type_of((enum col_type)c->type)) : NULL;
        if (known && !x)
            return false;
        e->columns[e->n_columns++] = (struct scope_column){.name = {c->name, (uint32_t)strlen(c->name), 0}, .expr = x};
    }
    return true;
}

bool read_kin(struct reader *r, const struct sql_from *f, bool left)
{
    struct query_plan *p = r->plan;
    uint32_t at = 0;
    while (at < N_FUNCTIONS && !sql_name_is(f->name, functions[at].name))
        at++;
    if (at == N_FUNCTIONS || !f->args || f->args->next || p->right || r->recursion || left)
        return false;
    struct plan_expr *of = read_expr(r, f->args);
    struct plan_source *s = p->n_sources < PLAN_MAX_SOURCES ? &p->sources[p->n_sources] : NULL;
    if (!s || !of || of->type != PLAN_INT || !of->sources)
        return false;
    struct sql_name alias = f->alias.len ? f->alias : f->name;
    *s = (struct plan_source){.printed = {alias},
                              .n_printed = 1,
                              .kin = functions[at].kin,
                              .directions = functions[at].directions,
                              .relatives = functions[at].relatives,
                              .kin_of = of};
    struct scope_entry *e = scope_add_entry(r, alias, functions[at].n_columns);
    if (!e || !plan_table_open(&s->table, p->e, functions[at].table))
        return false;
    p->n_sources++;
    if (!s->table.table->final)
        table_finalize((struct table *)(uintptr_t)s->table.table);
    if (s->table.table != &p->e->storage->t[functions[at].id] || !add_columns(p, e, at))
        return false;
    p->order_unknown = true; /* those above come from the nearest to the farthest, flows as they are reached */
    if (s->table.table->n_rows > *r->rows)
        *r->rows = s->table.table->n_rows;
    return true;
}

bool kin_find(struct run *r, const struct plan_source *s, int64_t slice, struct row_list *out)
{
    const struct table *t = &r->e->storage->t[T_slice];
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
    else if (s->kin == KIN_FLOW)
        rc = flow_graph_find(r->e, row, s->directions, s->relatives, out);
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
