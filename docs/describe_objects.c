/* Owns the form in which tables, functions and macros stand on a page. */
#include "describe_objects.h"

#include <string.h>

#define FIELDS(column)                                                                                                 \
    "(SELECT group_concat('`' || (value ->> 'name') || '` ' || (value ->> 'type') || "                                 \
    "iif((value ->> 'description') = '', '', ': ' || (value ->> 'description')), char(10) || '  - ') "                 \
    "FROM json_each(" column "))"

static const char query[] =
    "WITH objects AS MATERIALIZED (SELECT * FROM __intrinsic_stdlib_objects) " /* it is made anew for each look */
    "SELECT module, name, object_type, description, return_type, return_description, " FIELDS("args") ", " FIELDS(
        "cols") ", (SELECT min(o.name) FROM objects o WHERE o.module = s.module AND o.exposed AND "
                "o.object_type IN ('TABLE', 'VIEW')) FROM objects s WHERE exposed AND ";

enum { MODULE, NAME, TYPE, DESCRIPTION, RETURNS, RETURN_DOC, ARGS, COLS, SOME_TABLE };

static const char *text(sqlite3_stmt *s, int i)
{
    const char *t = (const char *)sqlite3_column_text(s, i);
    return t ? t : "";
}

static void object(FILE *out, sqlite3_stmt *s, example_fn example)
{
    static const struct {
        const char *type, *word;
    } words[] = {{"TABLE", "table"},
                 {"VIEW", "view"},
                 {"FUNCTION", "function"},
                 {"TABLE_FUNCTION", "table function"},
                 {"MACRO", "macro"}};
    const char *type = text(s, TYPE);
    if (strcmp(type, "MODULE") == 0) {
        fprintf(out, "\n## %s\n\n%s\n", text(s, MODULE), text(s, DESCRIPTION));
        if (example)
            example(out, text(s, MODULE), text(s, SOME_TABLE));
        return;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].type, type) == 0)
            type = words[i].word;
    bool function = strcmp(type, "function") == 0;
    fprintf(out, "\n**%s** (%s", text(s, NAME), type);
    if (*text(s, RETURNS) && function)
        fprintf(out, ", %s", text(s, RETURNS));
    fprintf(out, ")%s%s\n", *text(s, DESCRIPTION) ? ": " : "", text(s, DESCRIPTION));
    if (*text(s, ARGS))
        fprintf(out, "- takes\n  - %s\n", text(s, ARGS));
    if (*text(s, RETURN_DOC) && function)
        fprintf(out, "- returns: %s\n", text(s, RETURN_DOC));
    if (*text(s, COLS))
        fprintf(out, "- columns\n  - %s\n", text(s, COLS));
}

int describe_objects(FILE *out, struct engine *e, const char *condition, example_fn example, struct error *err)
{
    struct engine_result r;
    char *sql = sqlite3_mprintf("%s%s", query, condition);
    int rc = sql ? engine_query(e, NULL, slice_str(sql), &r, NULL, err) : -MRD_ENOMEM;
    while (rc == 0 && (rc = engine_result_next(&r, err)) == 1) {
        object(out, r.stmt, example);
        rc = 0;
    }
    if (sql && rc == 0)
        engine_result_close(&r);
    sqlite3_free(sql);
    return rc;
}
