/* PERCENTILE, PERCENTILE_CONT, PERCENTILE_DISC, MEDIAN: aggregates and window functions over numbers.
 *
 * Values are kept as they come and sorted when a result is asked for; a window's leaving rows are taken out of the
 * sorted values. */
#include "sql/functions/functions.h"

#include <math.h>

struct percentile {
    double *p;
    size_t n, cap;
    double fraction; /* 0 … 1 */
    bool has_fraction, sorted;
};

static struct percentile *state(sqlite3_context *ctx, bool create)
{
    return sqlite3_aggregate_context(ctx, create ? (int)sizeof(struct percentile) : 0);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* False: the result of the function says why not. */
static bool sort(sqlite3_context *ctx, struct percentile *s)
{
    if (!s->sorted && !stop_sort(s->p, s->n, sizeof *s->p, compare, engine_stop(function_engine(ctx)))) {
        sqlite3_result_error_code(ctx, engine_gave_up(function_engine(ctx)));
        return false;
    }
    s->sorted = true;
    return true;
}

static size_t lower_bound(const struct percentile *s, double v)
{
    size_t lo = 0, hi = s->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (s->p[mid] < v)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void add(sqlite3_context *ctx, sqlite3_value **argv, const char *name, double fraction, double scale)
{
    struct percentile *s = state(ctx, true);
    if (!s) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    if (!(fraction >= 0 && fraction <= 1)) {
        function_error(ctx, "the fraction argument to %s() is not between 0.0 and %.1f", name, scale);
        return;
    }
    if (s->has_fraction && fabs(s->fraction - fraction) > 0.001 / scale) {
        function_error(ctx, "the fraction argument to %s() is not the same for all input rows", name);
        return;
    }
    s->fraction = fraction;
    s->has_fraction = true;
    int type = sqlite3_value_type(argv[0]);
    if (type == SQLITE_NULL)
        return;
    double v = sqlite3_value_double(argv[0]);
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) {
        function_error(ctx, "input to %s() is not numeric", name);
        return;
    }
    if (isinf(v)) {
        function_error(ctx, "Inf input to %s()", name);
        return;
    }
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 64;
        double *p = mem_realloc(s->p, cap * sizeof *p);
        if (!p) {
            sqlite3_result_error_nomem(ctx);
            return;
        }
        s->p = p;
        s->cap = cap;
    }
    if (s->sorted && s->n && s->p[s->n - 1] > v) { /* a window that is being moved: keep the order */
        size_t at = lower_bound(s, v);
        memmove(s->p + at + 1, s->p + at, (s->n - at) * sizeof *s->p);
        s->p[at] = v;
        s->n++;
        return;
    }
    s->p[s->n++] = v;
}

static double number(sqlite3_value *v)
{
    int type = sqlite3_value_numeric_type(v);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT ? sqlite3_value_double(v) : -1;
}

static void percentile_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    add(ctx, argv, "percentile", number(argv[1]) / 100, 100);
}

static void cont_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    add(ctx, argv, "percentile_cont", number(argv[1]), 1);
}

static void disc_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    add(ctx, argv, "percentile_disc", number(argv[1]), 1);
}

static void median_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    add(ctx, argv, "median", 0.5, 1);
}

static void leave(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct percentile *s = state(ctx, false);
    (void)argc;
    if (!s || function_is_null(argv[0]))
        return;
    if (!sort(ctx, s))
        return;
    double v = sqlite3_value_double(argv[0]);
    size_t at = lower_bound(s, v);
    if (at < s->n && s->p[at] == v) {
        memmove(s->p + at, s->p + at + 1, (s->n - at - 1) * sizeof *s->p);
        s->n--;
    }
}

/* Between the two values around the place; `discrete`: the one below. */
static void result(sqlite3_context *ctx, bool discrete)
{
    struct percentile *s = state(ctx, false);
    if (!s || s->n == 0)
        return;
    if (!sort(ctx, s))
        return;
    double at = s->fraction * (double)(s->n - 1);
    size_t i = (size_t)at;
    double v = s->p[i];
    if (!discrete && i + 1 < s->n)
        v += (s->p[i + 1] - v) * (at - (double)i);
    sqlite3_result_double(ctx, v);
}

static void finish(sqlite3_context *ctx)
{
    struct percentile *s = state(ctx, false);
    if (s) {
        mem_free(s->p);
        *s = (struct percentile){0};
    }
}

static void cont_value(sqlite3_context *ctx)
{
    result(ctx, false);
}

static void cont_final(sqlite3_context *ctx)
{
    result(ctx, false);
    finish(ctx);
}

static void disc_value(sqlite3_context *ctx)
{
    result(ctx, true);
}

static void disc_final(sqlite3_context *ctx)
{
    result(ctx, true);
    finish(ctx);
}

#define ROW(fn, argc, step_fn, kind)                                                                                   \
    {                                                                                                                  \
        .name = fn, .n_args = argc, .flags = SQLITE_DETERMINISTIC, .step = step_fn, .final = kind##_final,             \
        .value = kind##_value, .inverse = leave                                                                        \
    }

static const struct engine_function rows[] = {
    ROW("percentile", 2, percentile_step, cont),
    ROW("percentile_cont", 2, cont_step, cont),
    ROW("percentile_disc", 2, disc_step, disc),
    ROW("median", 1, median_step, cont),
};

FUNCTION_ROWS(percentile, rows);
