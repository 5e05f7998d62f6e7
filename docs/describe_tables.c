/* A program for the build: writes docs/sql-tables.md from the declarations of tables and stats. */
#include "storage/storage.h"

#include <stdio.h>

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

int main(int argc, char **argv)
{
    FILE *out = argc > 1 ? fopen(argv[1], "w") : stdout;
    if (!out) {
        perror(argv[1]);
        return 1;
    }
    fprintf(
        out,
        "# Tables\n\nMade by `make docs` from `src/storage/tables.def` and `src/storage/stats.def`; do not edit.\n\n"
        "Tables whose names begin with `__intrinsic_` are read through views without that prefix; `.tables` and\n"
        "`.schema NAME` at the prompt show everything there is.\n\n## Tables\n");
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
