/* The rows of `args` that a plan needs, while not all of them are decoded: those of the key that it asks for, and those
 * of the sets that another of its tables names. A recording of track events has millions of values; what a thread's
 * track is of are a hundred. */
#include "sql/plan/join_private.h"
#include "sql/plan/run_private.h"
#include "sql/vtab/vtab.h"

enum { KEY_ALONE = 4 /* as many sets take as long to be searched for one key as one takes to be decoded */ };

/* A condition `args.key = 'text'`, or of the flat key. */
static bool read_key(const struct plan_expr *x, uint8_t source, struct args_part *out)
{
    for (int side = 0; side < 2 && x->op == X_COMPARE && x->sql == SQL_EQ; side++) {
        const struct plan_expr *own = x->args[side], *value = x->args[1 - side];
        if (own->op != X_COLUMN || own->source != source || value->op != X_CONST || value->type != PLAN_TEXT ||
            !value->word || (own->column != args_c_key && own->column != args_c_flat_key))
            continue;
        out->column = own->column;
        out->key = (strid)value->word;
        return true;
    }
    return false;
}

/* The column that a condition says the number of the set is in; NULL: it says nothing of the kind. */
static const struct plan_expr *read_set(const struct query_plan *p, const struct plan_expr *x, uint8_t source)
{
    for (int side = 0; side < 2 && x->op == X_COMPARE && x->sql == SQL_EQ; side++) {
        const struct plan_expr *own = x->args[side], *other = x->args[1 - side];
        if (own->op == X_COLUMN && own->source == source && own->column == args_c_arg_set_id && other->op == X_COLUMN &&
            other->source != source && other->source < p->n_sources && other->column >= 0 && other->type == PLAN_INT &&
            p->sources[other->source].table.name && !p->sources[other->source].table.outline)
            return other;
    }
    return NULL;
}

static uint32_t rows_in(const struct query_plan *p, const struct plan_expr *column)
{
    return p->sources[column->source].table.table->n_rows;
}

/* What is known of the rows: a key, and the column of the smallest table that names sets (NULL: none). */
static const struct plan_expr *read_part(const struct query_plan *p, uint8_t source, struct args_part *out)
{
    const struct plan_source *s = &p->sources[source];
    const struct plan_expr *best = NULL;
    *out = (struct args_part){.column = -1};
    for (uint32_t i = 0; i < p->n_where + s->n_on; i++) {
        const struct plan_expr *x = i < p->n_where ? p->where[i] : s->on[i - p->n_where];
        const struct plan_expr *column = read_set(p, x, source);
        if (column && (!best || rows_in(p, column) < rows_in(p, best)))
            best = column;
        if (out->column < 0)
            read_key(x, source, out);
    }
    return best;
}

uint32_t args_rows_likely(const struct query_plan *p, uint8_t source)
{
    struct args_part part;
    const struct plan_expr *column = read_part(p, source, &part);
    uint32_t all = p->sources[source].table.table->n_rows, sets = column ? rows_in(p, column) : all;
    return sets < all ? sets : part.column >= 0 ? all / KEY_ALONE : all;
}

static const struct plan_step *step_of(const struct query_plan *p, uint8_t source)
{
    const struct plan_step *s = p->steps;
    while (s->source != source)
        s++;
    return s;
}

/* A bit for each set that rows of the column's table name, those that pass what is asked of this table alone. */
static uint64_t *list_sets(struct run *r, const struct plan_expr *column, uint32_t *n_listed)
{
    const struct args *args = &r->e->storage->args;
    const struct table *t = r->tables[column->source];
    const uint32_t n_sets = args_count(args);
    const size_t n_words = (size_t)n_sets / 64 + 1;
    uint64_t *sets = run_alloc(r, n_words * sizeof *sets) ? mem_zalloc(n_words * sizeof *sets) : NULL;
    struct scan scan;
    uint32_t rows[BATCH + 8], n;
    int64_t cells[BATCH];
    argset last = ARGSET_NONE;
    if (!sets) {
        r->rc = r->rc ? r->rc : SQLITE_NOMEM;
        return NULL;
    }
    scan_open(r, step_of(r->plan, column->source), &scan);
    while (scan_next(r, &scan, column->source, rows, &n)) {
        column_gather(&t->columns[column->column], rows, n, cells);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t set = args_of_next_cell(args, cells[i], &last).plus_one;
            if (!set || set > n_sets || (sets[(set - 1) / 64] >> (set - 1) % 64 & 1))
                continue;
            sets[(set - 1) / 64] |= 1ull << (set - 1) % 64;
            ++*n_listed;
        }
    }
    scan_close(&scan);
    return sets;
}

struct table *args_rows_run(struct run *r, uint8_t source)
{
    struct args_part part;
    const struct plan_expr *column = read_part(r->plan, source, &part);
    uint32_t n = args_count(&r->e->storage->args), n_all = n;
    uint64_t *sets = NULL;
    if (r->e->all_args_ready || r->e->args_decoded > n_all || (!column && part.column < 0) ||
        plan_uses(r->plan, source, VTAB_ROW))
        return NULL;
    if (column) {
        n = 0;
        sets = list_sets(r, column, &n);
    }
    uint64_t work = part.column >= 0 ? n / KEY_ALONE : n;
    struct table *t = !r->rc && work <= n_all / 2 ? mem_zalloc(sizeof *t) : NULL;
    if (t) {
        part.sets = sets;
        r->e->args_decoded += work;
        r->rc = args_some(r->e, &part, t);
        if (!r->rc)
            run_alloc(r, (uint64_t)t->n_rows * t->def->n_columns * 4);
    }
    mem_free(sets);
    return t;
}
