/* __intrinsic_wakeup_graph_agg(id, utid, ts, dur, idle_dur, waker_id, prev_id): executing spans of threads and who woke
 * them;
 * __intrinsic_critical_path_walk(graph, roots): what each root span waited for, as (root_id, depth, ts, dur,
 * blocker_id, blocker_utid, parent_id); parent_id is the root.
 *
 * A root's path covers the sleep before it and itself. A span stands for the time in which it ran; the sleep before it
 * goes to the span that woke it, one deeper; what lies before that sleep goes to the span before it of the same thread.
 * Where nobody is known to have woken it, the thread waited for itself, unless it is its first span. */
#include "sql/operators/rows.h"

#include "base/saturate.h"
#include "sql/operators/values.h"

struct wake_node {
    int64_t id, utid, ts, dur, idle_dur;
    int64_t waker_id, prev_id;
    bool has_idle; /* else the sleep before it reaches back without end */
    bool has_waker, has_prev;
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
        if (sqlite3_value_type(argv[i]) != SQLITE_INTEGER && !(i == 1 && function_is_null(argv[i]))) {
            function_error(ctx, "WAKEUP_GRAPH_AGG: id, utid, ts and dur must be integers");
            return;
        }
    struct wake_node n = {.id = sqlite3_value_int64(argv[0]),
                          .utid = sqlite3_value_int64(argv[1]),
                          .ts = sqlite3_value_int64(argv[2]),
                          .dur = sqlite3_value_int64(argv[3]),
                          .idle_dur = sqlite3_value_int64(argv[4]),
                          .waker_id = sqlite3_value_int64(argv[5]),
                          .prev_id = sqlite3_value_int64(argv[6]),
                          .has_idle = !function_is_null(argv[4]),
                          .has_waker = !function_is_null(argv[5]),
                          .has_prev = !function_is_null(argv[6])};
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

/* A window of the root's time that a span of the graph accounts for. */
struct path_frame {
    const struct wake_node *on;
    int64_t from, to;
    int64_t depth;
    size_t hops; /* spans between the root and this one */
};

typedef VEC(struct path_frame) path_frames;

static void put(struct path_writer *w, const struct wake_node *root, const struct path_frame *f, int64_t from,
                int64_t to)
{
    const int64_t values[] = {root->id, f->depth, from, saturating_sub(to, from), f->on->id, f->on->utid, root->id};
    for (uint32_t i = 0; i < 7 && w->rc == 0; i++)
        w->rc = table_builder_int(&w->b, i, values[i], &w->err);
    if (w->rc == 0)
        w->rc = table_builder_commit(&w->b, &w->err);
}

/* Gives the window [from, to) to the span ID. Spans that wake each other in a circle are left after as many hops as
 * there are spans. */
static void go_on(struct path_writer *w, const struct wake_graph *g, path_frames *stack, const struct path_frame *f,
                  int64_t id, int64_t from, int64_t to, int64_t depth)
{
    const struct wake_node *on = node(g, id);
    if (on && from < to && f->hops < g->nodes.n &&
        !vec_push(stack, ((struct path_frame){.on = on, .from = from, .to = to, .depth = depth, .hops = f->hops + 1})))
        w->rc = -MRD_ENOMEM;
}

static void account(struct path_writer *w, const struct wake_graph *g, path_frames *stack, const struct wake_node *root,
                    const struct path_frame *f)
{
    const struct wake_node *n = f->on;
    int64_t idle_start = n->has_idle ? saturating_sub(n->ts, n->idle_dur) : f->from;
    int64_t from = f->from > idle_start ? f->from : idle_start;
    int64_t end = saturating_add(n->ts, n->dur);
    int64_t to = f->to < end ? f->to : end;
    if (n->has_prev && f->from < idle_start)
        go_on(w, g, stack, f, n->prev_id, f->from, f->to < idle_start ? f->to : idle_start, f->depth);
    if (from >= to)
        return;
    int64_t woken = to < n->ts ? to : n->ts;
    if (from < woken && n->has_waker)
        go_on(w, g, stack, f, n->waker_id, from, woken, f->depth + 1);
    else if (from < woken && n->has_prev)
        put(w, root, f, from, woken);
    if (to > n->ts)
        put(w, root, f, from > n->ts ? from : n->ts, to);
}

static void walk_root(struct path_writer *w, const struct wake_graph *g, path_frames *stack,
                      const struct wake_node *root)
{
    int64_t idle = root->has_idle ? root->idle_dur : 0;
    struct path_frame f = {
        .on = root, .from = saturating_sub(root->ts, idle), .to = saturating_add(root->ts, root->dur)};
    stack->n = 0;
    if (f.from >= f.to)
        return;
    if (!vec_push(stack, f))
        w->rc = -MRD_ENOMEM;
    while (stack->n && w->rc == 0) {
        f = stack->p[--stack->n];
        if (stop_asked(w->b.stop))
            w->rc = -MRD_ECANCELLED;
        else
            account(w, g, stack, root, &f);
    }
}

static void critical_path(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    static const char *const names[] = {"root_id", "depth", "ts", "dur", "blocker_id", "blocker_utid", "parent_id"};
    struct wake_graph *g = sqlite3_value_pointer(argv[0], "WAKEUP_GRAPH");
    const struct array_value *roots = value_long_array(argv[1]);
    struct path_writer w = {.rc = 0};
    path_frames stack = {0};
    (void)argc;
    if (!g || !roots)
        return; /* no spans or no roots: no rows */
    if (!value_builder(ctx, &w.b, 7, names, NULL))
        return;
    for (size_t i = 0; i < roots->n && w.rc == 0; i++) {
        const struct wake_node *root = node(g, roots->words[i]);
        if (root)
            walk_root(&w, g, &stack, root);
    }
    vec_free(&stack);
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
