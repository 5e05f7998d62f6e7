/* Conversion between the clocks of a graph: the search for a path, the walk along it, and what was found last. */
#include "base/bisect.h"
#include "base/error.h"
#include "importer/clock/clock_graph_private.h"
#include "storage/storage.h"

enum { MAX_HOPS = 4 };

/* A way through the graph. */
struct path {
    unsigned hops;
    uint32_t from[MAX_HOPS];
    struct edge edge[MAX_HOPS];
};

/* Adds a step from step i. */
static bool add_step(struct clock_graph *g, size_t i, struct edge e)
{
    bool added = vec_push(&g->steps, (struct step){e.to, (uint32_t)i, g->steps.p[i].depth + 1, e});
    g->failed |= !added;
    return added;
}

/* Is the goal one step from the steps [i, end)? */
static bool reach(struct clock_graph *g, size_t i, size_t end, uint32_t to)
{
    struct edge e;
    for (; i < end; i++)
        if (clock_graph_edge_to(g, g->steps.p[i].node, to, &e))
            return add_step(g, i, e);
    return false;
}

/* Adds all steps from step i that lead to where the search has not been. */
static bool spread(struct clock_graph *g, size_t i, uint64_t mark)
{
    struct edge e;
    for (size_t at = 0; clock_graph_next_edge(g, g->steps.p[i].node, &at, &e);) {
        if (g->nodes.p[e.to].visited == mark)
            continue;
        g->nodes.p[e.to].visited = mark;
        if (!add_step(g, i, e))
            return false;
    }
    return true;
}

/* Breadth-first: the shortest path of at most MAX_HOPS; among those the one whose edges come first in order. A host has
 * a step to each of its machines: steps are made only when none of those before leads to the goal. */
static bool find_path(struct clock_graph *g, uint32_t from, uint32_t to, struct path *path)
{
    uint64_t mark = ++g->searches;
    bool found = false;
    if (clock_graph_part(g, from) != clock_graph_part(g, to))
        return false;
    vec_clear(&g->steps);
    if (!vec_push(&g->steps, (struct step){.node = from})) {
        g->failed = true;
        return false;
    }
    g->nodes.p[from].visited = mark;
    for (size_t i = 0, end = 1; i < end && g->steps.p[i].depth < MAX_HOPS; end = g->steps.n) {
        found = reach(g, i, end, to);
        if (found || g->steps.p[i].depth + 1 == MAX_HOPS)
            break;
        for (; i < end; i++)
            if (!spread(g, i, mark))
                return false;
    }
    if (found) {
        const struct step *s = vec_last(&g->steps);
        path->hops = s->depth;
        for (; s->depth; s = &g->steps.p[s->before]) {
            path->from[s->depth - 1] = g->steps.p[s->before].node;
            path->edge[s->depth - 1] = s->edge;
        }
    }
    return found;
}

/* Index of the last value <= v (0 when all are later). */
static size_t last_not_after(const int64_t *values, size_t n, int64_t v)
{
    size_t at = n;
    BISECT(at, mid, values[mid] <= v);
    return at ? at - 1 : 0;
}

static size_t first_snapshot(const uint32_t *ids, size_t n, uint32_t id)
{
    size_t at = n;
    BISECT(at, mid, ids[mid] < id);
    return at < n ? at : n - 1; /* a snapshot that broke off half-way lacks some clocks */
}

struct conversion {
    int64_t value;
    int64_t first, end;                 /* [first, end) of the source's ns: the same steps apply */
    int64_t delta;                      /* what the steps before the map add, or all of them */
    struct clock_map map;               /* the last step, when that is one */
    const struct sync_transform *piece; /* … and has straight pieces */
    bool cacheable;
};

/* Adds `d` to a bound of validity, keeping "no bound". */
static int64_t shift_bound(int64_t bound, int64_t d)
{
    int64_t r;
    if (bound == INT64_MIN || bound == INT64_MAX)
        return bound;
    return __builtin_add_overflow(bound, d, &r) ? (d < 0 ? INT64_MIN : INT64_MAX) : r;
}

/* Narrows the validity of `out` to [lower, upper) of a clock that is `total` ahead of the source. */
static bool narrow(struct conversion *out, int64_t total, int64_t lower, int64_t upper)
{
    int64_t negative;
    if (__builtin_sub_overflow(0, total, &negative))
        return false;
    lower = shift_bound(lower, negative);
    upper = shift_bound(upper, negative);
    out->first = lower > out->first ? lower : out->first;
    out->end = upper < out->end ? upper : out->end;
    return true;
}

static bool walk(const struct clock_graph *g, const struct path *path, int64_t ns, struct conversion *out)
{
    int64_t total = 0; /* what has been added so far */
    *out = (struct conversion){.value = ns, .first = INT64_MIN, .end = INT64_MAX, .cacheable = true};
    for (unsigned h = 0; h < path->hops; h++) {
        const struct edge *e = &path->edge[h];
        const struct clock_map *map = edge_map(g, e);
        if (map) {
            int64_t first, end;
            bool last = h + 1 == path->hops && !e->backwards;
            out->cacheable &= last;
            if (last) {
                out->map = *map;
                out->piece = map->ops->piece ? map->ops->piece(map->map, out->value, &first, &end) : NULL;
                if (out->piece && !narrow(out, total, first, end))
                    return false;
            }
            out->value =
                e->backwards ? map->ops->to_remote(map->map, out->value) : map->ops->to_host(map->map, out->value);
            continue;
        }
        const struct series *src = clock_graph_find_series(g, path->from[h], e->type);
        const struct series *dst = clock_graph_find_series(g, e->to, e->type);
        if (!src || !dst || !src->values.n || !dst->values.n)
            return false;
        size_t i = last_not_after(src->values.p, src->values.n, out->value);
        size_t k = first_snapshot(dst->snapshots.p, dst->snapshots.n, src->snapshots.p[i]);
        int64_t delta;
        if (!narrow(out, total, i == 0 ? INT64_MIN : src->values.p[i],
                    i + 1 < src->values.n ? src->values.p[i + 1] : INT64_MAX) ||
            __builtin_sub_overflow(dst->values.p[k], src->values.p[i], &delta) ||
            __builtin_add_overflow(out->value, delta, &out->value) || __builtin_add_overflow(total, delta, &total))
            return false;
    }
    out->delta = total;
    return true;
}

/* The node's value as ns; false when it overflows. */
static bool to_ns(const struct node *n, int64_t value, int64_t *ns)
{
    if (__builtin_mul_overflow(value, n->multiplier, ns))
        return false;
    return !n->incremental || !__builtin_add_overflow(*ns, n->last_ns, ns);
}

int clock_graph_convert(struct clock_graph *g, struct clock_id from, int64_t value, struct clock_id to, int64_t *out)
{
    if (same_clock(from, to)) {
        *out = value;
        return 0;
    }
    int a = clock_graph_find_node(g, from), b = clock_graph_find_node(g, to);
    struct path path;
    struct conversion c;
    int64_t ns;
    if (a == NO_NODE || b == NO_NODE || !to_ns(&g->nodes.p[a], value, &ns) ||
        !find_path(g, (uint32_t)a, (uint32_t)b, &path) || !walk(g, &path, ns, &c))
        return -MRD_ENOTFOUND;
    if (g->nodes.p[a].incremental)
        g->nodes.p[a].last_ns = ns;
    *out = c.value;
    return 0;
}

static bool reaches_trace_time(struct clock_graph *g, struct clock_id c)
{
    if (same_clock(c, g->trace_clock))
        return true;
    int a = clock_graph_find_node(g, c), b = clock_graph_find_node(g, g->trace_clock);
    struct path path;
    return a != NO_NODE && b != NO_NODE && find_path(g, (uint32_t)a, (uint32_t)b, &path);
}

static bool connected(struct clock_graph *g, struct clock_id x, struct clock_id y)
{
    int a = clock_graph_find_node(g, x), b = clock_graph_find_node(g, y);
    struct path path;
    return same_clock(x, y) || (a != NO_NODE && b != NO_NODE && find_path(g, (uint32_t)a, (uint32_t)b, &path));
}

/* Without memory there is no first use: relating goes from one domain to the next. */
static bool first_use(struct clock_graph *g, struct clock_id c)
{
    bool added = false;
    if (!u64map_put(&g->domains, (uint64_t)c.file << 32 | c.machine, &added))
        g->failed = true;
    return added;
}

void clock_graph_own_domain(struct clock_graph *g, struct clock_id clock)
{
    first_use(g, clock);
}

/* Relates the clocks of a file on a machine to trace time if nothing else does: both
 * sides' REALTIME are equal, else equal clocks are equal. */
static void relate_domain(struct clock_graph *g, uint32_t file, uint32_t machine)
{
    struct clock_id source = {.id = CLOCK_ID_BOOTTIME, .machine = machine, .file = file};
    struct clock_id real = {.id = CLOCK_ID_REALTIME, .machine = machine, .file = file};
    struct clock_id trace_real = {
        .id = CLOCK_ID_REALTIME, .machine = g->trace_clock.machine, .file = g->trace_clock.file};
    int node = clock_graph_find_node(g, source);
    for (size_t i = 0; node != NO_NODE && i < g->nodes.p[node].edges.n; i++) {
        struct clock_id host = g->nodes.p[g->nodes.p[node].edges.p[i].to].clock;
        if (g->nodes.p[node].edges.p[i].map && host.machine != machine && first_use(g, host))
            relate_domain(g, host.file, host.machine); /* a map leads to the host: it is the host that may be apart */
    }
    if (reaches_trace_time(g, source))
        return;
    if (!same_clock(real, trace_real) && connected(g, source, real) && connected(g, trace_real, g->trace_clock)) {
        struct clock_reading equal[] = {{.clock = real}, {.clock = trace_real}};
        clock_graph_write_rows(g, equal, 2, clock_graph_add_snapshot(g, equal, 2));
    } else if (g->trace_clock.id == CLOCK_ID_TRACE_FILE ||
               (g->trace_clock.id == source.id && !same_clock(g->trace_clock, source))) {
        struct clock_reading equal[] = {{.clock = source}, {.clock = g->trace_clock}};
        clock_graph_write_rows(g, equal, 2, clock_graph_add_snapshot(g, equal, 2));
    } else {
        stats_add(&g->st->stats, machine, STAT_clock_sync_unrelatable_clock_domains, 1);
    }
}

int clock_graph_to_trace_time(struct clock_graph *g, struct clock_id from, int64_t value, int64_t *trace_ns)
{
    if (same_clock(from, g->trace_clock)) {
        g->used = true;
        *trace_ns = value;
        return 0;
    }
    int a = clock_graph_find_node(g, from);
    int64_t ns;
    if (a != NO_NODE && g->nodes.p[a].cache_version == g->version) {
        struct node *n = &g->nodes.p[a];
        int64_t out;
        if (to_ns(n, value, &ns) && ns >= n->cache_first && ns < n->cache_end &&
            !__builtin_add_overflow(ns, n->cache_delta, &out)) {
            if (n->incremental)
                n->last_ns = ns;
            *trace_ns = n->cache_piece     ? sync_transform_apply(n->cache_piece, out)
                        : n->cache_map.ops ? n->cache_map.ops->to_host(n->cache_map.map, out)
                                           : out;
            return 0;
        }
    }
    g->used = true;
    if (first_use(g, from))
        relate_domain(g, from.file, from.machine);
    stats_add(&g->st->stats, 0, STAT_clock_sync_cache_miss, 1);
    a = clock_graph_find_node(g, from);
    int b = clock_graph_find_node(g, g->trace_clock);
    struct path path;
    struct conversion c;
    if (a == NO_NODE || b == NO_NODE || !to_ns(&g->nodes.p[a], value, &ns) ||
        !find_path(g, (uint32_t)a, (uint32_t)b, &path) || !walk(g, &path, ns, &c))
        return -MRD_ENOTFOUND;
    struct node *n = &g->nodes.p[a];
    if (n->incremental)
        n->last_ns = ns;
    *trace_ns = c.value;
    if (c.cacheable) {
        n->cache_first = c.first;
        n->cache_end = c.end;
        n->cache_delta = c.delta;
        n->cache_piece = c.piece;
        n->cache_map = c.map;
        n->cache_version = g->version;
    }
    return 0;
}

int clock_graph_from_trace_time(struct clock_graph *g, int64_t trace_ns, struct clock_id to, int64_t *value)
{
    return clock_graph_convert(g, g->trace_clock, trace_ns, to, value);
}
