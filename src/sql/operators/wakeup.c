/* __intrinsic_wakeup_graph_agg(id, utid, ts, dur, idle_dur, waker_id, prev_id): executing spans of threads and who woke
 * them;
 * __intrinsic_critical_path_walk(graph, roots): what each root span waited for, as (root_id, depth, ts, dur,
 * blocker_id, blocker_utid, parent_id).
 *
 * A root's path covers the sleep before it and itself. Where the thread slept, the span that woke it is what counts,
 * back to that one's own beginning, and so on. Where nobody is known to have woken it, the thread waited for itself. */
#include "sql/operators/rows.h"

#include "base/saturate.h"
#include "sql/operators/values.h"

struct wake_node {
    int64_t id, utid, ts, dur, idle_dur; /* idle_dur 0: nothing before */
    int64_t waker_id;
    bool has_waker;
};

struct wake_graph {
    struct u64map index; /* id -> place */
    VEC(struct wake_node)
    nodes;
};

struct wake_state {
    struct wake_graph *g;
};

static void wake_graph_free(void *p)
{
    struct wake_graph *g = p;
    if (!g)
        return;
    u64map_free(&g->index);
    vec_free(&g->nodes);
    mem_free(g);
}

static void step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct wake_state *s = sqlite3_aggregate_context(ctx, sizeof *s);
    (void)argc;
    if (!s || (!s->g && !(s->g = mem_zalloc(sizeof *s->g)))) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    for (int i = 0; i < 4; i++)
        if (sqlite3_value_type(argv[i]) != SQLITE_INTEGER) {
            function_error(ctx, "WAKEUP_GRAPH_AGG: id, utid, ts and dur must be integers");
            return;
        }
    struct wake_node n = {.id = sqlite3_value_int64(argv[0]),
                          .utid = sqlite3_value_int64(argv[1]),
                          .ts = sqlite3_value_int64(argv[2]),
                          .dur = sqlite3_value_int64(argv[3]),
                          .idle_dur = sqlite3_value_int64(argv[4]),
                          .waker_id = sqlite3_value_int64(argv[5]),
                          .has_waker = !function_is_null(argv[5])};
    if (!u64map_set(&s->g->index, (uint64_t)n.id, s->g->nodes.n) || !vec_push(&s->g->nodes, n))
        sqlite3_result_error_nomem(ctx);
}

static void final(sqlite3_context *ctx)
{
    struct wake_state *s = sqlite3_aggregate_context(ctx, 0);
    if (s && s->g)
        sqlite3_result_pointer(ctx, s->g, "WAKEUP_GRAPH", wake_graph_free);
    if (s)
        s->g = NULL;
}

static const struct wake_node *node(const struct wake_graph *g, int64_t id)
{
    const uint64_t *at = u64map_get(&g->index, (uint64_t)id);
    return at ? &g->nodes.p[*at] : NULL;
}

struct path_writer {
    struct table_builder b;
    struct error err;
    int rc;
};

static void put(struct path_writer *w, const struct wake_node *root, int64_t depth, int64_t from, int64_t to,
                const struct wake_node *on, const struct wake_node *parent)
{
    const int64_t values[] = {root->id, depth, from, to - from, on->id, on->utid};
    if (to <= from)
        return;
    for (uint32_t i = 0; i < 6 && w->rc == 0; i++)
        w->rc = table_builder_int(&w->b, i, values[i], &w->err);
    if (w->rc == 0 && parent)
        w->rc = table_builder_int(&w->b, 6, parent->id, &w->err);
    if (w->rc == 0)
        w->rc = table_builder_commit(&w->b, &w->err);
}

enum { MAX_DEPTH = 1000 };

static void walk_root(struct path_writer *w, const struct wake_graph *g, const struct wake_node *root)
{
    const struct wake_node *at = root;
    int64_t start = root->ts, lower = root->ts - (root->idle_dur > 0 ? root->idle_dur : 0);
    put(w, root, 0, root->ts, saturating_add(root->ts, root->dur), root, NULL);
    for (int64_t depth = 1; start > lower && w->rc == 0; depth++) {
        const struct wake_node *waker = at->has_waker && depth < MAX_DEPTH ? node(g, at->waker_id) : NULL;
        if (!waker) {
            put(w, root, depth - 1, lower, start, at, NULL);
            return;
        }
        int64_t from = waker->ts > lower ? waker->ts : lower;
        from = from < start ? from : start;
        put(w, root, depth, from, start, waker, at);
        start = from;
        at = waker;
    }
}

static void critical_path(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    static const char *const names[] = {"root_id", "depth", "ts", "dur", "blocker_id", "blocker_utid", "parent_id"};
    struct wake_graph *g = sqlite3_value_pointer(argv[0], "WAKEUP_GRAPH");
    const struct array_value *roots = value_long_array(argv[1]);
    struct path_writer w = {.rc = 0};
    (void)argc;
    if (!g || !roots)
        return; /* no spans or no roots: no rows */
    if (!value_builder(ctx, &w.b, 7, names, NULL))
        return;
    for (size_t i = 0; i < roots->n && w.rc == 0; i++) {
        const struct wake_node *root = node(g, roots->words[i]);
        if (stop_asked(w.b.stop))
            w.rc = -MRD_ECANCELLED;
        if (root)
            walk_root(&w, g, root);
    }
    value_builder_result(ctx, &w.b, w.rc, &w.err);
}

/* perf_counter_for_sample(sample, name): the value of a counter that was read with the sample. */
static void perf_counter(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct storage *st = engine_storage(function_engine(ctx));
    const struct table *samples = &st->t[T_profiler_sample], *sets = &st->t[T_profiler_counter_set];
    const struct table *counters = &st->t[T_counter], *tracks = &st->t[T_track];
    (void)argc;
    if (function_is_null(argv[0]) || function_is_null(argv[1]))
        return;
    int64_t sample = sqlite3_value_int64(argv[0]);
    struct slice name = function_text(argv[1]);
    strid want = strpool_find(&st->strings, name.p, name.len);
    if (!want || sample < 0 || sample >= samples->n_rows)
        return;
    int64_t set = table_get(samples, profiler_sample_c_counter_set_id, (uint32_t)sample);
    if (set == COL_NULL)
        return;
    for (uint32_t r = table_lower_bound(sets, profiler_counter_set_c_counter_set_id, set, false);
         r < sets->n_rows && table_get(sets, profiler_counter_set_c_counter_set_id, r) == set; r++) {
        int64_t counter = table_get(sets, profiler_counter_set_c_counter_id, r);
        if (counter < 0 || counter >= counters->n_rows)
            continue;
        int64_t track = table_get(counters, counter_c_track_id, (uint32_t)counter);
        if (track < tracks->n_rows && (strid)table_get(tracks, track_c_name, (uint32_t)track) == want) {
            sqlite3_result_double(ctx, column_f64(table_get(counters, counter_c_value, (uint32_t)counter)));
            return;
        }
    }
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_wakeup_graph_agg", .n_args = 7, .step = step, .final = final},
    {.name = "__intrinsic_critical_path_walk", .n_args = 2, .takes = "pp", .scalar = critical_path},
    {.name = "__intrinsic_perf_counter_for_sample", .n_args = 2, .takes = "vv", .scalar = perf_counter},
};

FUNCTION_ROWS(wakeup, rows);
