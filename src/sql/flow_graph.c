/* Finds the flows that can be reached from a slice. Which flows begin and end at a slice is found once, and kept for
 * the calls that follow. */
#include "sql/flow_graph.h"

#include "base/u64map.h"
#include "base/vec.h"
#include "sql/engine_private.h"

const struct column_def flow_function_columns[FLOW_FUNCTION_COLUMNS] = {
    {"id", COL_U32, 0, "Number of the row in this answer."},
    {"slice_out", COL_U32, 0, "Row of slice."},
    {"slice_in", COL_U32, 0, "Row of slice."},
    {"trace_id", COL_I64, COL_NULLABLE, ""},
    {"arg_set_id", COL_U32, COL_NULLABLE, ""},
};
enum { SIDES = 2, MOST_KEPT = 4096 /* slots of what has been seen */ };

struct visit {
    uint32_t slice;
    uint8_t directions;
};

struct flow_graph {
    const struct table *flows, *slices;
    uint32_t n;                    /* flows that are known */
    struct u64map by_slice[SIDES]; /* slice -> first flow + 1, by slice_out and by slice_in */
    uint32_t *next[SIDES];         /* [flow] next flow + 1 of the same slice */
    /* of one call: */
    uint32_t call, *seen_flow; /* [flow] the call that has found it */
    struct u64map seen_slice;  /* slice -> directions in which it was left */
    VEC(struct visit)
    todo;
    bool relatives; /* children of what follows, ancestors of what precedes */
};

void flow_graph_free(struct engine *e)
{
    struct flow_graph *g = e->flows;
    if (!g)
        return;
    for (int side = 0; side < SIDES; side++) {
        u64map_free(&g->by_slice[side]);
        mem_free(g->next[side]);
    }
    u64map_free(&g->seen_slice);
    mem_free(g->seen_flow);
    vec_free(&g->todo);
    mem_free(g);
    e->flows = NULL;
}

static int index_flows(struct flow_graph *g, stop_flag *stop)
{
    uint32_t n = g->flows->n_rows;
    g->seen_flow = mem_zalloc((n + 1ull) * sizeof *g->seen_flow);
    for (int side = 0; side < SIDES; side++) {
        g->next[side] = mem_zalloc((n + 1ull) * sizeof *g->next[side]);
        if (!g->next[side] || !g->seen_flow)
            return -MRD_ENOMEM;
        for (uint32_t i = n; i-- > 0;) { /* from the end, so that the lists are in order */
            int64_t slice = table_get(g->flows, side ? flow_c_slice_in : flow_c_slice_out, i);
            uint64_t *head = u64map_put(&g->by_slice[side], (uint64_t)slice, NULL);
            if (stop_asked(stop))
                return -MRD_ECANCELLED;
            if (!head)
                return -MRD_ENOMEM;
            g->next[side][i] = (uint32_t)*head;
            *head = i + 1;
        }
    }
    g->n = n;
    return 0;
}

/* The graph of the flows that there are now. */
static int graph_of(struct engine *e, struct flow_graph **out)
{
    struct storage *st = engine_storage(e);
    if (e->flows && e->flows->n != st->t[T_flow].n_rows)
        flow_graph_free(e);
    if (!e->flows) {
        struct flow_graph *g = e->flows = mem_zalloc(sizeof *g);
        if (!g)
            return -MRD_ENOMEM;
        g->flows = &st->t[T_flow];
        g->slices = &st->t[T_slice];
        int rc = index_flows(g, engine_stop(e));
        if (rc) {
            flow_graph_free(e);
            return rc;
        }
    }
    *out = e->flows;
    return 0;
}

static int push(struct flow_graph *g, uint32_t slice, uint8_t directions)
{
    uint64_t *seen = u64map_put(&g->seen_slice, slice, NULL);
    if (!seen || !vec_reserve(&g->todo, g->todo.n + 1))
        return -MRD_ENOMEM;
    directions &= (uint8_t) ~*seen;
    if (!directions)
        return 0;
    *seen |= directions;
    g->todo.p[g->todo.n].slice = slice;
    g->todo.p[g->todo.n++].directions = directions;
    return 0;
}

/* The slice and, where wanted, those inside it or around it. */
static int push_family(struct flow_graph *g, uint32_t slice, uint8_t directions, stop_flag *stop)
{
    int rc = push(g, slice, directions);
    if (!g->relatives || rc || slice >= g->slices->n_rows)
        return rc;
    if (directions == FLOW_OUTGOING) {
        struct row_list inside = {0};
        rc = slice_descendants(g->slices, slice, &inside, stop);
        for (size_t i = 0; i < inside.n && rc == 0; i++)
            rc = push(g, inside.p[i], directions);
        vec_free(&inside);
        return rc;
    }
    for (int64_t parent;
         (parent = table_get(g->slices, slice_c_parent_id, slice)) != COL_NULL && parent < slice && rc == 0;) {
        slice = (uint32_t)parent;
        rc = push(g, slice, directions);
    }
    return rc;
}

static int take_flow(struct flow_graph *g, uint32_t flow, uint8_t direction, struct row_list *out, stop_flag *stop)
{
    if (g->seen_flow[flow] == g->call)
        return 0;
    g->seen_flow[flow] = g->call;
    if (!vec_push(out, flow))
        return -MRD_ENOMEM;
    uint32_t end = direction == FLOW_OUTGOING ? flow_c_slice_in : flow_c_slice_out;
    return push_family(g, (uint32_t)table_get(g->flows, end, flow), direction, stop);
}

static void begin(struct flow_graph *g, bool relatives)
{
    if (g->seen_slice.capacity > MOST_KEPT)
        u64map_free(&g->seen_slice);
    else
        u64map_clear(&g->seen_slice);
    g->todo.n = 0;
    g->call++;
    g->relatives = relatives;
}

int flow_graph_find(struct engine *e, uint32_t slice, uint8_t directions, bool relatives, struct row_list *out)
{
    struct flow_graph *g;
    stop_flag *stop = engine_stop(e);
    int rc = graph_of(e, &g);
    if (rc)
        return rc;
    begin(g, relatives);
    rc = relatives ? push_family(g, slice, directions, stop) : push(g, slice, directions);
    for (size_t i = 0; i < g->todo.n && rc == 0; i++) {
        if (stop_asked(stop))
            rc = -MRD_ECANCELLED;
        for (int side = 1; side >= 0 && rc == 0; side--) { /* what led to a slice stands before what follows */
            uint8_t direction = side ? FLOW_INCOMING : FLOW_OUTGOING;
            if (!(g->todo.p[i].directions & direction))
                continue;
            const uint64_t *head = u64map_get(&g->by_slice[side], g->todo.p[i].slice);
            for (uint32_t f = head ? (uint32_t)*head : 0; f && rc == 0; f = g->next[side][f - 1])
                rc = take_flow(g, f - 1, direction, out, stop);
        }
    }
    return rc;
}
