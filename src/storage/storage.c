/* The set of all tables of a trace, and their descriptions. */
#include "storage/storage.h"

#include "base/spill.h"
#include "storage/snapshot.h"

#define COL_ARGS COL_U32 /* numbers as any, once they are in a column */

#define FLAG_U32  0
#define FLAG_I32  0
#define FLAG_I64  0
#define FLAG_F64  0
#define FLAG_STR  0
#define FLAG_ARGS COL_ARG_SET

#define DOC_U32
#define DOC_I32
#define DOC_I64
#define DOC_F64
#define DOC_STR
#define DOC_ARGS "Number of a set of args."

#define C_DEF(T, column, type, flags, doc) {#column, COL_##type, (flags) | FLAG_##type, DOC_##type doc},
#define X(T, name, COLUMNS, doc)           static const struct column_def T##_columns[] = {COLUMNS(C_DEF, T)};
TABLES(X)
#undef X
#undef C_DEF

const struct table_def table_defs[T_COUNT] = {
#define X(T, name, COLUMNS, doc) {name, T##_columns, T##_n_columns, doc},
    TABLES(X)
#undef X
};

/* Tables of very many rows, which stay as they are inserted. */
static bool is_steady(int table)
{
    static const enum table_id steady[] = {T_ftrace_event, T_profiler_sample, T_profiler_counter_set, T_counter};
    for (size_t i = 0; i < sizeof steady / sizeof *steady; i++)
        if ((int)steady[i] == table)
            return true;
    return false;
}

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
        for (uint32_t c = 0; c < table_defs[i].n_columns; c++) {
            st->t[i].columns[c].settles = true;
            st->t[i].columns[c].steady = is_steady(i);
        }
    }
    return 0;
}

void storage_free(struct storage *st)
{
    for (int i = 0; i < T_COUNT; i++)
        if (st->t[i].def)
            table_free(&st->t[i]);
    vec_free(&st->video_data);
    args_free(&st->args);
    stats_free(&st->stats);
    strpool_free(&st->strings);
    snapshot_close(st->snapshot);
    spill_close(st->spill);
    *st = (struct storage){0};
}

void storage_spill(struct storage *st, struct spill *spill)
{
    st->spill = spill;
    for (int i = 0; i < T_COUNT; i++)
        for (uint32_t c = 0; c < st->t[i].def->n_columns; c++)
            st->t[i].columns[c].spill = spill;
}

bool storage_failed(const struct storage *st)
{
    for (int i = 0; i < T_COUNT; i++)
        if (st->t[i].failed)
            return true;
    return st->strings.failed || st->args.failed || st->stats.failed;
}

const char *storage_damage(const struct storage *st)
{
    const char *what;
    return st->snapshot && snapshot_damaged(st->snapshot, &what) ? what : NULL;
}

void storage_finalize(struct storage *st)
{
    for (int i = 0; i < T_COUNT; i++)
        table_finalize(&st->t[i]);
}

/* Calls `each` for every column that holds sets of args, or their places. */
static void each_args_column(struct storage *st, void (*each)(struct table *t, uint32_t column, void *ctx), void *ctx)
{
    for (int i = 0; i < T_COUNT; i++)
        for (uint32_t c = 0; c < st->t[i].def->n_columns; c++)
            if (st->t[i].def->columns[c].flags & (COL_ARG_SET | COL_ARG_PLACE))
                each(&st->t[i], c, ctx);
}

static void note_used(struct table *t, uint32_t column, void *ctx)
{
    uint8_t *used = ctx;
    for (uint32_t row = 0; row < t->n_rows; row++) {
        int64_t cell = table_get(t, column, row);
        if (cell != COL_NULL)
            used[cell] = 1;
    }
}

struct renumbering {
    const struct args *args;
    const argset *places;
};

static void renumber(struct table *t, uint32_t column, void *ctx)
{
    const struct renumbering *r = ctx;
    bool places = t->def->columns[column].flags & COL_ARG_PLACE;
    t->final = false;
    for (uint32_t row = 0; row < t->n_rows; row++) {
        int64_t cell = table_get(t, column, row);
        if (cell != COL_NULL)
            table_set(t, column, row, places ? argset_cell(r->places[cell]) : args_cell(r->args, r->places[cell]));
    }
    table_finalize(t);
}

void storage_number_args(struct storage *st)
{
    enum { MAX_ROWS = 1 << 18 }; /* beyond that it would cost time that few would want to give */
    for (int i = 0; i < T_COUNT; i++)
        if (st->t[i].n_rows > MAX_ROWS)
            return;
    if (!args_may_number(&st->args))
        return;
    uint8_t *used = mem_zalloc(st->args.sets.n);
    if (!used)
        return;
    each_args_column(st, note_used, used);
    argset *places = args_number(&st->args, used);
    mem_free(used);
    if (!places)
        return;
    each_args_column(st, renumber, &(struct renumbering){&st->args, places});
    mem_free(places);
}

int storage_find_table(const char *name)
{
    for (int i = 0; i < T_COUNT; i++)
        if (strcmp(table_defs[i].name, name) == 0)
            return i;
    return -1;
}
