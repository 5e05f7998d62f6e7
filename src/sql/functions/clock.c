/* ABS_TIME_STR, TO_REALTIME, TO_MONOTONIC: trace time on another clock of the host.
 *
 * The clocks are taken to run alike from the last snapshot at or before the time on, but not past what the next
 * snapshot shows: a clock that was set back does not show the same time twice. Before the first snapshot nothing is
 * known, and its value is the answer. Where no snapshot has the clock, trace time may be that clock. */
#include "sql/functions/functions.h"

#include "base/saturate.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CLOCK_ID_REALTIME = 1, CLOCK_ID_MONOTONIC = 3 };

/* What a snapshot shows: the trace time it was taken at, and a clock's value. */
struct reading {
    bool there;
    int64_t ts, value;
};

/* The reading of a row, if it is one of the host's clock. */
static struct reading reading_of(const struct table *t, uint32_t row, int64_t clock_id)
{
    if (table_get(t, clock_snapshot_c_clock_id, row) != clock_id || table_get(t, clock_snapshot_c_machine_id, row) != 0)
        return (struct reading){0};
    return (struct reading){true, table_get(t, clock_snapshot_c_ts, row),
                            table_get(t, clock_snapshot_c_clock_value, row)};
}

/* The last reading at or before `ts`, and the first behind it. */
static void around(const struct table *t, int64_t ts, int64_t clock_id, struct reading *before, struct reading *after)
{
    for (uint32_t r = 0; r < t->n_rows; r++) {
        struct reading here = reading_of(t, r, clock_id);
        if (here.there && here.ts <= ts && (!before->there || here.ts >= before->ts))
            *before = here;
        else if (here.there && here.ts > ts && (!after->there || here.ts < after->ts))
            *after = here;
    }
}

/* The same where the rows stand in order of time: a call does not look at all of them. */
static void around_in_order(const struct table *t, int64_t ts, int64_t clock_id, struct reading *before,
                            struct reading *after)
{
    uint32_t at = table_lower_bound(t, clock_snapshot_c_ts, ts, true);
    for (uint32_t r = at; r-- > 0 && !before->there;)
        *before = reading_of(t, r, clock_id);
    for (uint32_t r = at; r < t->n_rows && !after->there; r++)
        *after = reading_of(t, r, clock_id);
}

/* Whether trace time is a clock of the host. */
static bool is_trace_clock(const struct storage *st, int64_t clock_id)
{
    for (uint32_t row = 0; row < st->t[T_metadata].n_rows; row++)
        if (ROW_GET(st, metadata, int_value, row) == clock_id &&
            strcmp(strpool_cstr(&st->strings, (strid)ROW_GET(st, metadata, name, row)), "trace_time_clock_id") == 0)
            return true;
    return false;
}

/* False when nothing says what the clock shows. */
static bool convert(const struct storage *st, int64_t ts, int64_t clock_id, int64_t *out)
{
    const struct table *t = &st->t[T_clock_snapshot];
    struct reading before = {0}, after = {0};
    if (t->final && t->columns[clock_snapshot_c_ts].sorted)
        around_in_order(t, ts, clock_id, &before, &after);
    else
        around(t, ts, clock_id, &before, &after);
    if (before.there) {
        *out = saturating_add(before.value, saturating_sub(ts, before.ts));
        if (after.there && *out > after.value)
            *out = after.value;
    } else {
        *out = after.there ? after.value : ts;
    }
    return before.there || after.there || is_trace_clock(st, clock_id);
}

/* The argument as trace time on a clock; false: the result (NULL or an error) is set. */
static bool argument(sqlite3_context *ctx, sqlite3_value *v, const char *name, int64_t clock_id, int64_t *out)
{
    if (function_is_null(v))
        return false;
    if (sqlite3_value_type(v) != SQLITE_INTEGER) {
        function_error(ctx, "%s: first argument should be timestamp", name);
        return false;
    }
    return convert(engine_storage(function_engine(ctx)), sqlite3_value_int64(v), clock_id, out);
}

static void to_realtime(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    int64_t t;
    (void)argc;
    if (argument(ctx, argv[0], "TO_REALTIME", CLOCK_ID_REALTIME, &t))
        sqlite3_result_int64(ctx, t);
}

static void to_monotonic(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    int64_t t;
    (void)argc;
    if (argument(ctx, argv[0], "TO_MONOTONIC", CLOCK_ID_MONOTONIC, &t))
        sqlite3_result_int64(ctx, t);
}

static void abs_time_str(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    int64_t t;
    struct tm tm;
    char day[40], text[64];
    (void)argc;
    if (!argument(ctx, argv[0], "ABS_TIME_STR", CLOCK_ID_REALTIME, &t))
        return;
    int64_t ns = t % 1000000000;
    time_t s = (time_t)(t / 1000000000);
    if (ns < 0) {
        ns += 1000000000;
        s--;
    }
    if (!gmtime_r(&s, &tm) || !strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm))
        return;
    snprintf(text, sizeof text, "%s.%09lld", day, (long long)ns);
    sqlite3_result_text(ctx, text, -1, SQLITE_TRANSIENT);
}

static const struct engine_function rows[] = {
    {.name = "abs_time_str", .n_args = 1, .scalar = abs_time_str},
    {.name = "__intrinsic_abs_time_str", .n_args = 1, .scalar = abs_time_str},
    {.name = "to_realtime", .n_args = 1, .scalar = to_realtime},
    {.name = "__intrinsic_to_realtime", .n_args = 1, .scalar = to_realtime},
    {.name = "to_monotonic", .n_args = 1, .scalar = to_monotonic},
    {.name = "__intrinsic_to_monotonic", .n_args = 1, .scalar = to_monotonic},
};

FUNCTION_ROWS(clock, rows);
