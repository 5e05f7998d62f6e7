/* __intrinsic_tree_dominator_summary(tree): sums over each subtree, and depths.
 *
 * Takes what __intrinsic_tree_from_table() made of (id, parent_id, self_size, native_size, self_count) and gives (id,
 * idom_id, dominated_obj_count, dominated_size_bytes, dominated_native_size_bytes, depth). Roots have depth 1; what
 * hangs on a cycle is no tree and left out. */
#include "sql/operators/rows.h"
#include "sql/operators/values.h"

enum { ID, PARENT, SIZE, NATIVE, COUNT, COLUMNS, NONE = UINT32_MAX };

struct summary {
    const struct table *t;
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

/* Finds the row of each parent; a parent that is not there makes a root. */
static bool link_rows(struct summary *s)
{
    static const int sources[] = {COUNT, SIZE, NATIVE};
    struct u64map rows = {0};
    bool ok = true;
    for (uint32_t i = 0; ok && i < s->n; i++)
        ok = u64map_set(&rows, (uint64_t)column_get(&s->t->columns[ID], i), i);
    for (uint32_t i = 0; ok && i < s->n; i++) {
        int64_t parent = column_get(&s->t->columns[PARENT], i);
        const uint64_t *row = parent == COL_NULL ? NULL : u64map_get(&rows, (uint64_t)parent);
        s->parent[i] = row ? (uint32_t)*row : NONE;
        if (row)
            s->children[*row]++;
        for (int k = 0; k < 3; k++) {
            int64_t v = column_get(&s->t->columns[sources[k]], i);
            s->sums[k][i] = v == COL_NULL ? 0 : v;
        }
    }
    u64map_free(&rows);
    return ok;
}

/* From the leaves upwards, then the depths from the roots downwards. */
static void sum_up(struct summary *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->children[i] == 0)
            s->order[s->n_order++] = i;
    for (uint32_t k = 0; k < s->n_order; k++) {
        uint32_t row = s->order[k], parent = s->parent[row];
        if (parent == NONE)
            continue;
        for (int i = 0; i < 3; i++)
            s->sums[i][parent] = (int64_t)((uint64_t)s->sums[i][parent] + (uint64_t)s->sums[i][row]);
        if (--s->children[parent] == 0)
            s->order[s->n_order++] = parent;
    }
    for (uint32_t k = s->n_order; k-- > 0;) {
        uint32_t row = s->order[k], parent = s->parent[row];
        /* a row below a cycle has a parent without depth */
        s->depth[row] = parent == NONE ? 1 : s->depth[parent] ? s->depth[parent] + 1 : 0;
    }
}

static int emit(const struct summary *s, struct table_builder *b, struct error *err)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < s->n; i++) {
        if (s->depth[i] == 0)
            continue;
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

static bool has_shape(const struct table *t)
{
    if (t->def->n_columns != COLUMNS)
        return false;
    for (uint32_t i = 0; i < COLUMNS; i++) {
        const struct column *c = &t->columns[i];
        if ((c->type == COL_STR || c->type == COL_F64) && c->min <= c->max) /* a column of NULLs may be of any type */
            return false;
    }
    return true;
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
    if (s.n && !has_shape(s.t)) {
        function_error(ctx, "TREE_DOMINATOR_SUMMARY: the tree must have the integer columns id, parent_id, self_size, "
                            "native_size, self_count");
        return;
    }
    if (!value_builder(ctx, &b, 6, names, NULL))
        return;
    int rc = 0;
    if (s.n) {
        rc = allocate(&s) && link_rows(&s) ? 0 : -MRD_ENOMEM;
        if (rc == 0) {
            sum_up(&s);
            rc = emit(&s, &b, &err);
        }
        mem_free(s.parent);
        mem_free(s.sums[0]);
    }
    value_builder_result(ctx, &b, rc, &err);
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_tree_dominator_summary", .n_args = 1, .scalar = tree_dominator_summary},
};

FUNCTION_ROWS(tree_summary, rows);
