/* What is computed from a tree, which is a table with the columns id and parent_id in front.
 *
 * __intrinsic_tree_to_table(tree) puts the rows' numbers before it: _tree_id, and _tree_parent_id, that of the parent.
 *
 * __intrinsic_tree_dominator_summary(tree) takes (id, parent_id, self_size, native_size, self_count) and gives (id,
 * idom_id, dominated_obj_count, dominated_size_bytes, dominated_native_size_bytes, depth): sums over each subtree.
 * Roots have depth 1; what hangs on a cycle is not a tree and left out. */
#include "sql/operators/rows.h"
#include "sql/operators/values.h"

enum { ID, PARENT, SIZE, NATIVE, COUNT, COLUMNS, NONE = UINT32_MAX };

/* Finds the row of each parent, NONE at roots; a parent that is not there makes a root. */
static bool find_parents(const struct table *t, uint32_t *parent, stop_flag *stop)
{
    struct u64map rows = {0};
    bool ok = true;
    for (uint32_t i = 0; ok && i < t->n_rows; i++)
        ok = !stop_asked(stop) && u64map_set(&rows, (uint64_t)column_get(&t->columns[ID], i), i);
    for (uint32_t i = 0; ok && i < t->n_rows; i++) {
        ok = !stop_asked(stop);
        int64_t id = column_get(&t->columns[PARENT], i);
        const uint64_t *row = id == COL_NULL ? NULL : u64map_get(&rows, (uint64_t)id);
        parent[i] = row ? (uint32_t)*row : NONE;
    }
    u64map_free(&rows);
    return ok;
}

/* Integers, or nothing but NULLs, which may be of any type. */
static bool are_integers(const struct table *t, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        const struct column *c = &t->columns[i];
        if ((c->type == COL_STR || c->type == COL_F64) && c->min <= c->max)
            return false;
    }
    return true;
}

/* ---- rows with their numbers ---- */

enum { MAX_COLUMNS = 60 };

static int put_word(struct table_builder *b, uint32_t column, const struct column *c, int64_t word,
                    const struct strpool *strings, struct error *err)
{
    if (word == column_null(c->type))
        return 0;
    if (c->type == COL_F64)
        return table_builder_double(b, column, column_f64(word), err);
    if (c->type != COL_STR)
        return table_builder_int(b, column, word, err);
    struct slice s = strpool_view(strings, (strid)word);
    return table_builder_text(b, column, (const char *)s.p, s.len, err);
}

static int number_rows(const struct table *t, const uint32_t *parent, const struct strpool *strings,
                       struct table_builder *b, struct error *err)
{
    int rc = 0;
    for (uint32_t row = 0; rc == 0 && row < t->n_rows; row++) {
        rc = table_builder_int(b, 0, row, err);
        if (rc == 0 && parent[row] != NONE)
            rc = table_builder_int(b, 1, parent[row], err);
        for (uint32_t i = 0; rc == 0 && i < t->def->n_columns; i++)
            rc = put_word(b, i + 2, &t->columns[i], column_get(&t->columns[i], row), strings, err);
        if (rc == 0)
            rc = table_builder_commit(b, err);
    }
    return rc;
}

static void tree_to_table(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct engine *e = function_engine(ctx);
    struct runtime_table *tree = value_table(argv[0]);
    const char *names[MAX_COLUMNS + 2] = {"_tree_id", "_tree_parent_id"};
    uint8_t types[MAX_COLUMNS + 2] = {RUNTIME_LONG, RUNTIME_LONG};
    struct table_builder b;
    struct error err = {0};
    (void)argc;
    if (!tree)
        return; /* no rows were collected */
    struct table *t = &tree->table;
    if (!t->final)
        table_finalize(t);
    if (t->def->n_columns < 2 || t->def->n_columns > MAX_COLUMNS || !are_integers(t, ID, PARENT + 1)) {
        function_error(ctx, "TREE_TO_TABLE: a tree has the integer columns id and parent_id, and at most 58 others");
        return;
    }
    for (uint32_t i = 0; i < t->def->n_columns; i++) {
        enum col_type type = t->columns[i].type;
        names[i + 2] = t->def->columns[i].name;
        types[i + 2] = type == COL_STR ? RUNTIME_STRING : type == COL_F64 ? RUNTIME_DOUBLE : RUNTIME_LONG;
    }
    if (!value_builder(ctx, &b, t->def->n_columns + 2, names, types))
        return;
    uint32_t *parent = mem_alloc(((size_t)t->n_rows + 1) * sizeof *parent);
    int rc = parent && find_parents(t, parent, b.stop) ? number_rows(t, parent, &engine_storage(e)->strings, &b, &err)
                                                       : -MRD_ENOMEM;
    mem_free(parent);
    value_builder_result(ctx, &b, rc, &err);
}

/* ---- sums over subtrees ---- */

struct summary {
    const struct table *t;
    stop_flag *stop;
    uint32_t n;
    uint32_t *parent;   /* [row]; NONE at roots */
    uint32_t *children; /* [row] that are not summed up yet */
    uint32_t *order;    /* rows, children before parents */
    uint32_t n_order;
    int64_t *sums[3]; /* count, size, native */
    int64_t *depth;
};

static bool allocate(struct summary *s)
{
    size_t n = (size_t)s->n + 1;
    s->parent = mem_alloc(3 * n * sizeof *s->parent);
    s->sums[0] = mem_zalloc(4 * n * sizeof *s->sums[0]);
    if (!s->parent || !s->sums[0])
        return false;
    s->children = s->parent + n;
    s->order = s->children + n;
    s->sums[1] = s->sums[0] + n;
    s->sums[2] = s->sums[1] + n;
    s->depth = s->sums[2] + n;
    memset(s->children, 0, n * sizeof *s->children);
    return true;
}

static void read_rows(struct summary *s)
{
    static const int sources[] = {COUNT, SIZE, NATIVE};
    for (uint32_t i = 0; i < s->n && !stop_asked(s->stop); i++) {
        if (s->parent[i] != NONE)
            s->children[s->parent[i]]++;
        for (int k = 0; k < 3; k++) {
            int64_t v = column_get(&s->t->columns[sources[k]], i);
            s->sums[k][i] = v == COL_NULL ? 0 : v;
        }
    }
}

/* From the leaves upwards, then the depths from the roots downwards. */
static void sum_up(struct summary *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->children[i] == 0)
            s->order[s->n_order++] = i;
    for (uint32_t k = 0; k < s->n_order && !stop_asked(s->stop); k++) {
        uint32_t row = s->order[k], parent = s->parent[row];
        if (parent == NONE)
            continue;
        for (int i = 0; i < 3; i++)
            s->sums[i][parent] = (int64_t)((uint64_t)s->sums[i][parent] + (uint64_t)s->sums[i][row]);
        if (--s->children[parent] == 0)
            s->order[s->n_order++] = parent;
    }
    for (uint32_t k = s->n_order; k-- > 0 && !stop_asked(s->stop);) {
        uint32_t row = s->order[k], parent = s->parent[row];
        /* a row below a cycle has a parent without depth */
        s->depth[row] = parent == NONE ? 1 : s->depth[parent] ? s->depth[parent] + 1 : 0;
    }
}

static int emit(const struct summary *s, struct table_builder *b, struct error *err)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < s->n; i++) {
        if (s->depth[i] == 0) {
            rc = stop_asked(s->stop) ? -MRD_ECANCELLED : 0;
            continue;
        }
        rc = table_builder_int(b, 0, column_get(&s->t->columns[ID], i), err);
        if (rc == 0 && s->parent[i] != NONE)
            rc = table_builder_int(b, 1, column_get(&s->t->columns[ID], s->parent[i]), err);
        for (uint32_t k = 0; rc == 0 && k < 3; k++)
            rc = table_builder_int(b, 2 + k, s->sums[k][i], err);
        if (rc == 0)
            rc = table_builder_int(b, 5, s->depth[i], err);
        if (rc == 0)
            rc = table_builder_commit(b, err);
    }
    return rc;
}

static void tree_dominator_summary(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    static const char *const names[] = {
        "id", "idom_id", "dominated_obj_count", "dominated_size_bytes", "dominated_native_size_bytes", "depth"};
    struct runtime_table *tree = value_table(argv[0]);
    struct table_builder b;
    struct error err = {0};
    (void)argc;
    if (!tree)
        return; /* no rows were collected */
    if (!tree->table.final)
        table_finalize(&tree->table);
    struct summary s = {.t = &tree->table, .n = tree->table.n_rows};
    if (s.n && (s.t->def->n_columns != COLUMNS || !are_integers(s.t, 0, COLUMNS))) {
        function_error(ctx, "TREE_DOMINATOR_SUMMARY: the tree must have the integer columns id, parent_id, self_size, "
                            "native_size, self_count");
        return;
    }
    if (!value_builder(ctx, &b, 6, names, NULL))
        return;
    int rc = 0;
    if (s.n) {
        rc = allocate(&s) && find_parents(s.t, s.parent, b.stop) ? 0 : -MRD_ENOMEM;
        s.stop = b.stop;
        if (rc == 0) {
            read_rows(&s);
            sum_up(&s);
            rc = emit(&s, &b, &err);
        }
        mem_free(s.parent);
        mem_free(s.sums[0]);
    }
    value_builder_result(ctx, &b, rc, &err);
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_tree_to_table", .n_args = 1, .takes = "p", .scalar = tree_to_table},
    {.name = "__intrinsic_tree_dominator_summary", .n_args = 1, .takes = "p", .scalar = tree_dominator_summary},
};

FUNCTION_ROWS(tree_value, rows);
