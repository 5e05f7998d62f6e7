/* export_json(path): the trace as a file in Chrome's trace event format, which other viewers read. */
#include "sql/export_json.h"
#include "base/output_file.h"
#include "sql/functions/functions.h"

struct sink {
    struct output_file file;
    struct error *err;
};

static int write_file(void *ctx, const void *bytes, size_t len)
{
    struct sink *s = ctx;
    return output_file_write(&s->file, bytes, len, s->err);
}

static void export_json_function(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    sqlite3 *db = sqlite3_context_db_handle(ctx);
    struct error err = {0};
    struct sink s = {.err = &err};
    (void)argc;
    if (sqlite3_value_type(argv[0]) != SQLITE_TEXT) {
        function_error(ctx, "EXPORT_JSON: the argument should be the path of a file");
        return;
    }
    if (!engine_files_allowed(function_engine(ctx))) {
        function_error(ctx, "EXPORT_JSON: SQL may not write files here");
        return;
    }
    int rc = output_file_open(&s.file, (const char *)sqlite3_value_text(argv[0]), &err);
    if (rc == 0) {
        rc = export_json(db, write_file, &s);
        if (rc > 0)
            rc = error_set(&err, -MRD_ESQL, "%s", sqlite3_errmsg(db));
        rc = output_file_close(&s.file, rc, &err);
    }
    if (rc != 0)
        function_error(ctx, "EXPORT_JSON: %s", err.text);
    else
        sqlite3_result_pointer(ctx, db, "VOID", NULL); /* a statement whose row does not count */
}

static const struct engine_function rows[] = {
    {.name = "export_json", .n_args = 1, .flags = SQLITE_DIRECTONLY, .scalar = export_json_function},
};

FUNCTION_ROWS(export_json, rows);
