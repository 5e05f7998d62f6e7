/* Statements of several clients that are open on one engine at the same time, while others make, replace and drop what
 * they read. What a statement has begun to read stays until it is closed; nobody may be made to read what is freed. */
#include "sql_fixture.h"

static struct sql_fixture f;

static void open_engine(void)
{
    sql_open(&f);
    sql_run(&f, "CREATE PERFETTO TABLE t AS WITH RECURSIVE n(v) AS (SELECT 0 UNION ALL SELECT v + 1 FROM n LIMIT 50) "
                "SELECT v AS a, printf('%d', v) AS b, v * 10 AS ts, 5 AS dur FROM n");
}

static void close_engine(void)
{
    sql_close(&f);
}

/* Opens a statement and takes `rows` of it. */
static bool begin(struct engine_result *r, const char *sql, int rows)
{
    struct error err = {0};
    if (engine_query(f.e, "test", slice_str(sql), r, NULL, &err))
        return false;
    while (rows-- > 0 && engine_result_next(r, &err) == 1)
        ;
    return true;
}

/* Reads it to its end and closes it; how many rows there were, or -1. */
static int end(struct engine_result *r)
{
    struct error err = {0};
    int rc, n = 0;
    while ((rc = engine_result_next(r, &err)) == 1) {
        for (int i = 0; i < sqlite3_column_count(r->stmt); i++)
            sqlite3_column_text(r->stmt, i);
        n++;
    }
    engine_result_close(r);
    return rc < 0 ? -1 : n;
}

START_TEST(a_function_refused_while_a_statement_runs_is_not_called)
{
    struct engine_result r;
    ck_assert(begin(&r, "SELECT a FROM t", 3));
    sql_must_fail(&f, "CREATE PERFETTO FUNCTION foo(x INT) RETURNS INT AS SELECT nosuchcolumn", "nosuchcolumn");
    sql_run(&f, "CREATE PERFETTO TABLE filler AS SELECT printf('%0200d', a) AS x FROM t");
    for (int i = 0; i < 3; i++)
        sql_must_fail(&f, "SELECT foo(1)", "foo");
    sql_run(&f, "CREATE PERFETTO FUNCTION foo(x INT) RETURNS INT AS SELECT $x + 1");
    sql_expect(&f, "SELECT foo(1)", "2");
    ck_assert_int_eq(end(&r), 47);
}
END_TEST

START_TEST(a_function_does_not_replace_itself)
{
    sql_run(&f, "CREATE PERFETTO FUNCTION me(x INT) RETURNS INT AS SELECT CASE WHEN create_function('me(x INT)', "
                "'INT', 'SELECT 7') IS NULL THEN $x ELSE 1 END");
    sql_must_fail(&f, "SELECT me(3)", "is running");
    sql_expect(&f, "SELECT 1", "1");
}
END_TEST

/* SQLite reads its schema anew, which makes a second table of the same rows; then that one is dropped. */
START_TEST(a_table_outlives_its_name)
{
    static const char *again[] = {"BEGIN; CREATE TABLE zz(a); ROLLBACK", "CREATE TABLE zz(a); DROP TABLE zz",
                                  "CREATE PERFETTO TABLE zz AS SELECT 1 AS a; DROP TABLE zz", "ANALYZE", "REINDEX"};
    for (size_t i = 0; i < sizeof again / sizeof *again; i++) {
        struct engine_result r;
        ck_assert(begin(&r,
                        "WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM c LIMIT 100) SELECT x, 'c' FROM "
                        "c UNION ALL SELECT a, b FROM t",
                        2));
        sqlite3_free(sql_rows(&f, again[i]));
        sqlite3_free(sql_rows(&f, "SELECT * FROM t"));
        sqlite3_free(sql_rows(&f, "DROP TABLE t"));
        sqlite3_free(sql_rows(&f, "CREATE PERFETTO TABLE filler AS SELECT 1 AS a, 'x' AS b"));
        int n = end(&r);
        ck_assert_msg(n == 148 || n == -1, "%s: %d rows", again[i], n);
        close_engine();
        open_engine();
    }
}
END_TEST

/* What clients send to each other's harm: chosen by a seed, a few hundred steps each. */
static const char *const reads[] = {
    "SELECT * FROM t",
    "SELECT a, f1(a) FROM t",
    "SELECT * FROM t, tf(a)",
    "SELECT * FROM tf(3)",
    "SELECT count(*) OVER (ORDER BY a), b FROM t",
    "SELECT * FROM v",
    "SELECT * FROM sj",
    "SELECT * FROM t WHERE a > 3 AND a < 40",
    "SELECT * FROM t JOIN plain USING (a)",
    "SELECT x FROM (WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM c LIMIT 30) SELECT x FROM c) UNION "
    "ALL SELECT a FROM t",
    "SELECT m!(a) FROM t",
    "SELECT s2(a), f1(a) FROM t ORDER BY b",
    "SELECT last_non_null(b) OVER (ORDER BY a ROWS "
    "BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t",
    "SELECT * FROM pragma_table_info('t')",
    "SELECT name, sql FROM sqlite_master",
};
static const char *const changes[] = {
    "CREATE OR REPLACE PERFETTO TABLE t AS SELECT 1 AS a, 'x' AS b, 2 AS ts, 3 AS dur",
    "CREATE OR REPLACE PERFETTO TABLE t AS WITH RECURSIVE n(v) AS (SELECT 0 UNION ALL SELECT v + 1 FROM n LIMIT 60) "
    "SELECT v AS a, printf('%d', v) AS b, v * 10 AS ts, 5 AS dur FROM n",
    "DROP TABLE IF EXISTS t",
    "CREATE OR REPLACE PERFETTO FUNCTION f1(x INT) RETURNS INT AS SELECT $x + 1",
    "CREATE OR REPLACE PERFETTO FUNCTION f1(x INT) RETURNS STRING AS SELECT printf('%d', $x)",
    "CREATE OR REPLACE PERFETTO FUNCTION f1(x INT) RETURNS INT AS SELECT nothing",
    "SELECT experimental_memoize('f1')",
    "CREATE PERFETTO FUNCTION f2(x INT) RETURNS INT AS SELECT nothing",
    "SELECT f2(1)",
    "CREATE OR REPLACE PERFETTO FUNCTION tf(x INT) RETURNS TABLE(y INT) AS SELECT a AS y FROM t WHERE a < $x",
    "CREATE OR REPLACE PERFETTO FUNCTION tf(x INT) RETURNS TABLE(y INT, z INT) AS SELECT $x AS y, 2 AS z",
    "CREATE OR REPLACE PERFETTO FUNCTION tf(x INT) RETURNS TABLE(y INT) AS SELECT nothing AS y",
    "DROP TABLE tf",
    "CREATE OR REPLACE PERFETTO FUNCTION s2(x INT) RETURNS INT DELEGATES TO hash",
    "CREATE OR REPLACE PERFETTO FUNCTION s2(x INT) RETURNS INT AS SELECT $x",
    "CREATE OR REPLACE PERFETTO VIEW v AS SELECT a, b FROM t",
    "DROP VIEW v",
    "CREATE VIRTUAL TABLE sj USING span_join(t, t2)",
    "DROP TABLE sj",
    "CREATE OR REPLACE PERFETTO TABLE t2 AS SELECT 5 AS ts, 1000 AS dur, 4 AS q",
    "DROP TABLE t2",
    "CREATE OR REPLACE PERFETTO INDEX i ON t(a)",
    "DROP PERFETTO INDEX i ON t",
    "CREATE TABLE plain(a, c)",
    "INSERT INTO plain SELECT a, b FROM t",
    "DROP TABLE plain",
    "ALTER TABLE t RENAME TO t3",
    "ALTER TABLE t3 RENAME TO t",
    "CREATE OR REPLACE PERFETTO MACRO m(x Expr) RETURNS Expr AS $x + 1",
    "BEGIN",
    "ROLLBACK",
    "COMMIT",
    "ANALYZE",
    "BEGIN; CREATE TABLE zz(a); ROLLBACK",
    "SELECT create_function('f1(x INT)', 'INT', 'SELECT nothing')",
    "SELECT create_view_function('tf(x INT)', 'y INT', 'SELECT nothing')",
    "INCLUDE PERFETTO MODULE slices.with_context",
    "SELECT import('intervals.overlap')",
    "DROP TABLE IF EXISTS plain",
    "VACUUM",
    "REINDEX",
};

static unsigned next(unsigned *seed, unsigned below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

START_TEST(clients_do_each_other_no_harm)
{
    enum { OPEN = 5, STEPS = 300 };
    struct engine_result open[OPEN] = {{0}};
    bool used[OPEN] = {false};
    unsigned seed = 77u + (unsigned)_i;
    for (int step = 0; step < STEPS; step++) {
        unsigned slot = next(&seed, OPEN), what = next(&seed, 8);
        struct error err = {0};
        if (what < 3) {
            sqlite3_free(sql_rows(&f, changes[next(&seed, sizeof changes / sizeof *changes)]));
        } else if (!used[slot]) {
            used[slot] = begin(&open[slot], reads[next(&seed, sizeof reads / sizeof *reads)], (int)next(&seed, 5));
        } else if (what < 6) {
            for (unsigned n = next(&seed, 10); n > 0 && engine_result_next(&open[slot], &err) == 1; n--)
                for (int i = 0; i < sqlite3_column_count(open[slot].stmt); i++)
                    sqlite3_column_text(open[slot].stmt, i);
        } else {
            end(&open[slot]);
            used[slot] = false;
        }
    }
    for (int i = 0; i < OPEN; i++)
        if (used[i])
            end(&open[i]);
    sqlite3_free(sql_rows(&f, "ROLLBACK"));
    sql_expect(&f, "SELECT count(*) FROM slice", "0");
}
END_TEST

Suite *sql_concurrent_suite(void);
Suite *sql_concurrent_suite(void)
{
    Suite *s = suite_create("sql_concurrent");
    TCase *t = tcase_create("clients");
    tcase_add_checked_fixture(t, open_engine, close_engine);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_function_refused_while_a_statement_runs_is_not_called);
    tcase_add_test(t, a_function_does_not_replace_itself);
    tcase_add_test(t, a_table_outlives_its_name);
    tcase_add_loop_test(t, clients_do_each_other_no_harm, 0, 20);
    suite_add_tcase(s, t);
    return s;
}
