/* __intrinsic_window(start, dur, quantum): a span of time cut into pieces.
 *
 *     SELECT ts, dur FROM __intrinsic_window(trace_start(), trace_dur(), 1000000)
 *     CREATE VIRTUAL TABLE w USING __intrinsic_window(start, dur, quantum)
 *     columns: rowid, quantum, window_start, window_dur HIDDEN; ts, dur, quantum_ts
 *
 * A quantum of 0 gives the whole window as one row. All pieces have the length of the quantum, the last one, too, which
 * may reach beyond the window. What a query gives for the hidden columns of a made table stands in place of the
 * arguments. */
#include <errno.h>
#include <stdlib.h>

#include "sql/operators/operators.h"

enum { FIRST_ARGUMENT = 3 }; /* of CREATE VIRTUAL TABLE, after module, database and table */
enum { C_ROWID, C_QUANTUM, C_START, C_DUR, C_TS, C_PIECE, C_QUANTUM_TS };

struct window_table {
    sqlite3_vtab base;
    int64_t start, dur, quantum; /* arguments of CREATE VIRTUAL TABLE */
};

struct window_cursor {
    sqlite3_vtab_cursor base;
    int64_t start, dur, quantum, at, row;
};

/* Reads arguments `first` and after into start, dur, quantum; false when one is not an integer. */
static bool read_arguments(struct window_table *t, int argc, const char *const *argv)
{
    int64_t *to[3] = {&t->start, &t->dur, &t->quantum};
    for (int i = FIRST_ARGUMENT; i < argc; i++) {
        char *end;
        errno = 0;
        *to[i - FIRST_ARGUMENT] = strtoll(argv[i], &end, 10);
        if (errno || end == argv[i] || *end)
            return false;
    }
    return t->quantum >= 0;
}

static int connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out, char **err)
{
    struct window_table made = {.dur = INT64_MAX};
    (void)aux;
    if (argc > FIRST_ARGUMENT + 3 || !read_arguments(&made, argc, argv)) {
        *err =
            sqlite3_mprintf("__intrinsic_window: expected (start, dur, quantum): up to three integers, quantum >= 0");
        return SQLITE_ERROR;
    }
    int rc = sqlite3_declare_vtab(
        db, "CREATE TABLE x(rowid HIDDEN BIGINT, quantum HIDDEN BIGINT, window_start HIDDEN BIGINT, "
            "window_dur HIDDEN BIGINT, ts BIGINT, dur BIGINT, quantum_ts BIGINT)");
    struct window_table *t = rc ? NULL : sqlite3_malloc(sizeof *t);
    if (!t)
        return rc ? rc : SQLITE_NOMEM;
    *t = made;
    *out = &t->base;
    return SQLITE_OK;
}

/* idxNum bits: 1 start, 2 dur, 4 quantum are given, in this order. A call's arguments arrive as equalities on the
 * hidden columns from the first on: rowid, quantum, window_start. */
static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    int at[4] = {-1, -1, -1, -1}, used = 0;
    (void)base;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        if (c->op != SQLITE_INDEX_CONSTRAINT_EQ || c->iColumn < C_ROWID || c->iColumn > C_DUR)
            continue;
        if (!c->usable)
            return SQLITE_CONSTRAINT;
        at[c->iColumn] = i;
    }
    /* f(start, dur, quantum): three equalities on the first three columns */
    bool call = at[C_ROWID] >= 0;
    int order[3] = {call ? at[C_ROWID] : at[C_START], call ? at[C_QUANTUM] : at[C_DUR],
                    call ? at[C_START] : at[C_QUANTUM]};
    for (int i = 0; i < 3; i++) {
        if (order[i] < 0)
            continue;
        info->aConstraintUsage[order[i]].argvIndex = ++used;
        info->aConstraintUsage[order[i]].omit = 1;
        info->idxNum |= 1 << i;
    }
    info->estimatedCost = 1000;
    info->estimatedRows = 1000;
    return SQLITE_OK;
}

static int cursor_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    return operator_open_cursor(sizeof(struct window_cursor), out);
}

static int cursor_close(sqlite3_vtab_cursor *base)
{
    sqlite3_free(base);
    return SQLITE_OK;
}

static int cursor_filter(sqlite3_vtab_cursor *base, int given, const char *plan, int argc, sqlite3_value **argv)
{
    struct window_cursor *c = (struct window_cursor *)base;
    int64_t *to[3] = {&c->start, &c->dur, &c->quantum};
    int used = 0;
    (void)plan;
    const struct window_table *t = (const struct window_table *)base->pVtab;
    c->row = c->at = 0;
    c->start = t->start;
    c->dur = t->dur;
    c->quantum = t->quantum;
    for (int i = 0; i < 3 && used < argc; i++)
        if (given & 1 << i)
            *to[i] = sqlite3_value_int64(argv[used++]);
    if (c->quantum < 0)
        return operator_error(base->pVtab, "WINDOW: the quantum must not be negative");
    return SQLITE_OK;
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
    struct window_cursor *c = (struct window_cursor *)base;
    c->row++;
    if (c->quantum == 0 || c->at > c->dur - c->quantum)
        c->at = c->dur;
    else
        c->at += c->quantum;
    return SQLITE_OK;
}

static int cursor_eof(sqlite3_vtab_cursor *base)
{
    const struct window_cursor *c = (const struct window_cursor *)base;
    return c->at >= c->dur;
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
    const struct window_cursor *c = (const struct window_cursor *)base;
    int64_t ts; /* saturates: start and dur are anything that SQL gives */
    if (__builtin_add_overflow(c->start, c->at, &ts))
        ts = INT64_MAX;
    const int64_t values[] = {c->row, c->quantum, c->start, c->dur, ts, c->quantum ? c->quantum : c->dur, c->row};
    sqlite3_result_int64(ctx, values[column]);
    return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *row)
{
    *row = ((struct window_cursor *)base)->row;
    return SQLITE_OK;
}

const sqlite3_module window_module = {
    .iVersion = 1,
    .xCreate = connect,
    .xConnect = connect,
    .xBestIndex = best_index,
    .xDisconnect = operator_disconnect,
    .xDestroy = operator_disconnect,
    .xOpen = cursor_open,
    .xClose = cursor_close,
    .xFilter = cursor_filter,
    .xNext = cursor_next,
    .xEof = cursor_eof,
    .xColumn = cursor_column,
    .xRowid = cursor_rowid,
};
