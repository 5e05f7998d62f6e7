/* Table functions that walk trees of rows: ANCESTOR_SLICE, DESCENDANT_SLICE,
 * EXPERIMENTAL_ANCESTOR_STACK_PROFILE_CALLSITE, EXPERIMENTAL_ANNOTATED_CALLSTACK; and the function SLICE_IS_ANCESTOR.
 */
#include "base/fnv.h"
#include "base/saturate.h"
#include "sql/operators/rows.h"
#include "sql/operators/table_functions.h"

int start_row(sqlite3_value *v, uint32_t n_rows, uint32_t *row, struct error *err)
{
    *row = UINT32_MAX;
    if (sqlite3_value_type(v) == SQLITE_NULL)
        return 0;
    if (sqlite3_value_type(v) != SQLITE_INTEGER)
        return error_set(err, -MRD_ESQL, "start id should be an integer.");
    int64_t id = sqlite3_value_int64(v);
    if (id < 0 || id >= n_rows)
        return error_set(err, -MRD_ESQL, "no row with id %lld", (long long)id);
    *row = (uint32_t)id;
    return 0;
}

const struct column_def slice_function_columns[SLICE_FUNCTION_COLUMNS] = {
    {"id", COL_U32, 0, "Row of slice."},
    {"ts", COL_I64, 0, ""},
    {"dur", COL_I64, 0, ""},
    {"track_id", COL_U32, 0, "Row of track."},
    {"category", COL_STR, COL_NULLABLE, ""},
    {"name", COL_STR, COL_NULLABLE, ""},
    {"depth", COL_U32, 0, ""},
    {"parent_id", COL_U32, COL_NULLABLE, "Row of slice."},
    {"arg_set_id", COL_U32, COL_NULLABLE, ""},
    {"thread_ts", COL_I64, COL_NULLABLE, ""},
    {"thread_dur", COL_I64, COL_NULLABLE, ""},
    {"thread_instruction_count", COL_I64, COL_NULLABLE, ""},
    {"thread_instruction_delta", COL_I64, COL_NULLABLE, ""},
};

/* The result columns behind `id` are those of the table, one for one. */
static int append_row(struct table *out, const struct table *from, uint32_t row)
{
    int64_t words[SLICE_FUNCTION_COLUMNS];
    words[0] = row;
    for (uint32_t i = 1; i < out->def->n_columns; i++)
        words[i] = table_get(from, i - 1, row);
    return table_append(out, words) == UINT32_MAX ? -MRD_ENOMEM : 0;
}

static int ancestor_slice(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    const struct table *t = &engine_storage(e)->t[T_slice];
    uint32_t row;
    int rc = start_row(args[0], t->n_rows, &row, err);
    if (rc || row == UINT32_MAX)
        return rc;
    /* a parent stands before its child, so that this ends whatever the rows say */
    for (int64_t parent; (parent = table_get(t, slice_c_parent_id, row)) != COL_NULL && parent < row && rc == 0;) {
        row = (uint32_t)parent;
        rc = append_row(out, t, row);
    }
    return rc;
}

static int descendant_slice(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    const struct table *t = &engine_storage(e)->t[T_slice];
    struct row_list rows = {0};
    uint32_t row;
    int rc = start_row(args[0], t->n_rows, &row, err);
    if (rc == 0 && row != UINT32_MAX)
        rc = slice_descendants(t, row, &rows, engine_stop(e));
    for (size_t i = 0; i < rows.n && rc == 0; i++)
        rc = append_row(out, t, rows.p[i]);
    vec_free(&rows);
    return rc;
}

int slice_descendants(const struct table *t, uint32_t row, struct row_list *out, stop_flag *stop)
{
    int64_t ts = table_get(t, slice_c_ts, row), dur = table_get(t, slice_c_dur, row);
    int64_t track = table_get(t, slice_c_track_id, row), depth = table_get(t, slice_c_depth, row);
    int64_t end = dur < 0 || ts > INT64_MAX - dur ? INT64_MAX : ts + dur;
    uint32_t first = t->columns[slice_c_ts].sorted ? table_lower_bound(t, slice_c_ts, ts, false) : 0;
    for (uint32_t r = first; r < t->n_rows; r++) {
        int64_t at = table_get(t, slice_c_ts, r);
        if (stop_asked(stop))
            return -MRD_ECANCELLED;
        if (at > end && t->columns[slice_c_ts].sorted)
            break;
        if (at < ts || at > end || table_get(t, slice_c_track_id, r) != track ||
            table_get(t, slice_c_depth, r) <= depth)
            continue;
        int64_t child = table_get(t, slice_c_dur, r);
        if (child >= 0 && end != INT64_MAX && at > end - child)
            continue; /* reaches out of the slice: the child of one that begins where this one ends */
        if (at == end && dur > 0 && table_get(t, slice_c_parent_id, r) != COL_NULL &&
            table_get(t, slice_c_ts, (uint32_t)table_get(t, slice_c_parent_id, r)) >= end)
            continue;
        if (!vec_push(out, r))
            return -MRD_ENOMEM;
    }
    return 0;
}

/* ---- stacks of names ---- */

/* For each slice a hash of the names from the top down to it, and that of its parent (0 at the top). 52 bits, so that
 * it survives a double. */
static int slice_stacks(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    const struct storage *st = engine_storage(e);
    const struct table *t = &st->t[T_slice];
    int64_t *hash = mem_alloc((t->n_rows + 1) * sizeof *hash);
    int rc = hash ? 0 : -MRD_ENOMEM;
    (void)args, (void)err;
    for (uint32_t r = 0; r < t->n_rows && rc == 0; r++) {
        if (stop_asked(engine_stop(e))) {
            rc = -MRD_ECANCELLED;
            break;
        }
        int64_t parent = table_get(t, slice_c_parent_id, r);
        struct slice category = strpool_view(&st->strings, (strid)table_get(t, slice_c_category, r));
        struct slice name = strpool_view(&st->strings, (strid)table_get(t, slice_c_name, r));
        int64_t above = parent != COL_NULL && parent < r ? hash[parent] : 0;
        uint64_t h = fnv1a(FNV1A_BASIS, &above, sizeof above);
        h = fnv1a(fnv1a(h, category.p, category.len), "|", 1);
        hash[r] = (int64_t)(fnv1a(h, name.p, name.len) >> 12);
        int64_t words[] = {r, hash[r], above};
        rc = table_append(out, words) == UINT32_MAX ? -MRD_ENOMEM : 0;
    }
    mem_free(hash);
    return rc;
}

static const struct column_def stack_columns[] = {
    {"id", COL_U32, 0, "Row of slice."},
    {"stack_id", COL_I64, 0, "Hash of the names from the top down to here."},
    {"parent_stack_id", COL_I64, 0, "The same of the parent."},
};

/* ---- call stacks ---- */

static const struct column_def callsite_columns[] = {
    {"id", COL_U32, 0, "Row of stack_profile_callsite."},
    {"depth", COL_U32, 0, ""},
    {"parent_id", COL_U32, COL_NULLABLE, "Row of stack_profile_callsite."},
    {"frame_id", COL_U32, 0, "Row of stack_profile_frame."},
    {"annotation", COL_STR, COL_NULLABLE, "What kind of code the frame is."},
};

static int ancestor_callsite(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    const struct table *t = &engine_storage(e)->t[T_stack_profile_callsite];
    uint32_t row;
    int rc = start_row(args[0], t->n_rows, &row, err);
    if (rc || row == UINT32_MAX)
        return rc;
    for (int64_t parent;
         (parent = table_get(t, stack_profile_callsite_c_parent_id, row)) != COL_NULL && parent < row && rc == 0;) {
        row = (uint32_t)parent;
        rc = append_row(out, t, row);
    }
    return rc;
}

/* The stack from its root to the callsite; the frame's type is the annotation. */
static int annotated_callstack(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    const struct storage *st = engine_storage(e);
    const struct table *t = &st->t[T_stack_profile_callsite], *frames = &st->t[T_stack_profile_frame];
    struct row_list rows = {0};
    uint32_t row;
    int rc = start_row(args[0], t->n_rows, &row, err);
    if (rc || row == UINT32_MAX)
        return rc;
    for (int64_t next = row; next != COL_NULL && rc == 0;) {
        rc = vec_push(&rows, (uint32_t)next) ? 0 : -MRD_ENOMEM;
        int64_t parent = table_get(t, stack_profile_callsite_c_parent_id, (uint32_t)next);
        next = parent < next ? parent : COL_NULL;
    }
    while (rows.n && rc == 0) {
        uint32_t r = rows.p[--rows.n];
        int64_t frame = table_get(t, stack_profile_callsite_c_frame_id, r);
        int64_t words[] = {r, table_get(t, stack_profile_callsite_c_depth, r),
                           table_get(t, stack_profile_callsite_c_parent_id, r), frame,
                           frame < frames->n_rows ? table_get(frames, stack_profile_frame_c_type, (uint32_t)frame) : 0};
        rc = table_append(out, words) == UINT32_MAX ? -MRD_ENOMEM : 0;
    }
    vec_free(&rows);
    return rc;
}

static const struct table_def slice_def = {"", slice_function_columns, SLICE_FUNCTION_COLUMNS, ""};
static const struct table_def stack_def = {"", stack_columns, 3, ""};
static const struct table_def callsite_def = {"", callsite_columns, 4, ""};
static const struct table_def annotated_def = {"", callsite_columns, 5, ""};

const struct engine_table_function slice_table_functions[] = {
    {"ancestor_slice", &slice_def, 1, false, ancestor_slice},
    {"descendant_slice", &slice_def, 1, false, descendant_slice},
    {"__intrinsic_slice_stacks", &stack_def, 0, false, slice_stacks},
    {"experimental_ancestor_stack_profile_callsite", &callsite_def, 1, false, ancestor_callsite},
    {"experimental_annotated_callstack", &annotated_def, 1, false, annotated_callstack},
};
const size_t slice_table_functions_n = sizeof slice_table_functions / sizeof *slice_table_functions;

/* slice_is_ancestor(ancestor, descendant): on one track, above it, and around it. */
static void slice_is_ancestor(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct table *t = &engine_storage(function_engine(ctx))->t[T_slice];
    (void)argc;
    if (sqlite3_value_type(argv[0]) != SQLITE_INTEGER || sqlite3_value_type(argv[1]) != SQLITE_INTEGER)
        return;
    int64_t a = sqlite3_value_int64(argv[0]), d = sqlite3_value_int64(argv[1]);
    if (a < 0 || d < 0 || a >= t->n_rows || d >= t->n_rows)
        return;
    uint32_t up = (uint32_t)a, down = (uint32_t)d;
    int64_t ts = table_get(t, slice_c_ts, up), dur = table_get(t, slice_c_dur, up);
    int64_t at = table_get(t, slice_c_ts, down), child = table_get(t, slice_c_dur, down);
    bool inside = at >= ts && (dur < 0 || (at <= saturating_add(ts, dur) &&
                                           (child < 0 || saturating_add(at, child) <= saturating_add(ts, dur))));
    sqlite3_result_int(ctx, inside && table_get(t, slice_c_track_id, up) == table_get(t, slice_c_track_id, down) &&
                                table_get(t, slice_c_depth, up) < table_get(t, slice_c_depth, down));
}

static const struct engine_function rows[] = {
    {.name = "slice_is_ancestor", .n_args = 2, .scalar = slice_is_ancestor},
};

FUNCTION_ROWS(slices, rows);
