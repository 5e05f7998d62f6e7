/* __intrinsic_neighbours: rows in the order of a window, each beside the row before and behind it.
 *
 *     SELECT i0 AS ts, c1 FROM __intrinsic_neighbours(plan)
 *
 * The plan is a pointer (struct neighbours_plan) that neighbours_plan.c has bound: the columns that make a partition
 * and order it, and the outputs: a value of the row, of the one behind it, or of the one before it in its partition.
 * Output 3 is c3, or i3, d3 or t3 when SQLite shall compare it as a column of integers, doubles or texts. Anybody may
 * call the function, with anything: what is no plan is refused, and a plan is held against the table as it is now. */
#include "sql/planner/planner_private.h"

#include <string.h>

enum { AHEAD_SHIFT = 8, AHEAD = 1 << AHEAD_SHIFT, NO_BLOCK = UINT32_MAX };

struct output {
    int16_t at;     /* column of the table, or VTAB_ROW */
    int8_t step;    /* 0: the row itself, 1: the one behind it, -1: the one before it */
    uint32_t block; /* which rows `words` are of: place >> AHEAD_SHIFT */
    int64_t words[AHEAD];
};

struct cursor {
    sqlite3_vtab_cursor base;
    struct engine *e;
    const struct table *t;
    struct plan_order order[NEIGHBOURS_MAX_COLUMNS]; /* partition columns, then those of ORDER BY */
    uint32_t n_order, n_partition;
    struct output *outputs;
    uint32_t n_outputs;
    VEC(uint32_t)
    rows;
    uint32_t at;
};

static bool read_plan(struct cursor *c, const struct neighbours_plan *plan)
{
    c->t = plan_table_rows(&plan->table, c->e);
    if (!c->t)
        return false;
    for (uint32_t i = 0; i < plan->n_order; i++) {
        if (!plan_column_is_valid(c->t, plan->order[i].column))
            return false;
        c->order[c->n_order++] = plan->order[i];
    }
    c->n_partition = plan->n_partition;
    for (uint32_t i = 0; i < plan->n_outputs; i++) {
        if (!plan_column_is_valid(c->t, plan->outputs[i].at))
            return false;
        struct output *o = &c->outputs[c->n_outputs++];
        o->at = plan->outputs[i].at;
        o->step = plan->outputs[i].step;
        o->block = NO_BLOCK;
    }
    return true;
}

static void read_words(const struct cursor *c, int16_t at, const uint32_t *rows, uint32_t n, int64_t *words)
{
    if (at >= 0)
        column_gather(&c->t->columns[at], rows, n, words);
    for (uint32_t i = 0; at < 0 && i < n; i++)
        words[i] = rows[i];
}

static enum col_type type_of(const struct cursor *c, int16_t at)
{
    return at < 0 ? COL_U32 : (enum col_type)c->t->columns[at].type;
}

/* Sets to NULL those of words[0..n) whose row, from place `first` on, has its neighbour in another partition. */
static void cut_partitions(const struct cursor *c, const struct output *o, uint32_t first, uint32_t n, int64_t *words)
{
    int64_t own[AHEAD], other[AHEAD], null = column_null(type_of(c, o->at));
    for (uint32_t p = 0; p < c->n_partition; p++) {
        read_words(c, c->order[p].column, c->rows.p + first, n, own);
        read_words(c, c->order[p].column, c->rows.p + first + o->step, n, other);
        for (uint32_t i = 0; i < n; i++)
            words[i] = own[i] == other[i] ? words[i] : null;
    }
}

/* Fills an output's words for the block of the current row: many at a time, which hides the latency of memory. */
static void read_ahead(const struct cursor *c, struct output *o)
{
    uint32_t first = c->at & ~(uint32_t)(AHEAD - 1), all = (uint32_t)c->rows.n;
    uint32_t n = all - first < AHEAD ? all - first : AHEAD, lo = 0;
    o->block = c->at >> AHEAD_SHIFT;
    if (o->step < 0 && first == 0)
        o->words[lo++] = column_null(type_of(c, o->at)); /* nothing stands before the first row */
    if (o->step > 0 && first + n == all)
        o->words[--n] = column_null(type_of(c, o->at));
    if (lo >= n)
        return;
    read_words(c, o->at, c->rows.p + first + lo + o->step, n - lo, o->words + lo);
    if (o->step)
        cut_partitions(c, o, first + lo, n - lo, o->words + lo);
}

/* ---- the virtual table ---- */

enum { OUTPUTS = NEIGHBOURS_MAX_COLUMNS * NEIGHBOURS_TYPES };

const char neighbours_letters[] = "cidt";

struct neighbours_vtab {
    sqlite3_vtab base;
    struct engine *e;
};

static int x_connect(sqlite3 *db, void *client, int argc, const char *const *argv, sqlite3_vtab **out, char **message)
{
    static const char *const types[NEIGHBOURS_TYPES] = {"", " INTEGER", " DOUBLE", " TEXT"};
    struct neighbours_vtab *v = mem_zalloc(sizeof *v);
    sqlite3_str *s = sqlite3_str_new(NULL);
    (void)argc;
    (void)argv;
    (void)message;
    sqlite3_str_appendall(s, "CREATE TABLE x(");
    for (int i = 0; i < OUTPUTS; i++)
        sqlite3_str_appendf(s, "%c%d%s,", neighbours_letters[i / NEIGHBOURS_MAX_COLUMNS], i % NEIGHBOURS_MAX_COLUMNS,
                            types[i / NEIGHBOURS_MAX_COLUMNS]);
    sqlite3_str_appendall(s, "plan HIDDEN)");
    char *text = sqlite3_str_finish(s);
    int rc = v && text ? engine_declare_vtab(db, text) : SQLITE_NOMEM;
    sqlite3_free(text);
    if (rc != SQLITE_OK) {
        mem_free(v);
        return rc;
    }
    v->e = client;
    *out = &v->base;
    return SQLITE_OK;
}

static int x_disconnect(sqlite3_vtab *base)
{
    mem_free(base);
    return SQLITE_OK;
}

static int x_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    (void)base;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *k = &info->aConstraint[i];
        if (k->iColumn != OUTPUTS || k->op != SQLITE_INDEX_CONSTRAINT_EQ || !k->usable)
            continue;
        info->aConstraintUsage[i].argvIndex = 1;
        info->aConstraintUsage[i].omit = 1;
        info->estimatedCost = 1e6;
        info->estimatedRows = 100000;
        return SQLITE_OK;
    }
    return SQLITE_CONSTRAINT;
}

static int x_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    struct cursor *c = mem_zalloc(sizeof *c);
    struct output *outputs = mem_zalloc(NEIGHBOURS_MAX_COLUMNS * sizeof *outputs);
    if (!c || !outputs) {
        mem_free(c);
        mem_free(outputs);
        return SQLITE_NOMEM;
    }
    c->e = ((struct neighbours_vtab *)base)->e;
    c->outputs = outputs;
    *out = &c->base;
    return SQLITE_OK;
}

static int x_close(sqlite3_vtab_cursor *base)
{
    struct cursor *c = (struct cursor *)base;
    vec_free(&c->rows);
    mem_free(c->outputs);
    mem_free(c);
    return SQLITE_OK;
}

static int x_filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc, sqlite3_value **argv)
{
    struct cursor *c = (struct cursor *)base;
    (void)number;
    (void)text;
    const struct neighbours_plan *plan = argc > 0 ? sqlite3_value_pointer(argv[0], NEIGHBOURS_PLAN) : NULL;
    c->at = c->n_order = c->n_partition = c->n_outputs = 0;
    vec_clear(&c->rows);
    if (!plan || !read_plan(c, plan)) {
        base->pVtab->zErrMsg =
            sqlite3_mprintf(plan ? "the table has changed since the statement was prepared; prepare it again"
                                 : "__intrinsic_neighbours: no plan; this function is for the engine's own use");
        return SQLITE_ERROR;
    }
    if (!vec_reserve(&c->rows, c->t->n_rows + (size_t)1))
        return SQLITE_NOMEM;
    c->rows.n = c->t->n_rows;
    for (uint32_t i = 0; i < c->t->n_rows; i++)
        c->rows.p[i] = i;
    if (!order_rows(c->t, &c->e->storage->strings, c->order, c->n_order, false, c->t->n_rows, c->rows.p, c->t->n_rows,
                    engine_stop(c->e)))
        return engine_gave_up(c->e);
    return engine_is_interrupted(c->e) ? SQLITE_INTERRUPT : SQLITE_OK;
}

static int x_next(sqlite3_vtab_cursor *base)
{
    ((struct cursor *)base)->at++;
    return SQLITE_OK;
}

static int x_eof(sqlite3_vtab_cursor *base)
{
    const struct cursor *c = (const struct cursor *)base;
    return c->at >= c->rows.n;
}

static int x_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
    struct cursor *c = (struct cursor *)base;
    uint32_t at = (uint32_t)column % NEIGHBOURS_MAX_COLUMNS;
    if (column >= OUTPUTS || at >= c->n_outputs)
        return SQLITE_OK;
    struct output *o = &c->outputs[at];
    if (o->block != c->at >> AHEAD_SHIFT)
        read_ahead(c, o);
    planner_result(c->e, ctx, type_of(c, o->at), o->words[c->at & (AHEAD - 1)]);
    return SQLITE_OK;
}

static int x_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    *out = ((const struct cursor *)base)->at;
    return SQLITE_OK;
}

const sqlite3_module neighbours_module = {.xConnect = x_connect,
                                          .xBestIndex = x_best_index,
                                          .xDisconnect = x_disconnect,
                                          .xOpen = x_open,
                                          .xClose = x_close,
                                          .xFilter = x_filter,
                                          .xNext = x_next,
                                          .xEof = x_eof,
                                          .xColumn = x_column,
                                          .xRowid = x_rowid};
