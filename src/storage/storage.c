/* Owns the set of all tables of a trace, and their descriptions. */
#include "storage/storage.h"

#define COL_ARGS COL_U32 /* numbers as any, once they are in a column */

#define DOC_U32
#define DOC_I32
#define DOC_I64
#define DOC_F64
#define DOC_STR
#define DOC_ARGS "Number of a set of args."

#define C_DEF(T, column, type, flags, doc) {#column, COL_##type, flags, DOC_##type doc},
#define X(T, name, COLUMNS, doc)           static const struct column_def T##_columns[] = {COLUMNS(C_DEF, T)};
TABLES(X)
#undef X
#undef C_DEF

const struct table_def table_defs[T_COUNT] = {
#define X(T, name, COLUMNS, doc) {name, T##_columns, T##_n_columns, doc},
    TABLES(X)
#undef X
};

int storage_init(struct storage *st)
{
    *st = (struct storage){0};
    st->args.strings = &st->strings;
    for (int i = 0; i < T_COUNT; i++) {
        int rc = table_init(&st->t[i], &table_defs[i]);
        if (rc) {
            storage_free(st);
            return rc;
        }
    }
    return 0;
}

void storage_free(struct storage *st)
{
    for (int i = 0; i < T_COUNT; i++)
        if (st->t[i].def)
            table_free(&st->t[i]);
    args_free(&st->args);
    stats_free(&st->stats);
    strpool_free(&st->strings);
    *st = (struct storage){0};
}

bool storage_failed(const struct storage *st)
{
    for (int i = 0; i < T_COUNT; i++)
        if (st->t[i].failed)
            return true;
    return st->strings.failed || st->args.failed || st->stats.failed;
}

void storage_finalize(struct storage *st)
{
    for (int i = 0; i < T_COUNT; i++)
        table_finalize(&st->t[i]);
}

int storage_find_table(const char *name)
{
    for (int i = 0; i < T_COUNT; i++)
        if (strcmp(table_defs[i].name, name) == 0)
            return i;
    return -1;
}
