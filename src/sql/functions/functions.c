/* Registration of the function tables. */
#include "sql/functions/functions.h"

static const struct function_rows *const files[] = {
#define X(file) &file##_functions,
    FUNCTION_FILES(X)
#undef X
};

void function_error(sqlite3_context *ctx, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *m = sqlite3_vmprintf(fmt, ap);
    va_end(ap);
    sqlite3_result_error(ctx, m ? m : "out of memory", -1);
    sqlite3_free(m);
}

void function_result_built(sqlite3_context *ctx, sqlite3_str *s)
{
    int rc = sqlite3_str_errcode(s), len = sqlite3_str_length(s);
    char *text = sqlite3_str_finish(s);
    if (rc == SQLITE_TOOBIG)
        sqlite3_result_error_toobig(ctx);
    else if (rc)
        sqlite3_result_error_nomem(ctx);
    else if (text)
        sqlite3_result_text(ctx, text, len, sqlite3_free);
    else
        sqlite3_result_text(ctx, "", 0, SQLITE_STATIC);
    if (rc)
        sqlite3_free(text);
}

int functions_attach(struct engine *e, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files && rc == 0; i++)
        rc = engine_register_functions(e, files[i]->p, files[i]->n, err);
    return rc;
}
