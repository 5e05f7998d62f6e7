/* The function forms of older queries: CREATE_FUNCTION(), CREATE_VIEW_FUNCTION(), IMPORT(), EXPERIMENTAL_MEMOIZE().
 *
 * Each is the statement that replaced it, run at once. They give a pointer of type VOID, which does not count as
 * output. */
#include "sql/dialect/exec.h"

#include <strings.h>

static void void_result(sqlite3_context *ctx, struct engine *e, int rc, const struct error *err)
{
    static char nothing;
    if (rc)
        sqlite3_result_error(ctx, *engine_error_text(e) ? engine_error_text(e) : err->text, -1);
    else
        sqlite3_result_pointer(ctx, &nothing, "VOID", NULL);
}

/* All arguments are texts. */
static bool texts(sqlite3_context *ctx, int argc, sqlite3_value **argv, const char *name)
{
    for (int i = 0; i < argc; i++)
        if (sqlite3_value_type(argv[i]) != SQLITE_TEXT) {
            char *m = sqlite3_mprintf("%s: argument %d should be a string", name, i + 1);
            sqlite3_result_error(ctx, m ? m : "out of memory", -1);
            sqlite3_free(m);
            return false;
        }
    return true;
}

static void run(sqlite3_context *ctx, const char *origin, char *sql)
{
    struct engine *e = function_engine(ctx);
    struct dialect *d = engine_dialect_ctx(e);
    struct error err = {0};
    struct sql_frame frame = {0};
    if (sql)
        frame.source = sql_source_new(SOURCE_FILE, origin, slice_str(sql));
    int rc = frame.source ? dialect_run_frame(d, &frame, NULL, &err) : error_set(&err, -MRD_ENOMEM, "out of memory");
    sql_source_unref(frame.source);
    sqlite3_free(sql);
    void_result(ctx, e, rc, &err);
}

static void create_function(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    if (texts(ctx, argc, argv, "CREATE_FUNCTION"))
        run(ctx, "CREATE_FUNCTION",
            sqlite3_mprintf("CREATE OR REPLACE PERFETTO FUNCTION %s RETURNS %s AS %s", sqlite3_value_text(argv[0]),
                            sqlite3_value_text(argv[1]), sqlite3_value_text(argv[2])));
}

static void create_view_function(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    if (texts(ctx, argc, argv, "CREATE_VIEW_FUNCTION"))
        run(ctx, "CREATE_VIEW_FUNCTION",
            sqlite3_mprintf("CREATE OR REPLACE PERFETTO FUNCTION %s RETURNS TABLE(%s) AS %s",
                            sqlite3_value_text(argv[0]), sqlite3_value_text(argv[1]), sqlite3_value_text(argv[2])));
}

static void import(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct engine *e = function_engine(ctx);
    struct error err = {0};
    if (texts(ctx, argc, argv, "IMPORT"))
        void_result(ctx, e, dialect_include(e, (const char *)sqlite3_value_text(argv[0]), &err), &err);
}

static void memoize(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct engine *e = function_engine(ctx);
    struct dialect *d = engine_dialect_ctx(e);
    if (!texts(ctx, argc, argv, "EXPERIMENTAL_MEMOIZE"))
        return;
    const char *name = (const char *)sqlite3_value_text(argv[0]);
    for (size_t i = 0; i < d->scalars.n; i++) {
        struct sql_function *f = d->scalars.p[i];
        if (strcasecmp(f->name, name) == 0 && f->params.n == 1 && f->params.p[0].type == VALUE_LONG) {
            f->memoize = true;
            void_result(ctx, e, 0, NULL);
            return;
        }
    }
    sqlite3_result_error(ctx, "EXPERIMENTAL_MEMOIZE: no function of this name with one integer argument", -1);
}

static const struct engine_function legacy[] = {
    {.name = "create_function", .n_args = 3, .flags = SQLITE_DIRECTONLY, .scalar = create_function},
    {.name = "create_view_function", .n_args = 3, .flags = SQLITE_DIRECTONLY, .scalar = create_view_function},
    {.name = "import", .n_args = 1, .flags = SQLITE_DIRECTONLY, .scalar = import},
    {.name = "experimental_memoize", .n_args = 1, .flags = SQLITE_DIRECTONLY, .scalar = memoize},
};

int legacy_functions_register(struct engine *e, struct error *err)
{
    return engine_register_functions(e, legacy, sizeof legacy / sizeof *legacy, err);
}
