/* __INTRINSIC_ARG_SET_TO_JSON: the key/value details of an event as one JSON text. */
#include "sql/functions/functions.h"

#include "sql/args_json.h"

static void arg_set_to_json(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct storage *st = engine_storage(function_engine(ctx));
    (void)argc;
    if (function_is_null(argv[0]))
        return;
    if (sqlite3_value_type(argv[0]) != SQLITE_INTEGER) {
        function_error(ctx, "ARG_SET_TO_JSON: 1st argument should be arg set id");
        return;
    }
    struct args_json json = {0};
    sqlite3_str *s = sqlite3_str_new(sqlite3_context_db_handle(ctx));
    struct json_writer w = function_json_writer(s);
    int rc = args_json_put(&json, st, args_of_cell(&st->args, sqlite3_value_int64(argv[0])), &w);
    if (rc == 1)
        function_result_built(ctx, s);
    else
        sqlite3_free(sqlite3_str_finish(s));
    if (rc < 0)
        sqlite3_result_error_nomem(ctx);
    args_json_free(&json);
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_arg_set_to_json", .n_args = 1, .scalar = arg_set_to_json},
};

FUNCTION_ROWS(args, rows);
