/* __intrinsic_dominator_tree(source, destination, root): which node every path from the root to a node must pass.
 *
 * The iterative algorithm of Cooper, Harvey and Kennedy over reverse postorder. Nodes that the root does not reach are
 * left out; the root has no dominator. */
#include "sql/operators/rows.h"
#include "sql/operators/values.h"

struct state {
    struct graph_value *g;
    int64_t root;
    bool has_root;
};

static void step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct state *s = sqlite3_aggregate_context(ctx, sizeof *s);
    (void)argc;
    if (!s || (!s->g && !(s->g = mem_zalloc(sizeof *s->g)))) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    for (int i = 0; i < 3; i++)
        if (sqlite3_value_type(argv[i]) != SQLITE_INTEGER) {
            function_error(ctx, "DOMINATOR_TREE: argument %d must be an integer", i + 1);
            return;
        }
    s->root = sqlite3_value_int64(argv[2]);
    s->has_root = true;
    if (!graph_edge(s->g, sqlite3_value_int64(argv[0]), sqlite3_value_int64(argv[1])))
        sqlite3_result_error_nomem(ctx);
}

#define NONE UINT32_MAX

struct dominators {
    const struct graph_value *g;
    uint32_t *order;  /* nodes in postorder */
    uint32_t *number; /* [node] place in it, NONE when not reached */
    uint32_t *idom;   /* [place] place of the dominator */
    uint32_t *next;   /* [node] next edge to follow, while walking */
    uint32_t *stack;
    uint32_t *pred_first, *preds; /* predecessors by node */
    uint32_t n;
};

static void postorder(struct dominators *d, uint32_t root)
{
    uint32_t depth = 0;
    d->stack[depth++] = root;
    d->number[root] = 0; /* seen */
    d->next[root] = d->g->first[root];
    while (depth) {
        uint32_t node = d->stack[depth - 1];
        if (d->next[node] == d->g->first[node + 1]) {
            d->number[node] = d->n;
            d->order[d->n++] = node;
            depth--;
            continue;
        }
        uint32_t to = d->g->edges[d->next[node]++];
        if (d->number[to] != NONE)
            continue;
        d->number[to] = 0;
        d->next[to] = d->g->first[to];
        d->stack[depth++] = to;
    }
}

static void predecessors(struct dominators *d)
{
    for (uint32_t i = 0; i < d->g->n; i++)
        for (uint32_t e = d->g->first[i]; e < d->g->first[i + 1]; e++)
            d->pred_first[d->g->edges[e] + 2]++;
    for (uint32_t i = 2; i < d->g->n + 2; i++)
        d->pred_first[i] += d->pred_first[i - 1];
    for (uint32_t i = 0; i < d->g->n; i++)
        for (uint32_t e = d->g->first[i]; e < d->g->first[i + 1]; e++)
            d->preds[d->pred_first[d->g->edges[e] + 1]++] = i;
}

static uint32_t intersect(const struct dominators *d, uint32_t a, uint32_t b)
{
    while (a != b) {
        while (a < b)
            a = d->idom[a];
        while (b < a)
            b = d->idom[b];
    }
    return a;
}

static void solve(struct dominators *d)
{
    bool changed = true;
    for (uint32_t i = 0; i < d->n; i++)
        d->idom[i] = NONE;
    d->idom[d->n - 1] = d->n - 1;
    while (changed) {
        changed = false;
        for (uint32_t i = d->n - 1; i-- > 0;) {
            uint32_t node = d->order[i], best = NONE;
            for (uint32_t e = d->pred_first[node]; e < d->pred_first[node + 1]; e++) {
                uint32_t p = d->number[d->preds[e]];
                if (p == NONE || d->idom[p] == NONE)
                    continue;
                best = best == NONE ? p : intersect(d, p, best);
            }
            if (best != d->idom[i]) {
                d->idom[i] = best;
                changed = true;
            }
        }
    }
}

static int emit(const struct dominators *d, struct table_builder *b, struct error *err)
{
    int rc = 0;
    for (uint32_t i = d->n; rc == 0 && i-- > 0;) {
        rc = table_builder_int(b, 0, d->g->ids[d->order[i]], err);
        if (rc == 0 && i != d->n - 1)
            rc = table_builder_int(b, 1, d->g->ids[d->order[d->idom[i]]], err);
        if (rc == 0)
            rc = table_builder_commit(b, err);
    }
    return rc;
}

static void final(sqlite3_context *ctx)
{
    static const char *const names[] = {"node_id", "dominator_node_id"};
    struct state *s = sqlite3_aggregate_context(ctx, 0);
    struct error err = {0};
    struct table_builder b;
    if (!s || !s->g)
        return;
    bool built = graph_build(s->g);
    uint32_t n = s->g->n, *block = NULL;
    struct dominators d = {.g = s->g};
    if (value_builder(ctx, &b, 2, names, NULL)) {
        block = built ? mem_zalloc((8 * (size_t)n + 8 + s->g->n_edges) * sizeof *block) : NULL;
        const uint64_t *root = u64map_get(&s->g->index, (uint64_t)s->root);
        int rc = block ? 0 : -MRD_ENOMEM;
        if (block && root) {
            d.order = block;
            d.number = d.order + n;
            d.idom = d.number + n;
            d.next = d.idom + n;
            d.stack = d.next + n;
            d.pred_first = d.stack + n;
            d.preds = d.pred_first + n + 2;
            memset(d.number, 0xff, n * sizeof *d.number);
            postorder(&d, (uint32_t)*root);
            predecessors(&d);
            solve(&d);
            rc = emit(&d, &b, &err);
        }
        value_builder_result(ctx, &b, rc, &err);
    }
    mem_free(block);
    graph_free(s->g);
    s->g = NULL;
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_dominator_tree", .n_args = 3, .step = step, .final = final},
};

FUNCTION_ROWS(dominator, rows);
