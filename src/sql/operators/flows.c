/* DIRECTLY_CONNECTED_FLOW, FOLLOWING_FLOW, PRECEDING_FLOW: flows that can be reached from a slice. */
#include "base/u64map.h"
#include "sql/operators/table_functions.h"

enum { OUTGOING = 1, INCOMING = 2 };

struct visit {
    uint32_t slice;
    uint8_t directions;
};

struct flow_search {
    const struct table *flows, *slices;
    struct table *out;
    stop_flag *stop;
    struct u64map by_slice[2]; /* slice -> first flow + 1, by slice_out and by slice_in */
    uint32_t *next[2];         /* [flow] next flow + 1 of the same slice */
    uint8_t *seen_flow;
    struct u64map seen_slice; /* slice -> directions in which it was left */
    VEC(struct visit)
    todo;
    bool relatives; /* children of what follows, ancestors of what precedes */
};

static int index_flows(struct flow_search *w)
{
    uint32_t n = w->flows->n_rows;
    w->seen_flow = mem_zalloc(n + 1);
    for (int side = 0; side < 2; side++) {
        w->next[side] = mem_zalloc((n + 1) * sizeof(uint32_t));
        if (!w->next[side] || !w->seen_flow)
            return -MRD_ENOMEM;
        for (uint32_t i = n; i-- > 0;) { /* from the end, so that the lists are in order */
            int64_t slice = table_get(w->flows, side ? flow_c_slice_in : flow_c_slice_out, i);
            uint64_t *head = u64map_put(&w->by_slice[side], (uint64_t)slice, NULL);
            if (!head || stop_asked(w->stop))
                return -MRD_ENOMEM;
            w->next[side][i] = (uint32_t)*head;
            *head = i + 1;
        }
    }
    return 0;
}

static int push(struct flow_search *w, uint32_t slice, uint8_t directions)
{
    uint64_t *seen = u64map_put(&w->seen_slice, slice, NULL);
    if (stop_asked(w->stop))
        return -MRD_ECANCELLED;
    if (!seen || !vec_reserve(&w->todo, w->todo.n + 1))
        return -MRD_ENOMEM;
    directions &= (uint8_t) ~*seen;
    if (!directions)
        return 0;
    *seen |= directions;
    w->todo.p[w->todo.n].slice = slice;
    w->todo.p[w->todo.n++].directions = directions;
    return 0;
}

/* The slice and, where wanted, those inside it or around it. */
static int push_family(struct flow_search *w, uint32_t slice, uint8_t direction)
{
    int rc = push(w, slice, direction);
    if (!w->relatives || rc || slice >= w->slices->n_rows)
        return rc;
    if (direction == OUTGOING) {
        struct row_list inside = {0};
        rc = slice_descendants(w->slices, slice, &inside, w->stop);
        for (size_t i = 0; i < inside.n && rc == 0; i++)
            rc = push(w, inside.p[i], direction);
        vec_free(&inside);
        return rc;
    }
    for (int64_t parent;
         (parent = table_get(w->slices, slice_c_parent_id, slice)) != COL_NULL && parent < slice && rc == 0;) {
        slice = (uint32_t)parent;
        rc = push(w, slice, direction);
    }
    return rc;
}

static int take_flow(struct flow_search *w, uint32_t flow, uint8_t direction)
{
    if (w->seen_flow[flow])
        return 0;
    w->seen_flow[flow] = 1;
    int64_t words[5] = {w->out->n_rows}, *of_flow = words + 1; /* id of the row, then the columns of flow */
    for (uint32_t i = 0; i < 4; i++)
        of_flow[i] = table_get(w->flows, i, flow);
    if (table_append(w->out, words) == UINT32_MAX)
        return -MRD_ENOMEM;
    return push_family(w, (uint32_t)of_flow[direction == OUTGOING ? flow_c_slice_in : flow_c_slice_out], direction);
}

static int connected(struct engine *e, sqlite3_value **args, struct table *out, struct error *err, uint8_t directions,
                     bool relatives)
{
    struct storage *st = engine_storage(e);
    struct flow_search w = {
        .flows = &st->t[T_flow], .slices = &st->t[T_slice], .out = out, .stop = engine_stop(e), .relatives = relatives};
    uint32_t start;
    int rc = start_row(args[0], w.slices->n_rows, &start, err);
    if (rc || start == UINT32_MAX || w.flows->n_rows == 0)
        return rc;
    rc = index_flows(&w);
    if (rc == 0)
        rc = relatives ? push_family(&w, start, directions) : push(&w, start, directions);
    for (size_t i = 0; i < w.todo.n && rc == 0; i++)
        for (int side = 1; side >= 0 && rc == 0; side--) { /* what led to a slice stands before what follows */
            uint8_t direction = side ? INCOMING : OUTGOING;
            if (!(w.todo.p[i].directions & direction))
                continue;
            const uint64_t *head = u64map_get(&w.by_slice[side], w.todo.p[i].slice);
            for (uint32_t f = head ? (uint32_t)*head : 0; f && rc == 0; f = w.next[side][f - 1])
                rc = take_flow(&w, f - 1, direction);
        }
    for (int side = 0; side < 2; side++) {
        u64map_free(&w.by_slice[side]);
        mem_free(w.next[side]);
    }
    u64map_free(&w.seen_slice);
    mem_free(w.seen_flow);
    vec_free(&w.todo);
    return rc;
}

static int directly_connected(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    return connected(e, args, out, err, OUTGOING | INCOMING, false);
}

static int following(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    return connected(e, args, out, err, OUTGOING, true);
}

static int preceding(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    return connected(e, args, out, err, INCOMING, true);
}

static const struct column_def columns[] = {
    {"id", COL_U32, 0, "Number of the row in this answer."},
    {"slice_out", COL_U32, 0, "Row of slice."},
    {"slice_in", COL_U32, 0, "Row of slice."},
    {"trace_id", COL_I64, COL_NULLABLE, ""},
    {"arg_set_id", COL_U32, COL_NULLABLE, ""},
};
static const struct table_def def = {"", columns, 5, ""};

const struct engine_table_function flow_table_functions[] = {
    {"directly_connected_flow", &def, 1, ROWS_AUTO_ID, directly_connected},
    {"following_flow", &def, 1, ROWS_AUTO_ID, following},
    {"preceding_flow", &def, 1, ROWS_AUTO_ID, preceding},
};
const size_t flow_table_functions_n = sizeof flow_table_functions / sizeof *flow_table_functions;
