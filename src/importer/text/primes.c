/* Traces of Primes: slices and marks of executors, and arrows between them. */
#include "importer/text/text_formats.h"

#include "importer/clock/file_clock.h"
#include "importer/sort/sorter.h"
#include "importer/text/text_file.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_compressor.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

/* A slice or mark that has begun. */
struct entity {
    uint64_t executor;
    uint32_t set;   /* of tracks; TRACK_SET_NONE for a mark */
    uint32_t slice; /* row */
};

struct primes {
    struct importer *im;
    struct machine_ctx *m;
    struct file_clock clock;
    uint32_t queue;
    struct arena bytes;
    VEC(struct slice)
    edges;
    struct u64map by_id; /* id of an edge -> index of `entities` */
    VEC(struct entity)
    entities;
    struct u64map flows; /* id -> the slice it was seen at last */
};

struct details {
    bool given;
    strid name;
    bool has_parent;
    uint64_t parent;
    struct slice message;
};

static struct details read_details(struct primes *p, struct slice message, uint32_t field)
{
    struct pb_field f;
    struct details d = {0};
    if (!pb_find(message, field, &f) || f.wire != PB_BYTES)
        return d;
    d.given = true;
    d.message = pb_bytes(&f);
    if (pb_find(d.message, PRIMES_TRACE_EDGE_TRACE_ENTITY_DETAILS_NAME, &f))
        d.name = import_slice(p->im, pb_bytes(&f));
    d.has_parent = pb_find(d.message, PRIMES_TRACE_EDGE_TRACE_ENTITY_DETAILS_PARENT_ID, &f);
    d.parent = d.has_parent ? pb_u64(&f) : 0;
    return d;
}

static void problem(struct primes *p, enum stat_key stat, int64_t ts, uint64_t edge, const uint64_t *parent)
{
    struct arg_list list = {0};
    struct args *a = &p->im->st->args;
    arg_list_uint(a, &list, "edge_id", edge);
    if (parent)
        arg_list_uint(a, &list, "parent_id", *parent);
    import_log(p->m, stat, ts, -1, args_intern(a, list.p, list.n));
    arg_list_free(&list);
}

static void add_flows(struct primes *p, const struct details *d, uint32_t slice)
{
    struct storage *st = p->im->st;
    struct pb_numbers n = pb_numbers(d->message, PRIMES_TRACE_EDGE_TRACE_ENTITY_DETAILS_FOLLOWS_FROM_IDS);
    uint64_t id;
    if (slice == SLICE_NONE)
        return;
    while (pb_next_number(&n, &id)) {
        const uint64_t *at = u64map_get(&p->by_id, id);
        if (at && p->entities.p[*at].slice != SLICE_NONE)
            flow_insert(st, &(struct flow_row){
                                .slice_out = p->entities.p[*at].slice, .slice_in = slice, .trace_id = (int64_t)id});
    }
    n = pb_numbers(d->message, PRIMES_TRACE_EDGE_TRACE_ENTITY_DETAILS_FLOW_IDS);
    while (pb_next_number(&n, &id)) {
        bool added;
        uint64_t *last = u64map_put(&p->flows, id, &added);
        if (!last)
            return;
        if (!added)
            flow_insert(st,
                        &(struct flow_row){.slice_out = (uint32_t)*last, .slice_in = slice, .trace_id = (int64_t)id});
        *last = slice;
    }
}

/* Its tracks have no names but those that slices bring. */
static uint32_t set_of(struct primes *p, uint64_t executor)
{
    struct track_dim dim = {"executor_id", DIM_INT, (int64_t)executor};
    return track_set_intern(p->im->tracks, p->m->id,
                            &(struct track_spec){.type = "primes_executor_slice",
                                                 .event_type = TRACK_SLICE,
                                                 .parent = UINT32_MAX,
                                                 .dims = &dim,
                                                 .n_dims = 1});
}

/* The executor of an entity without one of its own is its parent's. False (and told) when there is none. */
static bool find_executor(struct primes *p, const struct details *d, int64_t ts, uint64_t id, uint64_t *executor)
{
    if (!d->has_parent) {
        problem(p, STAT_primes_missing_parent_id, ts, id, NULL);
        return false;
    }
    const uint64_t *at = u64map_get(&p->by_id, d->parent);
    if (!at) {
        problem(p, STAT_primes_executor_not_found, ts, id, &d->parent);
        return false;
    }
    *executor = p->entities.p[*at].executor;
    return true;
}

static void remember(struct primes *p, uint64_t id, struct entity e)
{
    uint64_t *slot = u64map_put(&p->by_id, id, NULL);
    if (slot && vec_push(&p->entities, e))
        *slot = p->entities.n - 1;
    else
        p->im->failed = true;
}

static void begin_slice(struct primes *p, int64_t ts, uint64_t id, struct slice message)
{
    struct pb_field f;
    struct details d = read_details(p, message, PRIMES_TRACE_EDGE_SLICE_BEGIN_ENTITY_DETAILS);
    if (!d.given) {
        problem(p, STAT_primes_missing_entity_details, ts, id, NULL);
        return;
    }
    struct entity e = {.set = TRACK_SET_NONE};
    strid name = 0;
    if (pb_find(message, PRIMES_TRACE_EDGE_SLICE_BEGIN_EXECUTOR_ID, &f))
        e.executor = pb_u64(&f);
    else if (!find_executor(p, &d, ts, id, &e.executor))
        return;
    if (pb_find(message, PRIMES_TRACE_EDGE_SLICE_BEGIN_EXECUTOR_NAME, &f))
        name = import_slice(p->im, pb_bytes(&f));
    e.set = set_of(p, e.executor);
    uint32_t track = track_set_begin(p->im->tracks, e.set, (int64_t)id);
    if (name && track != UINT32_MAX && !ROW_GET(p->im->st, track, name, track))
        ROW_SET(p->im->st, track, name, track, name);
    e.slice = slice_begin(p->im->slices, p->m->id, ts, track, 0, d.name, ARGSET_NONE);
    remember(p, id, e);
    add_flows(p, &d, e.slice);
}

static void end_slice(struct primes *p, int64_t ts, uint64_t id)
{
    const uint64_t *at = u64map_get(&p->by_id, id);
    if (!at || p->entities.p[*at].set == TRACK_SET_NONE) {
        problem(p, STAT_primes_end_without_matching_begin, ts, id, NULL);
        return;
    }
    struct entity *e = &p->entities.p[*at];
    slice_end(p->im->slices, p->m->id, ts, track_set_end(p->im->tracks, e->set, (int64_t)id), 0, 0, NULL);
}

static void add_mark(struct primes *p, int64_t ts, uint64_t id, struct slice message)
{
    struct details d = read_details(p, message, PRIMES_TRACE_EDGE_MARK_ENTITY_DETAILS);
    struct entity e = {.set = TRACK_SET_NONE};
    if (!d.given) {
        problem(p, STAT_primes_missing_entity_details, ts, id, NULL);
        return;
    }
    if (!find_executor(p, &d, ts, id, &e.executor))
        return;
    uint32_t track = track_set_scoped(p->im->tracks, set_of(p, e.executor), ts, 0);
    e.slice = slice_scoped(p->im->slices, p->m->id, ts, track, 0, d.name, 0, ARGSET_NONE);
    remember(p, id, e);
    add_flows(p, &d, e.slice);
}

static void parse_edges(void *owner, const struct sort_event *events, size_t n)
{
    struct primes *p = owner;
    for (size_t i = 0; i < n; i++) {
        struct slice edge = p->edges.p[events[i].a];
        struct pb_field f;
        uint64_t id = pb_find(edge, PRIMES_TRACE_EDGE_ID, &f) ? pb_u64(&f) : 0;
        if (pb_find(edge, PRIMES_TRACE_EDGE_SLICE_BEGIN, &f))
            begin_slice(p, events[i].ts, id, pb_bytes(&f));
        else if (pb_find(edge, PRIMES_TRACE_EDGE_SLICE_END, &f))
            end_slice(p, events[i].ts, id);
        else if (pb_find(edge, PRIMES_TRACE_EDGE_MARK, &f))
            add_mark(p, events[i].ts, id, pb_bytes(&f));
        else
            problem(p, STAT_primes_unknown_edge_type, events[i].ts, id, NULL);
    }
}

/* Seconds and nanoseconds, as Timestamp and Duration have them. */
static bool read_time(struct slice message, int64_t *ns)
{
    struct pb_field f;
    int64_t seconds = pb_find(message, PRIMES_TIMESTAMP_SECONDS, &f) ? pb_i64(&f) : 0;
    int64_t nanos = pb_find(message, PRIMES_TIMESTAMP_NANOS, &f) ? pb_i32(&f) : 0;
    return !__builtin_mul_overflow(seconds, 1000000000, ns) && !__builtin_add_overflow(*ns, nanos, ns);
}

static void *open_file(struct importer *im)
{
    struct primes *p = mem_zalloc(sizeof *p);
    if (!p)
        return NULL;
    *p = (struct primes){.im = im, .m = text_machine(im)};
    p->queue = sorter_add_queue(im->sorter, parse_edges, p);
    file_clock_open(&p->clock, im, CLOCK_ID_TRACE_FILE);
    return p;
}

static void read_edge(struct primes *p, int64_t start, struct slice edge)
{
    struct pb_field f;
    int64_t offset, ts;
    if (!pb_find(edge, PRIMES_TRACE_EDGE_TRACE_START_OFFSET, &f) || !read_time(pb_bytes(&f), &offset) ||
        __builtin_add_overflow(start, offset, &ts)) {
        import_log(p->m, STAT_primes_malformed_timestamp, COL_NULL, -1, ARGSET_NONE);
        return;
    }
    if (!file_clock_to_trace_time(&p->clock, ts, -1, &ts))
        return;
    if (!importer_bytes_stable(p->im, edge.p)) {
        char *copy = arena_strndup(&p->bytes, edge.p, edge.len);
        edge = slice_of(copy, copy ? edge.len : 0);
    }
    if (vec_push(&p->edges, edge))
        sorter_push(p->im->sorter, p->queue, (struct sort_event){.ts = ts, .a = p->edges.n - 1});
    else
        p->im->failed = true;
}

static int write_file(void *self, struct slice file, struct error *err)
{
    struct primes *p = self;
    struct pb_field f;
    int64_t start;
    if (!pb_find(file, PRIMES_TRACE_START_TIME, &f) || !read_time(pb_bytes(&f), &start))
        return error_set(err, -MRD_EFORMAT, "primes: the trace has no start_time");
    struct pb_cursor c = pb_cursor(file);
    while (pb_next(&c, &f))
        if (f.id == PRIMES_TRACE_EDGES && f.wire == PB_BYTES)
            read_edge(p, start, pb_bytes(&f));
    if (c.bad)
        return error_set(err, -MRD_EFORMAT, "primes: the file was cut off: what came before is there (ERR:tp-corrupt)");
    return p->im->failed ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}

static void close_file(void *self)
{
    struct primes *p = self;
    arena_free(&p->bytes);
    vec_free(&p->edges);
    vec_free(&p->entities);
    u64map_free(&p->by_id);
    u64map_free(&p->flows);
    mem_free(p);
}

const struct format_reader primes_format_reader = {
    .format = FORMAT_PRIMES, .whole = true, .open = open_file, .write = write_file, .close = close_file};
