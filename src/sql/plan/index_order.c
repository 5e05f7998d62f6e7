/* The order of an index that SQLite makes for one statement (`USING AUTOMATIC COVERING INDEX`): of a query that it has
 * computed first, rows of one key come sorted by all columns that the statement names, from the first to the last. */
#include "sql/plan/plan_private.h"

/* The entry of a scope that SQLite calls by that name where rows of the source come from; NULL: none, or two. */
static const struct scope_entry *entry_named(const struct plan_source *s, struct sql_name name)
{
    const struct scope_entry *found = NULL;
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->n_printed; k++)
        if (sql_name_equal(s->printed[k], name)) {
            found = s->entries[k];
            n++;
        }
    return n == 1 ? found : NULL;
}

static bool is_among(const struct plan_expr *x, const int16_t *columns, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (x->op == X_COLUMN && x->column == columns[i])
            return true;
    return false;
}

bool index_order_add(struct query_plan *p, uint8_t source, struct sql_name name, const int16_t *keys, uint32_t n_keys)
{
    const struct plan_source *s = &p->sources[source];
    const struct scope_entry *e = entry_named(s, name);
    enum { MOST_COLUMNS = 62 /* of those behind, SQLite takes all where one is named */ };
    if (!e || p->right || s->batches || s->pointer || s->kin || s->table.outline || e->n_columns > MOST_COLUMNS)
        return false;
    for (uint32_t i = 0; i < e->n_columns; i++) {
        struct plan_expr *x = e->columns[i].expr;
        if (!e->columns[i].used || (x && (!x->sources || is_among(x, keys, n_keys))))
            continue;
        if (!x || x->mixed || x->sources != 1u << source || p->n_index_terms == PLAN_MAX_ORDER)
            return false;
        p->index_terms[p->n_index_terms] = x;
        p->index_loops[p->n_index_terms++] = (uint8_t)p->n_loops;
    }
    return true;
}
