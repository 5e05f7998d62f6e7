/* Owns the clock graph: nodes, snapshots, the search for a path, and cached conversion. */
#include "importer/clock/clock_graph.h"

#include "base/hash.h"
#include "importer/sync/transform.h"
#include "storage/storage.h"

enum {
    MAX_HOPS = 4,
    NO_NODE = -1,
    /* More than any recording has; each search, and each new edge, is in proportion to these. */
    MAX_CLOCKS = 32,  /* of a snapshot */
    MAX_EDGES = 2048, /* of a clock: the host's has one to each machine */
    /* Of them, those to clocks of sequences. A browser has more sequences, but nothing goes to their clocks: what
     * matters is the edge back, and that one is the sequence's. */
    MAX_SEQUENCE_EDGES = 1024,
};

/* Readings of one clock in snapshots of one type (the same clocks in the same order). */
struct series {
    uint64_t type; /* number of the list of clocks in the snapshot, by age: older types are searched first */
    VEC(uint32_t)
    snapshots; /* ascending */
    VEC(int64_t)
    values; /* ns, in step with snapshots; ascending unless the clock is non-monotonic */
};

/* A step to another clock: by the snapshots of a type, or by a map (type 0). */
struct edge {
    uint32_t to;
    uint64_t type;
    struct clock_map map; /* ops NULL: snapshots */
    bool backwards;       /* from the host's clock to the remote one */
};

struct node {
    struct clock_id clock;
    int64_t multiplier;
    int64_t last_ns; /* of an incremental clock: what deltas count from */
    bool read;       /* has been in a snapshot */
    bool incremental;
    bool non_monotonic; /* no edges start here any more */
    uint64_t visited;   /* number of the search that came by last */
    VEC(struct series)
    series;
    VEC(struct edge)
    edges; /* by clock of `to`, then type: the order of the search */

    /* The last conversion to trace time, for [first, end) of this clock: value + delta, or when the path ends with a
     * map: map(value + delta), by its straight piece when it has such. */
    uint64_t cache_version; /* valid when equal to the graph's */
    int64_t cache_first;
    int64_t cache_end;
    int64_t cache_delta;
    const struct sync_transform *cache_piece;
    struct clock_map cache_map;
};

/* A file's clocks on one machine, and whether they have been related to trace time if need be. */
struct domain {
    uint32_t file;
    uint32_t machine;
    bool related;
};

/* A step of a search. */
struct step {
    uint32_t node;
    uint32_t before; /* index of the step that led here */
    uint32_t depth;
    struct edge edge;
};

struct clock_graph {
    struct storage *st;
    VEC(struct step)
    steps; /* of the search that runs */
    uint64_t searches;
    VEC(struct node)
    nodes;
    struct u64map by_clock; /* hash of clock_id -> first node; collisions are told apart by a walk */
    VEC(struct domain)
    domains;
    struct u64map types;  /* hash of a snapshot's clocks, in order -> type, from 1 (0 is for maps) */
    struct u64map series; /* node << 32 | type -> index into the node's series */
    uint32_t next_snapshot;
    uint64_t version; /* changes with every snapshot and every change of the trace clock */
    struct clock_id trace_clock;
    bool trace_clock_set;
    bool trace_clock_fixed; /* by a manifest */
    bool used;              /* something was converted to trace time */
    int last_node;
    bool failed;
};

struct clock_graph *clock_graph_open(struct storage *st)
{
    struct clock_graph *g = mem_zalloc(sizeof *g);
    if (!g)
        return NULL;
    g->st = st;
    g->version = 1;
    g->last_node = NO_NODE;
    g->trace_clock = (struct clock_id){.id = CLOCK_ID_TRACE_FILE};
    return g;
}

void clock_graph_close(struct clock_graph *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->nodes.n; i++) {
        struct node *n = &g->nodes.p[i];
        for (size_t k = 0; k < n->series.n; k++) {
            vec_free(&n->series.p[k].snapshots);
            vec_free(&n->series.p[k].values);
        }
        vec_free(&n->series);
        vec_free(&n->edges);
    }
    vec_free(&g->nodes);
    vec_free(&g->domains);
    u64map_free(&g->by_clock);
    u64map_free(&g->types);
    u64map_free(&g->series);
    vec_free(&g->steps);
    mem_free(g);
}

static bool same_clock(struct clock_id a, struct clock_id b)
{
    return a.id == b.id && a.sequence == b.sequence && a.machine == b.machine && a.file == b.file;
}

/* The order of clocks in the search, which decides between paths of equal length. */
static int compare_clocks(struct clock_id a, struct clock_id b)
{
    if (a.id != b.id)
        return a.id < b.id ? -1 : 1;
    if (a.sequence != b.sequence)
        return a.sequence < b.sequence ? -1 : 1;
    if (a.file != b.file)
        return a.file < b.file ? -1 : 1;
    return a.machine == b.machine ? 0 : a.machine < b.machine ? -1 : 1;
}

static uint64_t hash_clock(struct clock_id c)
{
    return hash_combine(hash_combine(c.id, c.sequence), (uint64_t)c.file << 32 | c.machine);
}

static int find_node(struct clock_graph *g, struct clock_id c)
{
    if (g->last_node != NO_NODE && same_clock(g->nodes.p[g->last_node].clock, c))
        return g->last_node;
    uint64_t h = hash_clock(c);
    for (uint64_t *at; (at = u64map_get(&g->by_clock, h)); h++)
        if (same_clock(g->nodes.p[*at].clock, c))
            return g->last_node = (int)*at;
    return NO_NODE;
}

static int add_node(struct clock_graph *g, struct clock_id c)
{
    int found = find_node(g, c);
    if (found != NO_NODE)
        return found;
    uint64_t h = hash_clock(c);
    while (u64map_get(&g->by_clock, h))
        h++;
    struct node *n = g->nodes.n < INT32_MAX ? vec_add(&g->nodes) : NULL;
    if (!n || !u64map_set(&g->by_clock, h, g->nodes.n - 1)) {
        g->nodes.n -= n != NULL;
        g->failed = true;
        return NO_NODE;
    }
    n->clock = c;
    n->multiplier = 1;
    return (int)(g->nodes.n - 1);
}

static struct series *find_series(const struct clock_graph *g, uint32_t node, uint64_t type)
{
    const uint64_t *at = u64map_get(&g->series, (uint64_t)node << 32 | type);
    return at ? &g->nodes.p[node].series.p[*at] : NULL;
}

static struct series *add_series(struct clock_graph *g, uint32_t node, uint64_t type)
{
    struct node *n = &g->nodes.p[node];
    struct series *s = vec_add(&n->series);
    if (!s || !u64map_set(&g->series, (uint64_t)node << 32 | type, n->series.n - 1)) {
        n->series.n -= s != NULL;
        return NULL;
    }
    s->type = type;
    return s;
}

static bool is_sequence_clock(struct clock_id c)
{
    return c.id >= CLOCK_ID_FIRST_SEQUENCE && c.id <= CLOCK_ID_LAST_SEQUENCE;
}

static bool add_edge(struct clock_graph *g, uint32_t from, struct edge e)
{
    struct node *n = &g->nodes.p[from];
    if (n->non_monotonic && !e.map.ops)
        return true;
    struct clock_id target = g->nodes.p[e.to].clock;
    size_t at = 0;
    for (size_t end = n->edges.n; at < end;) {
        size_t mid = at + (end - at) / 2;
        int order = compare_clocks(g->nodes.p[n->edges.p[mid].to].clock, target);
        if (order < 0 || (order == 0 && n->edges.p[mid].type < e.type))
            at = mid + 1;
        else
            end = mid;
    }
    if (at < n->edges.n && n->edges.p[at].to == e.to && n->edges.p[at].type == e.type) {
        n->edges.p[at] = e;
        return true;
    }
    if (is_sequence_clock(target) && n->edges.n >= MAX_SEQUENCE_EDGES)
        return true;
    if (n->edges.n >= MAX_EDGES) {
        stats_add(&g->st->stats, 0, STAT_invalid_clock_snapshots, 1);
        return true;
    }
    if (!vec_reserve(&n->edges, n->edges.n + 1))
        return false;
    memmove(n->edges.p + at + 1, n->edges.p + at, (n->edges.n - at) * sizeof *n->edges.p);
    n->edges.p[at] = e;
    n->edges.n++;
    return true;
}

/* A clock that went backwards: its snapshots lead nowhere any more. A map knows about that. */
static void keep_maps(struct node *n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n->edges.n; i++)
        if (n->edges.p[i].map.ops)
            n->edges.p[kept++] = n->edges.p[i];
    n->edges.n = kept;
}

/* Notes one reading of a snapshot. False when the rules forbid it: the rest of the snapshot is to be ignored. */
static bool note_reading(struct clock_graph *g, int node, const struct clock_reading *r, uint32_t snapshot,
                         uint64_t type)
{
    struct node *n = &g->nodes.p[node];
    int64_t multiplier = r->multiplier ? r->multiplier : 1;
    bool is_trace_clock = same_clock(n->clock, g->trace_clock);
    if (!n->read) {
        if (r->incremental && !is_sequence_clock(n->clock))
            return false;
        n->read = true;
        n->multiplier = multiplier;
        n->incremental = r->incremental;
    } else if (n->multiplier != multiplier || n->incremental != r->incremental) {
        return false;
    }
    int64_t ns;
    if ((is_trace_clock && multiplier != 1) || __builtin_mul_overflow(r->value, multiplier, &ns))
        return false;
    n->last_ns = ns;
    struct series *s = find_series(g, (uint32_t)node, type);
    if (!s)
        s = add_series(g, (uint32_t)node, type);
    if (!s)
        goto no_memory;
    if (s->snapshots.n) {
        if (*vec_last(&s->snapshots) == snapshot)
            return false; /* the same clock twice */
        if (ns < *vec_last(&s->values)) {
            if (is_trace_clock)
                return false;
            n->non_monotonic = true;
            keep_maps(n);
        }
    }
    if (!vec_push(&s->values, ns))
        goto no_memory;
    if (!vec_push(&s->snapshots, snapshot)) {
        s->values.n--;
        goto no_memory;
    }
    return true;
no_memory:
    g->failed = true;
    return true;
}

uint32_t clock_graph_add_snapshot(struct clock_graph *g, const struct clock_reading *readings, size_t n)
{
    uint32_t snapshot = g->next_snapshot++;
    uint64_t hash = n;
    g->version++;
    if (n > MAX_CLOCKS) {
        stats_add(&g->st->stats, 0, STAT_invalid_clock_snapshots, 1);
        n = MAX_CLOCKS;
    }
    for (size_t i = 0; i < n; i++)
        hash = hash_combine(hash, hash_clock(readings[i].clock));
    uint64_t *slot = u64map_put(&g->types, hash, NULL);
    if (!slot) {
        g->failed = true;
        return snapshot;
    }
    if (!*slot)
        *slot = g->types.n;
    uint64_t type = *slot;
    for (size_t i = 0; i < n; i++) {
        int node = add_node(g, readings[i].clock);
        if (node == NO_NODE)
            return snapshot;
        if (!note_reading(g, node, &readings[i], snapshot, type)) {
            stats_add(&g->st->stats, 0, STAT_invalid_clock_snapshots, 1);
            return snapshot;
        }
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t a = (uint32_t)find_node(g, readings[i].clock);
        struct series *s = find_series(g, a, type);
        if (s && s->snapshots.n > 1)
            continue; /* the edges of this type are there since its first snapshot, but for those removed for good */
        for (size_t k = 0; k < n; k++)
            if (k != i && !add_edge(g, a, (struct edge){.to = (uint32_t)find_node(g, readings[k].clock), .type = type}))
                g->failed = true;
    }
    return snapshot;
}

uint32_t clock_graph_new_snapshot(struct clock_graph *g)
{
    return g->next_snapshot++;
}

bool clock_graph_add_map(struct clock_graph *g, struct clock_id remote, struct clock_id host, struct clock_map map)
{
    int a = add_node(g, remote), b = add_node(g, host);
    g->version++;
    return a != NO_NODE && b != NO_NODE && add_edge(g, (uint32_t)a, (struct edge){.to = (uint32_t)b, .map = map}) &&
           add_edge(g, (uint32_t)b, (struct edge){.to = (uint32_t)a, .map = map, .backwards = true});
}

/* A way through the graph. */
struct path {
    unsigned hops;
    uint32_t from[MAX_HOPS];
    struct edge edge[MAX_HOPS];
};

/* Breadth-first: the shortest path of at most MAX_HOPS; among those the one whose edges come first in order. */
static bool find_path(struct clock_graph *g, uint32_t from, uint32_t to, struct path *path)
{
    uint64_t mark = ++g->searches;
    bool found = false;
    vec_clear(&g->steps);
    if (!vec_push(&g->steps, (struct step){.node = from}))
        g->failed = true;
    g->nodes.p[from].visited = mark;
    for (size_t i = 0; i < g->steps.n && !found && g->steps.p[i].depth < MAX_HOPS; i++) {
        const struct node *n = &g->nodes.p[g->steps.p[i].node];
        for (size_t k = 0; k < n->edges.n && !found; k++) {
            struct edge e = n->edges.p[k];
            if (g->nodes.p[e.to].visited == mark)
                continue;
            g->nodes.p[e.to].visited = mark;
            if (!vec_push(&g->steps, (struct step){e.to, (uint32_t)i, g->steps.p[i].depth + 1, e})) {
                g->failed = true;
                return false;
            }
            found = e.to == to;
        }
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
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (values[mid] <= v)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? lo - 1 : 0;
}

static size_t first_snapshot(const uint32_t *ids, size_t n, uint32_t id)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (ids[mid] < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n ? lo : n - 1; /* a snapshot that broke off half-way lacks some clocks */
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
        if (e->map.ops) {
            int64_t first, end;
            bool last = h + 1 == path->hops && !e->backwards;
            out->cacheable &= last;
            if (last) {
                out->map = e->map;
                out->piece = e->map.ops->piece ? e->map.ops->piece(e->map.map, out->value, &first, &end) : NULL;
                if (out->piece && !narrow(out, total, first, end))
                    return false;
            }
            out->value = e->backwards ? e->map.ops->to_remote(e->map.map, out->value)
                                      : e->map.ops->to_host(e->map.map, out->value);
            continue;
        }
        const struct series *src = find_series(g, path->from[h], e->type);
        const struct series *dst = find_series(g, e->to, e->type);
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
    int a = find_node(g, from), b = find_node(g, to);
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
    int a = find_node(g, c), b = find_node(g, g->trace_clock);
    struct path path;
    return a != NO_NODE && b != NO_NODE && find_path(g, (uint32_t)a, (uint32_t)b, &path);
}

static bool connected(struct clock_graph *g, struct clock_id x, struct clock_id y)
{
    int a = find_node(g, x), b = find_node(g, y);
    struct path path;
    return same_clock(x, y) || (a != NO_NODE && b != NO_NODE && find_path(g, (uint32_t)a, (uint32_t)b, &path));
}

static bool first_use(struct clock_graph *g, struct clock_id c)
{
    for (size_t i = 0; i < g->domains.n; i++)
        if (g->domains.p[i].file == c.file && g->domains.p[i].machine == c.machine)
            return false;
    if (!vec_push(&g->domains, (struct domain){c.file, c.machine, true}))
        g->failed = true;
    return true;
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
    int node = find_node(g, source);
    for (size_t i = 0; node != NO_NODE && i < g->nodes.p[node].edges.n; i++) {
        struct clock_id host = g->nodes.p[g->nodes.p[node].edges.p[i].to].clock;
        if (g->nodes.p[node].edges.p[i].map.ops && host.machine != machine && first_use(g, host))
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
    int a = find_node(g, from);
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
    a = find_node(g, from);
    int b = find_node(g, g->trace_clock);
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

/* Trace time of one reading of the snapshot added last; by the trace clock's own reading when that clock cannot be
 * converted. */
static bool reading_trace_time(struct clock_graph *g, const struct clock_reading *readings, size_t n, size_t which,
                               int64_t *trace_ns)
{
    int64_t value = readings[which].incremental ? 0 : readings[which].value;
    if (clock_graph_to_trace_time(g, readings[which].clock, value, trace_ns) == 0)
        return true;
    for (size_t i = 0; i < n; i++) {
        if (same_clock(readings[i].clock, g->trace_clock)) {
            *trace_ns = readings[i].value;
            return true;
        }
    }
    return false;
}

static strid clock_name(struct clock_graph *g, uint32_t id)
{
    static const char *const names[] = {
        NULL, "REALTIME", "REALTIME_COARSE", "MONOTONIC", "MONOTONIC_COARSE", "MONOTONIC_RAW", "BOOTTIME"};
    return id < sizeof names / sizeof *names && names[id] ? strpool_intern_str(&g->st->strings, names[id]) : 0;
}

void clock_graph_write_rows(struct clock_graph *g, const struct clock_reading *readings, size_t n, uint32_t snapshot)
{
    n = n < MAX_CLOCKS ? n : MAX_CLOCKS;
    for (size_t i = 0; i < n; i++) {
        int64_t ts, value;
        if (!reading_trace_time(g, readings, n, i, &ts) ||
            __builtin_mul_overflow(readings[i].value, readings[i].multiplier ? readings[i].multiplier : 1, &value))
            continue;
        clock_snapshot_insert(g->st, &(struct clock_snapshot_row){.ts = ts,
                                                                  .clock_id = readings[i].clock.id,
                                                                  .clock_name = clock_name(g, readings[i].clock.id),
                                                                  .clock_value = value,
                                                                  .snapshot_id = snapshot,
                                                                  .machine_id = readings[i].clock.machine});
    }
}

static void log_failure(struct clock_graph *g, enum stat_key stat, struct clock_id from, int64_t value,
                        int64_t byte_offset)
{
    struct args *args = &g->st->args;
    struct arg_list list = {0};
    arg_list_int(args, &list, "source_clock_id", from.id);
    arg_list_int(args, &list, "source_timestamp", value);
    arg_list_int(args, &list, "target_clock_id", g->trace_clock.id);
    if (from.sequence)
        arg_list_int(args, &list, "source_sequence_id", from.sequence);
    if (g->trace_clock.sequence)
        arg_list_int(args, &list, "target_sequence_id", g->trace_clock.sequence);
    argset set = args_intern(args, list.p, list.n);
    arg_list_free(&list);
    stats_add(&g->st->stats, from.machine, stat, 1);
    trace_import_logs_insert(g->st,
                             &(struct trace_import_logs_row){.trace_id = from.file,
                                                             .ts = COL_NULL,
                                                             .byte_offset = byte_offset < 0 ? COL_NULL : byte_offset,
                                                             .stat_key = stat,
                                                             .arg_set_id = set});
}

void clock_graph_record_failure(struct clock_graph *g, struct clock_id from, int64_t value, int64_t byte_offset)
{
    int a = find_node(g, from), b = find_node(g, g->trace_clock);
    enum stat_key stat = a == NO_NODE   ? STAT_clock_sync_failure_unknown_source_clock
                         : b == NO_NODE ? STAT_clock_sync_failure_unknown_target_clock
                                        : STAT_clock_sync_failure_no_path;
    log_failure(g, stat, from, value, byte_offset);
}

void clock_graph_fix_trace_clock(struct clock_graph *g, struct clock_id clock)
{
    g->trace_clock = clock;
    g->trace_clock_set = g->trace_clock_fixed = true;
    g->version++;
}

int clock_graph_set_trace_clock(struct clock_graph *g, struct clock_id clock)
{
    if (g->trace_clock_fixed)
        return 0;
    if (same_clock(clock, g->trace_clock))
        g->trace_clock_set = true;
    if (same_clock(clock, g->trace_clock) || (g->trace_clock_set && g->trace_clock.file != clock.file))
        return 0;
    if (g->used)
        return -MRD_EINVALID;
    g->trace_clock = clock;
    g->trace_clock_set = true;
    g->version++;
    return 0;
}

bool clock_graph_failed(const struct clock_graph *g)
{
    return g->failed;
}

struct clock_id clock_graph_trace_clock(const struct clock_graph *g)
{
    return g->trace_clock;
}

bool clock_graph_trace_clock_given(const struct clock_graph *g)
{
    return g->trace_clock_set;
}
