/* The clock graph: its nodes and edges, snapshots, the trace clock, rows. */
#include "importer/clock/clock_graph_private.h"

#include "base/bisect.h"
#include "storage/storage.h"

enum {
    /* More than any recording has; each search, and each new edge, is in proportion to these. */
    MAX_CLOCKS = 32,  /* of a snapshot */
    MAX_EDGES = 2048, /* of a clock: the host's has one to each machine */
    /* Of them, those to clocks of sequences. A browser has more sequences, but nothing goes to their clocks: what
     * matters is the edge back, and that one is the sequence's. */
    MAX_SEQUENCE_EDGES = 1024,
};

struct clock_graph *clock_graph_open(struct storage *st)
{
    struct clock_graph *g = mem_zalloc(sizeof *g);
    if (!g)
        return NULL;
    g->st = st;
    g->secret = hash_secret();
    g->version = 1;
    g->trace_clock = (struct clock_id){.id = CLOCK_ID_TRACE_FILE};
    return g;
}

void clock_graph_clear(struct clock_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        struct node *n = &g->nodes.p[i];
        for (size_t k = 0; k < n->series.n; k++) {
            vec_free(&n->series.p[k].snapshots);
            vec_free(&n->series.p[k].values);
        }
        vec_free(&n->series);
        vec_free(&n->edges);
    }
    for (size_t i = 0; i < g->members.n; i++)
        mem_free(g->members.p[i].nodes);
    vec_free(&g->members);
    vec_free(&g->maps);
    vec_free(&g->nodes);
    u64map_free(&g->domains);
    u64map_free(&g->by_clock);
    u64map_free(&g->types);
    u64map_free(&g->series);
    vec_free(&g->steps);
    *g = (struct clock_graph){.st = g->st, .version = 1, .trace_clock = {.id = CLOCK_ID_TRACE_FILE}};
}

void clock_graph_close(struct clock_graph *g)
{
    if (!g)
        return;
    clock_graph_clear(g);
    mem_free(g);
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

static uint64_t hash_clock(const struct clock_graph *g, struct clock_id c)
{
    return hash_combine(hash_combine(c.id ^ g->secret, c.sequence), (uint64_t)c.file << 32 | c.machine);
}

int clock_graph_find_node(struct clock_graph *g, struct clock_id c)
{
    uint32_t *recent = &g->recent[(c.sequence ^ c.machine) % CLOCKS_RECENT];
    if (*recent && same_clock(g->nodes.p[*recent - 1].clock, c))
        return (int)(*recent - 1);
    uint64_t h = hash_clock(g, c);
    for (uint64_t *at; (at = u64map_get(&g->by_clock, h)); h++)
        if (same_clock(g->nodes.p[*at].clock, c)) {
            *recent = (uint32_t)*at + 1;
            return (int)*at;
        }
    return NO_NODE;
}

bool clock_graph_index_node(struct clock_graph *g, uint32_t node)
{
    uint64_t h = hash_clock(g, g->nodes.p[node].clock);
    while (u64map_get(&g->by_clock, h))
        h++;
    return u64map_set(&g->by_clock, h, node);
}

static int add_node(struct clock_graph *g, struct clock_id c)
{
    int found = clock_graph_find_node(g, c);
    if (found != NO_NODE)
        return found;
    struct node *n = g->nodes.n < INT32_MAX ? vec_add(&g->nodes) : NULL;
    if (n)
        *n = (struct node){.clock = c, .multiplier = 1, .joined = (uint32_t)g->nodes.n - 1};
    if (!n || !clock_graph_index_node(g, (uint32_t)g->nodes.n - 1)) {
        g->nodes.n -= n != NULL;
        g->failed = true;
        return NO_NODE;
    }
    return (int)(g->nodes.n - 1);
}

struct series *clock_graph_find_series(const struct clock_graph *g, uint32_t node, uint32_t type)
{
    const uint64_t *at = u64map_get(&g->series, (uint64_t)node << 32 | type);
    return at ? &g->nodes.p[node].series.p[*at] : NULL;
}

static struct series *add_series(struct clock_graph *g, uint32_t node, uint32_t type)
{
    struct node *n = &g->nodes.p[node];
    struct series *s = vec_reserve_small(&n->series, n->series.n + 1) ? vec_add(&n->series) : NULL;
    if (!s || !u64map_set(&g->series, (uint64_t)node << 32 | type, n->series.n - 1)) {
        n->series.n -= s != NULL;
        return NULL;
    }
    s->type = type;
    return s;
}

uint32_t clock_graph_part(struct clock_graph *g, uint32_t node)
{
    for (struct node *n = &g->nodes.p[node]; n->joined != node; n = &g->nodes.p[node])
        node = n->joined = g->nodes.p[n->joined].joined;
    return node;
}

void clock_graph_join(struct clock_graph *g, uint32_t a, uint32_t b)
{
    a = clock_graph_part(g, a);
    b = clock_graph_part(g, b);
    g->nodes.p[a > b ? a : b].joined = a > b ? b : a;
}

static bool is_sequence_clock(struct clock_id c)
{
    return c.id >= CLOCK_ID_FIRST_SEQUENCE && c.id <= CLOCK_ID_LAST_SEQUENCE;
}

bool clock_graph_next_edge(const struct clock_graph *g, uint32_t node, size_t *at, struct edge *e)
{
    const struct node *n = &g->nodes.p[node];
    if (!n->only_type)
        return *at < n->edges.n && (*e = n->edges.p[(*at)++], true);
    const struct members *m = &g->members.p[n->only_type - 1];
    while (*at < m->n && m->nodes[*at] == node)
        ++*at;
    if (*at >= m->n)
        return false;
    *e = (struct edge){.to = m->nodes[(*at)++], .type = n->only_type};
    return true;
}

static int compare_edge(const struct clock_graph *g, const struct edge *e, struct clock_id to, uint32_t type)
{
    int order = compare_clocks(g->nodes.p[e->to].clock, to);
    return order ? order : (e->type > type) - (e->type < type);
}

/* Where an edge is in the list, or belongs. */
static size_t edge_place(const struct clock_graph *g, const struct node *n, const struct edge *e)
{
    struct clock_id target = g->nodes.p[e->to].clock;
    size_t at = n->edges.n;
    BISECT(at, i, compare_edge(g, &n->edges.p[i], target, e->type) < 0);
    return at;
}

bool clock_graph_edge_to(const struct clock_graph *g, uint32_t node, uint32_t to, struct edge *e)
{
    const struct node *n = &g->nodes.p[node];
    size_t at = 0;
    if (!n->only_type) {
        at = edge_place(g, n, &(struct edge){.to = to});
        return at < n->edges.n && (*e = n->edges.p[at], e->to == to);
    }
    while (clock_graph_next_edge(g, node, &at, e))
        if (e->to == to)
            return true;
    return false;
}

static bool is_edge(const struct node *n, size_t at, const struct edge *e)
{
    return at < n->edges.n && n->edges.p[at].to == e->to && n->edges.p[at].type == e->type;
}

static bool list_edge(struct clock_graph *g, uint32_t from, struct edge e)
{
    struct node *n = &g->nodes.p[from];
    if (n->non_monotonic && !e.map)
        return true;
    size_t at = edge_place(g, n, &e);
    if (is_edge(n, at, &e)) {
        n->edges.p[at] = e;
        return true;
    }
    if (is_sequence_clock(g->nodes.p[e.to].clock) && n->edges.n >= MAX_SEQUENCE_EDGES)
        return true;
    if (n->edges.n >= MAX_EDGES) {
        stats_add(&g->st->stats, 0, STAT_invalid_clock_snapshots, 1);
        return true;
    }
    if (!vec_reserve_small(&n->edges, n->edges.n + 1))
        return false;
    memmove(n->edges.p + at + 1, n->edges.p + at, (n->edges.n - at) * sizeof *n->edges.p);
    n->edges.p[at] = e;
    n->edges.n++;
    return true;
}

/* The list of what was said by a type alone. */
static bool list_members(struct clock_graph *g, uint32_t from)
{
    struct node *n = &g->nodes.p[from];
    struct edge e;
    size_t at = 0;
    if (!n->only_type)
        return true;
    if (!vec_reserve_small(&n->edges, g->members.p[n->only_type - 1].n))
        return false;
    while (clock_graph_next_edge(g, from, &at, &e))
        n->edges.p[n->edges.n++] = e;
    n->only_type = 0;
    return true;
}

static bool add_map_edge(struct clock_graph *g, uint32_t from, uint32_t to, struct clock_map map, bool backwards)
{
    struct edge e = {.to = to, .backwards = backwards};
    const struct node *n = &g->nodes.p[from];
    clock_graph_join(g, from, to);
    if (!list_members(g, from))
        return false;
    size_t at = edge_place(g, n, &e);
    if (is_edge(n, at, &e)) {
        e.map = n->edges.p[at].map;
        g->maps.p[e.map - 1] = map;
    } else {
        if (!vec_push(&g->maps, map))
            return false;
        e.map = (uint32_t)g->maps.n;
    }
    return list_edge(g, from, e);
}

/* Joins a node to the others of a type. */
static bool add_type(struct clock_graph *g, uint32_t node, uint32_t type)
{
    struct node *n = &g->nodes.p[node];
    const struct members *m = &g->members.p[type - 1];
    clock_graph_join(g, node, m->nodes[0]);
    if (n->non_monotonic || n->only_type == type)
        return true;
    if (!n->only_type && !n->edges.n) {
        n->only_type = type;
        return true;
    }
    bool good = list_members(g, node);
    for (uint32_t i = 0; i < m->n && good; i++)
        good = m->nodes[i] == node || list_edge(g, node, (struct edge){.to = m->nodes[i], .type = type});
    return good;
}

/* A clock that went backwards: its snapshots lead nowhere any more. A map knows about that. */
static void keep_maps(struct node *n)
{
    size_t kept = 0;
    n->only_type = 0;
    for (size_t i = 0; i < n->edges.n; i++)
        if (n->edges.p[i].map)
            n->edges.p[kept++] = n->edges.p[i];
    n->edges.n = kept;
}

/* Notes one reading of a snapshot. False when the rules forbid it: the rest of the snapshot is to be ignored. */
static bool note_reading(struct clock_graph *g, int node, const struct clock_reading *r, uint32_t snapshot,
                         uint32_t type)
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
    struct series *s = clock_graph_find_series(g, (uint32_t)node, type);
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
    if (!vec_reserve_small(&s->values, s->values.n + 1) || !vec_reserve_small(&s->snapshots, s->snapshots.n + 1))
        goto no_memory;
    s->values.p[s->values.n++] = ns;
    s->snapshots.p[s->snapshots.n++] = snapshot;
    return true;
no_memory:
    g->failed = true;
    return true;
}

/* The number of the type of snapshots with these clocks; 0 when out of memory. */
static uint32_t snapshot_type(struct clock_graph *g, const struct clock_reading *readings, size_t n)
{
    uint64_t hash = n;
    for (size_t i = 0; i < n; i++)
        hash = hash_combine(hash, hash_clock(g, readings[i].clock));
    const uint64_t *known = u64map_get(&g->types, hash);
    if (known)
        return (uint32_t)*known;
    if (!vec_add(&g->members))
        return 0;
    if (!u64map_set(&g->types, hash, g->members.n)) {
        g->members.n--;
        return 0;
    }
    return (uint32_t)g->members.n;
}

/* Notes who the members of a type are, when it is seen as a whole for the first time. All clocks have nodes. */
static bool note_members(struct clock_graph *g, uint32_t type, const struct clock_reading *readings, size_t n)
{
    struct members *m = &g->members.p[type - 1];
    if (m->n)
        return true;
    uint32_t *nodes = mem_alloc(n * sizeof *nodes);
    if (!nodes)
        return false;
    for (size_t i = 0; i < n; i++) {
        uint32_t node = (uint32_t)clock_graph_find_node(g, readings[i].clock);
        size_t at = i;
        for (; at && compare_clocks(g->nodes.p[nodes[at - 1]].clock, readings[i].clock) > 0; at--)
            nodes[at] = nodes[at - 1];
        nodes[at] = node;
    }
    *m = (struct members){nodes, (uint32_t)n};
    return true;
}

uint32_t clock_graph_add_snapshot(struct clock_graph *g, const struct clock_reading *readings, size_t n)
{
    uint32_t snapshot = g->next_snapshot++;
    g->version++;
    if (n > MAX_CLOCKS) {
        stats_add(&g->st->stats, 0, STAT_invalid_clock_snapshots, 1);
        n = MAX_CLOCKS;
    }
    if (!n)
        return snapshot;
    uint32_t type = snapshot_type(g, readings, n);
    if (!type) {
        g->failed = true;
        return snapshot;
    }
    for (size_t i = 0; i < n; i++) {
        int node = add_node(g, readings[i].clock);
        if (node == NO_NODE)
            return snapshot;
        if (!note_reading(g, node, &readings[i], snapshot, type)) {
            stats_add(&g->st->stats, 0, STAT_invalid_clock_snapshots, 1);
            return snapshot;
        }
    }
    if (!note_members(g, type, readings, n)) {
        g->failed = true;
        return snapshot;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t a = (uint32_t)clock_graph_find_node(g, readings[i].clock);
        struct series *s = clock_graph_find_series(g, a, type);
        if (s && s->snapshots.n > 1)
            continue; /* the edges of this type are there since its first snapshot, but for those removed for good */
        if (!add_type(g, a, type))
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
    return a != NO_NODE && b != NO_NODE && add_map_edge(g, (uint32_t)a, (uint32_t)b, map, false) &&
           add_map_edge(g, (uint32_t)b, (uint32_t)a, map, true);
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
                             &(struct trace_import_logs_row){.trace_id = g->trace_file ? *g->trace_file : 0,
                                                             .ts = COL_NULL,
                                                             .byte_offset = byte_offset < 0 ? COL_NULL : byte_offset,
                                                             .stat_key = stat,
                                                             .arg_set_id = set});
}

void clock_graph_record_failure(struct clock_graph *g, struct clock_id from, int64_t value, int64_t byte_offset)
{
    int a = clock_graph_find_node(g, from), b = clock_graph_find_node(g, g->trace_clock);
    enum stat_key stat = a == NO_NODE   ? STAT_clock_sync_failure_unknown_source_clock
                         : b == NO_NODE ? STAT_clock_sync_failure_unknown_target_clock
                                        : STAT_clock_sync_failure_no_path;
    log_failure(g, stat, from, value, byte_offset);
}

void clock_graph_set_trace_file(struct clock_graph *g, const uint32_t *trace_file)
{
    g->trace_file = trace_file;
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
