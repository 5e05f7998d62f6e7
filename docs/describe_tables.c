/* A program for the build: writes docs/sql-tables.md from the prelude and the declarations of tables and stats. */
#include "describe_objects.h"

static const char *const type_names[] = {
    [COL_U32] = "integer", [COL_I32] = "integer", [COL_I64] = "integer", [COL_F64] = "float", [COL_STR] = "string"};

static void describe_table(FILE *out, const struct table_def *t)
{
    fprintf(out, "\n### %s\n\n", t->name);
    if (t->doc && t->doc[0])
        fprintf(out, "%s\n\n", t->doc);
    fprintf(out, "| column | type | |\n|---|---|---|\n| id | integer | Row number. |\n");
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const struct column_def *c = &t->columns[i];
        if (c->flags & COL_HIDDEN)
            continue;
        fprintf(out, "| %s | %s%s | %s%s |\n", c->name, type_names[c->type],
                c->flags & COL_NULLABLE ? ", may be NULL" : "", c->flags & COL_SORTED ? "Sorted. " : "", c->doc);
    }
}

static const struct {
    const char *heading, *condition;
} parts[] = {
    {"\n## Tables and views\n", "package = 'prelude' AND object_type IN ('TABLE', 'VIEW') ORDER BY name"},
    {"\n## Functions and macros\n\nBeside those of SQLite; more are in the [syntax](sql-syntax.md) and the "
     "[standard library](stdlib.md).\n",
     "package = 'prelude' AND object_type IN ('FUNCTION', 'MACRO') ORDER BY name"},
};

static int describe_public(FILE *out)
{
    struct storage st;
    struct engine *e;
    struct error err = {0};
    if (storage_init(&st) || engine_open(&e, &st, &err)) {
        fprintf(stderr, "describe_tables: %s\n", err.text);
        return -1;
    }
    int rc = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && rc == 0; i++) {
        fputs(parts[i].heading, out);
        rc = describe_objects(out, e, parts[i].condition, NULL, &err);
    }
    if (rc)
        fprintf(stderr, "describe_tables: %s\n", err.text);
    engine_close(e);
    storage_free(&st);
    return rc;
}

int main(int argc, char **argv)
{
    FILE *out = argc > 1 ? fopen(argv[1], "w") : stdout;
    if (!out) {
        perror(argv[1]);
        return 1;
    }
    fprintf(out, "# Tables\n\nMade by `make docs` from `stdlib/prelude/`, `src/storage/tables.def` and "
                 "`src/storage/stats.def`; do not edit.\n\n"
                 "Types say what a number is: `JOINID(thread.id)` is a row of `thread`, `TIMESTAMP` and `DURATION` are "
                 "nanoseconds,\n`ARGSETID` is a set of `args`. `.tables` and `.schema NAME` at the prompt show "
                 "everything there is.\n");
    if (describe_public(out))
        return 1;
    fprintf(out, "\n## Tables behind them\n\nWhat the views above are made of, and tables that only modules of the "
                 "standard library read.\n");
    for (size_t i = 0; i < T_COUNT; i++)
        describe_table(out, &table_defs[i]);
    fprintf(out, "\n## Stats\n\nRows of `stats`. An indexed stat has a value per `idx` (a cpu, a buffer, …).\n\n"
                 "| name | severity | source | indexed | |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < STAT_COUNT; i++)
        fprintf(out, "| %s | %s | %s | %s | %s |\n", stat_defs[i].name, stat_severity_names[stat_defs[i].severity],
                stat_source_names[stat_defs[i].source], stat_defs[i].type == STAT_INDEXED ? "yes" : "",
                stat_defs[i].doc);
    return fclose(out) == 0 ? 0 : 1;
}
