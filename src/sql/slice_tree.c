/* Finds the slices inside another one. */
#include "sql/slice_tree.h"

#include "base/vec.h"
#include "sql/engine_private.h"

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

/* Whether the parents of `row` lead to `above`, which is `depth` deep. */
static bool is_below(const struct table *t, uint32_t row, uint32_t above, int64_t depth)
{
    while (table_get(t, slice_c_depth, row) > depth) {
        int64_t parent = table_get(t, slice_c_parent_id, row);
        if (parent == COL_NULL || parent >= row)
            return false;
        row = (uint32_t)parent;
    }
    return row == above;
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
        if ((at == ts || at == end) && !is_below(t, r, row, depth))
            continue; /* of a slice that ends, or begins, where this one begins, or ends */
        if (!vec_push(out, r))
            return -MRD_ENOMEM;
    }
    return 0;
}
