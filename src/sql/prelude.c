/* Owns running the prelude. */
#include "sql/prelude.h"

#include "sql/embedded.h"
#include "sql/engine_private.h"
#include "sql/vtab/vtab.h"

#include <string.h>

/* One statement of a prelude file: text without its semicolon, comments before it skipped. */
static const char *next_statement(const char *p, const char **end)
{
    for (;;) {
        p += strspn(p, " \t\r\n;");
        if (p[0] != '-' || p[1] != '-')
            break;
        p += strcspn(p, "\n");
    }
    const char *stop = strstr(p, ";\n"); /* statements of the prelude end at the end of a line */
    *end = stop ? stop : p + strlen(p);
    return *p ? p : NULL;
}

/* "CREATE TABLE name AS select": kept for later. The texts live as long as the program. */
static int lazy_table(struct engine *e, const char *p, const char *end, struct error *err)
{
    const char *name = p + strlen("CREATE TABLE ");
    size_t len = strcspn(name, " \n");
    const char *as = strstr(name, "AS\n");
    if (!as || as > end)
        return error_set(err, -MRD_ESQL, "prelude: %.*s: CREATE TABLE without AS", (int)len, name);
    char *copy = mem_strndup(name, len), *select = mem_strndup(as + 3, (size_t)(end - as) - 3);
    int rc = copy && select ? vtab_register_lazy(e, copy, select, err) : error_set(err, -MRD_ENOMEM, "out of memory");
    mem_free(copy);
    mem_free(select);
    return rc;
}

static int run_statement(struct engine *e, const char *p, const char *end, struct error *err)
{
    if (strncmp(p, "CREATE TABLE ", 13) == 0)
        return lazy_table(e, p, end, err);
    sqlite3_stmt *stmt = NULL;
    int rc = engine_prepare(e, slice_of(p, (size_t)(end - p)), &stmt, NULL, err);
    if (rc == 0)
        rc = engine_step(e, stmt, err);
    sqlite3_finalize(stmt);
    return rc < 0 ? rc : 0;
}

int prelude_run(struct engine *e, const char *prefix, struct error *err)
{
    size_t n;
    const struct embedded_sql *all = embedded_sql_all(&n);
    int rc = sqlite3_exec(e->db, "BEGIN", NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return engine_sqlite_error(e, rc, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (strncmp(all[i].module, prefix, strlen(prefix)) != 0)
            continue;
        const char *end, *p = all[i].text;
        while (rc == 0 && (p = next_statement(p, &end)) != NULL) {
            rc = run_statement(e, p, end, err);
            p = end;
        }
        if (rc)
            error_prefix(err, "%s", all[i].module);
    }
    if (sqlite3_exec(e->db, rc ? "ROLLBACK" : "COMMIT", NULL, NULL, NULL) != SQLITE_OK && rc == 0)
        rc = engine_sqlite_error(e, SQLITE_ERROR, err);
    return rc;
}
