/* Pointer-typed values: making them, and finding them again. */
#include "sql/operators/values.h"

static void unref_table(void *t)
{
    runtime_table_unref(t);
}

void value_result_table(sqlite3_context *ctx, struct runtime_table *t)
{
    sqlite3_result_pointer(ctx, t, RUNTIME_TABLE_POINTER, unref_table);
}

struct runtime_table *value_table(sqlite3_value *v)
{
    struct runtime_table *t = sqlite3_value_pointer(v, RUNTIME_TABLE_POINTER);
    return t ? t : sqlite3_value_pointer(v, "ROW_DATAFRAME");
}

bool value_builder(sqlite3_context *ctx, struct table_builder *b, uint32_t n, const char *const *names,
                   const uint8_t *types)
{
    struct engine *e = function_engine(ctx);
    struct error err = {0};
    uint8_t longs[64];
    memset(longs, RUNTIME_LONG, sizeof longs);
    if (table_builder_init(b, engine_storage(e), n, names, types ? types : longs, &err) == 0) {
        b->stop = engine_stop(e);
        return true;
    }
    sqlite3_result_error(ctx, err.text, -1);
    return false;
}

void value_builder_result(sqlite3_context *ctx, struct table_builder *b, int rc, struct error *err)
{
    struct runtime_table *t;
    if (rc == -MRD_ECANCELLED || (rc && stop_asked(b->stop))) {
        table_builder_abort(b);
        sqlite3_result_error_code(ctx, SQLITE_INTERRUPT);
    } else if (rc) {
        table_builder_abort(b);
        sqlite3_result_error(ctx, err->text[0] ? err->text : error_code_text(rc), -1);
    } else if (table_builder_finish(b, &t, err)) {
        sqlite3_result_error(ctx, err->text, -1);
    } else {
        value_result_table(ctx, t);
    }
}

const struct array_value *value_long_array(sqlite3_value *v)
{
    return sqlite3_value_pointer(v, "ARRAY<LONG>");
}

/* ---- graphs ---- */

const struct graph_value *value_graph(sqlite3_value *v)
{
    return sqlite3_value_pointer(v, "GRAPH");
}

uint32_t graph_node(struct graph_value *g, int64_t id)
{
    bool added;
    uint64_t *slot = u64map_put(&g->index, (uint64_t)id, &added);
    if (!slot) {
        g->failed = true;
        return 0;
    }
    if (added) {
        *slot = g->id_list.n;
        g->failed |= !vec_push(&g->id_list, id);
    }
    return (uint32_t)*slot;
}

bool graph_edge(struct graph_value *g, int64_t src, int64_t dst)
{
    uint32_t s = graph_node(g, src), d = graph_node(g, dst);
    g->failed |= !vec_push(&g->src, s) || !vec_push(&g->dst, d);
    return !g->failed;
}

bool graph_build(struct graph_value *g, stop_flag *stop)
{
    g->n = (uint32_t)g->id_list.n;
    g->n_edges = (uint32_t)g->src.n;
    g->ids = g->id_list.p;
    g->first = mem_zalloc((g->n + 2) * sizeof *g->first);
    g->edges = mem_alloc((g->n_edges + 1) * sizeof *g->edges);
    if (!g->first || !g->edges || g->failed)
        return false;
    for (uint32_t i = 0; i < g->n_edges && !stop_asked(stop); i++)
        g->first[g->src.p[i] + 2]++;
    for (uint32_t i = 2; i < g->n + 2; i++)
        g->first[i] += g->first[i - 1];
    for (uint32_t i = 0; i < g->n_edges && !stop_asked(stop); i++)
        g->edges[g->first[g->src.p[i] + 1]++] = g->dst.p[i];
    vec_free(&g->src);
    vec_free(&g->dst);
    return !stop_asked(stop);
}

void graph_free(void *p)
{
    struct graph_value *g = p;
    if (!g)
        return;
    u64map_free(&g->index);
    vec_free(&g->src);
    vec_free(&g->dst);
    vec_free(&g->id_list);
    mem_free(g->first);
    mem_free(g->edges);
    mem_free(g);
}
