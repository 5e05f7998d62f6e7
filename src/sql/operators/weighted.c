/* __intrinsic_dfs_weight_bounded(sources, destinations, weights, roots, targets, is_floor): a depth-first search from
 * each root that ends when the weights of the edges it has taken add up to the root's target.
 *
 * A floor is passed by the node that is found last; a ceiling is not passed. */
#include "sql/operators/table_functions.h"
#include "sql/operators/values.h"

struct step {
    uint32_t node, parent;
    int64_t weight;
};

struct weighted {
    struct graph_value *g;
    const struct array_value *weights;
    stop_flag *stop;
    int64_t *edge_weight; /* in the order of g->edges */
    uint32_t *seen;       /* [node] number of the search that saw it */
    uint64_t most_rows;   /* of the result: each root may reach everything */
    VEC(struct step)
    todo;
};

enum { COLUMNS = 3 };

static int append(const struct weighted *w, struct table *out, const int64_t words[COLUMNS])
{
    if (out->n_rows >= w->most_rows)
        return -MRD_ELIMIT;
    return table_append(out, words) == UINT32_MAX ? -MRD_ENOMEM : 0;
}

static int search(struct weighted *w, uint32_t number, int64_t root, int64_t target, bool floor, struct table *out)
{
    const uint64_t *start = u64map_get(&w->g->index, (uint64_t)root);
    int64_t total = 0;
    if (!start) {
        int64_t words[] = {root, root, COL_NULL};
        return append(w, out, words);
    }
    w->todo.n = 0;
    if (!vec_push(&w->todo, (struct step){(uint32_t)*start, UINT32_MAX, 0}))
        return -MRD_ENOMEM;
    while (w->todo.n) {
        if (stop_asked(w->stop))
            return -MRD_ECANCELLED;
        uint32_t node = vec_last(&w->todo)->node, parent = vec_last(&w->todo)->parent;
        int64_t weight = vec_last(&w->todo)->weight;
        w->todo.n--;
        if (w->seen[node] == number)
            continue;
        if (!floor && total + weight > target)
            return 0;
        total += weight;
        w->seen[node] = number;
        int64_t words[] = {root, w->g->ids[node], parent == UINT32_MAX ? COL_NULL : w->g->ids[parent]};
        int rc = append(w, out, words);
        if (rc)
            return rc;
        if (floor && total > target)
            return 0;
        for (uint32_t e = w->g->first[node + 1]; e-- > w->g->first[node];)
            if (w->seen[w->g->edges[e]] != number &&
                !vec_push(&w->todo, (struct step){w->g->edges[e], node, w->edge_weight[e]}))
                return -MRD_ENOMEM;
    }
    return 0;
}

/* graph_build() groups edges by source in the order they came; the weights follow the same way. */
static bool order_weights(struct weighted *w, const struct array_value *src)
{
    uint32_t *next = mem_alloc((w->g->n + 1) * sizeof *next);
    w->edge_weight = mem_alloc((src->n + 1) * sizeof *w->edge_weight);
    bool ok = next && w->edge_weight;
    for (uint32_t i = 0; ok && i < w->g->n; i++)
        next[i] = w->g->first[i];
    for (size_t i = 0; ok && i < src->n && !stop_asked(w->stop); i++)
        w->edge_weight[next[*u64map_get(&w->g->index, (uint64_t)src->words[i])]++] = w->weights->words[i];
    mem_free(next);
    return ok;
}

static int weight_bounded(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    const struct array_value *a[5];
    stop_flag *stop = engine_stop(e);
    for (int i = 0; i < 5; i++)
        if (!(a[i] = value_long_array(args[i])))
            return 0; /* no edges or no roots */
    if (a[0]->n != a[1]->n || a[0]->n != a[2]->n || a[3]->n != a[4]->n)
        return error_set(err, -MRD_ESQL, "dfs_weight_bounded: the lists differ in length");
    struct weighted w = {.g = mem_zalloc(sizeof *w.g),
                         .weights = a[2],
                         .stop = stop,
                         .most_rows = engine_rows_max_bytes(e) / (COLUMNS * sizeof(int64_t))};
    bool ok = w.g != NULL;
    for (size_t i = 0; i < a[0]->n && ok; i++)
        ok = !stop_asked(stop) && graph_edge(w.g, a[0]->words[i], a[1]->words[i]);
    ok = ok && graph_build(w.g, stop) && order_weights(&w, a[0]);
    w.seen = ok ? mem_zalloc((w.g->n + 1) * sizeof *w.seen) : NULL;
    int rc = w.seen ? 0 : -MRD_ENOMEM;
    for (size_t i = 0; i < a[3]->n && rc == 0; i++)
        rc = search(&w, (uint32_t)i + 1, a[3]->words[i], a[4]->words[i], sqlite3_value_int(args[5]) != 0, out);
    if (rc == -MRD_ELIMIT)
        error_set(err, rc, "dfs_weight_bounded: more than %llu rows: start from fewer roots, or with less",
                  (unsigned long long)w.most_rows);
    vec_free(&w.todo);
    mem_free(w.seen);
    mem_free(w.edge_weight);
    graph_free(w.g);
    return rc;
}

static const struct column_def columns[COLUMNS] = {
    {"root_node_id", COL_I64, 0, ""},
    {"node_id", COL_I64, 0, ""},
    {"parent_node_id", COL_I64, COL_NULLABLE, ""},
};
static const struct table_def def = {"", columns, COLUMNS, ""};

const struct engine_table_function weighted_table_functions[] = {
    {"__intrinsic_dfs_weight_bounded", &def, 6, ROWS_BOTH, weight_bounded},
};
const size_t weighted_table_functions_n = 1;
