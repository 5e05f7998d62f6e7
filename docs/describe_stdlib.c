/* Writes docs/stdlib.md from the comments of the standard library: describe_stdlib FILE. */
#include "sql/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char head[] =
    "# The standard library\n\n"
    "Made from the comments in `stdlib/` by `make docs`. `INCLUDE PERFETTO MODULE a.b;` makes a module's objects "
    "known;\n"
    "`a.*` takes all modules below `a`. Names that begin with `_` are for other modules and not listed.\n";

static const char query[] = "SELECT module, name, object_type, description, return_type, "
                            "(SELECT group_concat('`' || (value ->> 'name') || '` ' || (value ->> 'type') || "
                            "iif((value ->> 'description') = '', '', "
                            "': ' || (value ->> 'description')), char(10) || '  - ') FROM json_each(args)), "
                            "(SELECT group_concat('`' || (value ->> 'name') || '` ' || (value ->> 'type') || "
                            "iif((value ->> 'description') = '', '', "
                            "': ' || (value ->> 'description')), char(10) || '  - ') FROM json_each(cols)) "
                            "FROM __intrinsic_stdlib_objects WHERE exposed AND package != 'prelude' "
                            "ORDER BY module, object_type != 'MODULE', name";

static const char *text(sqlite3_stmt *s, int i)
{
    const char *t = (const char *)sqlite3_column_text(s, i);
    return t ? t : "";
}

static void object(FILE *out, sqlite3_stmt *s)
{
    static const struct {
        const char *type, *word;
    } words[] = {{"TABLE", "table"},
                 {"VIEW", "view"},
                 {"FUNCTION", "function"},
                 {"TABLE_FUNCTION", "table function"},
                 {"MACRO", "macro"}};
    const char *type = text(s, 2);
    if (strcmp(type, "MODULE") == 0) {
        fprintf(out, "\n## %s\n\n%s\n", text(s, 1), text(s, 3));
        return;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].type, type) == 0)
            type = words[i].word;
    fprintf(out, "\n**%s** (%s", text(s, 1), type);
    if (*text(s, 4) && strcmp(type, "function") == 0)
        fprintf(out, ", %s", text(s, 4));
    fprintf(out, ")%s%s\n", *text(s, 3) ? ": " : "", text(s, 3));
    if (*text(s, 5))
        fprintf(out, "- takes\n  - %s\n", text(s, 5));
    if (*text(s, 6))
        fprintf(out, "- columns\n  - %s\n", text(s, 6));
}

int main(int argc, char **argv)
{
    struct storage st;
    struct engine *e;
    struct engine_result r;
    struct error err = {0};
    FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (!out || storage_init(&st) || engine_open(&e, &st, &err) ||
        engine_query(e, NULL, slice_str(query), &r, NULL, &err)) {
        fprintf(stderr, "describe_stdlib: %s\n", err.text[0] ? err.text : "usage: describe_stdlib FILE");
        return 1;
    }
    fputs(head, out);
    while (engine_result_next(&r, &err) == 1)
        object(out, r.stmt);
    engine_result_close(&r);
    engine_close(e);
    storage_free(&st);
    return fclose(out) != 0;
}
