/* Inside the front end: its state, and what the executors of statements share. */
#ifndef MERIDIAN_SQL_DIALECT_EXEC_H
#define MERIDIAN_SQL_DIALECT_EXEC_H

#include "base/u64map.h"
#include "sql/dialect/dialect.h"
#include "sql/dialect/macro.h"
#include "sql/dialect/parse.h"

struct param {
    char *name;   /* without $ */
    uint8_t type; /* enum value_type */
    bool variadic;
};

/* A function made by CREATE PERFETTO FUNCTION, scalar or table. Lives as long as the front end, since SQLite keeps a
 * pointer to it; OR REPLACE changes what is inside. */
struct sql_function {
    struct dialect *d;
    char *name;
    VEC(struct param)
    params;
    VEC(struct param)
    columns; /* of a table function */
    char *sql;
    uint8_t returns; /* enum value_type */
    VEC(sqlite3_stmt *)
    idle;                /* prepared and reset; a call takes one, so that a function may call itself */
    int refs;            /* the list it is in, and each table that SQLite has made of it */
    int running;         /* calls of a scalar one that have not returned */
    uint64_t generation; /* counts replacements */
    bool memoize;
    bool dropped;       /* sql_function_drop_body() */
    struct u64map memo; /* argument -> index of results + 1 */
    VEC(sqlite3_value *)
    results;
};

struct sql_index {
    char *name;
    char *table;
};

/* A thing that a module has made (undo.h). */
enum undo_kind { UNDO_TABLE, UNDO_VIEW, UNDO_FUNCTION, UNDO_MACRO, UNDO_INDEX };
struct undo {
    char *name;
    enum undo_kind kind;
    int n_args; /* of a function */
};

/* One text that is being run statement by statement. */
struct text_run {
    int refs;
    struct sql_frame frame;
    struct arena arena;       /* frames and made-up tokens of the current statement */
    struct sql_tokens tokens; /* of the current statement, expanded */
    sqlite3_stmt *stmt;       /* the last that was handed out; only to compare with */
    const void *origin_text;  /* the caller's text this was made from */
    size_t origin_len;
};

struct dialect {
    struct engine *e;
    struct macro_table macros;
    struct module_registry modules;
    VEC(struct sql_function *)
    scalars;
    VEC(struct sql_function *)
    tables;
    VEC(struct sql_index)
    indexes;
    VEC(struct engine_function *)
    delegates; /* aliases of built-in functions */
    VEC(struct undo)
    undo; /* of the modules that are running */
    struct text_run *run;
    int include_depth;
    int function_depth;
};

/* A statement that is being executed. */
struct exec {
    struct dialect *d;
    struct text_run *run;
    const struct sql_token *p; /* its tokens, expanded */
    size_t n;
    sqlite3_stmt *stmt; /* result: to be stepped by the caller */
    struct error *err;
};

/* Fails with a traceback to the token (NULL: to the statement) and the formatted text; returns -MRD_ESQL. */
int exec_fail(struct exec *x, const struct sql_token *at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same for a message that SQLite or the engine has put into x->err, at a place in the joined text of p[0, n). */
int exec_fail_offset(struct exec *x, const struct sql_token *p, size_t n, int64_t offset);

/* Prepares p[0, n) as one SQLite statement; errors come with a traceback. */
int exec_prepare(struct exec *x, const struct sql_token *p, size_t n, sqlite3_stmt **stmt);
/* The same for a statement whose rows are wanted now: the planner may have a faster way to them. */
int exec_plan(struct exec *x, const struct sql_token *p, size_t n, sqlite3_stmt **stmt);
/* The same for a statement whose rows become a table. */
int exec_plan_table(struct exec *x, const struct sql_token *p, size_t n, sqlite3_stmt **stmt);

/* Compares a statement's result columns with a declared list. In any order, or (`ordered`) one by one. */
int exec_check_columns(struct exec *x, sqlite3_stmt *stmt, const struct parsed_fields *columns, bool ordered,
                       const struct sql_token *at);

/* Runs the statements of one text to their ends; a row that comes out is an error when `silent`. */
int dialect_run_frame(struct dialect *d, const struct sql_frame *frame, const char *silent, struct error *err);

/* Reports an error that already has its full text. */
int dialect_report(struct dialect *d, struct sql_message *m, int code, struct error *err);

int exec_table(struct exec *x, const struct parsed *p);
int exec_view(struct exec *x, const struct parsed *p);
int exec_function(struct exec *x, const struct parsed *p);
int exec_macro(struct exec *x, const struct parsed *p);
int exec_index(struct exec *x, const struct parsed *p);
int exec_drop_index(struct exec *x, const struct parsed *p);
int exec_include(struct exec *x, const struct parsed *p);

/* Takes a scalar function (or alias), an index away again. Nothing when there is none, or when it is in use. */
void exec_forget_function(struct dialect *d, const char *name, int n_args);
void exec_forget_index(struct dialect *d, const char *name);

/* The table-function half of exec_function(). */
int exec_table_function(struct exec *x, const struct parsed *p, const char *name);

/* Fills f from the statement: parameters, columns, types. */
int sql_function_describe(struct exec *x, const struct parsed *p, struct sql_function *f);
void sql_function_clear(struct sql_function *f);                            /* all but the name */
struct sql_function *sql_function_new(struct dialect *d, const char *name); /* one reference; NULL: out of memory */
void sql_function_unref(struct sql_function *f);
/* It stays as a name that fails when it is called: somebody still points to it. */
void sql_function_drop_body(struct sql_function *f);
/* Index of the parameter that `$name` (as in the text) means, or -1. */
int sql_function_param(const struct sql_function *f, const char *variable);
/* A prepared statement of the body that nobody uses. */
int sql_function_take(struct sql_function *f, sqlite3_stmt **stmt, struct error *err);
void sql_function_give(struct sql_function *f, sqlite3_stmt *stmt, uint64_t generation);
/* Every $name of the body must be a parameter. */
int sql_function_check_variables(struct exec *x, const struct parsed *p, const struct sql_function *f);

/* Does the value fit the declared type? */
bool value_fits(sqlite3_value *v, enum value_type type);

int dialect_include_pattern(struct dialect *d, const char *pattern, const struct sql_frame *parent, uint32_t at,
                            struct error *err);

extern const sqlite3_module table_function_module;
int legacy_functions_register(struct engine *e, struct error *err);

/* Deep recursion of functions and modules ends here, well before the C stack does. */
enum { DIALECT_MAX_FUNCTION_DEPTH = 400, DIALECT_MAX_INCLUDE_DEPTH = 100 };

#endif
