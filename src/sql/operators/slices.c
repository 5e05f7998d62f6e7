/* Table functions that walk trees of rows: ANCESTOR_SLICE, DESCENDANT_SLICE,
 * EXPERIMENTAL_ANCESTOR_STACK_PROFILE_CALLSITE, EXPERIMENTAL_ANNOTATED_CALLSTACK; and the function SLICE_IS_ANCESTOR.
 */
#include "base/fnv.h"
#include "base/saturate.h"
#include "sql/operators/rows.h"
#include "sql/operators/table_functions.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

/* ---- stacks of names ---- */

static uint64_t hash_number(uint64_t h, int64_t v)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRId64, v);
    return fnv1a(h, digits, (size_t)n);
}

/* For each slice a hash of the names from it up to the top, and that of its parent (0 at the top). Both are those that
 * HASH() of SQL has for the text: the slice and each one above it as hash(category|name), joined by '|'. */
static int slice_stacks(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    const struct storage *st = engine_storage(e);
    const struct table *t = &st->t[T_slice];
    size_t n = t->n_rows;
    int64_t *own = mem_alloc((2 * n + 1) * sizeof *own), *stack = own + n;
    int rc = own ? 0 : -MRD_ENOMEM;
    (void)args, (void)err;
    for (uint32_t r = 0; r < n && rc == 0; r++) {
        struct slice category = strpool_view(&st->strings, (strid)table_get(t, slice_c_category, r));
        struct slice name = strpool_view(&st->strings, (strid)table_get(t, slice_c_name, r));
        uint64_t h = fnv1a(fnv1a(FNV1A_BASIS, category.p, category.len), "|", 1);
        own[r] = (int64_t)fnv1a(h, name.p, name.len);
        h = hash_number(FNV1A_BASIS, own[r]);
        int64_t parent = table_get(t, slice_c_parent_id, r);
        for (int64_t at = r, up = parent; rc == 0 && up != COL_NULL && up < at;) {
            h = hash_number(fnv1a(h, "|", 1), own[up]);
            at = up;
            up = table_get(t, slice_c_parent_id, (uint32_t)at);
            rc = stop_asked(engine_stop(e)) ? -MRD_ECANCELLED : 0;
        }
        stack[r] = (int64_t)h;
        int64_t words[] = {r, stack[r], parent != COL_NULL && parent < r ? stack[parent] : 0};
        if (rc == 0 && stop_asked(engine_stop(e)))
            rc = -MRD_ECANCELLED;
        if (rc == 0 && table_append(out, words) == UINT32_MAX)
            rc = -MRD_ENOMEM;
    }
    mem_free(own);
    return rc;
}

static const struct column_def stack_columns[] = {
    {"id", COL_U32, 0, "Row of slice."},
    {"stack_id", COL_I64, 0, "Hash of the names from here up to the top."},
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

/* What the file of a frame holds. */
enum code { CODE_NATIVE, CODE_LIBART, CODE_INTERP, CODE_JIT, CODE_AOT };

static bool ends_in(struct slice s, const char *end)
{
    size_t n = strlen(end);
    return s.len >= n && memcmp(s.p + s.len - n, end, n) == 0;
}

static bool begins_with(struct slice s, const char *begin)
{
    size_t n = strlen(begin);
    return s.len >= n && memcmp(s.p, begin, n) == 0;
}

static enum code code_of(struct slice path)
{
    static const struct {
        const char *end;
        enum code code;
    } ends[] = {{".dex", CODE_INTERP},       {".vdex", CODE_INTERP},      {".jar", CODE_INTERP},
                {".apk", CODE_INTERP},       {".oat", CODE_AOT},          {".odex", CODE_AOT},
                {"/libart.so", CODE_LIBART}, {"/libartd.so", CODE_LIBART}};
    if (begins_with(path, "/memfd:jit-cache") || begins_with(path, "/memfd:jit-zygote-cache"))
        return CODE_JIT;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_in(path, ends[i].end))
            return ends[i].code;
    return slice_eq_str(path, "libart.so") || slice_eq_str(path, "libartd.so") ? CODE_LIBART : CODE_NATIVE;
}

static bool is_interpreter(struct slice function)
{
    static const char *const begins[] = {"nterp_", "Nterp", "ExecuteNterp", "ExecuteSwitchImpl",
                                         "_ZN3art11interpreter"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (begins_with(function, begins[i]))
            return true;
    return false;
}

/* What is known of the runtime's frames on the way down a stack: those behind managed code are of no interest, but for
 * the one that a trampoline leads to. */
enum runtime_frames { RUNTIME_SHOWN, RUNTIME_COMMON, RUNTIME_NEXT_SHOWN };

/* The annotation of a frame, NULL for none. */
static const char *annotation_of(const struct storage *st, int64_t frame, enum runtime_frames *state)
{
    static const char *const managed[] = {[CODE_INTERP] = "interp", [CODE_JIT] = "jit", [CODE_AOT] = "aot"};
    const struct table *frames = &st->t[T_stack_profile_frame], *mappings = &st->t[T_stack_profile_mapping];
    if (frame >= frames->n_rows)
        return NULL;
    struct slice name =
        strpool_view(&st->strings, (strid)table_get(frames, stack_profile_frame_c_name, (uint32_t)frame));
    int64_t mapping = table_get(frames, stack_profile_frame_c_mapping, (uint32_t)frame);
    struct slice path = {0};
    if (mapping < mappings->n_rows)
        path = strpool_view(&st->strings, (strid)table_get(mappings, stack_profile_mapping_c_name, (uint32_t)mapping));
    if (*state == RUNTIME_NEXT_SHOWN) {
        *state = RUNTIME_COMMON;
        return NULL;
    }
    if (slice_eq_str(name, "art_jni_trampoline")) {
        *state = RUNTIME_NEXT_SHOWN;
        return "common-frame";
    }
    enum code code = code_of(path);
    if (code >= CODE_INTERP) {
        *state = RUNTIME_COMMON;
        return managed[code];
    }
    if (code == CODE_LIBART && *state == RUNTIME_COMMON)
        return is_interpreter(name) ? "common-frame-interp" : "common-frame";
    return NULL;
}

/* The stack from its root to the callsite, and what kind of code each frame is. */
static int annotated_callstack(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    struct storage *st = engine_storage(e);
    const struct table *t = &st->t[T_stack_profile_callsite];
    enum runtime_frames state = RUNTIME_SHOWN;
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
        const char *annotation = annotation_of(st, frame, &state);
        int64_t words[] = {r, table_get(t, stack_profile_callsite_c_depth, r),
                           table_get(t, stack_profile_callsite_c_parent_id, r), frame,
                           annotation ? strpool_intern_str(&st->strings, annotation) : 0};
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
    {"ancestor_slice", &slice_def, 1, ROWS_AUTO_ID, ancestor_slice},
    {"descendant_slice", &slice_def, 1, ROWS_AUTO_ID, descendant_slice},
    {"__intrinsic_slice_stacks", &stack_def, 0, ROWS_AUTO_ID, slice_stacks},
    {"experimental_ancestor_stack_profile_callsite", &callsite_def, 1, ROWS_AUTO_ID, ancestor_callsite},
    {"experimental_annotated_callstack", &annotated_def, 1, ROWS_AUTO_ID, annotated_callstack},
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
