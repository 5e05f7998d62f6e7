/* The SQL functions about clocks:
 *     clock_error_ns(ts, machine_id)             the largest error that ts can have on that machine, NULL when unknown
 *     to_machine_time(ts, machine_id, clock)     what the machine's clock showed then ('BOOTTIME' or a clock id)
 *     from_machine_time(value, machine_id, clock) the trace time at which it showed that */
#include "importer/clock/clock_queries.h"
#include "tp_internal.h"

#include <sqlite3.h>

static bool machine_arg(sqlite3_value *v, uint32_t *machine)
{
    int64_t id = sqlite3_value_int64(v);
    *machine = (uint32_t)id;
    return sqlite3_value_type(v) != SQLITE_NULL && id >= 0 && id < UINT32_MAX;
}

static bool clock_arg(sqlite3_value *v, uint32_t *clock)
{
    if (sqlite3_value_type(v) == SQLITE_INTEGER)
        *clock = (uint32_t)sqlite3_value_int64(v);
    else
        *clock = sqlite3_value_type(v) == SQLITE_TEXT ? clock_by_name((const char *)sqlite3_value_text(v)) : 0;
    return *clock != 0;
}

static void clock_error(sqlite3_context *c, int n, sqlite3_value **v)
{
    (void)n;
    uint32_t machine;
    int64_t error;
    if (sqlite3_value_type(v[0]) != SQLITE_NULL && machine_arg(v[1], &machine) &&
        clock_query_error(function_data(c), machine, sqlite3_value_int64(v[0]), &error))
        sqlite3_result_int64(c, error);
}

typedef bool (*convert_fn)(struct importer *, int64_t, uint32_t, uint32_t, int64_t *);

static void convert(sqlite3_context *c, sqlite3_value **v, convert_fn fn)
{
    uint32_t machine, clock;
    int64_t out;
    if (sqlite3_value_type(v[0]) == SQLITE_NULL || !machine_arg(v[1], &machine))
        return;
    if (!clock_arg(v[2], &clock)) {
        sqlite3_result_error(c, "clock: use a name such as 'BOOTTIME', or a clock id", -1);
        return;
    }
    if (fn(function_data(c), sqlite3_value_int64(v[0]), machine, clock, &out))
        sqlite3_result_int64(c, out);
}

static void to_machine(sqlite3_context *c, int n, sqlite3_value **v)
{
    (void)n;
    convert(c, v, clock_query_to_machine);
}

static void from_machine(sqlite3_context *c, int n, sqlite3_value **v)
{
    (void)n;
    convert(c, v, clock_query_from_machine);
}

int tp_clock_functions(struct tp *tp)
{
    void *im = tp->importer;
    const struct engine_function functions[] = {
        {.name = "clock_error_ns", .n_args = 2, .flags = SQLITE_DETERMINISTIC, .data = im, .scalar = clock_error},
        {.name = "to_machine_time", .n_args = 3, .flags = SQLITE_DETERMINISTIC, .data = im, .scalar = to_machine},
        {.name = "from_machine_time", .n_args = 3, .flags = SQLITE_DETERMINISTIC, .data = im, .scalar = from_machine},
    };
    _Static_assert(sizeof functions == sizeof tp->clock_functions, "one place for each");
    memcpy(tp->clock_functions, functions, sizeof functions);
    return engine_register_functions(tp->engine, tp->clock_functions, sizeof functions / sizeof *functions, &tp->err);
}
