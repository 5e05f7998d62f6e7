/* __intrinsic_structural_tree_partition(id, parent_id, group): a tree as one forest a group.
 *
 * The parent of a node becomes its nearest ancestor of the same group: within a group, who is above whom stays as it
 * was. */
#include "sql/operators/rows.h"
#include "sql/operators/values.h"

struct tree_node {
    int64_t id, parent, group;
    bool root;
};

struct tree_state {
    struct tree_node *p;
    size_t n, cap;
};

static void step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct tree_state *s = sqlite3_aggregate_context(ctx, sizeof *s);
    (void)argc;
    if (!s)
        return;
    if (sqlite3_value_type(argv[0]) != SQLITE_INTEGER || sqlite3_value_type(argv[2]) != SQLITE_INTEGER ||
        (!function_is_null(argv[1]) && sqlite3_value_type(argv[1]) != SQLITE_INTEGER)) {
        function_error(ctx, "STRUCTURAL_TREE_PARTITION: id, parent_id and group must be integers");
        return;
    }
    struct tree_node n = {sqlite3_value_int64(argv[0]), sqlite3_value_int64(argv[1]), sqlite3_value_int64(argv[2]),
                          function_is_null(argv[1])};
    if (!vec_push(s, n))
        sqlite3_result_error_nomem(ctx);
}

struct partition {
    const struct tree_state *t;
    struct u64map index; /* id -> row */
    uint32_t *first, *children, *next, *stack;
    int64_t *saved;        /* [depth] the group's nearest node before this one came */
    struct u64map nearest; /* group -> row + 1 of the nearest ancestor here */
    struct table_builder b;
    struct error err;
    int rc;
};

static void enter(struct partition *p, uint32_t row, uint32_t depth)
{
    const struct tree_node *n = &p->t->p[row];
    uint64_t *slot = u64map_put(&p->nearest, (uint64_t)n->group, NULL);
    if (!slot) {
        p->rc = -MRD_ENOMEM;
        return;
    }
    p->saved[depth] = (int64_t)*slot;
    p->rc = table_builder_int(&p->b, 0, n->id, &p->err);
    if (p->rc == 0 && *slot)
        p->rc = table_builder_int(&p->b, 1, p->t->p[*slot - 1].id, &p->err);
    if (p->rc == 0)
        p->rc = table_builder_int(&p->b, 2, n->group, &p->err);
    if (p->rc == 0)
        p->rc = table_builder_commit(&p->b, &p->err);
    *slot = row + 1;
}

static void walk(struct partition *p, uint32_t root)
{
    uint32_t depth = 0;
    p->stack[depth] = root;
    p->next[root] = p->first[root];
    enter(p, root, depth++);
    while (depth && p->rc == 0) {
        uint32_t row = p->stack[depth - 1];
        if (p->next[row] < p->first[row + 1]) {
            uint32_t child = p->children[p->next[row]++];
            p->next[child] = p->first[child];
            p->stack[depth] = child;
            enter(p, child, depth++);
        } else {
            depth--;
            u64map_set(&p->nearest, (uint64_t)p->t->p[row].group, (uint64_t)p->saved[depth]);
        }
    }
}

/* Children by parent, in the order of rows; nodes below a cycle are never reached from a root and left out. */
static bool link(struct partition *p)
{
    size_t n = p->t->n;
    for (size_t i = 0; i < n; i++)
        if (stop_asked(p->b.stop) || !u64map_set(&p->index, (uint64_t)p->t->p[i].id, i))
            return false;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            if (stop_asked(p->b.stop))
                return false;
            const uint64_t *parent = p->t->p[i].root ? NULL : u64map_get(&p->index, (uint64_t)p->t->p[i].parent);
            if (!parent)
                continue;
            if (pass)
                p->children[p->first[*parent + 1]++] = (uint32_t)i;
            else
                p->first[*parent + 2]++;
        }
        for (size_t i = 2; !pass && i < n + 2; i++)
            p->first[i] += p->first[i - 1];
    }
    return true;
}

static void final(sqlite3_context *ctx)
{
    static const char *const names[] = {"node_id", "parent_node_id", "group_key"};
    struct tree_state *s = sqlite3_aggregate_context(ctx, 0);
    if (!s || !s->n)
        return;
    struct partition p = {.t = s};
    if (value_builder(ctx, &p.b, 3, names, NULL)) {
        uint32_t *block = mem_zalloc((4 * s->n + 4) * sizeof *block);
        p.saved = mem_alloc((s->n + 1) * sizeof *p.saved);
        p.first = block;
        p.children = block ? block + s->n + 2 : NULL;
        p.next = block ? p.children + s->n : NULL;
        p.stack = block ? p.next + s->n : NULL;
        p.rc = block && p.saved && link(&p) ? 0 : -MRD_ENOMEM;
        for (size_t i = 0; i < s->n && p.rc == 0; i++)
            if (s->p[i].root || !u64map_get(&p.index, (uint64_t)s->p[i].parent))
                walk(&p, (uint32_t)i);
        value_builder_result(ctx, &p.b, p.rc, &p.err);
        mem_free(block);
        mem_free(p.saved);
    }
    u64map_free(&p.index);
    u64map_free(&p.nearest);
    vec_free(s);
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_structural_tree_partition", .n_args = 3, .step = step, .final = final},
};

FUNCTION_ROWS(tree, rows);
