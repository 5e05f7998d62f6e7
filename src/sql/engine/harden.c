/* What statements may do on our connection.
 *
 * SQL comes from browser tabs and from whoever reaches the port: what no trace needs is off. FTS3's tokenizer function
 * calls whatever address it is given; a schema that may be written makes SQLite run what nobody has parsed; an
 * extension is a program of its own; a pragma may name files. Views and triggers reach only what is marked as safe for
 * them: engine_register_functions() and engine_declare_vtab() mark ours. */
#include "sql/engine/harden.h"

#include "sql/engine_private.h"

#include <string.h>

static const struct {
    int what, on;
} settings[] = {
    {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0},
    {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
    {SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0},
    {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
    {SQLITE_DBCONFIG_DEFENSIVE, 1},
};

/* A statement as deep as these limits needs little of the stack; one as long as these is refused before it takes
 * seconds to prepare. What the standard library and the UI make of traces stays far below. */
static const struct {
    int what, most;
} limits[] = {
    {SQLITE_LIMIT_LENGTH, 512 << 20},  {SQLITE_LIMIT_SQL_LENGTH, 64 << 20}, {SQLITE_LIMIT_COLUMN, 2000},
    {SQLITE_LIMIT_EXPR_DEPTH, 1000},   {SQLITE_LIMIT_COMPOUND_SELECT, 500}, {SQLITE_LIMIT_VDBE_OP, 5000000},
    {SQLITE_LIMIT_FUNCTION_ARG, 127},  {SQLITE_LIMIT_ATTACHED, 4},          {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 10000},
    {SQLITE_LIMIT_TRIGGER_DEPTH, 100}, {SQLITE_LIMIT_WORKER_THREADS, 0},    {SQLITE_LIMIT_VARIABLE_NUMBER, 32766},
};

/* Functions of SQLite's that belong to its own indexes, extensions and log. */
static const struct {
    const char *name;
    int n_args;
} removed[] = {
    {"fts3_tokenizer", 1}, {"fts3_tokenizer", 2}, {"fts5", 1},       {"fts5_source_id", 0}, {"matchinfo", 1},
    {"matchinfo", 2},      {"offsets", 1},        {"optimize", 1},   {"snippet", -1},       {"bm25", -1},
    {"highlight", -1},     {"rtreenode", 2},      {"rtreedepth", 1}, {"rtreecheck", -1},    {"load_extension", 1},
    {"load_extension", 2}, {"sqlite_log", 2},
};

/* The pragmas that statements may use: others read or write paths, or change how the connection works. */
static const struct {
    const char *name;
    bool value; /* may be given one: what it is about, or a new setting */
} pragmas[] = {
    {"table_info", true},         {"table_xinfo", true},         {"table_list", true},       {"index_list", true},
    {"index_info", true},         {"index_xinfo", true},         {"function_list", false},   {"module_list", false},
    {"pragma_list", false},       {"collation_list", false},     {"compile_options", false}, {"foreign_key_list", true},
    {"integrity_check", true},    {"quick_check", true},         {"encoding", false},        {"user_version", true},
    {"application_id", true},     {"case_sensitive_like", true}, {"data_version", false},    {"schema_version", false},
    {"page_count", false},        {"page_size", false},          {"freelist_count", false},  {"cache_size", false},
    {"journal_mode", false},      {"synchronous", false},        {"temp_store", false},      {"foreign_keys", false},
    {"recursive_triggers", true}, {"trusted_schema", false},     {"query_only", false},
};

int harden_connection(sqlite3 *db)
{
    static const char *kept[] = {"json_each", "json_tree", NULL};
    int rc = SQLITE_OK;
    for (size_t i = 0; i < sizeof settings / sizeof *settings && rc == SQLITE_OK; i++)
        rc = sqlite3_db_config(db, settings[i].what, settings[i].on, NULL);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        sqlite3_limit(db, limits[i].what, limits[i].most);
    for (size_t i = 0; i < sizeof removed / sizeof *removed && rc == SQLITE_OK; i++)
        rc = sqlite3_create_function_v2(db, removed[i].name, removed[i].n_args, SQLITE_UTF8, NULL, NULL, NULL, NULL,
                                        NULL);
    return rc == SQLITE_OK ? sqlite3_drop_modules(db, kept) : rc;
}

static int refuse(struct engine *e, const char *fmt, const char *what)
{
    sqlite3_snprintf(sizeof e->refused, e->refused, fmt, what);
    return SQLITE_DENY;
}

static int authorize_pragma(struct engine *e, const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof pragmas / sizeof *pragmas; i++)
        if (sqlite3_stricmp(pragmas[i].name, name) == 0 && (!value || pragmas[i].value))
            return SQLITE_OK;
    return refuse(e, "not authorized: PRAGMA %s is not for statements over a trace", name);
}

/* Actions are few beside columns and functions, which every statement names by the dozen: those are let through first.
 * What is not listed is for SQLite's own schema, which the defensive mode guards. */
static int authorize(void *ctx, int action, const char *a, const char *b, const char *schema, const char *trigger)
{
    struct engine *e = ctx;
    (void)schema, (void)trigger;
    switch (action) {
    case SQLITE_PRAGMA:
        return e->files_allowed ? SQLITE_OK : authorize_pragma(e, a, b);
    case SQLITE_ATTACH: /* VACUUM attaches, too, with and without INTO */
    case SQLITE_DETACH:
        return e->files_allowed
                   ? SQLITE_OK
                   : refuse(e, "%s", "not authorized: SQL may not open files here (ATTACH, DETACH, VACUUM)");
    default:
        return SQLITE_OK;
    }
}

void harden_authorize(struct engine *e)
{
    sqlite3_set_authorizer(e->db, authorize, e);
}

static int allow_schema(sqlite3 *db, bool allowed)
{
    int rc = sqlite3_db_config(db, SQLITE_DBCONFIG_WRITABLE_SCHEMA, (int)allowed, NULL);
    int defensive = sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, (int)!allowed, NULL);
    return rc == SQLITE_OK ? defensive : rc;
}

int harden_open_schema(sqlite3 *db)
{
    return allow_schema(db, true);
}

int harden_close_schema(struct engine *e)
{
    sqlite3_set_authorizer(e->db, NULL, NULL);
    int rc = sqlite3_exec(e->db, "PRAGMA writable_schema=RESET", NULL, NULL, NULL);
    int closed = allow_schema(e->db, false);
    harden_authorize(e);
    rc = rc == SQLITE_OK ? closed : rc;
    return rc == SQLITE_OK
               ? sqlite3_table_column_metadata(e->db, "main", "sqlite_schema", NULL, NULL, NULL, NULL, NULL, NULL)
               : rc;
}

void engine_allow_files(struct engine *e, bool allowed)
{
    e->files_allowed = allowed;
}

bool engine_files_allowed(const struct engine *e)
{
    return e->files_allowed;
}

int engine_declare_vtab(sqlite3 *db, const char *schema)
{
    int rc = sqlite3_declare_vtab(db, schema);
    return rc == SQLITE_OK ? sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS) : rc;
}
