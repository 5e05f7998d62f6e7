/* EXPERIMENTAL_SLICE_LAYOUT(tracks): the stacks of several tracks packed into one picture;
 * EXPERIMENTAL_FLAT_SLICE(start, end): what was deepest on each track at each moment. */
#include "base/saturate.h"
#include "base/u64map.h"
#include "sql/operators/table_functions.h"

#include <stdlib.h>

/* A slice without parent, with all that stands below it. */
struct stack {
    uint32_t root;
    int64_t start, end;
    uint32_t height;
    uint32_t depth; /* result */
};

struct stacks {
    struct stack *p;
    size_t n, cap;
};

static int by_start(const void *a, const void *b)
{
    const struct stack *x = a, *y = b;
    return x->start != y->start ? (x->start < y->start ? -1 : 1) : x->root < y->root ? -1 : x->root > y->root;
}

/* Gives each stack the lowest place that is free for all of its height while it lasts. */
static int pack(struct stacks *stacks, stop_flag *stop)
{
    VEC(const struct stack *)
    open = {0}; /* by depth */
    int rc = 0;
    if (!stop_sort(stacks->p, stacks->n, sizeof *stacks->p, by_start, stop))
        return -MRD_ENOMEM;
    for (size_t i = 0; i < stacks->n && rc == 0; i++) {
        struct stack *s = &stacks->p[i];
        size_t keep = 0, at = 0;
        if (stop_asked(stop)) {
            rc = -MRD_ECANCELLED;
            break;
        }
        for (size_t k = 0; k < open.n; k++)
            if (open.p[k]->end > s->start)
                open.p[keep++] = open.p[k];
        open.n = keep;
        uint32_t depth = 0;
        while (at < open.n && open.p[at]->depth < depth + s->height) {
            if (open.p[at]->depth + open.p[at]->height > depth)
                depth = open.p[at]->depth + open.p[at]->height;
            at++;
        }
        s->depth = depth;
        if (!vec_push(&open, s))
            rc = -MRD_ENOMEM;
        for (size_t k = open.n - 1; rc == 0 && k > at; k--)
            open.p[k] = open.p[k - 1];
        if (rc == 0)
            open.p[at] = s;
    }
    vec_free(&open);
    return rc;
}

static int parse_tracks(const char *text, struct u64map *tracks, struct error *err)
{
    while (text && *text) {
        char *end;
        long long id = strtoll(text, &end, 10);
        if (end == text)
            return error_set(err, -MRD_ESQL, "EXPERIMENTAL_SLICE_LAYOUT: expected a comma-separated list of track ids");
        if (!u64map_set(tracks, (uint64_t)id, 1))
            return -MRD_ENOMEM;
        text = end + strspn(end, ", ");
    }
    return 0;
}

static int slice_layout(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    const struct table *t = &engine_storage(e)->t[T_slice];
    struct u64map tracks = {0}, by_root = {0};
    struct row_list rows = {0};
    struct stacks stacks = {0};
    if (sqlite3_value_type(args[0]) == SQLITE_NULL)
        return 0;
    int rc = parse_tracks((const char *)sqlite3_value_text(args[0]), &tracks, err);
    for (uint32_t r = 0; r < t->n_rows && rc == 0; r++)
        if (u64map_get(&tracks, (uint64_t)table_get(t, slice_c_track_id, r)) && !vec_push(&rows, r))
            rc = -MRD_ENOMEM;
    uint32_t *root = rc == 0 ? mem_alloc((rows.n + 1) * sizeof *root) : NULL;
    struct u64map place = {0}; /* row -> its index in `rows` */
    for (size_t i = 0; root && i < rows.n && rc == 0; i++) {
        uint32_t r = rows.p[i];
        int64_t parent = table_get(t, slice_c_parent_id, r);
        const uint64_t *p = parent == COL_NULL ? NULL : u64map_get(&place, (uint64_t)parent);
        int64_t ts = table_get(t, slice_c_ts, r), dur = table_get(t, slice_c_dur, r);
        uint32_t depth = (uint32_t)table_get(t, slice_c_depth, r);
        root[i] = p ? root[*p] : (uint32_t)stacks.n;
        if (stop_asked(engine_stop(e)) || !u64map_set(&place, r, i)) /* may move what p points to */
            rc = -MRD_ENOMEM;
        if (!p && !vec_push(&stacks, (struct stack){.root = (uint32_t)i, .start = ts}))
            rc = -MRD_ENOMEM;
        if (rc)
            break;
        struct stack *s = &stacks.p[root[i]];
        int64_t end = dur < 0 ? INT64_MAX : saturating_add(ts, dur ? dur : 1);
        s->end = s->end > end ? s->end : end;
        s->height = s->height > depth + 1 ? s->height : depth + 1;
    }
    if (rc == 0 && root)
        rc = stacks.n ? pack(&stacks, engine_stop(e)) : 0;
    for (size_t i = 0; i < stacks.n && rc == 0; i++) /* stacks were sorted: find them by their first row */
        rc = u64map_set(&by_root, stacks.p[i].root, stacks.p[i].depth) ? 0 : -MRD_ENOMEM;
    VEC(uint32_t)
    first = {0}; /* [number of a stack before sorting] -> its first row's place */
    for (size_t i = 0; root && i < rows.n && rc == 0; i++) {
        if (root[i] == first.n && !vec_push(&first, (uint32_t)i))
            rc = -MRD_ENOMEM;
        const uint64_t *depth = rc == 0 ? u64map_get(&by_root, first.p[root[i]]) : NULL;
        int64_t words[] = {rows.p[i], (depth ? (int64_t)*depth : 0) + table_get(t, slice_c_depth, rows.p[i])};
        if (rc == 0 && table_append(out, words) == UINT32_MAX)
            rc = -MRD_ENOMEM;
    }
    vec_free(&first);
    vec_free(&rows);
    vec_free(&stacks);
    mem_free(root);
    u64map_free(&tracks);
    u64map_free(&by_root);
    u64map_free(&place);
    return rc;
}

/* ---- flattening ---- */

struct open_slice {
    uint32_t row;
    int64_t end;
};

struct flat_track {
    VEC(struct open_slice)
    open;       /* outermost first */
    int64_t at; /* emitted up to here */
};

struct flat {
    const struct table *t;
    struct table *out;
    strid *names;
    int64_t start, end;
    VEC(struct flat_track)
    tracks;
};

/* [from, to) of a track belongs to `row`; UINT32_MAX: a gap. */
static int emit_flat(struct flat *f, int64_t track, int64_t from, int64_t to, uint32_t row)
{
    from = from > f->start ? from : f->start;
    to = to < f->end ? to : f->end;
    if (from >= to)
        return 0;
    bool real = row != UINT32_MAX;
    int64_t words[] = {from,
                       saturating_sub(to, from), /* both may be of SQL */
                       track,
                       real ? table_get(f->t, slice_c_category, row) : 0,
                       real ? table_get(f->t, slice_c_name, row) : 0,
                       real ? table_get(f->t, slice_c_arg_set_id, row) : COL_NULL,
                       real ? (int64_t)row : COL_NULL,
                       f->start,
                       f->end};
    return table_append(f->out, words) == UINT32_MAX ? -MRD_ENOMEM : 0;
}

/* Closes what ends up to `ts` on a track, and emits up to there. */
static int advance_flat(struct flat *f, uint32_t track, int64_t ts)
{
    struct flat_track *t = &f->tracks.p[track];
    int rc = 0;
    while (t->open.n && vec_last(&t->open)->end <= ts && rc == 0) {
        struct open_slice *s = vec_last(&t->open);
        rc = emit_flat(f, track, t->at, s->end, s->row);
        t->at = t->at > s->end ? t->at : s->end;
        t->open.n--;
    }
    if (rc == 0)
        rc = emit_flat(f, track, t->at, ts, t->open.n ? vec_last(&t->open)->row : UINT32_MAX);
    t->at = t->at > ts ? t->at : ts;
    return rc;
}

static int flat_slice(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    struct storage *st = engine_storage(e);
    struct flat f = {.t = &st->t[T_slice], .out = out};
    uint32_t n_tracks = st->t[T_track].n_rows;
    if (sqlite3_value_type(args[0]) != SQLITE_INTEGER || sqlite3_value_type(args[1]) != SQLITE_INTEGER)
        return error_set(err, -MRD_ESQL, "EXPERIMENTAL_FLAT_SLICE: start and end should be integers");
    f.start = sqlite3_value_int64(args[0]);
    f.end = sqlite3_value_int64(args[1]);
    uint8_t *used = mem_zalloc(n_tracks + 1);
    int rc = used && vec_reserve(&f.tracks, n_tracks + 1) ? 0 : -MRD_ENOMEM;
    if (rc == 0) {
        memset(f.tracks.p, 0, (n_tracks + 1) * sizeof *f.tracks.p);
        f.tracks.n = n_tracks;
    }
    for (uint32_t i = 0; i < f.tracks.n; i++)
        f.tracks.p[i].at = f.start;
    for (uint32_t r = 0; r < f.t->n_rows && rc == 0; r++) {
        int64_t ts = table_get(f.t, slice_c_ts, r), dur = table_get(f.t, slice_c_dur, r);
        int64_t track = table_get(f.t, slice_c_track_id, r), end = dur < 0 ? f.end : saturating_add(ts, dur);
        if (stop_asked(engine_stop(e)))
            rc = -MRD_ECANCELLED;
        if (ts >= f.end || end <= f.start || track < 0 || track >= n_tracks)
            continue;
        used[track] = 1;
        rc = advance_flat(&f, (uint32_t)track, ts);
        if (rc == 0 && !vec_push(&f.tracks.p[track].open, (struct open_slice){r, end}))
            rc = -MRD_ENOMEM;
    }
    for (uint32_t i = 0; i < f.tracks.n; i++) {
        if (rc == 0 && used[i])
            rc = advance_flat(&f, i, f.end);
        vec_free(&f.tracks.p[i].open);
    }
    vec_free(&f.tracks);
    mem_free(used);
    return rc;
}

static const struct column_def layout_columns[] = {
    {"id", COL_U32, 0, "Row of slice."},
    {"layout_depth", COL_U32, 0, "Place from the top."},
};
static const struct table_def layout_def = {"", layout_columns, 2, ""};

static const struct column_def flat_columns[] = {
    {"ts", COL_I64, 0, ""},
    {"dur", COL_I64, 0, ""},
    {"track_id", COL_U32, 0, "Row of track."},
    {"category", COL_STR, COL_NULLABLE, ""},
    {"name", COL_STR, COL_NULLABLE, "NULL in a gap."},
    {"arg_set_id", COL_U32, COL_NULLABLE, ""},
    {"source_id", COL_U32, COL_NULLABLE, "Row of slice; NULL in a gap."},
    {"start_bound", COL_I64, 0, "What was asked for."},
    {"end_bound", COL_I64, 0, "What was asked for."},
};
static const struct table_def flat_def = {"", flat_columns, sizeof flat_columns / sizeof *flat_columns, ""};

const struct engine_table_function layout_table_functions[] = {
    {"experimental_slice_layout", &layout_def, 1, ROWS_AUTO_ID, slice_layout},
    {"experimental_flat_slice", &flat_def, 2, ROWS_BOTH, flat_slice},
};
const size_t layout_table_functions_n = sizeof layout_table_functions / sizeof *layout_table_functions;
