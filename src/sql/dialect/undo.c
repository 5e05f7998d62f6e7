/* Takes back what a failing module has made. */
#include "sql/dialect/undo.h"

static void run(struct dialect *d, char *sql)
{
    if (sql)
        sqlite3_exec(engine_db(d->e), sql, NULL, NULL, NULL);
    sqlite3_free(sql);
}

void undo_make(struct dialect *d, enum undo_kind kind, const char *name, int n_args)
{
    switch (kind) {
    case UNDO_TABLE:
        run(d, sqlite3_mprintf("DROP TABLE \"%w\"", name));
        break;
    case UNDO_VIEW:
        run(d, sqlite3_mprintf("DROP VIEW \"%w\"", name));
        break;
    case UNDO_FUNCTION:
        exec_forget_function(d, name, n_args);
        break;
    case UNDO_MACRO:
        macro_forget(&d->macros, name);
        break;
    case UNDO_INDEX:
        exec_forget_index(d, name);
        break;
    }
}

int undo_note(struct exec *x, enum undo_kind kind, const char *name, int n_args)
{
    struct dialect *d = x->d;
    if (d->include_depth == 0)
        return 0;
    char *copy = mem_strdup(name);
    if (copy && vec_push(&d->undo, (struct undo){copy, kind, n_args}))
        return 0;
    mem_free(copy);
    undo_make(d, kind, name, n_args);
    return error_set(x->err, -MRD_ENOMEM, "out of memory");
}

int64_t undo_before(struct exec *x)
{
    sqlite3_stmt *stmt = NULL;
    int64_t row = 0;
    if (sqlite3_prepare_v2(engine_db(x->d->e), "SELECT max(rowid) FROM sqlite_master", -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        row = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return row;
}

int undo_after(struct exec *x, int64_t before)
{
    sqlite3_stmt *stmt = NULL;
    int rc = 0;
    if (sqlite3_prepare_v2(engine_db(x->d->e),
                           "SELECT name, type FROM sqlite_master WHERE rowid > ?1 AND type IN ('table', 'view')", -1,
                           &stmt, NULL) != SQLITE_OK)
        return error_set(x->err, -MRD_ENOMEM, "out of memory");
    sqlite3_bind_int64(stmt, 1, before);
    while (rc == 0 && sqlite3_step(stmt) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(stmt, 0);
        const char *type = (const char *)sqlite3_column_text(stmt, 1);
        if (name && type)
            rc = undo_note(x, *type == 'v' ? UNDO_VIEW : UNDO_TABLE, name, 0);
    }
    sqlite3_finalize(stmt);
    return rc;
}

size_t undo_mark(const struct dialect *d)
{
    return d->undo.n;
}

void undo_keep(struct dialect *d, size_t mark)
{
    while (d->undo.n > mark)
        mem_free(d->undo.p[--d->undo.n].name);
}

void undo_back_to(struct dialect *d, size_t mark)
{
    while (d->undo.n > mark) {
        struct undo u = d->undo.p[--d->undo.n];
        undo_make(d, u.kind, u.name, u.n_args);
        mem_free(u.name);
    }
}
