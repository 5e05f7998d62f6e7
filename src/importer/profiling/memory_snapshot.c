/* Imports MemoryTrackerSnapshot packets: dumps of Chrome's memory, part by part. */
#include "importer/profiling/memory_graph.h"
#include "importer/track/track_tracker.h"

#include "base/hash.h"
#include "wire/fields.h"

#include <stdlib.h>

static const char *const levels[] = {"detailed", "light", "background"};
static const char shared_prefix[] = "global/"; /* parts that processes share */

/* A dump of one process, until those of all have come. */
struct process_dump {
    int64_t pid;
    struct slice bytes;
    uint32_t root; /* of its parts */
};

struct memory_snapshots {
    int64_t ts;
    uint64_t level;
    bool has; /* one is being collected */
    VEC(struct process_dump)
    dumps;
    struct u64map pids; /* of those */
};

void memory_snapshots_close(struct memory_snapshots *x)
{
    if (!x)
        return;
    vec_free(&x->dumps);
    u64map_free(&x->pids);
    mem_free(x);
}

static void parse_failure(struct machine_ctx *m)
{
    stats_add(&m->st->stats, m->id, STAT_memory_snapshot_parser_failure, 1);
}

/* --- reading a dump --- */

static void add_entry(struct memory_graph *g, uint32_t node, struct slice message)
{
    struct machine_ctx *m = g->m;
    struct slice name = {0}, text = {0};
    uint64_t units = 0, number = 0;
    bool has_number = false;
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case MEMORY_TRACKER_SNAPSHOT_PROCESS_SNAPSHOT_MEMORY_NODE_MEMORY_NODE_ENTRY_NAME:
            name = pb_bytes(&f);
            break;
        case MEMORY_TRACKER_SNAPSHOT_PROCESS_SNAPSHOT_MEMORY_NODE_MEMORY_NODE_ENTRY_UNITS:
            units = pb_u64(&f);
            break;
        case MEMORY_TRACKER_SNAPSHOT_PROCESS_SNAPSHOT_MEMORY_NODE_MEMORY_NODE_ENTRY_VALUE_UINT64:
            number = pb_u64(&f);
            has_number = true;
            break;
        case MEMORY_TRACKER_SNAPSHOT_PROCESS_SNAPSHOT_MEMORY_NODE_MEMORY_NODE_ENTRY_VALUE_STRING:
            text = pb_bytes(&f);
            break;
        }
    }
    if (!has_number && !text.p) {
        parse_failure(m);
        return;
    }
    bool fresh = false;
    strid key = import_slice(m->im, name);
    if (!u64map_put(&g->entries, hash_keyed(m->profiling->secret, node, key), &fresh))
        m->im->failed = true;
    if (!fresh) /* the first dump's value stays */
        return;
    struct memory_node *n = &g->nodes.p[node];
    if (has_number && slice_eq_str(name, "size")) {
        n->size = n->has_size ? n->size : number;
        n->has_size = true;
        return;
    }
    struct strpool *strings = &m->st->strings;
    int len = name.len < INT16_MAX ? (int)name.len : INT16_MAX;
    strid value = strpool_printf(strings, "%.*s.value", len, (const char *)name.p);
    if (!has_number) {
        arg_list_add(&m->st->args, &n->entries, value, value, ARG_STRING, import_slice(m->im, text));
        return;
    }
    bool bytes = units == MEMORY_TRACKER_SNAPSHOT_PROCESS_SNAPSHOT_MEMORY_NODE_MEMORY_NODE_ENTRY_UNITS_BYTES;
    strid unit = strpool_printf(strings, "%.*s.unit", len, (const char *)name.p);
    arg_list_add(&m->st->args, &n->entries, value, value, ARG_UINT, (int64_t)number);
    arg_list_add(&m->st->args, &n->entries, unit, unit, ARG_STRING, import_str(m->im, bytes ? "bytes" : "objects"));
}

static void add_part(struct memory_graph *g, uint32_t root, struct slice message)
{
    struct slice name = {0};
    uint64_t id = 0, size = 0;
    bool has_size = false, has_id = false;
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case MEMORY_TRACKER_SNAPSHOT_PROCESS_SNAPSHOT_MEMORY_NODE_ID:
            id = pb_u64(&f);
            has_id = true;
            break;
        case MEMORY_TRACKER_SNAPSHOT_PROCESS_SNAPSHOT_MEMORY_NODE_ABSOLUTE_NAME:
            name = pb_bytes(&f);
            break;
        case MEMORY_TRACKER_SNAPSHOT_PROCESS_SNAPSHOT_MEMORY_NODE_SIZE_BYTES:
            size = pb_u64(&f);
            has_size = true;
            break;
        }
    }
    bool shared = slice_starts(name, shared_prefix);
    const uint64_t *known = shared && has_id ? u64map_get(&g->by_id, id) : NULL;
    uint32_t node = known ? (uint32_t)*known : memory_graph_node(g, shared ? 0 : root, name);
    if (node == MEMORY_NODE_NONE) {
        parse_failure(g->m);
        return;
    }
    if (has_id && !u64map_get(&g->by_id, id) && !u64map_set(&g->by_id, id, node))
        g->m->im->failed = true;
    if (has_size && !g->nodes.p[node].has_size) {
        g->nodes.p[node].has_size = true;
        g->nodes.p[node].size = size;
    }
    c = pb_cursor(message);
    while (pb_next(&c, &f))
        if (f.id == MEMORY_TRACKER_SNAPSHOT_PROCESS_SNAPSHOT_MEMORY_NODE_ENTRIES)
            add_entry(g, node, pb_bytes(&f));
}

struct raw_edge {
    uint64_t source, target;
    uint32_t importance, order;
};

static int compare_edges(const void *a, const void *b)
{
    const struct raw_edge *x = a, *y = b;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

/* The edges of one process, by source; of several from one source the first counts. */
static void add_edges(struct memory_graph *g, struct slice dump)
{
    VEC(struct raw_edge) edges = {0};
    struct pb_cursor c = pb_cursor(dump);
    struct pb_field f, v;
    while (pb_next(&c, &f)) {
        if (f.id != MEMORY_TRACKER_SNAPSHOT_PROCESS_SNAPSHOT_MEMORY_EDGES)
            continue;
        struct raw_edge e = {.order = (uint32_t)edges.n};
        struct pb_cursor fields = pb_sub(&f);
        while (pb_next(&fields, &v)) {
            if (v.id == MEMORY_TRACKER_SNAPSHOT_PROCESS_SNAPSHOT_MEMORY_EDGE_SOURCE_ID)
                e.source = pb_u64(&v);
            else if (v.id == MEMORY_TRACKER_SNAPSHOT_PROCESS_SNAPSHOT_MEMORY_EDGE_TARGET_ID)
                e.target = pb_u64(&v);
            else if (v.id == MEMORY_TRACKER_SNAPSHOT_PROCESS_SNAPSHOT_MEMORY_EDGE_IMPORTANCE)
                e.importance = pb_u32(&v);
        }
        if (!vec_push(&edges, e)) {
            g->m->im->failed = true;
            break;
        }
    }
    if (edges.n)
        qsort(edges.p, edges.n, sizeof *edges.p, compare_edges);
    for (size_t i = 0; i < edges.n; i++) {
        const struct raw_edge *e = &edges.p[i];
        const uint64_t *source = u64map_get(&g->by_id, e->source), *target = u64map_get(&g->by_id, e->target);
        if (source && target && (i == 0 || e->source != e[-1].source))
            memory_graph_edge(g, (uint32_t)*source, (uint32_t)*target, e->importance);
    }
    vec_free(&edges);
}

/* --- rows --- */

static uint32_t snapshot_row(struct machine_ctx *m, const struct memory_snapshots *x)
{
    struct args *args = &m->st->args;
    struct arg_list list = {0};
    arg_list_str(args, &list, "source", import_str(m->im, "chrome"));
    struct track_spec spec = {.type = "legacy_chrome_global_instants",
                              .event_type = TRACK_SLICE,
                              .parent = UINT32_MAX,
                              .source_args = args_intern(args, list.p, list.n)};
    arg_list_free(&list);
    const char *level = levels[x->level < sizeof levels / sizeof *levels ? x->level : 0];
    return memory_snapshot_insert(m->st,
                                  &(struct memory_snapshot_row){.timestamp = x->ts,
                                                                .track_id = track_intern(m->im->tracks, m->id, &spec),
                                                                .detail_level = import_str(m->im, level)});
}

struct entry {
    const char *key;
    size_t name_len; /* without what it says of the entry: ".value", ".unit" */
    size_t order;
    struct arg arg;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int cmp = slice_cmp(slice_of(x->key, x->name_len), slice_of(y->key, y->name_len));
    return cmp ? cmp : x->order < y->order ? -1 : 1;
}

/* The further values of a part, in the order of their names. */
static argset entries_of(struct machine_ctx *m, const struct arg_list *list)
{
    if (!list->n)
        return ARGSET_NONE;
    struct entry *entries = mem_alloc(list->n * sizeof *entries);
    if (!entries) {
        m->im->failed = true;
        return ARGSET_NONE;
    }
    for (size_t i = 0; i < list->n; i++) {
        const char *key = strpool_cstr(&m->st->strings, list->p[i].key);
        entries[i] = (struct entry){key, (size_t)(strrchr(key, '.') - key), i, list->p[i]};
    }
    qsort(entries, list->n, sizeof *entries, compare_entries);
    for (size_t i = 0; i < list->n; i++)
        list->p[i] = entries[i].arg;
    mem_free(entries);
    return args_intern(&m->st->args, list->p, list->n);
}

static void insert_parts(struct memory_graph *g, uint32_t root, uint32_t process_row)
{
    struct storage *st = g->m->st;
    for (uint32_t i = g->nodes.p[root].first_child; i != MEMORY_NODE_NONE;) {
        struct memory_node *n = &g->nodes.p[i];
        struct memory_snapshot_node_row row = {.process_snapshot_id = process_row,
                                               .parent_node_id =
                                                   n->parent == root ? COL_NULL : (int64_t)g->nodes.p[n->parent].row,
                                               .path = n->path,
                                               .size = n->has_size ? (int64_t)n->size : COL_NULL,
                                               .effective_size = n->has_size ? (int64_t)n->effective_size : COL_NULL,
                                               .arg_set_id = entries_of(g->m, &n->entries)};
        n->row = memory_snapshot_node_insert(st, &row);
        uint32_t next = n->first_child;
        while (next == MEMORY_NODE_NONE && i != root) {
            next = g->nodes.p[i].next;
            i = g->nodes.p[i].parent;
        }
        i = next;
    }
}

static int compare_pids(const void *a, const void *b)
{
    const struct process_dump *x = a, *y = b;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* Makes the rows of what was collected. */
static void finish_snapshot(struct machine_ctx *m, struct memory_snapshots *x)
{
    struct memory_graph g = {.m = m};
    struct pb_field f;
    memory_graph_root(&g);
    if (x->dumps.n)
        qsort(x->dumps.p, x->dumps.n, sizeof *x->dumps.p, compare_pids);
    for (uint32_t i = 0; i < x->dumps.n && !m->im->failed; i++) {
        uint32_t root = x->dumps.p[i].root = memory_graph_root(&g);
        struct pb_cursor c = pb_cursor(x->dumps.p[i].bytes);
        while (root != MEMORY_NODE_NONE && pb_next(&c, &f))
            if (f.id == MEMORY_TRACKER_SNAPSHOT_PROCESS_SNAPSHOT_ALLOCATOR_DUMPS)
                add_part(&g, root, pb_bytes(&f));
    }
    for (size_t i = 0; i < x->dumps.n; i++)
        add_edges(&g, x->dumps.p[i].bytes);
    memory_graph_finish(&g);
    uint32_t snapshot = snapshot_row(m, x);
    for (uint32_t i = 0; i <= x->dumps.n && !m->im->failed; i++) {
        bool last = i == x->dumps.n; /* what they share */
        uint32_t upid = process_tracker_process(m->processes, last ? 0 : x->dumps.p[i].pid);
        uint32_t row = process_memory_snapshot_insert(
            m->st, &(struct process_memory_snapshot_row){.snapshot_id = snapshot, .upid = upid});
        insert_parts(&g, last ? 0 : x->dumps.p[i].root, row);
    }
    for (size_t i = g.edges.n; i-- > 0;)
        memory_snapshot_edge_insert(
            m->st, &(struct memory_snapshot_edge_row){.source_node_id = g.nodes.p[g.edges.p[i].source].row,
                                                      .target_node_id = g.nodes.p[g.edges.p[i].target].row,
                                                      .importance = g.edges.p[i].importance});
    memory_graph_free(&g);
    x->dumps.n = 0;
    u64map_clear(&x->pids);
    x->has = false;
}

void memory_snapshots_finish(struct profiling_machine *s)
{
    if (s->memory && s->memory->has)
        finish_snapshot(s->m, s->memory);
}

static void add_dump(struct profiling_machine *s, struct slice bytes)
{
    struct pb_field f;
    int64_t pid = pb_find(bytes, MEMORY_TRACKER_SNAPSHOT_PROCESS_SNAPSHOT_PID, &f) ? pb_i32(&f) : 0;
    bool fresh = false;
    if (!u64map_put(&s->memory->pids, (uint64_t)pid, &fresh) ||
        (fresh && !vec_push(&s->memory->dumps, (struct process_dump){.pid = pid, .bytes = profiling_keep(s, bytes)})))
        s->m->im->failed = true;
}

void memory_snapshot_parse(struct packet *p)
{
    struct profiling_machine *s = p->m->profiling;
    if (!s->memory && !(s->memory = mem_zalloc(sizeof *s->memory))) {
        p->m->im->failed = true;
        return;
    }
    if (s->memory->has && s->memory->ts != p->ts)
        finish_snapshot(p->m, s->memory);
    bool first = !s->memory->has;
    s->memory->has = true;
    s->memory->ts = p->ts;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    if (first)
        s->memory->level = 0;
    while (pb_next(&c, &f)) {
        if (f.id == MEMORY_TRACKER_SNAPSHOT_LEVEL_OF_DETAIL && first)
            s->memory->level = pb_u64(&f);
        else if (f.id == MEMORY_TRACKER_SNAPSHOT_PROCESS_MEMORY_DUMPS)
            add_dump(s, pb_bytes(&f));
    }
}
