/* The tables `stats` and `_trace_bounds`, made from the counters of the storage when they are asked for. */
#include "sql/engine_private.h"
#include "sql/tables/tables.h"
#include "sql/vtab/vtab.h"
#include "storage/stats_rows.h"

struct putting {
    struct storage *st;
    struct table *out;
};

static int put(void *ctx, const struct stats_line *row)
{
    const struct putting *p = ctx;
    return stats_rows_put(p->st, p->out, row);
}

static int stats_compute(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    struct putting p = {engine_storage(e), out};
    (void)args;
    (void)err;
    return stats_rows_each(p.st, put, &p);
}

static int bounds_compute(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    const struct storage *st = engine_storage(e);
    (void)args;
    (void)err;
    const int64_t words[] = {st->trace_start_ns, st->trace_end_ns};
    return table_append(out, words) == UINT32_MAX ? -MRD_ENOMEM : 0;
}

static const struct column_def bounds_columns[] = {{"start_ts", COL_I64, 0, "First event."},
                                                   {"end_ts", COL_I64, 0, "Last event."}};
static const struct table_def bounds_def = {"_trace_bounds", bounds_columns, 2, "The time that the trace covers."};

const struct engine_table_function stats_table_functions[] = {
    {.name = "__intrinsic_stats", .def = &table_defs[T_stats], .row_numbers = ROWS_ID, .compute = stats_compute},
    {.name = "_trace_bounds", .def = &bounds_def, .row_numbers = ROWS_UNTYPED, .compute = bounds_compute},
};
const size_t stats_table_functions_n = sizeof stats_table_functions / sizeof *stats_table_functions;
