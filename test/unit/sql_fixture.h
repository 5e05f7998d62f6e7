/* An engine over a small storage, for tests of SQL: queries to text, errors to text. */
#ifndef MERIDIAN_TEST_SQL_FIXTURE_H
#define MERIDIAN_TEST_SQL_FIXTURE_H

#include "sql/dialect/dialect.h"
#include "sql/engine.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

struct sql_fixture {
    struct storage st;
    struct engine *e;
};

static inline void sql_open(struct sql_fixture *f)
{
    struct error err = {0};
    ck_assert_int_eq(storage_init(&f->st), 0);
    ck_assert_msg(engine_open(&f->e, &f->st, &err) == 0, "%s", err.text);
    ck_assert_msg(engine_loaded(f->e, &err) == 0, "%s", err.text);
}

static inline void sql_close(struct sql_fixture *f)
{
    engine_close(f->e);
    storage_free(&f->st);
}

static inline void sql_append_row(sqlite3_str *s, sqlite3_stmt *stmt, int row)
{
    if (row)
        sqlite3_str_appendchar(s, 1, ';');
    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        const char *text = (const char *)sqlite3_column_text(stmt, i);
        sqlite3_str_appendf(s, "%s%s", i ? "," : "", text ? text : "-");
    }
}

/* Runs text; the last statement's rows as "a,b;c,d" with NULL as "-". To be freed. NULL on failure: see
 * engine_error_text(). */
static inline char *sql_rows(struct sql_fixture *f, const char *sql)
{
    struct engine_result r;
    struct error err = {0};
    int rc = engine_query(f->e, "test", slice_str(sql), &r, NULL, &err);
    if (rc)
        return NULL;
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendall(s, "");
    for (int row = 0; (rc = engine_result_next(&r, &err)) == 1; row++)
        sql_append_row(s, r.stmt, row);
    if (r.stmt)
        engine_result_close(&r);
    char *out = sqlite3_str_finish(s);
    if (rc < 0) {
        sqlite3_free(out);
        return NULL;
    }
    return out ? out : sqlite3_mprintf("");
}

static inline void sql_expect(struct sql_fixture *f, const char *sql, const char *rows)
{
    char *got = sql_rows(f, sql);
    ck_assert_msg(got != NULL, "%s\n%s", sql, engine_error_text(f->e));
    ck_assert_msg(strcmp(got, rows) == 0, "%s\ngot      %s\nexpected %s", sql, got, rows);
    sqlite3_free(got);
}

static inline void sql_must_fail(struct sql_fixture *f, const char *sql, const char *part)
{
    char *got = sql_rows(f, sql);
    ck_assert_msg(got == NULL, "%s\nmust fail, gave %s", sql, got);
    ck_assert_msg(strstr(engine_error_text(f->e), part) != NULL, "%s\n%s\nshould tell: %s", sql,
                  engine_error_text(f->e), part);
}

static inline void sql_run(struct sql_fixture *f, const char *sql)
{
    char *got = sql_rows(f, sql);
    ck_assert_msg(got != NULL, "%s\n%s", sql, engine_error_text(f->e));
    sqlite3_free(got);
}

#endif
