/* INTERNAL_LAYOUT(ts, dur): a window function that gives each span the lowest row that is free when it starts. An
 * instant takes no room: several at one time share a row. */
#include "sql/functions/functions.h"

struct layout {
    int64_t *ends; /* when each row becomes free; INT64_MAX: never */
    size_t n, cap;
    int64_t last_ts;
    int64_t depth; /* of the span that came last */
    bool any;
};

static void layout_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct layout *l = sqlite3_aggregate_context(ctx, sizeof *l);
    (void)argc;
    if (!l)
        return;
    if (sqlite3_value_type(argv[0]) != SQLITE_INTEGER || sqlite3_value_type(argv[1]) != SQLITE_INTEGER) {
        function_error(ctx, "INTERNAL_LAYOUT: ts and dur should be integers");
        return;
    }
    int64_t ts = sqlite3_value_int64(argv[0]), dur = sqlite3_value_int64(argv[1]);
    if (l->any && ts < l->last_ts) {
        function_error(ctx, "INTERNAL_LAYOUT: passed slices are not ordered by ts");
        return;
    }
    l->any = true;
    l->last_ts = ts;
    size_t row = 0;
    while (row < l->n && l->ends[row] > ts)
        row++;
    if (row == l->n) {
        if (l->n == l->cap) {
            size_t cap = l->cap ? 2 * l->cap : 16;
            int64_t *ends = mem_realloc(l->ends, cap * sizeof *ends);
            if (!ends) {
                sqlite3_result_error_nomem(ctx);
                return;
            }
            l->ends = ends;
            l->cap = cap;
        }
        l->n++;
    }
    if (dur == -1 || __builtin_add_overflow(ts, dur, &l->ends[row])) /* -1: a slice that never ended */
        l->ends[row] = dur < -1 ? INT64_MIN : INT64_MAX;
    l->depth = (int64_t)row;
}

static void layout_inverse(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc, (void)argv;
    function_error(ctx, "INTERNAL_LAYOUT: the frame should be ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW");
}

static void layout_value(sqlite3_context *ctx)
{
    struct layout *l = sqlite3_aggregate_context(ctx, 0);
    if (l && l->any)
        sqlite3_result_int64(ctx, l->depth);
}

static void layout_final(sqlite3_context *ctx)
{
    struct layout *l = sqlite3_aggregate_context(ctx, 0);
    layout_value(ctx);
    if (l)
        mem_free(l->ends);
}

static const struct engine_function rows[] = {
    {.name = "internal_layout",
     .n_args = 2,
     .step = layout_step,
     .final = layout_final,
     .value = layout_value,
     .inverse = layout_inverse},
};

FUNCTION_ROWS(layout, rows);
