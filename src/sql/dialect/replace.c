/* What CREATE OR REPLACE takes away, and gives back when the new thing cannot be made. */
#include "sql/dialect/replace.h"

#include <strings.h>

static const char aside_prefix[] = "__replaced_";

static int run(struct exec *x, char *sql)
{
    int rc = sql ? sqlite3_exec(engine_db(x->d->e), sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc;
}

/* The kind, and (unless NULL) a copy of the statement that made it. */
static char look_up(struct exec *x, const char *name, char **sql)
{
    sqlite3_stmt *stmt = NULL;
    char kind = 0;
    if (sqlite3_prepare_v2(engine_db(x->d->e), "SELECT type, sql FROM sqlite_master WHERE name = ?1 COLLATE NOCASE", -1,
                           &stmt, NULL) == SQLITE_OK) {
        sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
        if (sqlite3_step(stmt) == SQLITE_ROW) {
            const char *text = (const char *)sqlite3_column_text(stmt, 1);
            kind = (char)sqlite3_column_text(stmt, 0)[0];
            if (sql)
                *sql = mem_strdup(text ? text : "");
        }
    }
    sqlite3_finalize(stmt);
    return kind;
}

char object_kind(struct exec *x, const char *name)
{
    return look_up(x, name, NULL);
}

/* Renames a table of SQLite's own, and nothing else: views that name it shall mean the new one. */
static int rename_plain(struct exec *x, const char *name, bool back)
{
    sqlite3 *db = engine_db(x->d->e);
    sqlite3_db_config(db, SQLITE_DBCONFIG_LEGACY_ALTER_TABLE, 1, NULL);
    int rc = run(x, sqlite3_mprintf("ALTER TABLE \"%s%w\" RENAME TO \"%s%w\"", back ? aside_prefix : "", name,
                                    back ? "" : aside_prefix, name));
    sqlite3_db_config(db, SQLITE_DBCONFIG_LEGACY_ALTER_TABLE, 0, NULL);
    return rc;
}

/* Takes the function out of the list, so that dropping its table does not free it. */
static struct sql_function *keep_function(struct dialect *d, const char *name)
{
    for (size_t i = 0; i < d->tables.n; i++)
        if (strcasecmp(d->tables.p[i]->name, name) == 0) {
            struct sql_function *f = d->tables.p[i];
            d->tables.p[i] = *vec_last(&d->tables);
            d->tables.n--;
            return f;
        }
    return NULL;
}

static void give_back_function(struct dialect *d, struct replaced *r)
{
    if (r->f && vec_push(&d->tables, r->f)) /* its place is still there */
        r->f = NULL;
}

static void forget(struct replaced *r)
{
    runtime_table_unref(r->rows);
    sql_function_unref(r->f);
    mem_free(r->name);
    mem_free(r->sql);
    *r = (struct replaced){0};
}

int replaced_take(struct exec *x, const struct parsed *p, const char *name, struct replaced *r)
{
    *r = (struct replaced){0};
    char kind = look_up(x, name, &r->sql);
    if (!kind)
        return 0;
    r->view = kind == 'v';
    r->name = mem_strdup(name);
    if (!p->replace || !r->name || !r->sql) {
        forget(r);
        return p->replace ? error_set(x->err, -MRD_ENOMEM, "out of memory")
                          : exec_fail(x, p->name, "%s %s already exists", kind == 'v' ? "view" : "table", name);
    }
    r->aside = !r->view && strncasecmp(r->sql, "CREATE VIRTUAL", 14) != 0;
    if (!r->view && !r->aside) {
        struct runtime_table *rows = engine_find_runtime(x->d->e, name);
        r->rows = rows ? runtime_table_ref(rows) : NULL;
        r->f = keep_function(x->d, name);
    }
    int rc = r->aside ? rename_plain(x, name, false)
                      : run(x, sqlite3_mprintf(r->view ? "DROP VIEW \"%w\"" : "DROP TABLE \"%w\"", name));
    if (rc == 0)
        return 0;
    engine_sqlite_error(x->d->e, rc, x->err);
    give_back_function(x->d, r);
    forget(r);
    return exec_fail_offset(x, x->p, x->n, -1);
}

int replaced_settle(struct exec *x, struct replaced *r, int rc)
{
    struct error ignored = {0};
    if (!r->sql)
        return rc;
    if (rc == 0 && r->aside) {
        run(x, sqlite3_mprintf("DROP TABLE \"%s%w\"", aside_prefix, r->name));
    } else if (rc != 0 && r->aside) {
        rename_plain(x, r->name, true);
    } else if (rc != 0 && r->rows) {
        engine_add_table(x->d->e, r->name, runtime_table_ref(r->rows), &ignored);
    } else if (rc != 0) {
        give_back_function(x->d, r);
        run(x, sqlite3_mprintf("%s", r->sql));
    }
    forget(r);
    return rc;
}
