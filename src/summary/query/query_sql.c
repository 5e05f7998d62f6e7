/* The source `sql`: the last statement becomes the rows, those before it a preamble, $alias another query. */
#include "base/sql_token.h"
#include "summary/query/generator.h"

#include <string.h>

typedef Mrd__PerfettoSqlStructuredQuery__Sql sql_source;

/* The statements before the last, and the last without its semicolon. Empty ones do not count. */
static void split_statements(struct slice sql, struct slice *before, struct slice *last)
{
    const char *text = (const char *)sql.p;
    size_t at = 0, first = sql.len, start = sql.len, end = sql.len;
    bool open = false; /* a statement has begun and not ended */
    while (at < sql.len) {
        enum token_kind kind;
        size_t n = token_next(text + at, sql.len - at, &kind);
        if (kind == TOKEN_SEMI && open) {
            end = at;
            open = false;
        } else if (kind != TOKEN_SEMI && !token_is_blank(kind) && !open) {
            start = at;
            end = sql.len;
            open = true;
            first = first == sql.len ? at : first;
        }
        at += n;
    }
    *before = slice_of(sql.p + first, start - first);
    *last = slice_of(sql.p + start, end - start);
}

static struct slice all_statements(struct slice sql)
{
    struct slice before, last;
    split_statements(sql, &before, &last);
    return slice_of(before.p, before.len + last.len);
}

static int check_dependency(struct query_text *t, const Mrd__PerfettoSqlStructuredQuery__Sql__Dependency *d,
                            struct query_aliases *aliases)
{
    int rc = check_name(t->g, "alias", d->alias);
    uint32_t unit;
    if (rc == 0 && strpool_find(&aliases->names, d->alias, strlen(d->alias)))
        rc = query_fail(t->g, -MRD_EINVALID, "alias", "'%.100s' is given twice", d->alias);
    if (rc == 0)
        rc = nested_query(t->g, "query", -1, d->query, USED_IN_SQL, &unit);
    if (rc == 0 && (!strpool_intern_str(&aliases->names, d->alias) || !vec_push(&aliases->units, unit)))
        rc = query_fail(t->g, -MRD_ENOMEM, NULL, "out of memory");
    return rc;
}

static int put_statement(struct query_text *t, const sql_source *s, struct slice statement)
{
    struct query_aliases aliases = {0};
    int rc = 0;
    for (size_t i = 0; i < s->n_dependencies && rc == 0; i++) {
        rc = path_enter(t->g, "dependencies", (int)i);
        if (rc == 0)
            rc = check_dependency(t, s->dependencies[i], &aliases);
        if (rc == 0)
            path_leave(t->g);
    }
    if (rc == 0)
        rc = put_whole(t, "sql", statement, &aliases);
    strpool_free(&aliases.names);
    vec_free(&aliases.units);
    return rc;
}

int put_sql_source(struct query_text *t, const structured_query *q)
{
    const sql_source *s = q->sql;
    struct slice before, last;
    int rc = 0;
    split_statements(slice_str(s->sql ? s->sql : ""), &before, &last);
    if (!last.len)
        return query_fail(t->g, -MRD_EINVALID, "sql", "has no statement");
    if (before.len && s->preamble)
        return query_fail(t->g, -MRD_EINVALID, "preamble", "goes with one statement only, and sql has several");
    if (s->preamble) /* to the end of its last statement: a comment left open would hide what comes after it */
        before = all_statements(slice_str(s->preamble));
    if (before.len)
        rc = need_preamble(t->g, before);
    if (!s->n_column_names) {
        put_sql(t, "(\n");
        rc = rc < 0 ? rc : put_statement(t, s, last);
        put_sql(t, "\n)");
        return rc;
    }
    for (size_t i = 0; i < s->n_column_names && rc == 0; i++) {
        put_sql(t, "%s", i ? ", " : "(SELECT ");
        rc = put_column(t, "column_names", s->column_names[i]);
    }
    put_sql(t, " FROM (\n");
    rc = rc < 0 ? rc : put_statement(t, s, last);
    put_sql(t, "\n))");
    return rc;
}
