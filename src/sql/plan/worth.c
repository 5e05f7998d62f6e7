/* Whether a plan is worth it: where SQLite stops early, or finds the rows by an index, it is left to SQLite. */
#include "sql/plan/plan_private.h"
#include "sql/vtab/vtab.h"

/* Is a side of the comparison the first column of its source: ts, of a span join? */
static bool looks_at_first(const struct plan_expr *x)
{
    return (x->args[0]->op == X_COLUMN && x->args[0]->column == 0) ||
           (x->args[1]->op == X_COLUMN && x->args[1]->column == 0);
}

/* Equalities with a table that an operator computes are better handed to the operator, and so are times. */
static bool narrows_batches(const struct query_plan *p)
{
    for (uint32_t i = 0; i < p->n_where; i++)
        for (uint32_t s = 0; s < p->n_sources; s++)
            if (p->sources[s].batches && p->where[i]->op == X_COMPARE && p->where[i]->sources == 1u << s &&
                (p->where[i]->sql == SQL_EQ || p->where[i]->sql == SQL_IS || looks_at_first(p->where[i])))
                return true;
    return false;
}

static bool is_computed(const struct plan_source *s)
{
    return s->sub || s->batches || s->pointer || s->values || s->round;
}

/* Conditions for which an index of the table is there, or is to be made by SQLite's way to the rows; so are those on
 * what is sorted. */
static bool has_lookups(const struct query_plan *p)
{
    const struct plan_source *s = &p->sources[p->steps[0].source];
    const struct engine_known_table *known = engine_find_known(p->e, s->table.name);
    if (!known || !known->vtab || known->vtab->source->named.n)
        return true;
    for (uint32_t i = 0; i < p->steps[0].n_tests; i++) {
        const struct plan_expr *x = p->steps[0].tests[i], *c = NULL;
        if (x->op == X_IN || (x->op == X_COMPARE && (x->sql == SQL_EQ || x->sql == SQL_IS)))
            c = x->args[0]->op == X_COLUMN                    ? x->args[0]
                : x->n_args > 1 && x->args[1]->op == X_COLUMN ? x->args[1]
                                                              : NULL;
        if (!c)
            continue;
        if (c->column == VTAB_ROW || s->table.table->columns[c->column].sorted ||
            (s->table.outline && c->column == args_c_arg_set_id) ||
            index_peek(known->vtab, s->table.table, (uint32_t)c->column) ||
            index_is_due(known->vtab, s->table.table, (uint32_t)c->column, s->table.table->n_rows))
            return true;
    }
    return false;
}

/* Do the rows of its only table come in the order that is asked for? */
static bool is_in_order(const struct query_plan *p)
{
    const struct plan_expr *x = p->orders[0];
    const struct table *t = p->sources[p->steps[0].source].table.table;
    return p->n_orders == 1 && !p->orders_desc[0] && x->op == X_COLUMN && x->source == p->steps[0].source &&
           (x->column == VTAB_ROW || (t->columns[x->column].sorted && t->columns[x->column].type != COL_STR));
}

bool plan_is_scan(const struct query_plan *p)
{
    return p->n_sources == 1 && !is_computed(&p->sources[p->steps[0].source]) && !p->grouped && !p->n_windows &&
           !p->distinct && !p->restore_order && !p->n_arms && (p->n_orders ? is_in_order(p) : p->limit < 0);
}

bool plan_sorts_rows(const struct query_plan *p)
{
    bool plain = p->n_sources == 1 && p->sources[0].table.name && p->n_orders && p->limit < 0 && !p->offset &&
                 !p->grouped && !p->n_windows && !p->distinct && !p->restore_order && !p->n_arms;
    for (uint32_t k = 0; plain && k < p->n_orders; k++)
        plain = p->orders[k]->op == X_COLUMN && p->orders[k]->source == 0;
    return plain;
}

/* JSON of each row would fill the string pool, where it does not go to the caller as it is made. */
static bool makes_json_of_rows(const struct query_plan *p, bool direct)
{
    bool json = false, made_here = true;
    for (uint32_t i = 0; i < p->n_items; i++) {
        json |= is_json_call(p->items[i].expr);
        made_here &= p->items[i].expr->format || !is_json_call(p->items[i].expr);
    }
    return json && !p->grouped && p->limit < 0 && !(direct && made_here && (plan_is_scan(p) || plan_sorts_rows(p)));
}

/* Times as many rows as ask: by ranges, by keys, and by keys where all rows are to be sorted before. */
enum { FEW_PROBES = 64, FEW_PROBES_OF_KEYS = 1024, FEW_PROBES_OF_SORTED = 16 };

static uint32_t largest_table(const struct query_plan *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_sources; i++) {
        if (!p->sources[i].table.name)
            return UINT32_MAX; /* nobody knows how many */
        uint32_t rows = p->sources[i].table.table->n_rows;
        n = rows > n ? rows : n;
    }
    return n;
}

/* Is one row looked for that a key of a table finds? SQLite makes an index of the column, which stays. */
static bool finds_one(const struct plan_lookup *l)
{
    const struct query_plan *sub = l->sub;
    const struct plan_expr *key = l->n_keys == 1 && l->kind != LOOKUP_IN ? sub->items[0].expr : NULL;
    return key && key->op == X_COLUMN && sub->n_sources == 1 && sub->sources[0].table.name && !sub->grouped &&
           !sub->n_windows;
}

/* The first rows of one table in its own order: SQLite goes no further. */
static bool stops_in_order(const struct query_plan *p)
{
    return p->limit >= 0 && p->n_sources == 1 && p->sources[0].table.name && !p->grouped && !p->n_windows &&
           !p->distinct && p->n_orders && is_in_order(p);
}

/* Few rows ask in a large table: SQLite looks at what each of them needs only. */
static bool asks_seldom(const struct query_plan *p)
{
    uint64_t asked = p->n_lookups ? largest_table(p) : UINT32_MAX;
    bool stops = p->n_lookups && stops_in_order(p);
    uint64_t first = stops ? (uint64_t)p->limit + (uint64_t)p->offset : asked;
    for (uint32_t i = 0; i < p->n_lookups && asked < UINT32_MAX; i++) {
        const struct plan_lookup *l = &p->lookups[i];
        uint32_t rows = l->n_ranges || l->n_ties || finds_one(l) ? largest_table(l->sub) : 0;
        uint32_t few = l->n_ties ? FEW_PROBES_OF_SORTED : l->n_keys ? FEW_PROBES_OF_KEYS : FEW_PROBES;
        if (rows < UINT32_MAX && (asked * few < rows || (first < rows && first * FEW_PROBES < rows)))
            return true;
    }
    return false;
}

enum { FEW_PARTS = 16 };

/* Does a frame reach to the end of a partition of which there are few, by the values of the columns that make them? To
 * give its first row, SQLite goes through all of one. */
static bool reads_large_parts(const struct query_plan *p, const struct plan_level *l)
{
    uint64_t parts = 1;
    bool far = false;
    for (uint32_t i = 0; i < p->n_windows; i++)
        far |= (p->windows[i].kind >= WIN_PERCENT_RANK && p->windows[i].kind <= WIN_NTILE) ||
               p->windows[i].frame == FRAME_WHOLE ||
               (p->windows[i].frame >= FRAME_SLIDING && p->windows[i].to == FRAME_FAR);
    for (uint32_t i = 0; i < l->n_partition && far; i++) {
        const struct plan_expr *x = p->window_rows.columns[l->order[i].column];
        if (x->op != X_COLUMN || x->column < 0 || x->type == PLAN_REAL || x->source >= p->n_sources ||
            !p->sources[x->source].table.name)
            return false;
        uint64_t width = column_width(&p->sources[x->source].table.table->columns[x->column]);
        parts = width < FEW_PARTS ? parts * (width + 1) : FEW_PARTS + 1;
        if (parts > FEW_PARTS)
            return false;
    }
    return far;
}

enum { STOPS_SOON = 8 /* times as many rows as LIMIT asks for */ };

/* Windows over one table in the order of the answer, of which the first rows are asked for: SQLite sorts the numbers of
 * the rows, and computes what is asked for only. */
static bool stops_in_window(const struct query_plan *p)
{
    const struct plan_level *l = &p->levels[0];
    if (p->n_levels != 1 || p->n_sources != 1 || !p->sources[0].table.name || p->grouped || p->distinct ||
        p->limit < 0 || p->n_orders > l->n || reads_large_parts(p, l))
        return false;
    const struct table *t = p->sources[0].table.table;
    if (p->limit > t->n_rows || p->offset > t->n_rows || p->limit + p->offset > t->n_rows / STOPS_SOON)
        return false;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct plan_expr *o = i < p->n_orders ? p->orders[i] : NULL;
        if (p->window_rows.columns[l->order[i].column]->op != X_COLUMN ||
            (o && (o->op != X_COLUMN || o->source != PLAN_WINDOWS || o->column != l->order[i].column ||
                   p->orders_desc[i] != l->order[i].desc)))
            return false;
    }
    return true;
}

/* The greatest of a column that sorts its table: SQLite goes no further than the last row. */
static bool looks_at_last(const struct query_plan *p)
{
    return p->n_aggregates == 1 && p->aggregates[0].kind == AGG_MAX && !p->n_where && !p->steps[0].n_tests &&
           plan_looks_at_ends(p);
}

bool plan_is_worth_it(const struct query_plan *p, bool inner, bool direct)
{
    bool first_rows = p->limit >= 0 && !p->n_orders && !p->grouped; /* SQLite stops when it has them */
    if (p->limit == 0 || narrows_batches(p) || makes_json_of_rows(p, direct) || asks_seldom(p))
        return false;
    if (inner)
        return true;
    if (looks_at_last(p))
        return false;
    for (uint32_t i = 0; i < p->n_levels; i++)
        if (first_rows && p->levels[i].n_partition && !reads_large_parts(p, &p->levels[i]))
            return false;
    if (stops_in_window(p))
        return false;
    if (first_rows && p->restore_order && !p->n_windows)
        return false;
    for (uint32_t i = 0; i < p->n_sources; i++)
        if (is_computed(&p->sources[i]))
            return true;
    return p->grouped || p->n_windows || p->n_sources > 1 || p->distinct || p->n_orders ||
           (p->n_lookups && p->limit < 0) || (direct && plan_is_scan(p) && !has_lookups(p));
}

bool plan_is_small(const struct reader *r)
{
    bool derived = false;
    for (uint32_t i = 0; i < r->plan->n_sources; i++)
        derived |= is_computed(&r->plan->sources[i]);
    return !derived && !r->loop_arm && r->depth == 1 && *r->rows < PLANNER_MIN_ROWS;
}

enum { MANY_GROUPS = 16 /* times as many as are asked for */ };

bool plan_stops_after_groups(const struct reader *r)
{
    const struct query_plan *p = r->plan;
    const struct plan_expr *x = p->grouped && p->n_keys ? p->keys[0] : NULL;
    int parent = p->limit >= 0 ? loops_parent(r) : -1;
    if (!x || parent < 0 || p->having || p->n_windows || x->op != X_COLUMN || x->source >= p->n_sources ||
        !p->sources[x->source].table.name)
        return false;
    const struct table *t = p->sources[x->source].table.table;
    if (p->limit > t->n_rows || p->offset > t->n_rows || p->limit + p->offset > t->n_rows / MANY_GROUPS)
        return false;
    if (x->column != VTAB_ROW) {
        const struct column *c = &t->columns[x->column];
        if (!c->sorted || c->type == COL_STR || column_width(c) / MANY_GROUPS < (uint64_t)(p->limit + p->offset))
            return false;
    }
    return !loops_say(r->loops, parent, "USE TEMP B-TREE FOR GROUP BY") &&
           !loops_say(r->loops, parent, "USE TEMP B-TREE FOR ORDER BY");
}

/* Rows of a join that SQLite finds in the order that is asked for, of which the first ones are: it goes no further.
 * Where each row has one partner at most, a plan goes through them as fast. */
bool plan_stops_in_order(const struct reader *r)
{
    const struct query_plan *p = r->plan;
    bool many = false, args = false;
    for (uint32_t i = 1; i < p->n_steps; i++)
        many |= !p->steps[i].by_row;
    for (uint32_t i = 0; i < p->n_sources; i++)
        args |= p->sources[i].table.outline; /* those of a key only are decoded */
    if (!many || args || p->limit < 0 || !p->n_orders || p->grouped || p->n_windows || p->distinct || p->n_arms)
        return false;
    int parent = loops_parent(r);
    uint64_t first = (uint64_t)p->limit + (uint64_t)p->offset;
    return parent >= 0 && first < *r->rows / STOPS_SOON && !loops_say(r->loops, parent, "USE TEMP B-TREE FOR ORDER BY");
}
