/* The engine: opens it, runs text statement by statement, reports errors, interrupts. */
#include "sql/engine.h"

#include "base/alloc.h"
#include "base/memory_limit.h"
#include "sql/engine/harden.h"
#include "sql/engine/heap.h"
#include "sql/engine/prelude.h"
#include "sql/engine/vfs.h"
#include "sql/engine_private.h"
#include "sql/extensions.h"
#include "sql/plan/plan.h"
#include "sql/planner/planner.h"
#include "sql/vtab/vtab.h"

#include <string.h>
#include <unistd.h>

/* ---- errors ---- */

/* What ran out of memory because a statement that it compiled was refused: that is why. SQLite takes the memory of a
 * statement within another one for that of both. */
static int refused_code(struct engine *e, int code)
{
    if (code != -MRD_ENOMEM || e->compile_refused == COMPILE_NOT_REFUSED)
        return code;
    if (e->compile_refused == COMPILE_TOO_LARGE || e->compile_refused == COMPILE_TOO_LONG)
        return -MRD_ELIMIT;
    engine_interrupt_clear(e);
    return -MRD_ECANCELLED;
}

int engine_sqlite_error(struct engine *e, int sqlite_rc, struct error *err)
{
    static const char too_large[] =
        "the statement becomes too large: SQLite writes a view or a part of WITH out for each use of it, and those of "
        "this one take more than 256 MiB. CREATE PERFETTO TABLE keeps the rows of a part instead";
    static const char too_long[] =
        "the statement becomes too long: SQLite makes more than five million steps of it. Put a long list of values "
        "into a table, some thousand at a time, and ask with IN (SELECT ...)";
    int code = (sqlite_rc & 0xff) == SQLITE_NOMEM       ? -MRD_ENOMEM
               : (sqlite_rc & 0xff) == SQLITE_INTERRUPT ? -MRD_ECANCELLED
                                                        : -MRD_ESQL;
    code = refused_code(e, code);
    const char *text = code == -MRD_ENOMEM       ? "out of memory"
                       : code == -MRD_ECANCELLED ? "interrupted"
                       : code == -MRD_ELIMIT     ? (e->compile_refused == COMPILE_TOO_LONG ? too_long : too_large)
                       : (sqlite_rc & 0xff) == SQLITE_AUTH && *e->refused ? e->refused
                                                                          : sqlite3_errmsg(e->db);
    engine_set_error_text(e, text);
    return error_set(err, code, "%s", text);
}

const char *engine_error_text(const struct engine *e)
{
    return e->error_text ? e->error_text : e->error_text_lost ? error_code_text(-MRD_ENOMEM) : "";
}

void engine_set_error_text(struct engine *e, const char *text)
{
    char *copy = *text ? mem_strdup(text) : NULL;
    mem_free(e->error_text);
    e->error_text = copy;
    e->error_text_lost = *text && !copy;
}

int engine_error_offset(const struct engine *e)
{
    return e->error_offset;
}

/* ---- life ---- */

enum { STEPS_BETWEEN_CHECKS = 4096 }; /* of SQLite's machine: some tens of microseconds */

/* sqlite3_interrupt() would end every statement that is open on the connection, also those that wait for a slow reader
 * of their rows: SQLite asks here instead, now and then, on behalf of the one that runs. */
static int must_stop(void *engine)
{
    return engine_is_interrupted(engine);
}

static int open_sqlite(struct engine *e, struct error *err)
{
    sql_heap_install();
    int rc = sqlite3_open_v2(":memory:", &e->db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI,
                             sql_vfs_name());
    if (rc != SQLITE_OK)
        return error_set(err, -MRD_ENOMEM, "SQLite: %s", sqlite3_errstr(rc));
    rc = harden_connection(e->db);
    if (rc != SQLITE_OK)
        return engine_sqlite_error(e, rc, err);
    sqlite3_extended_result_codes(e->db, 0);
    sqlite3_progress_handler(e->db, STEPS_BETWEEN_CHECKS, must_stop, e);
    sqlite3_db_config(e->db, SQLITE_DBCONFIG_LOOKASIDE, NULL, 1200, 200);
    /* without a journal the halves of a statement that fails would stay */
    rc = sqlite3_exec(
        e->db,
        "PRAGMA temp_store=1; PRAGMA cache_size=-1500; PRAGMA journal_mode=memory; PRAGMA synchronous=off; "
        /* always empty: old queries of Perfetto look for the names of tables here */
        "CREATE TABLE perfetto_tables(name STRING); "
        /* empty too: summaries took the place of metrics */
        "CREATE TABLE _trace_metrics(name STRING)",
        NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : engine_sqlite_error(e, rc, err);
}

int engine_operator_depth(struct engine *e, int change)
{
    e->operator_depth += change;
    if (e->operator_depth == 0)
        e->operators_too_deep = false;
    return e->operator_depth;
}

bool engine_operators_too_deep(struct engine *e, bool found)
{
    return e->operators_too_deep |= found;
}

int engine_open(struct engine **out, struct storage *st, struct error *err)
{
    struct engine *e = *out = mem_zalloc(sizeof *e);
    if (!e)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    e->storage = st;
    e->interrupted = &e->own_interrupt;
    e->error_offset = -1;
    e->machine_bytes = memory_of_machine();
    int rc = open_sqlite(e, err);
    if (rc == 0)
        rc = vtab_register_builtin(e, err);
    if (rc == 0)
        rc = vtab_register_runtime(e, err);
#define X(name)                                                                                                        \
    if (rc == 0)                                                                                                       \
        rc = name##_attach(e, err);
    SQL_EXTENSIONS(X)
#undef X
    if (rc == 0)
        rc = prelude_run(e, "prelude.before_eof.", err);
    if (rc == 0)
        harden_authorize(e);
    if (rc) {
        engine_close(e);
        *out = NULL;
    }
    return rc;
}

void engine_close(struct engine *e)
{
    if (!e)
        return;
    if (e->dialect.destroy)
        e->dialect.destroy(e->dialect.ctx);
    planner_free(e);
    sqlite3_close_v2(e->db);
    vtab_free_runtime(e);
    if (e->all_args.def)
        table_free(&e->all_args);
    if (e->args_outline.def)
        table_free(&e->args_outline);
    extract_cache_free(e);
    flow_graph_free(e);
    query_log_free(e);
    vec_free(&e->known);
    vec_free(&e->lazy);
    vec_free(&e->batches);
    vec_free(&e->functions);
    mem_free(e->error_text);
    mem_free(e);
}

int engine_loaded(struct engine *e, struct error *err)
{
    storage_finalize(e->storage);
    e->generation++;
    e->all_args_ready = false;
    e->args_decoded = 0;
    extract_cache_free(e);
    flow_graph_free(e);
    if (e->loaded)
        return 0;
    int rc = prelude_run(e, "prelude.after_eof.", err);
    e->loaded = rc == 0;
    return rc;
}

void engine_interrupt(struct engine *e)
{
    atomic_store_explicit(e->interrupted, true, memory_order_relaxed);
}

stop_flag *engine_stop(const struct engine *e)
{
    return e->interrupted;
}

int engine_gave_up(const struct engine *e)
{
    return engine_is_interrupted(e) ? SQLITE_INTERRUPT : SQLITE_NOMEM;
}

void engine_interrupt_clear(struct engine *e)
{
    atomic_store_explicit(e->interrupted, false, memory_order_relaxed);
}

bool engine_was_interrupted(const struct engine *e)
{
    return engine_is_interrupted(e);
}

void engine_share_interrupt(struct engine *e, atomic_bool *interrupted)
{
    e->interrupted = interrupted;
}

sqlite3 *engine_db(struct engine *e)
{
    return e->db;
}

struct storage *engine_storage(struct engine *e)
{
    return e->storage;
}

void engine_set_dialect(struct engine *e, const struct engine_dialect *d)
{
    e->dialect = *d;
}

void *engine_dialect_ctx(struct engine *e)
{
    return e->dialect.ctx;
}

/* ---- statements ---- */

int engine_compile(struct engine *e, const char *text, int len, unsigned flags, sqlite3_stmt **stmt, const char **tail)
{
    struct engine_compiled outer = e->compiled; /* a table that is connected may prepare statements of its own */
    struct compile_heap heap;
    size_t size = len < 0 ? strlen(text) : (size_t)len;
    e->compiled = (struct engine_compiled){.text = slice_of(text, size)};
    compile_heap_begin(&heap, engine_stop(e));
    int rc = sqlite3_prepare_v3(e->db, text, len, flags, stmt, tail);
    compile_heap_end(&heap);
    e->compiled = outer;
    /* SQLite calls its own limit of steps that, too. A shorter text does not get there, and then it is our memory. */
    if ((rc & 0xff) == SQLITE_NOMEM && !heap.failed && size > 1 << 20) {
        e->compile_refused = COMPILE_TOO_LONG;
    } else if ((rc & 0xff) == SQLITE_NOMEM && (heap.stopped || heap.full)) {
        e->compile_refused = heap.stopped ? COMPILE_STOPPED : COMPILE_TOO_LARGE;
        rc = heap.stopped ? SQLITE_INTERRUPT : rc;
    }
    return rc;
}

int engine_prepare(struct engine *e, struct slice sql, sqlite3_stmt **stmt, size_t *tail, struct error *err)
{
    const char *end = NULL, *text = sql.p ? (const char *)sql.p : "";
    *stmt = NULL;
    e->error_offset = -1;
    if (sql.len > INT32_MAX)
        return error_set(err, -MRD_ELIMIT, "the SQL text is longer than 2 GiB");
    int rc = engine_compile(e, text, (int)sql.len, 0, stmt, &end);
    if (tail)
        *tail = end ? (size_t)(end - text) : sql.len;
    if (rc == SQLITE_OK)
        return 0;
    e->error_offset = sqlite3_error_offset(e->db);
    return engine_sqlite_error(e, rc, err);
}

uint64_t engine_rows_max_bytes(const struct engine *e)
{
    const uint64_t quarter = e->machine_bytes / 4, most = 3072ull << 20;
    if (e->plan_max_bytes)
        return e->plan_max_bytes;
    return quarter < most ? quarter : most;
}

void engine_limit_memory(struct engine *e, uint64_t bytes)
{
    e->plan_max_bytes = bytes;
    sql_heap_limit(bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX);
}

static int snapshot_damaged(const char *where, struct error *err)
{
    return error_set(err, -MRD_EFORMAT, "the snapshot is damaged (%s); write it anew from its trace", where);
}

int engine_step(struct engine *e, sqlite3_stmt *stmt, struct error *err)
{
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_INTERRUPT)
        engine_interrupt_clear(e);
    const char *damage = storage_damage(e->storage);
    if (damage)
        return snapshot_damaged(damage, err);
    return rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : engine_sqlite_error(e, rc, err);
}

/* Where the next thing that is not a blank, a comment or a semicolon stands. */
static size_t skip_blank(struct slice s, size_t at)
{
    while (at < s.len) {
        uint8_t c = s.p[at];
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == ';') {
            at++;
        } else if (c == '-' && at + 1 < s.len && s.p[at + 1] == '-') {
            while (at < s.len && s.p[at] != '\n')
                at++;
        } else if (c == '/' && at + 1 < s.len && s.p[at + 1] == '*') {
            at += 2;
            while (at < s.len && !(s.p[at] == '*' && at + 1 < s.len && s.p[at + 1] == '/'))
                at++;
            at = at + 2 < s.len ? at + 2 : s.len;
        } else {
            break;
        }
    }
    return at;
}

static int plain_next(struct engine *e, struct slice text, size_t *at, struct engine_statement *out, struct error *err)
{
    *at = skip_blank(text, *at);
    *out = (struct engine_statement){.none = *at >= text.len};
    if (out->none)
        return 0;
    size_t used = 0;
    int rc = engine_prepare(e, slice_of(text.p + *at, text.len - *at), &out->stmt, &used, err);
    *at += used;
    return rc;
}

static void explain(struct engine *e, sqlite3_stmt *stmt, struct error *err)
{
    if (e->dialect.explain && err)
        e->dialect.explain(e->dialect.ctx, e, stmt, err);
}

static bool counts_as_output(const struct engine_result *r)
{
    if (!r->row || r->n_columns == 0)
        return false;
    if (r->n_columns > 1)
        return true;
    return strcmp(engine_result_column_name(r, 0), "suppress_query_output") != 0 &&
           (r->direct || !sqlite3_value_pointer(sqlite3_column_value(r->stmt, 0), "VOID"));
}

static int next_direct(struct engine_result *r, struct error *err)
{
    int rc = plan_output_next(r->direct, err);
    const char *damage = storage_damage(r->engine->storage);
    return rc >= 0 && damage ? snapshot_damaged(damage, err) : rc;
}

/* What columns are called where the front end has put something in the place of what was written. */
static void find_names(struct engine_result *r)
{
    char *(*written)(const char *name) = r->engine->dialect.column_name;
    for (int i = 0; written && i < r->n_columns; i++) {
        const char *called = sqlite3_column_name(r->stmt, i);
        char *name = called ? written(called) : NULL;
        if (name && !r->names)
            r->names = mem_zalloc((size_t)r->n_columns * sizeof *r->names);
        if (name && r->names)
            r->names[i] = name;
        else
            mem_free(name);
    }
}

int engine_script_next(struct engine_script *s, struct engine_result *r, struct error *err)
{
    struct engine *e = s->engine;
    struct engine_statement next = {0};
    struct error local = {0};
    if (!err)
        err = &local;
    *r = (struct engine_result){.engine = e, .done = true};
    engine_interrupt_clear(e);
    e->compile_refused = COMPILE_NOT_REFUSED;
    engine_set_error_text(e, "");
    size_t from = skip_blank(s->text, s->at);
    bool direct = e->direct;
    e->direct = s->direct;
    int rc = e->dialect.next
                 ? e->dialect.next(e->dialect.ctx, e, s->origin ? s->origin : "stdin", s->text, &s->at, &next, err)
                 : plain_next(e, s->text, &s->at, &next, err);
    e->direct = direct;
    if (rc < 0) {
        if (!err->text[0])
            error_set(err, rc, "%s", error_code_text(rc));
        if (!*engine_error_text(e))
            engine_set_error_text(e, err->text);
        return rc;
    }
    if (next.none)
        return 0;
    s->n_statements++;
    s->last_at = from;
    if (!next.stmt)
        return 1;
    rc = s->direct ? plan_output_open(e, next.stmt, &r->direct, err) : 0;
    if (rc >= 0)
        rc = r->direct ? next_direct(r, err) : engine_step(e, next.stmt, err);
    if (rc < 0) {
        explain(e, next.stmt, err);
        plan_output_close(r->direct);
        sqlite3_finalize(next.stmt);
        *r = (struct engine_result){.engine = e, .done = true};
        return rc;
    }
    r->stmt = next.stmt;
    r->n_columns = sqlite3_column_count(next.stmt);
    find_names(r);
    r->row = rc == 1;
    r->done = rc == 0;
    s->n_statements_with_output += counts_as_output(r);
    return 1;
}

int engine_result_next(struct engine_result *r, struct error *err)
{
    if (r->row) {
        r->row = false;
        return 1;
    }
    if (r->done || !r->stmt)
        return 0;
    struct error local = {0};
    int rc = r->direct ? next_direct(r, err ? err : &local) : engine_step(r->engine, r->stmt, err ? err : &local);
    r->done = rc != 1;
    if (rc < 0)
        explain(r->engine, r->stmt, err ? err : &local);
    return rc;
}

const char *engine_result_column_name(const struct engine_result *r, int column)
{
    if (r->names && column >= 0 && column < r->n_columns && r->names[column])
        return r->names[column];
    const char *name = r->stmt ? sqlite3_column_name(r->stmt, column) : NULL;
    return name ? name : "";
}

int engine_value_type(const struct engine_result *r, int column)
{
    return r->direct ? plan_output_type(r->direct, column) : sqlite3_column_type(r->stmt, column);
}

int64_t engine_value_int64(const struct engine_result *r, int column)
{
    return r->direct ? plan_output_int64(r->direct, column) : sqlite3_column_int64(r->stmt, column);
}

double engine_value_double(const struct engine_result *r, int column)
{
    return r->direct ? plan_output_double(r->direct, column) : sqlite3_column_double(r->stmt, column);
}

const char *engine_value_text(const struct engine_result *r, int column, size_t *len)
{
    size_t unused;
    len = len ? len : &unused;
    if (r->direct)
        return plan_output_text(r->direct, column, len);
    const char *text = (const char *)sqlite3_column_text(r->stmt, column);
    *len = text ? (size_t)sqlite3_column_bytes(r->stmt, column) : 0;
    return text;
}

const void *engine_value_blob(const struct engine_result *r, int column, size_t *len)
{
    size_t n;
    const void *bytes;
    if (r->direct) {
        bytes = plan_output_text(r->direct, column, &n);
        bytes = n ? bytes : NULL;
    } else {
        bytes = sqlite3_column_blob(r->stmt, column);
        n = bytes ? (size_t)sqlite3_column_bytes(r->stmt, column) : 0;
    }
    if (len)
        *len = n;
    return bytes;
}

void engine_result_close(struct engine_result *r)
{
    for (int i = 0; r->names && i < r->n_columns; i++)
        mem_free(r->names[i]);
    mem_free(r->names);
    plan_output_close(r->direct);
    sqlite3_finalize(r->stmt);
    *r = (struct engine_result){.done = true};
}

int engine_query(struct engine *e, const char *origin, struct slice sql, struct engine_result *r,
                 struct engine_script *script, struct error *err)
{
    struct engine_script local, *s = script ? script : &local;
    *s = (struct engine_script){.engine = e, .origin = origin, .text = sql, .direct = script && script->direct};
    for (;;) {
        int rc = engine_script_next(s, r, err);
        if (rc < 0)
            return rc;
        if (rc == 0 && s->n_statements == 0)
            return error_set(err, -MRD_EINVALID, "No valid SQL to run");
        if (rc == 0 || skip_blank(sql, s->at) >= sql.len)
            return 0;
        while ((rc = engine_result_next(r, err)) == 1)
            ;
        engine_result_close(r);
        if (rc < 0)
            return rc;
    }
}

int engine_run(struct engine *e, const char *origin, const char *sql, struct error *err)
{
    struct engine_result r;
    int rc = engine_query(e, origin, slice_str(sql), &r, NULL, err);
    if (rc == -MRD_EINVALID)
        return 0;
    while (rc == 0 && (rc = engine_result_next(&r, err)) == 1)
        rc = 0;
    if (r.stmt)
        engine_result_close(&r);
    return rc;
}
