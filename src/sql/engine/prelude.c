/* Runs the prelude: makes its tables and views. */
#include "sql/engine/prelude.h"

#include "sql/embedded.h"
#include "sql/engine/harden.h"
#include "sql/engine_private.h"
#include "sql/vtab/vtab.h"

#include <string.h>

enum { MAX_COLUMNS = 64 /* of a table; one with more has no types */ };

/* Behind what may hold any character: a comment, a text in quotes; else behind p[0]. */
static const char *next_char(const char *p, const char *end)
{
    const char *stop = NULL;
    if (p[0] == '-' && p + 1 < end && p[1] == '-')
        stop = memchr(p, '\n', (size_t)(end - p));
    else if (p[0] == '\'')
        stop = memchr(p + 1, '\'', (size_t)(end - p - 1));
    else
        return p + 1;
    return stop ? stop + 1 : end;
}

/* Where c stands outside of comments, texts and parentheses, or `end`. */
static const char *find(const char *p, const char *end, char c)
{
    int depth = 0;
    while (p < end && !(depth == 0 && *p == c)) {
        depth += (*p == '(') - (*p == ')');
        p = next_char(p, end);
    }
    return p;
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (strchr(" \t\r\n;", *p) || (*p == '-' && p[1] == '-')))
        p = *p == '-' ? next_char(p, end) : p + 1;
    return p;
}

/* "CREATE PERFETTO <kind> name(columns) AS body" */
struct statement {
    struct slice kind, name, columns, body;
};

static struct slice take_word(const char **p, const char *end)
{
    const char *from = skip_blanks(*p, end);
    *p = from;
    while (*p < end && !strchr(" \t\r\n(", **p))
        ++*p;
    return slice_of(from, (size_t)(*p - from));
}

static bool parse(const char *p, const char *end, struct statement *s)
{
    if (!slice_eq_str(take_word(&p, end), "CREATE") || !slice_eq_str(take_word(&p, end), "PERFETTO"))
        return false;
    s->kind = take_word(&p, end);
    s->name = take_word(&p, end);
    if (p < end && *p == '(') {
        const char *close = find(p + 1, end, ')');
        s->columns = slice_of(p + 1, (size_t)(close - p - 1));
        p = close + 1;
    }
    if (!slice_eq_str(take_word(&p, end), "AS"))
        return false;
    s->body = slice_of(p, (size_t)(end - p));
    return true;
}

/* The types of "name TYPE, name TYPE": texts and real numbers stay what they are in columns without a value. */
static uint32_t column_types(struct slice columns, uint8_t types[MAX_COLUMNS])
{
    uint32_t n = 0;
    if (!columns.len)
        return 0;
    const char *p = (const char *)columns.p, *end = p + columns.len;
    while (n < MAX_COLUMNS && (p = skip_blanks(p, end)) < end) {
        const char *stop = find(p, end, ',');
        take_word(&p, stop);
        struct slice type = take_word(&p, stop);
        types[n++] = slice_starts(type, "STRING")   ? RUNTIME_STRING
                     : slice_starts(type, "DOUBLE") ? RUNTIME_DOUBLE
                                                    : RUNTIME_ANY;
        p = stop < end ? stop + 1 : end;
    }
    return n;
}

/* Kept for later. The names and texts are copied. */
static int lazy_table(struct engine *e, const struct statement *s, struct error *err)
{
    uint8_t types[MAX_COLUMNS];
    uint32_t n_types = column_types(s->columns, types);
    char *name = mem_strndup((const char *)s->name.p, s->name.len);
    char *select = mem_strndup((const char *)s->body.p, s->body.len);
    int rc = name && select ? vtab_register_lazy(e, name, select, types, n_types, err)
                            : error_set(err, -MRD_ENOMEM, "out of memory");
    mem_free(name);
    mem_free(select);
    return rc;
}

/* Puts the view into the schema as CREATE VIEW would leave it there: SQLite would compile its text twice and a
 * statement that writes it, and so took 2 ms of the opening of an engine, where reading them all at once takes 0.4 ms.
 */
static int view(struct engine *e, sqlite3_stmt *insert, const struct statement *s, struct error *err)
{
    char *name = sqlite3_mprintf("%.*s", (int)s->name.len, s->name.p);
    char *sql = name ? sqlite3_mprintf("CREATE VIEW %s AS %.*s", name, (int)s->body.len, s->body.p) : NULL;
    bool taken =
        name && sqlite3_table_column_metadata(e->db, "main", name, NULL, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
    int rc = taken ? error_set(err, -MRD_ESQL, "prelude: %s exists already", name) : 0;
    if (!rc && (!sql || sqlite3_bind_text(insert, 1, name, -1, SQLITE_STATIC) != SQLITE_OK ||
                sqlite3_bind_text(insert, 2, sql, -1, SQLITE_STATIC) != SQLITE_OK))
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    if (!rc && sqlite3_step(insert) != SQLITE_DONE)
        rc = engine_sqlite_error(e, sqlite3_errcode(e->db), err);
    sqlite3_reset(insert);
    sqlite3_free(sql);
    sqlite3_free(name);
    return rc;
}

static int run_statement(struct engine *e, sqlite3_stmt *insert, const char *p, const char *end, struct error *err)
{
    static const char function[] = "CREATE PERFETTO FUNCTION ", macro[] = "CREATE PERFETTO MACRO ";
    struct statement s = {0};
    if (strncmp(p, function, sizeof function - 1) == 0)
        return 0; /* built in; declared for the documentation */
    if (strncmp(p, macro, sizeof macro - 1) == 0) {
        char *sql = mem_strndup(p, (size_t)(end - p));
        int rc = sql ? engine_run(e, "prelude", sql, err) : error_set(err, -MRD_ENOMEM, "out of memory");
        mem_free(sql);
        return rc;
    }
    if (!parse(p, end, &s))
        return error_set(err, -MRD_ESQL, "prelude: unsupported statement: %.40s", p);
    return slice_eq_str(s.kind, "TABLE") ? lazy_table(e, &s, err) : view(e, insert, &s, err);
}

static int run_modules(struct engine *e, sqlite3_stmt *insert, const char *prefix, struct error *err)
{
    size_t n;
    const struct embedded_sql *all = embedded_sql_all(&n);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (strncmp(all[i].module, prefix, strlen(prefix)) != 0)
            continue;
        const char *p = all[i].text, *end = p + all[i].len;
        while (rc == 0 && (p = skip_blanks(p, end)) < end) {
            const char *stop = find(p, end, ';');
            rc = run_statement(e, insert, p, stop, err);
            p = stop;
        }
        if (rc)
            error_prefix(err, "%s", all[i].module);
    }
    return rc;
}

int prelude_run(struct engine *e, const char *prefix, struct error *err)
{
    sqlite3_stmt *insert = NULL;
    int rc = harden_open_schema(e->db);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(e->db, "BEGIN", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(e->db, "INSERT INTO sqlite_schema VALUES ('view', ?1, ?1, 0, ?2)", -1, &insert, NULL);
    rc = rc == SQLITE_OK ? run_modules(e, insert, prefix, err) : engine_sqlite_error(e, rc, err);
    sqlite3_finalize(insert);
    if (sqlite3_exec(e->db, rc ? "ROLLBACK" : "COMMIT", NULL, NULL, NULL) != SQLITE_OK && rc == 0)
        rc = engine_sqlite_error(e, SQLITE_ERROR, err);
    int closed = harden_close_schema(e);
    return rc || closed == SQLITE_OK ? rc : engine_sqlite_error(e, closed, err);
}
