/* Keeps the clock graph and the lines of remote machines in a snapshot, and brings them back. */
#include "importer/clock/clock_state.h"

#include "importer/clock/clock_graph_private.h"
#include "importer/clock/remote_private.h"

/* ---- bytes ---- */

struct out {
    clock_state_bytes *bytes;
    bool failed;
};

static void put(struct out *o, const void *p, size_t len)
{
    if (!vec_reserve(o->bytes, o->bytes->n + len)) {
        o->failed = true;
        return;
    }
    if (len)
        memcpy(o->bytes->p + o->bytes->n, p, len);
    o->bytes->n += len;
}

static void put_u32(struct out *o, size_t v)
{
    uint32_t n = (uint32_t)v;
    put(o, &n, sizeof n);
}

#define PUT_VEC(o, v) (put_u32((o), (v)->n), put((o), (v)->p, (v)->n * sizeof *(v)->p))

struct in {
    const uint8_t *p, *end;
    bool bad; /* it ends too early, names what is not there, or memory ran out */
};

static void get(struct in *in, void *to, size_t len)
{
    if ((size_t)(in->end - in->p) < len) {
        in->bad = true;
        memset(to, 0, len);
        return;
    }
    if (len)
        memcpy(to, in->p, len);
    in->p += len;
}

static uint32_t get_u32(struct in *in)
{
    uint32_t v;
    get(in, &v, sizeof v);
    return v;
}

static void get_array(struct in *in, void **p, size_t *n, size_t *cap, size_t size)
{
    uint32_t count = get_u32(in);
    if (in->bad || count > (size_t)(in->end - in->p) / size || !vec_reserve_(p, cap, size, (size_t)count + 1)) {
        in->bad = true;
        return;
    }
    get(in, *p, count * size);
    *n = count;
}

#define GET_VEC(in, v) get_array((in), (void **)&(v)->p, &(v)->n, &(v)->cap, sizeof *(v)->p)

/* ---- the graph ---- */

struct node_state {
    struct clock_id clock;
    int64_t multiplier;
    int64_t last_ns;
    uint32_t only_type;
    uint8_t read, incremental, non_monotonic, unused;
};

/* A map's line is told by its machine, from 1; 0 is none. */
static uint32_t line_of(const struct remote_sync *s, const struct clock_map *map)
{
    for (size_t i = 0; i < s->machines.n; i++)
        if (map->map == &s->machines.p[i]->line)
            return (uint32_t)i + 1;
    return 0;
}

static int save_graph(struct importer *im, struct out *o, struct error *err)
{
    const struct clock_graph *g = im->clocks;
    put(o, &g->trace_clock, sizeof g->trace_clock);
    put_u32(o, g->nodes.n);
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct node *n = &g->nodes.p[i];
        struct node_state state = {.clock = n->clock,
                                   .multiplier = n->multiplier,
                                   .last_ns = n->last_ns,
                                   .only_type = n->only_type,
                                   .read = n->read,
                                   .incremental = n->incremental,
                                   .non_monotonic = n->non_monotonic};
        put(o, &state, sizeof state);
        put_u32(o, n->series.n);
        for (size_t k = 0; k < n->series.n; k++) {
            put_u32(o, n->series.p[k].type);
            PUT_VEC(o, &n->series.p[k].snapshots);
            PUT_VEC(o, &n->series.p[k].values);
        }
        put_u32(o, n->edges.n);
        for (size_t k = 0; k < n->edges.n; k++) {
            const struct edge *e = &n->edges.p[k];
            uint32_t words[] = {e->to, e->type, e->map, e->backwards};
            put(o, words, sizeof words);
        }
    }
    put_u32(o, g->members.n);
    for (size_t i = 0; i < g->members.n; i++) {
        put_u32(o, g->members.p[i].n);
        put(o, g->members.p[i].nodes, g->members.p[i].n * sizeof *g->members.p[i].nodes);
    }
    put_u32(o, g->maps.n);
    for (size_t i = 0; i < g->maps.n; i++) {
        uint32_t line = line_of(im->remote, &g->maps.p[i]);
        if (!line)
            return error_set(err, -MRD_EUNSUPPORTED,
                             "recordings that packets relate cannot be kept in a snapshot yet; make one of each, or "
                             "write them as one trace first (tp_shell sync -o FILE)");
        put_u32(o, line);
    }
    return 0;
}

static bool load_node(struct in *in, struct clock_graph *g, uint32_t n_nodes)
{
    struct node_state state;
    get(in, &state, sizeof state);
    struct node *n = in->bad ? NULL : vec_add(&g->nodes);
    if (!n)
        return false;
    n->joined = (uint32_t)g->nodes.n - 1;
    n->clock = state.clock;
    n->multiplier = state.multiplier;
    n->last_ns = state.last_ns;
    n->only_type = state.only_type;
    n->read = state.read != 0;
    n->incremental = state.incremental != 0;
    n->non_monotonic = state.non_monotonic != 0;
    uint32_t n_series = get_u32(in);
    for (uint32_t k = 0; k < n_series && !in->bad; k++) {
        struct series *s = vec_add(&n->series);
        if (!s)
            return false;
        s->type = get_u32(in);
        GET_VEC(in, &s->snapshots);
        GET_VEC(in, &s->values);
        if (s->snapshots.n != s->values.n || !u64map_set(&g->series, (uint64_t)(g->nodes.n - 1) << 32 | s->type, k))
            return false;
    }
    uint32_t n_edges = get_u32(in);
    for (uint32_t k = 0; k < n_edges && !in->bad; k++) {
        uint32_t words[4];
        get(in, words, sizeof words);
        if (words[0] >= n_nodes || !vec_push(&n->edges, (struct edge){words[0], words[1], words[2], words[3] != 0}))
            return false;
    }
    return !in->bad;
}

static bool load_members(struct in *in, struct clock_graph *g)
{
    uint32_t n = get_u32(in);
    for (uint32_t i = 0; i < n && !in->bad; i++) {
        VEC(uint32_t) nodes = {0};
        GET_VEC(in, &nodes);
        if (in->bad || !vec_push(&g->members, (struct members){nodes.p, (uint32_t)nodes.n})) {
            vec_free(&nodes);
            return false;
        }
        for (size_t k = 0; k < nodes.n; k++) {
            if (nodes.p[k] >= g->nodes.n)
                return false;
            clock_graph_join(g, nodes.p[0], nodes.p[k]);
        }
    }
    return !in->bad;
}

static bool load_maps(struct in *in, struct importer *im)
{
    struct clock_graph *g = im->clocks;
    uint32_t n = get_u32(in);
    for (uint32_t i = 0; i < n && !in->bad; i++) {
        uint32_t line = get_u32(in);
        if (!line || line > im->remote->machines.n || !im->remote->machines.p[line - 1]->line.pieces.n ||
            !vec_push(&g->maps, remote_line_map(im->remote->machines.p[line - 1])))
            return false;
    }
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct node *node = &g->nodes.p[i];
        if (node->only_type > g->members.n)
            return false;
        for (size_t k = 0; k < node->edges.n; k++) {
            if (node->edges.p[k].map > g->maps.n)
                return false;
            clock_graph_join(g, (uint32_t)i, node->edges.p[k].to);
        }
    }
    return !in->bad;
}

static bool load_graph(struct in *in, struct importer *im)
{
    struct clock_graph *g = im->clocks;
    clock_graph_clear(g);
    get(in, &g->trace_clock, sizeof g->trace_clock);
    g->trace_clock_set = true;
    uint32_t n = get_u32(in);
    for (uint32_t i = 0; i < n && !in->bad; i++)
        if (!load_node(in, g, n) || !clock_graph_index_node(g, i))
            return false;
    return !in->bad && load_members(in, g) && load_maps(in, im);
}

/* ---- lines of remote machines ---- */

struct remote_state {
    int64_t machine;
    uint32_t host;
    uint32_t clock_file;
    uint32_t linear, synced;
    int64_t end_slope[2];
};

static void save_remote(const struct remote_sync *s, struct out *o)
{
    put_u32(o, s->machines.n);
    for (size_t i = 0; i < s->machines.n; i++) {
        const struct remote_machine *r = s->machines.p[i];
        struct remote_state state = {.machine = r->machine,
                                     .host = r->host,
                                     .clock_file = r->clock_file,
                                     .linear = r->linear,
                                     .synced = r->synced,
                                     .end_slope = {r->line.end_slope[0], r->line.end_slope[1]}};
        put(o, &state, sizeof state);
        PUT_VEC(o, &r->line.cells);
        PUT_VEC(o, &r->line.spans);
        PUT_VEC(o, &r->line.knots);
        PUT_VEC(o, &r->line.pieces);
    }
}

/* What clock_line.c and clock_error.c rely on. */
static bool line_is_good(const struct clock_line *l)
{
    enum { SLOPE_BITS = 62 };
    int64_t most = INT64_MAX / 4;
    for (size_t i = 0; i < l->pieces.n; i++)
        if (l->pieces.p[i].slope_minus_one <= -(INT64_C(1) << SLOPE_BITS))
            return false;
    for (size_t i = 0; i < l->spans.n; i++)
        if (l->spans.p[i].min_rtt_ns < 0 || l->spans.p[i].min_rtt_ns > most)
            return false;
    for (int i = 0; i < 2; i++)
        if (l->end_slope[i] < -most || l->end_slope[i] > most)
            return false;
    return l->cells.n && l->spans.n && l->pieces.n == l->knots.n + 1;
}

static bool load_remote(struct in *in, struct remote_sync *s)
{
    uint32_t n = get_u32(in);
    for (uint32_t i = 0; i < n && !in->bad; i++) {
        struct remote_state state;
        struct remote_machine *r = remote_add_boot(s, i, NULL);
        get(in, &state, sizeof state);
        if (!r || in->bad)
            return false;
        r->machine = state.machine;
        r->host = state.host;
        r->clock_file = state.clock_file;
        r->linear = state.linear != 0;
        r->synced = state.synced != 0;
        r->line.end_slope[0] = state.end_slope[0];
        r->line.end_slope[1] = state.end_slope[1];
        GET_VEC(in, &r->line.cells);
        GET_VEC(in, &r->line.spans);
        GET_VEC(in, &r->line.knots);
        GET_VEC(in, &r->line.pieces);
        if (in->bad || (r->linear && !line_is_good(&r->line)))
            return false;
        if (!r->linear)
            vec_clear(&r->line.pieces); /* no map may lead there */
    }
    return !in->bad;
}

/* ---- both ---- */

static bool load_machines(struct in *in, struct importer *im)
{
    GET_VEC(in, &im->clock_files);
    im->clocks_restored = true;
    return !in->bad;
}

int clock_state_save(struct importer *im, clock_state_bytes *out, struct error *err)
{
    struct out o = {.bytes = out};
    if (im->clocks_restored) /* a snapshot that is written again */
        put_u32(&o, im->clock_files.n);
    else
        put_u32(&o, im->machines.n);
    for (size_t i = 0; i < (im->clocks_restored ? im->clock_files.n : im->machines.n); i++)
        put_u32(&o, im->clocks_restored ? im->clock_files.p[i] : im->machines.p[i]->clock_file);
    save_remote(im->remote, &o);
    int rc = save_graph(im, &o, err);
    return rc ? rc : o.failed ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}

int clock_state_load(struct importer *im, struct slice bytes, struct error *err)
{
    struct in in = {bytes.p, bytes.p + bytes.len, false};
    if (load_machines(&in, im) && load_remote(&in, im->remote) && load_graph(&in, im) && in.p == in.end)
        return 0;
    clock_graph_clear(im->clocks);
    return error_set(err, -MRD_EFORMAT, "the snapshot's clocks are damaged; write it anew from its trace");
}
