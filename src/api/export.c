/* Writes what is loaded as an SQLite database that any SQLite tool reads, and
 * as JSON for other viewers. */
#include "api/tp_internal.h"
#include "base/output_file.h"
#include "sql/export_json.h"

#include <stdarg.h>

struct export
{
    struct tp *tp;
    sqlite3 *db;
    const char *path; /* for the user */
    const char *part; /* what is written until it is complete */
    VEC(char *)
    views; /* names, in order of creation */
};

static int sqlite_failed(struct export *x)
{
    return error_set(&x->tp->err, -MRD_ESQL, "%s: %s", x->path, sqlite3_errmsg(x->db));
}

/* Runs SQL made with sqlite3_mprintf's formats (%w quotes a name). */
static int run(struct export *x, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *sql = sqlite3_vmprintf(fmt, ap);
    va_end(ap);
    if (!sql)
        return error_set(&x->tp->err, -MRD_ENOMEM, "out of memory");
    int rc = sqlite3_exec(x->db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    return rc == SQLITE_OK ? 0 : sqlite_failed(x);
}

static int copy_table(struct export *x, const char *name)
{
    return run(x, "CREATE TABLE perfetto_export.\"%w\" AS SELECT * FROM \"%w\"", name, name);
}

/* Calls `each` with the two text columns of a query. */
static int for_rows(struct export *x, const char *sql, int (*each)(struct export *, const char *, const char *))
{
    sqlite3_stmt *stmt;
    if (sqlite3_prepare_v2(x->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return sqlite_failed(x);
    int rc = 0, step = SQLITE_DONE;
    while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *a = (const char *)sqlite3_column_text(stmt, 0);
        const char *b = (const char *)sqlite3_column_text(stmt, 1);
        if (a)
            rc = each(x, a, b ? b : "");
    }
    if (rc == 0 && step != SQLITE_DONE && step != SQLITE_ROW)
        rc = sqlite_failed(x);
    sqlite3_finalize(stmt);
    return rc;
}

static int remember_view(struct export *x, const char *name, const char *sql)
{
    (void)sql;
    char *copy = mem_strdup(name);
    if (!copy || !vec_push(&x->views, copy)) {
        mem_free(copy);
        return error_set(&x->tp->err, -MRD_ENOMEM, "out of memory");
    }
    return 0;
}

static int make_view(struct export *x, const char *name, const char *sql)
{
    static const char head[] = "CREATE VIEW "; /* SQLite stores every view's text with this beginning */
    if (strncmp(sql, head, sizeof head - 1) != 0)
        return 0;
    int rc = remember_view(x, name, sql);
    return rc < 0 ? rc : run(x, "CREATE VIEW perfetto_export.%s", sql + sizeof head - 1);
}

static int copy_runtime_table(struct export *x, const char *name, const char *sql)
{
    (void)sql;
    return copy_table(x, name);
}

/* Can SQLite without our functions answer the view? */
static bool view_is_plain(const struct export *x, const char *view)
{
    sqlite3 *plain = NULL;
    sqlite3_stmt *stmt = NULL;
    char *sql = sqlite3_mprintf("SELECT * FROM \"%w\"", view);
    bool ok = sql && sqlite3_open_v2(x->part, &plain, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
              sqlite3_prepare_v2(plain, sql, -1, &stmt, NULL) == SQLITE_OK;
    sqlite3_finalize(stmt);
    sqlite3_close(plain);
    sqlite3_free(sql);
    return ok;
}

static int settle_views(struct export *x)
{
    int rc = 0;
    for (size_t i = 0; i < x->views.n && rc == 0; i++) {
        const char *view = x->views.p[i];
        if (view_is_plain(x, view))
            continue;
        rc = run(x, "DROP VIEW perfetto_export.\"%w\"", view);
        if (rc == 0)
            rc = copy_table(x, view);
    }
    return rc;
}

static int write_all(struct export *x)
{
    int rc = 0;
    for (size_t i = 0; i < T_COUNT && rc == 0; i++)
        rc = copy_table(x, table_defs[i].name);
    if (rc == 0) /* tables that queries made */
        rc = for_rows(x,
                      "SELECT name, sql FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND "
                      "name != 'perfetto_tables' AND name NOT IN (SELECT name FROM perfetto_export.sqlite_master)",
                      copy_runtime_table);
    if (rc == 0)
        rc = for_rows(x, "SELECT name, sql FROM main.sqlite_master WHERE type = 'view' ORDER BY rowid", make_view);
    return rc ? rc : settle_views(x);
}

/* Statements that name the file are the only ones of an export that may. */
static int run_on_file(struct export *x, const char *sql)
{
    struct engine *e = x->tp->engine;
    const bool allowed = engine_files_allowed(e);
    engine_allow_files(e, true);
    int rc = sqlite3_exec(x->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_failed(x);
    engine_allow_files(e, allowed);
    return rc;
}

/* The file is complete by now. SQLite keeps it attached as long as another result is open: then the next export
 * detaches it. */
static void detach(struct export *x)
{
    struct error kept = x->tp->err;
    run_on_file(x, "DETACH DATABASE perfetto_export");
    x->tp->err = kept;
}

static int attach(struct export *x)
{
    detach(x);
    if (sqlite3_db_filename(x->db, "perfetto_export"))
        return error_set(&x->tp->err, -MRD_EINVALID,
                         "%s: an open result still uses the previous export; close it and export again", x->path);
    char *sql = sqlite3_mprintf("ATTACH DATABASE '%q' AS perfetto_export; PRAGMA perfetto_export.journal_mode=OFF; "
                                "PRAGMA perfetto_export.synchronous=OFF",
                                x->part);
    int rc = sql ? run_on_file(x, sql) : error_set(&x->tp->err, -MRD_ENOMEM, "out of memory");
    sqlite3_free(sql);
    return rc;
}

int tp_export_sqlite(struct tp *tp, const char *path)
{
    if (!tp->engine)
        return tp_done(tp, error_set(&tp->err, -MRD_EINVALID,
                                     tp->remote ? "the trace is on a server; export it there" : "no trace is loaded"));
    tp_done(tp, 0);
    int64_t start = tp_meta_now(tp, TP_META_API);
    struct export x = {.tp = tp, .db = engine_db(tp->engine), .path = path};
    struct output_file out;
    int rc = output_file_open(&out, path, &tp->err);
    if (rc == 0) {
        x.part = out.part;
        rc = attach(&x);
        if (rc == 0) {
            rc = write_all(&x);
            detach(&x);
        }
        rc = output_file_close(&out, rc, &tp->err);
    }
    for (size_t i = 0; i < x.views.n; i++)
        mem_free(x.views.p[i]);
    vec_free(&x.views);
    tp_meta_record(tp, TP_META_API, "export", start, "path", path, strlen(path));
    return tp_done(tp, rc);
}

struct json_sink {
    int (*write)(void *ctx, const void *bytes, size_t len);
    void *ctx;
};

static int write_json(void *ctx, const void *bytes, size_t len)
{
    const struct json_sink *s = ctx;
    return s->write(s->ctx, bytes, len) ? -MRD_EIO : 0;
}

int tp_export_json(struct tp *tp, int (*write)(void *ctx, const void *bytes, size_t len), void *ctx)
{
    if (!tp->engine)
        return tp_done(tp, error_set(&tp->err, -MRD_EINVALID,
                                     tp->remote ? "the trace is on a server; export it there" : "no trace is loaded"));
    tp_done(tp, 0);
    int64_t start = tp_meta_now(tp, TP_META_API);
    struct json_sink sink = {write, ctx};
    int rc = export_json(engine_db(tp->engine), write_json, &sink);
    tp_meta_record(tp, TP_META_API, "export", start, "format", "json", 4);
    if (rc == SQLITE_INTERRUPT) {
        engine_interrupt_clear(tp->engine);
        rc = error_set(&tp->err, -MRD_ECANCELLED, "interrupted");
    } else if (rc > 0) {
        rc = error_set(&tp->err, -MRD_ESQL, "%s", sqlite3_errmsg(engine_db(tp->engine)));
    } else if (rc < 0) {
        error_set(&tp->err, rc, "cannot write the JSON");
    }
    return tp_done(tp, rc);
}
