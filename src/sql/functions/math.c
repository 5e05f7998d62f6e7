/* EXP, LN, SQRT under the names of the intrinsics (NULL outside their domain). */
#include "sql/functions/functions.h"

#include <math.h>

static void apply(sqlite3_context *ctx, sqlite3_value *v, double (*f)(double), double least, bool open)
{
    int type = sqlite3_value_numeric_type(v);
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
        return;
    double x = sqlite3_value_double(v);
    if (x > least || (!open && x == least))
        sqlite3_result_double(ctx, f(x));
}

static void fn_exp(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    apply(ctx, argv[0], exp, -INFINITY, false);
}

static void fn_ln(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    apply(ctx, argv[0], log, 0, true);
}

static void fn_sqrt(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    apply(ctx, argv[0], sqrt, 0, false);
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_exp", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = fn_exp},
    {.name = "__intrinsic_ln", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = fn_ln},
    {.name = "__intrinsic_sqrt", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = fn_sqrt},
};

FUNCTION_ROWS(math, rows);
