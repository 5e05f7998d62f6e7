/* The SQL engine: one SQLite connection over one storage, with errors as values.
 *
 * An engine may be opened before data is loaded (stats and metadata answer at any time); call engine_loaded() when the
 * storage has got its rows. Text is run by engine_query(): every statement but the last runs to its end, the last one
 * is handed back as a result to step through. The dialect front end (dialect/) hooks in by engine_set_dialect() and
 * turns each statement into what SQLite understands. Virtual tables, functions and table functions are registered from
 * const tables by the attach functions of extensions.h.
 *
 * Not for use by several threads at once, except engine_interrupt(). */
#ifndef MERIDIAN_SQL_ENGINE_H
#define MERIDIAN_SQL_ENGINE_H

#include "base/error.h"
#include "base/slice.h"
#include "base/stop.h"
#include "sql/runtime_table.h"
#include "storage/storage.h"

#include <sqlite3.h>
#include <stdatomic.h>

struct engine;

/* Opens a connection over `st` (borrowed, must outlive the engine). */
int engine_open(struct engine **out, struct storage *st, struct error *err);
void engine_close(struct engine *e); /* NULL is fine; every result must be closed before */

/* The load is complete (or has got more rows): summaries are brought up to date, indexes made before are dropped, and
 * the views that need a complete trace are created (once). */
int engine_loaded(struct engine *e, struct error *err);

/* Makes the statement that is being stepped fail with -MRD_ECANCELLED, no other one that is open; may be called from a
 * signal handler or another thread. */
void engine_interrupt(struct engine *e);
/* What long loops look at; it is set by engine_interrupt() until the statement has ended. */
stop_flag *engine_stop(const struct engine *e);
/* Why a loop or a sort that heeds engine_stop() gave up: SQLITE_INTERRUPT, or else SQLITE_NOMEM. */
int engine_gave_up(const struct engine *e);
/* How many bytes the rows of one statement may take in memory of our own: a quarter of what the process may have, 3 GiB
 * at most. */
uint64_t engine_rows_max_bytes(const struct engine *e);
/* Forgets an interrupt that came when nothing ran any more. */
void engine_interrupt_clear(struct engine *e);
/* Has one come that nothing has taken notice of yet? */
bool engine_was_interrupted(const struct engine *e);
/* From now on the engine looks at this flag for interrupts: its owner can set it whatever becomes of the engine, and
 * one may serve several engines that run by turns. Must outlive the engine. */
void engine_share_interrupt(struct engine *e, atomic_bool *interrupted);

sqlite3 *engine_db(struct engine *e);
struct storage *engine_storage(struct engine *e);

/* What plans may ask for, each of them, and SQLite in this process. */
void engine_limit_memory(struct engine *e, uint64_t bytes);

/* May statements name files (ATTACH, __intrinsic_file_write)? Not unless somebody says so. */
void engine_allow_files(struct engine *e, bool allowed);
bool engine_files_allowed(const struct engine *e);

/* ---- running text ---- */

struct plan_output;

/* One statement being stepped. Values are read with sqlite3_column_*(r.stmt, i), or engine_value_*(r, i) by those who
 * have asked for direct rows. */
struct engine_result {
    struct engine *engine;
    sqlite3_stmt *stmt;         /* NULL: a statement without output (CREATE PERFETTO ..., INCLUDE), already executed */
    struct plan_output *direct; /* its rows, which are not SQLite's; NULL: they are */
    int n_columns;
    char **names; /* of columns that SQLite calls otherwise than they are written; NULL: of none */
    bool row;     /* the first row has been fetched and not handed out yet */
    bool done;    /* no more rows */
};

/* A text being run statement by statement. */
struct engine_script {
    struct engine *engine;
    const char *origin; /* names the text in tracebacks: "stdin", a file name */
    struct slice text;
    size_t at;                         /* where the next statement starts; the tail offset after a call */
    uint32_t n_statements;             /* executed so far */
    uint32_t n_statements_with_output; /* of those: with a row that is not VOID, or columns not to be suppressed */
    size_t last_at;                    /* where the statement run last begins */
    bool direct;                       /* rows may come from a plan: values are read with engine_value_*() */
};

/* Prepares the next statement and steps it to its first row (or its end). 1: *r is open, to be closed; 0: no statement
 * is left; negative: -MRD_ESQL with the message, -MRD_ECANCELLED, -MRD_ENOMEM. */
int engine_script_next(struct engine_script *s, struct engine_result *r, struct error *err);

/* Runs a text: every statement but the last to its end, the last one is handed back open. -MRD_EINVALID "No valid SQL
 * to run" when there is none. On failure nothing is left open. *script (may be NULL) receives the counts. */
int engine_query(struct engine *e, const char *origin, struct slice sql, struct engine_result *r,
                 struct engine_script *script, struct error *err);

/* 1: a row is there; 0: the end; negative: error. */
int engine_result_next(struct engine_result *r, struct error *err);
const char *engine_result_column_name(const struct engine_result *r, int column);
/* Values of the row at hand, as sqlite3_column_*() gives them. *len may be NULL. */
int engine_value_type(const struct engine_result *r, int column); /* SQLITE_INTEGER … */
int64_t engine_value_int64(const struct engine_result *r, int column);
double engine_value_double(const struct engine_result *r, int column);
const char *engine_value_text(const struct engine_result *r, int column, size_t *len);
const void *engine_value_blob(const struct engine_result *r, int column, size_t *len);
void engine_result_close(struct engine_result *r); /* a closed or zeroed one is fine */

/* Runs text to its end; rows are thrown away. */
int engine_run(struct engine *e, const char *origin, const char *sql, struct error *err);

/* The whole text of the last failure (a traceback may not fit struct error); "" when there was none. */
const char *engine_error_text(const struct engine *e);
/* Replaces it; for the front end, which knows the frames. */
void engine_set_error_text(struct engine *e, const char *text);

/* ---- for the front end ---- */

/* One statement, ready to be stepped. */
struct engine_statement {
    sqlite3_stmt *stmt; /* NULL: there was none left (see `none`), or the front end has executed it itself */
    bool none;          /* nothing but blanks and comments stood from `at` to the end */
};

enum { ENGINE_MAX_PARAMETERS = 8, ENGINE_MAX_RETURNED = 48 };

/* A function that SQL has made. All texts are borrowed: they last until the next statement that makes one. */
struct engine_sql_function {
    const char *sql; /* the body, with $names in it */
    struct {
        const char *name;
        char type;                                                 /* 'i', 'd', 't'; 'b' bytes, 'a' any */
    } params[ENGINE_MAX_PARAMETERS], columns[ENGINE_MAX_RETURNED]; /* columns: of a table */
    uint32_t n_params, n_columns;
};

struct engine_dialect {
    void *ctx;
    /* Takes the statement of `text` that starts at *at and moves *at behind it (and its semicolon): either prepares it
     * (out->stmt) or executes it itself (out->stmt NULL). May be called again from within. */
    int (*next)(void *ctx, struct engine *e, const char *origin, struct slice text, size_t *at,
                struct engine_statement *out, struct error *err);
    /* Explains a failure of stepping `stmt` (may be NULL: plain message). */
    void (*explain)(void *ctx, struct engine *e, sqlite3_stmt *stmt, struct error *err);
    void (*destroy)(void *ctx);
    /* The function of that name and number of arguments, scalar or a table. */
    bool (*find_function)(void *ctx, const char *name, int n_args, bool table, struct engine_sql_function *out);
    /* What a column without an alias is called, where the front end has put something in the place of what was written
     * (mem_alloc); NULL: as it is, or no memory. */
    char *(*column_name)(const char *name);
};

/* Takes over `d->ctx`. */
void engine_set_dialect(struct engine *e, const struct engine_dialect *d);
void *engine_dialect_ctx(struct engine *e);

/* sqlite3_prepare_v3 of one statement of plain SQLite text. *tail (may be NULL): bytes used. A failure fills err with
 * SQLite's message and engine_error_offset(). *stmt is NULL for blank text. */
int engine_prepare(struct engine *e, struct slice sql, sqlite3_stmt **stmt, size_t *tail, struct error *err);
/* sqlite3_prepare_v3 of a text (`len` -1: up to its NUL), which the virtual tables of the statement get to know.
 * Whatever may read tables or views of others is prepared by it. */
int engine_compile(struct engine *e, const char *text, int len, unsigned flags, sqlite3_stmt **stmt, const char **tail);
/* Byte offset in the text of the last engine_prepare() that failed, or -1. */
int engine_error_offset(const struct engine *e);

/* How deep operators that run statements are within each other; `change` is added first. */
int engine_operator_depth(struct engine *e, int change);
/* Has one been refused since the outermost began? Then no other way is tried: each level has two, and 16 levels 65,536.
 */
bool engine_operators_too_deep(struct engine *e, bool found);

/* sqlite3_step: 1 row, 0 done, negative error. */
int engine_step(struct engine *e, sqlite3_stmt *stmt, struct error *err);

/* SQLite's message for its last failure, as our error. */
int engine_sqlite_error(struct engine *e, int sqlite_rc, struct error *err);

/* ---- registration ---- */

/* The arguments of an aggregate over all of its rows. */
struct engine_columns {
    const struct table *table; /* those that vary, in their order */
    uint32_t n_args;
    const char *const *constants; /* [n_args]: a text; NULL: the next column */
};

/* What a function takes is looked at before it is called: see function_check.h for how `takes` is written. */
struct engine_function {
    const char *name;
    int n_args;        /* -1: as `takes` says */
    const char *takes; /* NULL: n_args values of any type */
    int flags;         /* SQLITE_DETERMINISTIC ...; SQLITE_DIRECTONLY: not for views. SQLITE_UTF8 is added */
    void *data;        /* function_data() of it */
    void (*scalar)(sqlite3_context *, int, sqlite3_value **);
    void (*step)(sqlite3_context *, int, sqlite3_value **); /* aggregates and windows */
    void (*final)(sqlite3_context *);
    void (*value)(sqlite3_context *); /* windows only */
    void (*inverse)(sqlite3_context *, int, sqlite3_value **);
    /* Of an aggregate whose result is a pointer of that type: the same over columns. NULL with SQLITE_OK: as of no
     * rows; SQLITE_ERROR: let it be computed row by row, which tells what is wrong. */
    void *(*of_columns)(struct engine *e, const struct engine_columns *c, int *rc);
    const char *pointer;
    void (*destroy)(void *);
};
struct engine *function_engine(sqlite3_context *ctx);
void *function_data(sqlite3_context *ctx);
int engine_register_functions(struct engine *e, const struct engine_function *fns, size_t n, struct error *err);
/* A registered function by name (any case), or NULL; n_args -2: the first of that name. */
const struct engine_function *engine_find_function(const struct engine *e, const char *name, int n_args);

/* Forgets one; SQLite keeps its own entry. */
void engine_forget_function(struct engine *e, const struct engine_function *f);

/* sqlite3_declare_vtab() of a table that views may read, which is any of ours. */
int engine_declare_vtab(sqlite3 *db, const char *schema);

/* sqlite3_create_module_v2; the module's client data is the engine. */
int engine_register_module(struct engine *e, const char *name, const sqlite3_module *module, struct error *err);

/* Which columns the number of a row is of a table that is computed. */
enum row_numbers {
    ROWS_AUTO_ID, /* `_auto_id`, the last one and hidden; a column `id` of the table is one like any other */
    ROWS_ID,      /* `id`, the first one */
    ROWS_BOTH,    /* `id` and `_auto_id` */
    ROWS_UNTYPED, /* none; and the columns are declared without types */
};

/* FROM f(a, b): rows computed as a table at each call. Arguments are hidden columns _fn_arg0, _fn_arg1 ... behind the
 * result columns; constraints and ordering of the result columns are the generic ones. */
struct engine_table_function {
    const char *name;
    const struct table_def *def; /* result columns */
    int n_args;
    enum row_numbers row_numbers;
    /* Appends rows to *out (initialised with def; freed by the caller). Strings are interned in the storage. */
    int (*compute)(struct engine *e, sqlite3_value **args, struct table *out, struct error *err);
};
int engine_register_table_functions(struct engine *e, const struct engine_table_function *fns, size_t n,
                                    struct error *err);

/* ---- runtime tables (CREATE PERFETTO TABLE) ---- */

/* Gives the table a SQL name; takes over `t` (also on failure). It is then an ordinary virtual table for SQLite: it
 * stands in sqlite_master and DROP TABLE removes it. -MRD_ESQL when the name is taken. */
int engine_add_table(struct engine *e, const char *name, struct runtime_table *t, struct error *err);

/* Runs `select` to its end into a new table. `schema` may be NULL (types are detected). */
int engine_materialise(struct engine *e, sqlite3_stmt *select, const struct runtime_schema *schema,
                       struct runtime_table **out, struct error *err);

/* The table that CREATE PERFETTO TABLE made by that name (borrowed), or NULL. */
struct runtime_table *engine_find_runtime(struct engine *e, const char *name);

/* The columns behind a SQL name of ours (built-in or runtime), any case; NULL when it is neither. */
const struct table *engine_find_table(struct engine *e, const char *name);

/* CREATE PERFETTO INDEX: an index on columns of a table, in their order. -MRD_ESQL when the table or a column does not
 * exist, when there are more than 12, or when the first holds doubles; those after a column of doubles are of no use.
 */
int engine_add_index(struct engine *e, const char *name, const char *table, const char *const *columns, size_t n,
                     struct error *err);
bool engine_has_index(struct engine *e, const char *name, const char *table);
/* When two have the name, the older one. */
void engine_drop_index(struct engine *e, const char *name, const char *table);

#endif
