/* __intrinsic_dominator_tree(source, destination, root): which node every path from the root to a node must pass.
 *
 * Lengauer and Tarjan's semidominators by preorder, then the nearest common ancestor of each with its tree parent (the
 * variant known as semi-NCA): a linked list with links both ways, common in heaps, costs no more than other graphs.
 * Nodes that the root does not reach are left out; the root has no dominator. */
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
    stop_flag *stop;
    uint32_t *order;    /* nodes in preorder; all below are by place in it, unless said otherwise */
    uint32_t *number;   /* [node] place in the order, NONE when not reached */
    uint32_t *parent;   /* in the tree of the walk */
    uint32_t *idom;     /* the dominator */
    uint32_t *semi;     /* the least place from which a path over greater ones leads here */
    uint32_t *ancestor; /* upwards in the forest of what is done, shortened as it is walked; NONE at its roots */
    uint32_t *label;    /* place of the least semi from here to below that root */
    uint32_t *stack;    /* places */
    uint32_t *next;     /* [node] next edge to follow, while walking */
    uint32_t *pred_first, *preds; /* predecessors by node */
    uint32_t n;
};

static void reach(struct dominators *d, uint32_t node, uint32_t parent)
{
    d->number[node] = d->n;
    d->order[d->n] = node;
    d->parent[d->n] = parent;
    d->next[node] = d->g->first[node];
    d->n++;
}

static void preorder(struct dominators *d, uint32_t root)
{
    uint32_t depth = 0;
    reach(d, root, NONE);
    d->stack[depth++] = 0;
    while (depth && !stop_asked(d->stop)) {
        uint32_t place = d->stack[depth - 1], node = d->order[place];
        if (d->next[node] == d->g->first[node + 1]) {
            depth--;
            continue;
        }
        uint32_t to = d->g->edges[d->next[node]++];
        if (d->number[to] != NONE)
            continue;
        d->stack[depth++] = d->n;
        reach(d, to, place);
    }
}

static void predecessors(struct dominators *d)
{
    for (uint32_t i = 0; i < d->g->n && !stop_asked(d->stop); i++)
        for (uint32_t e = d->g->first[i]; e < d->g->first[i + 1]; e++)
            d->pred_first[d->g->edges[e] + 2]++;
    for (uint32_t i = 2; i < d->g->n + 2; i++)
        d->pred_first[i] += d->pred_first[i - 1];
    for (uint32_t i = 0; i < d->g->n && !stop_asked(d->stop); i++)
        for (uint32_t e = d->g->first[i]; e < d->g->first[i + 1]; e++)
            d->preds[d->pred_first[d->g->edges[e] + 1]++] = i;
}

/* The place of the least semi from `place` up to below the root of its tree in the forest. */
static uint32_t least(const struct dominators *d, uint32_t place)
{
    uint32_t depth = 0;
    for (uint32_t at = place; d->ancestor[at] != NONE && d->ancestor[d->ancestor[at]] != NONE; at = d->ancestor[at])
        d->stack[depth++] = at;
    while (depth) { /* from the top: all hang below the root afterwards */
        uint32_t at = d->stack[--depth], up = d->ancestor[at];
        if (d->semi[d->label[up]] < d->semi[d->label[at]])
            d->label[at] = d->label[up];
        d->ancestor[at] = d->ancestor[up];
    }
    return d->label[place];
}

static void solve(const struct dominators *d)
{
    for (uint32_t i = 0; i < d->n; i++) {
        d->semi[i] = d->label[i] = i;
        d->ancestor[i] = NONE;
    }
    for (uint32_t i = d->n; i-- > 1 && !stop_asked(d->stop);) {
        uint32_t node = d->order[i];
        for (uint32_t e = d->pred_first[node]; e < d->pred_first[node + 1]; e++) {
            uint32_t p = d->number[d->preds[e]], best = p == NONE ? i : d->semi[least(d, p)];
            d->semi[i] = best < d->semi[i] ? best : d->semi[i];
        }
        d->ancestor[i] = d->parent[i];
    }
    d->idom[0] = 0;
    for (uint32_t i = 1; i < d->n && !stop_asked(d->stop);
         i++) { /* up the dominators that are known, to one not below the semidominator */
        d->idom[i] = d->parent[i];
        while (d->idom[i] > d->semi[i])
            d->idom[i] = d->idom[d->idom[i]];
    }
}

static int emit(const struct dominators *d, struct table_builder *b, struct error *err)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < d->n; i++) {
        rc = table_builder_int(b, 0, d->g->ids[d->order[i]], err);
        if (rc == 0 && i != 0)
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
    stop_flag *stop = engine_stop(function_engine(ctx));
    bool built = graph_build(s->g, stop);
    uint32_t n = s->g->n, *block = NULL;
    struct dominators d = {.g = s->g, .stop = stop};
    if (value_builder(ctx, &b, 2, names, NULL)) {
        block = built ? mem_zalloc((10 * (size_t)n + 2 + s->g->n_edges) * sizeof *block) : NULL;
        const uint64_t *root = u64map_get(&s->g->index, (uint64_t)s->root);
        int rc = block ? 0 : -MRD_ENOMEM;
        if (block && root) {
            uint32_t **arrays[] = {&d.order,    &d.number, &d.parent, &d.idom, &d.semi,
                                   &d.ancestor, &d.label,  &d.stack,  &d.next};
            for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
                *arrays[i] = block + i * n;
            d.pred_first = d.next + n;
            d.preds = d.pred_first + n + 2;
            memset(d.number, 0xff, n * sizeof *d.number);
            preorder(&d, (uint32_t)*root);
            if (!stop_asked(stop))
                predecessors(&d);
            if (!stop_asked(stop))
                solve(&d);
            rc = stop_asked(stop) ? -MRD_ECANCELLED : emit(&d, &b, &err);
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
