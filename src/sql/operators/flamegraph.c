/* __intrinsic_flamegraph(query): the virtual table of a flame graph; see flamegraph.h.
 *
 * Made from (id, parent_id, name) and columns of values and properties. Gives _tree_id, _tree_parent_id, depth, name,
 * parent_cumulative_value, x_start, x_end (of the first value) and for each column c of the query self_c,
 * cumulative_c (when c is asked for as a value) and c (when it is grouped by or aggregated). */
#include "sql/operators/flamegraph.h"
#include "sql/operators/operators.h"

#include "base/u64map.h"

#include <string.h>

enum { C_ID, C_PARENT, C_DEPTH, C_NAME, C_PARENT_CUMULATIVE, C_X_START, C_X_END, C_FIRST };
enum { FIND = SQLITE_INDEX_CONSTRAINT_FUNCTION };

struct flame_table {
    sqlite3_vtab base;
    struct engine *e;
    struct flame_source s;
    bool *is_double; /* [column] holds numbers that are not whole */
};

struct flame_cursor {
    sqlite3_vtab_cursor base;
    struct flame_tree tree;
    struct flame_config *c; /* one reference */
    uint32_t at, n;
    bool super_root; /* the one row above all roots */
};

/* ---- loading ---- */

static strid intern(struct strpool *strings, struct slice text)
{
    return strpool_intern(strings, text.p, text.len);
}

static int put_cell(struct flame_table *t, struct flame_cell *c, uint32_t column, sqlite3_value *v)
{
    *c = (struct flame_cell){.type = (uint8_t)sqlite3_value_type(v), .i = 0};
    struct slice text;
    switch (c->type) {
    case SQLITE_INTEGER:
        c->i = sqlite3_value_int64(v);
        return SQLITE_OK;
    case SQLITE_FLOAT:
        c->d = sqlite3_value_double(v);
        t->is_double[column] = true;
        return SQLITE_OK;
    case SQLITE_TEXT:
        text = function_text(v);
        c->s = intern(t->s.strings, text);
        return c->s || !text.len ? SQLITE_OK : SQLITE_NOMEM;
    case SQLITE_NULL:
        return SQLITE_OK;
    default:
        return SQLITE_MISMATCH;
    }
}

struct loading {
    VEC(int64_t)
    ids;
    VEC(int64_t)
    parents;
    VEC(strid)
    names;
    VEC(struct flame_cell)
    cells;
};

static int load_row(struct flame_table *t, struct loading *l, sqlite3_stmt *stmt, const int *at, const int *extra)
{
    bool root = sqlite3_column_type(stmt, at[1]) == SQLITE_NULL;
    strid name = 0;
    if (sqlite3_column_type(stmt, at[2]) != SQLITE_NULL)
        name = intern(t->s.strings, function_text(sqlite3_column_value(stmt, at[2])));
    if (!vec_push(&l->ids, sqlite3_column_int64(stmt, at[0])) ||
        !vec_push(&l->parents, root ? COL_NULL : sqlite3_column_int64(stmt, at[1])) || !vec_push(&l->names, name))
        return SQLITE_NOMEM;
    for (uint32_t i = 0; i < t->s.n_columns; i++) {
        struct flame_cell c;
        int rc = put_cell(t, &c, i, sqlite3_column_value(stmt, extra[i]));
        if (rc != SQLITE_OK)
            return rc;
        if (!vec_push(&l->cells, c))
            return SQLITE_NOMEM;
    }
    return SQLITE_OK;
}

/* The frame of each parent, and an order of parents before children. */
static bool link_frames(struct flame_source *s)
{
    struct u64map index = {0};
    uint32_t *first = mem_zalloc(((size_t)s->n + 2) * sizeof *first),
             *children = mem_alloc((s->n + 1) * sizeof *children);
    s->parents = mem_alloc((s->n + 1) * sizeof *s->parents);
    s->order = mem_alloc((s->n + 1) * sizeof *s->order);
    bool ok = first && children && s->parents && s->order;
    stop_flag *stop = s->stop;
    for (uint32_t i = 0; ok && i < s->n; i++)
        ok = !stop_asked(stop) && u64map_set(&index, (uint64_t)s->ids[i], i);
    for (uint32_t i = 0; ok && i < s->n; i++) {
        const uint64_t *up = s->parent_ids[i] == COL_NULL ? NULL : u64map_get(&index, (uint64_t)s->parent_ids[i]);
        s->parents[i] = up ? (uint32_t)*up : FLAME_NONE;
        ok = !stop_asked(stop);
        if (up)
            first[*up + 2]++;
        else
            s->order[s->n_order++] = i;
    }
    for (uint32_t i = 2; ok && i < s->n + 2; i++)
        first[i] += first[i - 1];
    for (uint32_t i = 0; ok && i < s->n; i++)
        if (s->parents[i] != FLAME_NONE)
            children[first[s->parents[i] + 1]++] = i;
    for (uint32_t k = 0; ok && k < s->n_order; k++)
        for (uint32_t i = first[s->order[k]]; i < first[s->order[k] + 1]; i++)
            s->order[s->n_order++] = children[i];
    u64map_free(&index);
    mem_free(first);
    mem_free(children);
    return ok;
}

/* Which columns of the query are what: at[] of id, parent_id and name, extra[] the others. */
static int read_columns(struct flame_table *t, sqlite3_stmt *stmt, int *at, int *extra, char **err)
{
    static const char *const needed[] = {"id", "parent_id", "name"};
    at[0] = at[1] = at[2] = -1;
    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        const char *name = sqlite3_column_name(stmt, i);
        int k = 0;
        while (k < 3 && sqlite3_stricmp(name, needed[k]) != 0)
            k++;
        if (k < 3) {
            at[k] = i;
            continue;
        }
        extra[t->s.n_columns] = i;
        if (!(t->s.names[t->s.n_columns] = mem_strdup(name)))
            return SQLITE_NOMEM;
        t->s.n_columns++;
    }
    for (int k = 0; k < 3; k++)
        if (at[k] < 0) {
            *err = sqlite3_mprintf("flamegraph: the query has no column %s", needed[k]);
            return SQLITE_ERROR;
        }
    return SQLITE_OK;
}

static int load_rows(struct flame_table *t, sqlite3_stmt *stmt, char **err)
{
    int n = sqlite3_column_count(stmt), at[3], rc;
    struct loading l = {0};
    int *extra = mem_alloc(((size_t)n + 1) * sizeof *extra);
    t->s.names = mem_zalloc(((size_t)n + 1) * sizeof *t->s.names);
    t->is_double = mem_zalloc((size_t)n + 1);
    rc = extra && t->s.names && t->is_double ? read_columns(t, stmt, at, extra, err) : SQLITE_NOMEM;
    while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        rc = load_row(t, &l, stmt, at, extra);
    if (rc == SQLITE_MISMATCH)
        *err = sqlite3_mprintf("flamegraph: columns cannot be blobs");
    t->s.n = (uint32_t)l.ids.n;
    t->s.ids = l.ids.p;
    t->s.parent_ids = l.parents.p;
    t->s.frame_names = l.names.p;
    t->s.cells = l.cells.p;
    if (rc == SQLITE_DONE)
        rc = link_frames(&t->s) ? SQLITE_OK : engine_gave_up(t->e);
    mem_free(extra);
    return rc;
}

/* ---- the table ---- */

static int declare(sqlite3 *db, const struct flame_source *s)
{
    sqlite3_str *schema = sqlite3_str_new(NULL);
    sqlite3_str_appendall(schema, "CREATE TABLE x(_tree_id BIGINT, _tree_parent_id BIGINT, depth BIGINT, name TEXT, "
                                  "parent_cumulative_value, x_start, x_end");
    for (uint32_t i = 0; i < s->n_columns; i++)
        sqlite3_str_appendf(schema, ", \"self_%w\", \"cumulative_%w\", \"%w\"", s->names[i], s->names[i], s->names[i]);
    sqlite3_str_appendall(schema, ", config HIDDEN)");
    char *text = sqlite3_str_finish(schema);
    int rc = text ? engine_declare_vtab(db, text) : SQLITE_NOMEM;
    sqlite3_free(text);
    return rc;
}

static int disconnect(sqlite3_vtab *base)
{
    struct flame_table *t = (struct flame_table *)base;
    for (uint32_t i = 0; i < t->s.n_columns; i++)
        mem_free(t->s.names[i]);
    mem_free(t->s.names);
    mem_free(t->s.ids);
    mem_free(t->s.parent_ids);
    mem_free(t->s.frame_names);
    mem_free(t->s.cells);
    mem_free(t->s.parents);
    mem_free(t->s.order);
    mem_free(t->is_double);
    sqlite3_free(t);
    return SQLITE_OK;
}

static int create(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out, char **err)
{
    if (argc != 4) {
        *err = sqlite3_mprintf("flamegraph: expected one query, got %d arguments", argc - 3);
        return SQLITE_ERROR;
    }
    struct flame_table *t = sqlite3_malloc(sizeof *t);
    sqlite3_stmt *stmt = NULL;
    if (!t)
        return SQLITE_NOMEM;
    *t = (struct flame_table){.e = aux, .s = {.strings = &engine_storage(aux)->strings, .stop = engine_stop(aux)}};
    char *sql = sqlite3_mprintf("SELECT * FROM %s", argv[3]);
    int rc = sql ? engine_compile(aux, sql, -1, 0, &stmt, NULL) : SQLITE_NOMEM;
    if (rc == SQLITE_OK)
        rc = load_rows(t, stmt, err);
    if (rc != SQLITE_OK && rc != SQLITE_NOMEM && rc != SQLITE_INTERRUPT && !*err)
        *err = sqlite3_mprintf("flamegraph: %s", sqlite3_errmsg(db));
    sqlite3_finalize(stmt);
    sqlite3_free(sql);
    if (rc == SQLITE_OK)
        rc = declare(db, &t->s);
    if (rc != SQLITE_OK)
        disconnect(&t->base);
    else
        *out = &t->base;
    return rc;
}

static void find(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc, (void)argv;
    function_error(ctx, "FLAMEGRAPH_FIND: may only be used in the WHERE clause of a flame graph, on _tree_id");
}

static int find_function(sqlite3_vtab *base, int argc, const char *name,
                         void (**f)(sqlite3_context *, int, sqlite3_value **), void **arg)
{
    (void)base, (void)arg;
    if (argc != 2 || sqlite3_stricmp(name, "__intrinsic_flamegraph_find") != 0)
        return 0;
    *f = find;
    return FIND;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    const struct flame_table *t = (const struct flame_table *)base;
    int config = C_FIRST + 3 * (int)t->s.n_columns;
    bool found = false, later = false;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        bool is_config = c->iColumn == config && c->op == SQLITE_INDEX_CONSTRAINT_EQ;
        bool is_find = c->iColumn == C_ID && c->op == FIND;
        if (!is_config && !is_find)
            continue;
        later |= !c->usable;
        info->aConstraintUsage[i].argvIndex = is_config ? 1 : 2;
        info->aConstraintUsage[i].omit = 1;
        found |= is_config;
        info->idxNum |= is_find;
    }
    info->estimatedCost = 1000;
    info->estimatedRows = 1000;
    if (later)
        return SQLITE_CONSTRAINT;
    return found
               ? SQLITE_OK
               : operator_error(base, "flamegraph: call it with __intrinsic_flamegraph_config('value', …) as argument");
}

/* ---- cursors ---- */

static int cursor_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    return operator_open_cursor(sizeof(struct flame_cursor), out);
}

static int cursor_close(sqlite3_vtab_cursor *base)
{
    struct flame_cursor *c = (struct flame_cursor *)base;
    flame_tree_free(&c->tree);
    flame_config_unref(c->c);
    sqlite3_free(c);
    return SQLITE_OK;
}

static int cursor_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc, sqlite3_value **argv)
{
    struct flame_cursor *c = (struct flame_cursor *)base;
    const struct flame_table *t = (const struct flame_table *)base->pVtab;
    struct error err = {0};
    (void)plan;
    flame_tree_free(&c->tree);
    c->at = c->n = 0;
    c->super_root = number & 1;
    flame_config_unref(c->c);
    c->c = value_flame_config(argv[0]);
    if (!c->c)
        return operator_error(base->pVtab,
                              "flamegraph: the argument should be made by __intrinsic_flamegraph_config()");
    if (c->super_root && (argc < 2 || !slice_eq_str(function_text(argv[1]), "SUPER_ROOT")))
        return operator_error(base->pVtab, "flamegraph: only 'SUPER_ROOT' can be found");
    int rc = flame_tree_build(&c->tree, &t->s, c->c, &err);
    if (rc && stop_asked(t->s.stop))
        return SQLITE_INTERRUPT;
    if (rc)
        return rc == -MRD_ENOMEM ? SQLITE_NOMEM : operator_error(base->pVtab, "%s", err.text);
    c->n = c->super_root ? 1 : (uint32_t)c->tree.nodes.n;
    return SQLITE_OK;
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
    ((struct flame_cursor *)base)->at++;
    return SQLITE_OK;
}

static int cursor_eof(sqlite3_vtab_cursor *base)
{
    const struct flame_cursor *c = (const struct flame_cursor *)base;
    return c->at >= c->n;
}

/* ---- values ---- */

static void result_text(sqlite3_context *ctx, const struct flame_source *s, strid id)
{
    struct slice text = strpool_view(s->strings, id);
    sqlite3_result_text(ctx, (const char *)text.p, (int)text.len, SQLITE_STATIC);
}

static void result_number(sqlite3_context *ctx, double d, bool whole)
{
    if (whole)
        sqlite3_result_int64(ctx, (sqlite3_int64)d);
    else
        sqlite3_result_double(ctx, d);
}

static void result_cell(sqlite3_context *ctx, const struct flame_source *s, const struct flame_cell *c)
{
    if (c->type == SQLITE_TEXT)
        result_text(ctx, s, c->s);
    else if (c->type == SQLITE_INTEGER)
        sqlite3_result_int64(ctx, c->i);
    else if (c->type == SQLITE_FLOAT)
        sqlite3_result_double(ctx, c->d);
}

static void append_cell(sqlite3_str *out, const struct flame_source *s, const struct flame_cell *c)
{
    if (c->type == SQLITE_TEXT) {
        struct slice text = strpool_view(s->strings, c->s);
        sqlite3_str_append(out, (const char *)text.p, (int)text.len);
    } else if (c->type == SQLITE_INTEGER) {
        sqlite3_str_appendf(out, "%lld", (long long)c->i);
    } else {
        sqlite3_str_appendf(out, "%!.15g", c->d);
    }
}

/* One column of all frames of a node, as the mode says; NULLs do not count. */
static void aggregate(sqlite3_context *ctx, const struct flame_cursor *c, const struct flame_table *t,
                      const struct flame_node *node, int column, enum flame_aggregate_mode mode)
{
    const struct flame_source *s = &t->s;
    const struct flame_cell *one = NULL;
    sqlite3_str *list = sqlite3_str_new(NULL);
    bool same = true;
    double sum = 0;
    int n = 0;
    for (uint32_t r = node->first_row; r != FLAME_NONE; r = c->tree.rows.p[r].next) {
        const struct flame_cell *cell = &s->cells[(size_t)c->tree.rows.p[r].frame * s->n_columns + (uint32_t)column];
        if (cell->type == SQLITE_NULL)
            continue;
        same = same && (!one || (one->type == cell->type && one->i == cell->i));
        one = one ? one : cell;
        sum += cell->type == SQLITE_INTEGER ? (double)cell->i : cell->type == SQLITE_FLOAT ? cell->d : 0;
        if (mode == FLAME_CONCAT) {
            sqlite3_str_appendall(list, n ? "," : "");
            append_cell(list, s, cell);
        }
        n++;
    }
    if (one && mode == FLAME_SUM) {
        result_number(ctx, sum, !t->is_double[column]);
    } else if (one) {
        if (mode == FLAME_ONE_OR_SUMMARY) {
            append_cell(list, s, one);
            if (!same)
                sqlite3_str_appendf(list, " and %d others", n);
        }
        int len = sqlite3_str_length(list);
        sqlite3_result_text(ctx, sqlite3_str_value(list), len, SQLITE_TRANSIENT);
    }
    sqlite3_free(sqlite3_str_finish(list));
}

/* A column of the query: its value, its sum downwards, or itself. */
static void source_column(sqlite3_context *ctx, const struct flame_cursor *c, const struct flame_table *t, int column,
                          int what)
{
    const struct flame_tree *f = &c->tree;
    for (uint32_t v = 0; what < 2 && v < f->n_values; v++) {
        if (f->value_columns[v] != column)
            continue;
        const double *values = what ? f->cumulative : f->self;
        if (!c->super_root)
            result_number(ctx, values[(size_t)c->at * f->n_values + v], !t->is_double[column]);
        else if (v == 0)
            sqlite3_result_double(ctx, what ? f->total : 0);
        return;
    }
    if (what < 2 || c->super_root)
        return;
    const struct flame_node *node = &f->nodes.p[c->at];
    for (size_t i = 0; i < c->c->grouping.n; i++)
        if (flame_column(&t->s, c->c->grouping.p[i]) == column) {
            result_cell(ctx, &t->s, &t->s.cells[(size_t)node->frame * t->s.n_columns + (uint32_t)column]);
            return;
        }
    for (size_t i = 0; i < c->c->aggregates.n; i++)
        if (flame_column(&t->s, c->c->aggregates.p[i].output) == column) {
            aggregate(ctx, c, t, node, flame_column(&t->s, c->c->aggregates.p[i].input),
                      (enum flame_aggregate_mode)c->c->aggregates.p[i].mode);
            return;
        }
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
    const struct flame_cursor *c = (const struct flame_cursor *)base;
    const struct flame_table *t = (const struct flame_table *)base->pVtab;
    if (column >= C_FIRST) {
        if (column < C_FIRST + 3 * (int)t->s.n_columns)
            source_column(ctx, c, t, (column - C_FIRST) / 3, (column - C_FIRST) % 3);
        return SQLITE_OK;
    }
    if (c->super_root) {
        if (column == C_ID || column == C_DEPTH)
            sqlite3_result_int(ctx, column == C_ID ? -1 : 0);
        return SQLITE_OK;
    }
    const struct flame_node *n = &c->tree.nodes.p[c->at];
    bool whole = !t->is_double[c->tree.value_columns[0]];
    double size = c->tree.cumulative[(size_t)c->at * c->tree.n_values];
    switch (column) {
    case C_ID:
        sqlite3_result_int64(ctx, c->at);
        break;
    case C_PARENT:
        if (n->parent != FLAME_NONE)
            sqlite3_result_int64(ctx, n->parent);
        break;
    case C_DEPTH:
        sqlite3_result_int(ctx, n->depth);
        break;
    case C_NAME:
        if (t->s.frame_names[n->frame])
            result_text(ctx, &t->s, t->s.frame_names[n->frame]);
        break;
    case C_PARENT_CUMULATIVE:
        if (n->parent != FLAME_NONE)
            result_number(ctx, c->tree.cumulative[(size_t)n->parent * c->tree.n_values], whole);
        break;
    default:
        result_number(ctx, column == C_X_START ? n->x : n->x + size, whole);
    }
    return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *row)
{
    *row = ((struct flame_cursor *)base)->at;
    return SQLITE_OK;
}

const sqlite3_module flamegraph_module = {
    .iVersion = 1,
    .xCreate = create,
    .xConnect = create,
    .xBestIndex = best_index,
    .xDisconnect = disconnect,
    .xDestroy = disconnect,
    .xOpen = cursor_open,
    .xClose = cursor_close,
    .xFilter = cursor_filter,
    .xNext = cursor_next,
    .xEof = cursor_eof,
    .xColumn = cursor_column,
    .xRowid = cursor_rowid,
    .xFindFunction = find_function,
};
