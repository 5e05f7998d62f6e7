/* The open flows and the rows of `flow`. */
#include "importer/track/flow_tracker.h"

#include "base/hash.h"
#include "base/u64map.h"
#include "importer/track/slice_tracker.h"

struct legacy_flow {
    uint64_t source_id;
    strid category, name;
    argset args;
};

struct waiting { /* ends at the next slice of its track */
    uint64_t flow;
    uint32_t next; /* of the same track, index + 1; 0: last */
};

struct flow_tracker {
    struct importer *im;
    uint64_t secret;      /* of the hashes of `legacy` */
    struct u64map open;   /* flow id -> slice it comes from */
    struct u64map legacy; /* hash of (id, category, name) -> index into legacy_flows */
    VEC(struct legacy_flow)
    legacy_flows;
    VEC(struct waiting)
    waiting;
    struct u64map waiting_on;  /* track -> first << 32 | last, indices + 1 into waiting */
    struct u64map legacy_args; /* flow id -> cell of the args of its rows */
};

struct flow_tracker *flow_tracker_open(struct importer *im)
{
    struct flow_tracker *t = mem_zalloc(sizeof *t);
    if (t) {
        t->im = im;
        t->secret = hash_secret();
    }
    return t;
}

void flow_tracker_finish(struct flow_tracker *t)
{
    u64map_clear(&t->open);
    u64map_clear(&t->waiting_on);
    vec_clear(&t->waiting);
}

void flow_tracker_close(struct flow_tracker *t)
{
    if (!t)
        return;
    u64map_free(&t->open);
    u64map_free(&t->legacy);
    u64map_free(&t->legacy_args);
    vec_free(&t->legacy_flows);
    vec_free(&t->waiting);
    u64map_free(&t->waiting_on);
    mem_free(t);
}

static void count(struct flow_tracker *t, uint32_t machine, enum stat_key stat)
{
    stats_add(&t->im->st->stats, machine, stat, 1);
}

/* The innermost open slice of a track; counted when there is none. */
static uint32_t enclosing_slice(struct flow_tracker *t, uint32_t machine, uint32_t track)
{
    uint32_t slice = slice_top(t->im->slices, track);
    if (slice == SLICE_NONE)
        count(t, machine, STAT_flow_no_enclosing_slice);
    return slice;
}

static void insert_row(struct flow_tracker *t, struct flow_row row)
{
    if (ROW_GET(t->im->st, slice, ts, row.slice_in) < ROW_GET(t->im->st, slice, ts, row.slice_out)) {
        int64_t later = row.slice_out; /* arrows go forward in time */
        row.slice_out = row.slice_in;
        row.slice_in = later;
    }
    flow_insert(t->im->st, &row);
}

static void add_row(struct flow_tracker *t, uint64_t id, uint32_t out, uint32_t in)
{
    const uint64_t *args = u64map_get(&t->legacy_args, id);
    insert_row(t, (struct flow_row){.slice_out = out,
                                    .slice_in = in,
                                    .trace_id = args ? (int64_t)(id & UINT32_MAX) : (int64_t)id,
                                    .arg_set_id = args ? argset_of_cell((int64_t)*args) : ARGSET_NONE});
}

void flow_between(struct flow_tracker *t, uint32_t out, uint32_t in)
{
    insert_row(t, (struct flow_row){.slice_out = out, .slice_in = in, .trace_id = COL_NULL});
}

void flow_between_named(struct flow_tracker *t, uint32_t out, uint32_t in, argset args)
{
    insert_row(t, (struct flow_row){.slice_out = out, .slice_in = in, .trace_id = COL_NULL, .arg_set_id = args});
}

void flow_begin_at(struct flow_tracker *t, uint32_t machine, uint32_t slice, uint64_t id)
{
    bool added;
    uint64_t *v = u64map_put(&t->open, id, &added);
    if (!v)
        t->im->failed = true;
    else if (!added)
        count(t, machine, STAT_flow_duplicate_id);
    else
        *v = slice;
}

void flow_begin(struct flow_tracker *t, uint32_t machine, uint32_t track, uint64_t id)
{
    uint32_t slice = enclosing_slice(t, machine, track);
    if (slice != SLICE_NONE)
        flow_begin_at(t, machine, slice, id);
}

void flow_step_at(struct flow_tracker *t, uint32_t machine, uint32_t slice, uint64_t id)
{
    uint64_t *v = u64map_get(&t->open, id);
    if (!v) {
        count(t, machine, STAT_flow_step_without_start);
        return;
    }
    add_row(t, id, (uint32_t)*v, slice);
    *v = slice;
}

void flow_step(struct flow_tracker *t, uint32_t machine, uint32_t track, uint64_t id)
{
    uint32_t slice = enclosing_slice(t, machine, track);
    if (slice != SLICE_NONE)
        flow_step_at(t, machine, slice, id);
}

void flow_end_at(struct flow_tracker *t, uint32_t machine, uint32_t slice, uint64_t id, bool close)
{
    uint64_t *v = u64map_get(&t->open, id);
    if (!v) {
        count(t, machine, STAT_flow_end_without_start);
        return;
    }
    add_row(t, id, (uint32_t)*v, slice);
    if (close)
        u64map_del(&t->open, id);
}

void flow_end(struct flow_tracker *t, uint32_t machine, uint32_t track, uint64_t id, bool enclosing, bool close)
{
    if (!enclosing) {
        uint64_t *v = u64map_put(&t->waiting_on, track, NULL);
        if (!v || !vec_push(&t->waiting, (struct waiting){id, 0})) {
            t->im->failed = true;
            return;
        }
        uint32_t first = (uint32_t)(*v >> 32), last = (uint32_t)*v;
        if (last)
            t->waiting.p[last - 1].next = (uint32_t)t->waiting.n;
        *v = (uint64_t)(first ? first : t->waiting.n) << 32 | (uint32_t)t->waiting.n;
        return;
    }
    uint32_t slice = enclosing_slice(t, machine, track);
    if (slice != SLICE_NONE)
        flow_end_at(t, machine, slice, id, close);
}

bool flow_active(const struct flow_tracker *t, uint64_t id)
{
    return u64map_get(&t->open, id) != NULL;
}

uint64_t flow_legacy_id(struct flow_tracker *t, uint64_t source_id, strid category, strid name)
{
    /* A key of its own space: the number of the (id, category, name) seen, marked by the high bits. */
    static const uint64_t legacy_space = 0x4c454741ull << 32;
    uint64_t h = hash_combine(hash_combine(source_id ^ t->secret, category), name);
    for (;; h++) {
        bool added;
        uint64_t *v = u64map_put(&t->legacy, h, &added);
        if (!v) {
            t->im->failed = true;
            return 0;
        }
        if (added) {
            struct args *args = &t->im->st->args;
            struct arg_list list = {0};
            arg_list_str(args, &list, "name", name);
            arg_list_str(args, &list, "cat", category);
            argset set = args_intern(args, list.p, list.n);
            arg_list_free(&list);
            *v = t->legacy_flows.n;
            uint64_t id = legacy_space | t->legacy_flows.n;
            if (!vec_push(&t->legacy_flows, (struct legacy_flow){source_id, category, name, set}) ||
                !u64map_set(&t->legacy_args, id, (uint64_t)argset_cell(set)))
                t->im->failed = true;
            return id;
        }
        if (*v < t->legacy_flows.n) {
            const struct legacy_flow *f = &t->legacy_flows.p[*v];
            if (f->source_id == source_id && f->category == category && f->name == name)
                return legacy_space | *v;
        }
    }
}

static __attribute__((noinline)) void end_waiting(struct flow_tracker *t, uint32_t machine, uint32_t track,
                                                  uint32_t slice)
{
    const uint64_t *v = u64map_get(&t->waiting_on, track);
    if (!v)
        return;
    uint32_t i = (uint32_t)(*v >> 32);
    u64map_del(&t->waiting_on, track);
    for (; i; i = t->waiting.p[i - 1].next)
        flow_end_at(t, machine, slice, t->waiting.p[i - 1].flow, false);
    if (!t->waiting_on.n)
        vec_clear(&t->waiting);
}

void flow_tracker_slice_begun(struct flow_tracker *t, uint32_t machine, uint32_t track, uint32_t slice)
{
    if (t->waiting_on.n)
        end_waiting(t, machine, track, slice);
}
