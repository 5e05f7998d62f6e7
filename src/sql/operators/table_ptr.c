/* __intrinsic_table_ptr(value): the rows of a table that is a pointer value.
 *
 *     SELECT c0 AS id, c1 AS ts FROM __intrinsic_table_ptr(f(…))
 *     WHERE __intrinsic_table_ptr_bind(c0, 'id') AND __intrinsic_table_ptr_bind(c1, 'ts')
 *
 * The table: c0 … c31, tab HIDDEN, row HIDDEN. A bind is a constraint that this module understands: idxStr has a letter
 * for each, 'a' + number of the column; xFilter gets the names behind the table. */
#include "sql/operators/operators.h"
#include "sql/operators/rows.h"
#include "sql/operators/values.h"

#include <stdlib.h>
#include <strings.h>

enum { N_COLUMNS = 32, COLUMN_TAB = N_COLUMNS, COLUMN_ROW = N_COLUMNS + 1 };
enum { BIND = SQLITE_INDEX_CONSTRAINT_FUNCTION };

struct ptr_table {
    sqlite3_vtab base;
    struct engine *e;
};

struct ptr_cursor {
    sqlite3_vtab_cursor base;
    struct runtime_table *t;
    uint32_t row;
    int column[N_COLUMNS]; /* of t; -1: not bound */
};

/* A column in idxStr: 32 characters from here on are all ASCII. */
enum { FIRST_LETTER = 'A' };

static int connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out, char **err)
{
    (void)argc, (void)argv, (void)err;
    int rc = engine_declare_vtab(db, "CREATE TABLE x(c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,c11,c12,c13,c14,c15,c16,c17,c18,"
                                     "c19,c20,c21,c22,c23,c24,c25,c26,c27,c28,c29,c30,c31,tab HIDDEN,row HIDDEN)");
    struct ptr_table *t = rc ? NULL : sqlite3_malloc(sizeof *t);
    if (!t)
        return rc ? rc : SQLITE_NOMEM;
    *t = (struct ptr_table){.e = aux};
    *out = &t->base;
    return SQLITE_OK;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    sqlite3_str *plan = sqlite3_str_new(NULL);
    int used = 1;
    bool tab = false, later = false;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        if (c->iColumn == COLUMN_TAB && c->op == SQLITE_INDEX_CONSTRAINT_EQ && !tab) {
            later |= !c->usable;
            tab = c->usable;
            info->aConstraintUsage[i].argvIndex = tab ? 1 : 0;
            info->aConstraintUsage[i].omit = 1;
        } else if (c->op == BIND && c->iColumn >= 0 && c->iColumn < N_COLUMNS) {
            later |= !c->usable;
            info->aConstraintUsage[i].argvIndex = ++used;
            info->aConstraintUsage[i].omit = 1;
            sqlite3_str_appendchar(plan, 1, (char)(FIRST_LETTER + c->iColumn));
        }
    }
    int rc = operator_set_plan(info, plan);
    info->estimatedCost = 10000;
    info->estimatedRows = 1000;
    if (rc)
        return rc;
    if (later)
        return SQLITE_CONSTRAINT;
    return tab ? SQLITE_OK : operator_error(base, "__intrinsic_table_ptr: the table is missing");
}

static void bind(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc, (void)argv;
    sqlite3_result_error(ctx, "__intrinsic_table_ptr_bind: may only be used in the WHERE clause of a table pointer",
                         -1);
}

static int find_function(sqlite3_vtab *base, int argc, const char *name,
                         void (**f)(sqlite3_context *, int, sqlite3_value **), void **arg)
{
    (void)base, (void)arg;
    if (argc != 2 || sqlite3_stricmp(name, "__intrinsic_table_ptr_bind") != 0)
        return 0;
    *f = bind;
    return BIND;
}

static int cursor_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    return operator_open_cursor(sizeof(struct ptr_cursor), out);
}

static int cursor_close(sqlite3_vtab_cursor *base)
{
    runtime_table_unref(((struct ptr_cursor *)base)->t);
    sqlite3_free(base);
    return SQLITE_OK;
}

/* interval_intersect() speaks of id_0 … id_14 and makes as many columns as it has inputs; the others
 * are NULL. */
static bool is_unused_id(const char *name)
{
    char *end;
    if (!name || strncmp(name, "id_", 3) != 0)
        return false;
    long n = strtol(name + 3, &end, 10);
    return end != name + 3 && !*end && n >= 0 && n < 15;
}

static int cursor_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc, sqlite3_value **argv)
{
    struct ptr_cursor *c = (struct ptr_cursor *)base;
    (void)number;
    runtime_table_unref(c->t);
    c->t = NULL;
    c->row = 0;
    for (int i = 0; i < N_COLUMNS; i++)
        c->column[i] = -1;
    struct runtime_table *t = argc ? value_table(argv[0]) : NULL;
    if (!t)
        return SQLITE_OK; /* an aggregate over no rows has no table */
    c->t = runtime_table_ref(t);
    for (int i = 1; i < argc; i++) {
        const char *name = (const char *)sqlite3_value_text(argv[i]);
        int at = -1;
        for (uint32_t k = 0; name && k < t->def.n_columns; k++)
            if (strcasecmp(t->columns[k].name, name) == 0)
                at = (int)k;
        if (at < 0 && is_unused_id(name))
            continue;
        if (at < 0)
            return operator_error(base->pVtab, "__intrinsic_table_ptr: column '%s' does not exist in the table",
                                  name ? name : "NULL");
        c->column[plan[i - 1] - FIRST_LETTER] = at;
    }
    return SQLITE_OK;
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
    ((struct ptr_cursor *)base)->row++;
    return SQLITE_OK;
}

static int cursor_eof(sqlite3_vtab_cursor *base)
{
    const struct ptr_cursor *c = (const struct ptr_cursor *)base;
    return !c->t || c->row >= c->t->table.n_rows;
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
    const struct ptr_cursor *c = (const struct ptr_cursor *)base;
    struct ptr_table *t = (struct ptr_table *)base->pVtab;
    if (column == COLUMN_ROW)
        sqlite3_result_int64(ctx, c->row);
    if (column >= N_COLUMNS || c->column[column] < 0)
        return SQLITE_OK;
    int at = c->column[column];
    int type = c->t->columns[at].type;
    int64_t w = table_get(&c->t->table, (uint32_t)at, c->row);
    if (w == column_null((enum col_type)type))
        return SQLITE_OK;
    if (type == COL_F64) {
        sqlite3_result_double(ctx, column_f64(w));
    } else if (type == COL_STR) {
        struct slice s = strpool_view(&engine_storage(t->e)->strings, (strid)w);
        sqlite3_result_text(ctx, (const char *)s.p, (int)s.len, SQLITE_STATIC);
    } else {
        sqlite3_result_int64(ctx, w);
    }
    return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *row)
{
    *row = ((struct ptr_cursor *)base)->row;
    return SQLITE_OK;
}

const sqlite3_module table_ptr_module = {
    /* no xCreate: it is there by its name */
    .iVersion = 1,        .xConnect = connect,      .xBestIndex = best_index, .xDisconnect = operator_disconnect,
    .xOpen = cursor_open, .xClose = cursor_close,   .xFilter = cursor_filter, .xNext = cursor_next,
    .xEof = cursor_eof,   .xColumn = cursor_column, .xRowid = cursor_rowid,   .xFindFunction = find_function,
};

static const struct engine_function rows[] = {
    {.name = "__intrinsic_table_ptr_bind", .n_args = 2, .takes = "vv", .scalar = bind},
};

FUNCTION_ROWS(table_ptr, rows);
