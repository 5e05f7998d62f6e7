/* The clock graph: its nodes and edges, snapshots, the trace clock, rows. */
#include "importer/clock/clock_graph_private.h"
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

int clock_graph_find_node(struct clock_graph *g, struct clock_id c)
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
    int found = clock_graph_find_node(g, c);
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

struct series *clock_graph_find_series(const struct clock_graph *g, uint32_t node, uint64_t type)
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
        uint32_t a = (uint32_t)clock_graph_find_node(g, readings[i].clock);
        struct series *s = clock_graph_find_series(g, a, type);
        if (s && s->snapshots.n > 1)
            continue; /* the edges of this type are there since its first snapshot, but for those removed for good */
        for (size_t k = 0; k < n; k++)
            if (k != i &&
                !add_edge(g, a,
                          (struct edge){.to = (uint32_t)clock_graph_find_node(g, readings[k].clock), .type = type}))
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
    int a = clock_graph_find_node(g, from), b = clock_graph_find_node(g, g->trace_clock);
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
