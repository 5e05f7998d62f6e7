/* __intrinsic_dfs(graph, starts), __intrinsic_bfs(graph, starts): what can be reached, once each, with the node it was
 * reached from. A start that no edge mentions is reached as well. */
#include "sql/operators/rows.h"
#include "sql/operators/values.h"

struct visit {
    uint32_t node;
    uint32_t parent; /* UINT32_MAX: a start */
};

struct visits {
    struct visit *p;
    size_t n, cap;
};

struct search {
    const struct graph_value *g;
    struct table_builder b;
    struct u64map extra; /* starts that are not in the graph */
    uint8_t *seen;
    struct visits todo;
    struct error err;
    int rc;
};

static void put(struct search *s, int64_t node, const int64_t *parent)
{
    if (s->rc == 0)
        s->rc = table_builder_int(&s->b, 0, node, &s->err);
    if (s->rc == 0 && parent)
        s->rc = table_builder_int(&s->b, 1, *parent, &s->err);
    if (s->rc == 0)
        s->rc = table_builder_commit(&s->b, &s->err);
}

static void visit(struct search *s, struct visit v)
{
    put(s, s->g->ids[v.node], v.parent == UINT32_MAX ? NULL : &s->g->ids[v.parent]);
}

static void push(struct search *s, uint32_t node, uint32_t parent)
{
    if (!vec_push(&s->todo, (struct visit){node, parent}))
        s->rc = -MRD_ENOMEM;
}

static void depth_first(struct search *s, uint32_t start)
{
    push(s, start, UINT32_MAX);
    while (s->todo.n && s->rc == 0) {
        struct visit v = s->todo.p[--s->todo.n];
        if (s->seen[v.node]) {
            if (stop_asked(s->b.stop))
                s->rc = -MRD_ECANCELLED;
            continue;
        }
        s->seen[v.node] = 1;
        visit(s, v);
        for (uint32_t e = s->g->first[v.node + 1]; e-- > s->g->first[v.node];) /* the first edge is to be on top */
            if (!s->seen[s->g->edges[e]])
                push(s, s->g->edges[e], v.node);
    }
}

static void breadth_first(struct search *s)
{
    for (size_t at = 0; at < s->todo.n && s->rc == 0; at++) {
        struct visit v = s->todo.p[at];
        visit(s, v);
        for (uint32_t e = s->g->first[v.node]; e < s->g->first[v.node + 1]; e++) {
            uint32_t to = s->g->edges[e];
            if (s->seen[to])
                continue;
            s->seen[to] = 1;
            push(s, to, v.node);
        }
    }
}

static void search(sqlite3_context *ctx, sqlite3_value **argv, bool breadth)
{
    static const char *const names[] = {"node_id", "parent_node_id"};
    static const struct graph_value none = {0};
    static const uint32_t no_edges[2] = {0};
    struct graph_value empty = none;
    empty.first = (uint32_t *)(uintptr_t)no_edges;
    const struct array_value *starts = value_long_array(argv[1]);
    struct search s = {.g = value_graph(argv[0])};
    if (!s.g)
        s.g = &empty;
    if (!value_builder(ctx, &s.b, 2, names, NULL))
        return;
    s.seen = mem_zalloc(s.g->n + 1);
    s.rc = s.seen ? 0 : -MRD_ENOMEM;
    for (size_t i = 0; starts && i < starts->n && s.rc == 0; i++) {
        const uint64_t *node = u64map_get(&s.g->index, (uint64_t)starts->words[i]);
        bool added = false;
        if (!node) {
            if (!u64map_put(&s.extra, (uint64_t)starts->words[i], &added))
                s.rc = -MRD_ENOMEM;
            else if (added)
                put(&s, starts->words[i], NULL);
        } else if (!breadth) {
            depth_first(&s, (uint32_t)*node);
        } else if (!s.seen[*node]) {
            s.seen[*node] = 1;
            push(&s, (uint32_t)*node, UINT32_MAX);
        }
    }
    if (breadth)
        breadth_first(&s);
    value_builder_result(ctx, &s.b, s.rc, &s.err);
    u64map_free(&s.extra);
    vec_free(&s.todo);
    mem_free(s.seen);
}

static void dfs(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    search(ctx, argv, false);
}

static void bfs(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    search(ctx, argv, true);
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_dfs", .n_args = 2, .takes = "pp", .scalar = dfs},
    {.name = "__intrinsic_bfs", .n_args = 2, .takes = "pp", .scalar = bfs},
};

FUNCTION_ROWS(graph, rows);
