/* Tests PerfettoSQL on an engine: statements that make things, modules, bad SQL. */
#include "sql_fixture.h"

static struct sql_fixture f;

static void setup(void)
{
    sql_open(&f);
}

static void teardown(void)
{
    sql_close(&f);
}

static const struct {
    const char *sql, *rows;
} good[] = {
    {"CREATE PERFETTO TABLE t AS SELECT 1 AS a, 'x' AS b, 2.5 AS c UNION ALL SELECT NULL, NULL, NULL; SELECT * FROM t",
     "1,x,2.5;-,-,-"},
    {"CREATE PERFETTO TABLE t(b STRING, a LONG) AS SELECT 1 AS a, 'x' AS b; SELECT * FROM t", "1,x"},
    {"CREATE PERFETTO TABLE t AS SELECT 1 AS a; CREATE OR REPLACE PERFETTO TABLE t AS SELECT 2 AS b; SELECT b FROM t",
     "2"},
    {"CREATE PERFETTO TABLE t AS SELECT 1 AS a; DROP TABLE t; CREATE PERFETTO TABLE t AS SELECT 3 AS a; SELECT a FROM "
     "t",
     "3"},
    {"CREATE PERFETTO TABLE t AS SELECT 1 AS a WHERE 0; SELECT count(*) FROM t", "0"},
    {"CREATE PERFETTO VIEW v(a LONG) AS SELECT 7 AS a; SELECT a FROM v", "7"},
    {"CREATE PERFETTO VIEW v AS SELECT 7 AS a; CREATE OR REPLACE PERFETTO VIEW v AS SELECT 8 AS a; SELECT a FROM v",
     "8"},
    {"CREATE PERFETTO FUNCTION f(x LONG) RETURNS LONG AS SELECT $x + 1; SELECT f(1), f(NULL)", "2,-"},
    {"CREATE PERFETTO FUNCTION f() RETURNS LONG AS SELECT 1 WHERE 0; SELECT f()", "-"},
    {"CREATE PERFETTO FUNCTION f(x LONG) RETURNS LONG AS SELECT 1; CREATE OR REPLACE PERFETTO FUNCTION f(x LONG) "
     "RETURNS "
     "LONG AS SELECT $x * 2; SELECT f(4)",
     "8"},
    {"CREATE PERFETTO FUNCTION fact(n LONG) RETURNS LONG AS SELECT iif($n <= 1, 1, $n * fact($n - 1)); SELECT fact(10)",
     "3628800"},
    {"CREATE PERFETTO FUNCTION fib(n LONG) RETURNS LONG AS SELECT iif($n < 2, $n, fib($n - 1) + fib($n - 2)); "
     "SELECT experimental_memoize('fib'); SELECT fib(80)",
     "23416728348467685"},
    {"CREATE PERFETTO FUNCTION f(a LONG, b STRING) RETURNS TABLE(x LONG, y STRING) AS SELECT $a AS x, $b AS y UNION "
     "ALL "
     "SELECT $a + 1, $b; SELECT * FROM f(1, 'q')",
     "1,q;2,q"},
    {"CREATE PERFETTO FUNCTION f(a LONG) RETURNS TABLE(x LONG) AS SELECT $a * 10 AS x; SELECT group_concat(x) FROM "
     "(SELECT "
     "1 AS v UNION SELECT 2) JOIN f(v)",
     "10,20"},
    /* an OR over a table function's columns: SQLite plans each part without the arguments */
    {"CREATE PERFETTO FUNCTION f(a LONG) RETURNS TABLE(x LONG) AS SELECT $a AS x; SELECT x FROM f(3) WHERE x = 3 OR x "
     "> 9",
     "3"},
    {"SELECT count(*) FROM ancestor_slice(NULL) WHERE name = 'a' OR name = 'b' OR id = 3", "0"},
    {"CREATE PERFETTO FUNCTION f(a LONG) RETURNS TABLE(x LONG) AS SELECT 1 AS x; CREATE OR REPLACE PERFETTO FUNCTION "
     "f(a "
     "LONG) RETURNS TABLE(z LONG) AS SELECT 5 AS z; SELECT z FROM f(0)",
     "5"},
    {"CREATE PERFETTO FUNCTION up(t STRING) RETURNS STRING DELEGATES TO reverse; SELECT up('abc')", "cba"},
    {"CREATE PERFETTO MACRO m(t TableOrSubquery, c ColumnName) RETURNS Expr AS (SELECT sum($c) FROM $t); SELECT "
     "m!((SELECT 1 "
     "AS a UNION ALL SELECT 2), a)",
     "3"},
    {"CREATE PERFETTO MACRO m(x Expr) RETURNS Expr AS $x; CREATE OR REPLACE PERFETTO MACRO m(x Expr) RETURNS Expr AS "
     "$x + 1; "
     "SELECT m!(1)",
     "2"},
    {"CREATE PERFETTO TABLE t AS SELECT 1 AS a; CREATE PERFETTO INDEX i ON t(a); DROP PERFETTO INDEX i ON t; SELECT 1",
     "1"},
    {"CREATE PERFETTO TABLE t AS WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < 4999) SELECT "
     "i % 50 AS a, 'x' || (i / 50 % 10) AS b, i AS c, i * 0.5 AS d FROM s; CREATE PERFETTO INDEX i ON t(a, b, c, d); "
     "SELECT count(*), sum(c) FROM t WHERE a = 7 AND b = 'x3'; SELECT c FROM t WHERE a = 7 AND b = 'x3' AND c < 700; "
     "CREATE OR REPLACE PERFETTO INDEX i ON t(c); SELECT a FROM t WHERE c = 4999; DROP PERFETTO INDEX i ON t; SELECT a "
     "FROM t WHERE c = 51",
     "1"},
    {"SELECT create_function('f(x INT)', 'INT', 'SELECT $x + 1'); SELECT f(1)", "2"},
    {"SELECT create_view_function('f(x INT)', 'y INT', 'SELECT $x AS y'); SELECT y FROM f(4)", "4"},
    {"SELECT import('time.conversion'); SELECT time_from_ms(2)", "2000000"},
    {"INCLUDE PERFETTO MODULE time.conversion; INCLUDE PERFETTO MODULE time.*; SELECT time_to_s(5000000000)", "5"},
    {"SELECT cast_int!('12') + 1", "13"},
    {"CREATE TABLE plain(a); INSERT INTO plain VALUES(1); CREATE TRIGGER g AFTER INSERT ON plain BEGIN DELETE FROM "
     "plain "
     "WHERE a = 1; SELECT 1; END; INSERT INTO plain VALUES(2); SELECT * FROM plain",
     "2"},
    {"-- only a comment\n; ; SELECT 1 ; -- behind\n", "1"},
};

START_TEST(good_statements)
{
    sql_expect(&f, good[_i].sql, good[_i].rows);
}
END_TEST

/* A chain of calls names the function that failed once. */
START_TEST(errors_of_recursive_functions)
{
    sql_must_fail(&f, "CREATE PERFETTO FUNCTION f(x LONG) RETURNS LONG AS SELECT f($x + 1); SELECT f(1)",
                  "f: function calls");
    ck_assert_ptr_null(strstr(engine_error_text(f.e), "f: f: "));
    sql_must_fail(&f,
                  "CREATE PERFETTO FUNCTION g(x LONG) RETURNS LONG AS SELECT iif($x = 0, str_split('a', '', 0), "
                  "g($x - 1)); SELECT g(5)",
                  "g: STR_SPLIT");
    ck_assert_ptr_null(strstr(engine_error_text(f.e), "g: g: "));
}
END_TEST

static const struct {
    const char *sql;
    const char *part[3]; /* what the error must hold */
} bad[] = {
    {"SELECT 'abc", {"unrecognized token", "line 1 col 8", "^"}},
    {"SELECT \"abc", {"unrecognized token", "line 1 col 8", "^"}},
    {"SELECT (1 +\n 22", {"incomplete input", "line 2 col 3", "      ^"}},
    {"CREATE PERFETTO FUNCTION f(a LONG RETURNS LONG AS SELECT 1", {"expected )", "line 1 col 35"}},
    {"CREATE PERFETTO FUNCTION f(a LONG) RETURNS LONG", {"incomplete input, expected AS", "line 1 col 44"}},
    {"CREATE PERFETTO TABLE t AS", {"expected a SELECT statement"}},
    {"CREATE PERFETTO MACRO m(x Expr) RETURNS Expr AS $x; SELECT m!(1", {"not closed", "line 1 col 62"}},
    {"CREATE PERFETTO VIEW slice AS SELECT 1 AS a", {"slice already exists", "line 1 col 22"}},
    {"CREATE PERFETTO TABLE slice AS SELECT 1 AS a", {"slice already exists", "line 1 col 23"}},
    {"CREATE PERFETTO FUNCTION sched() RETURNS TABLE(a LONG) AS SELECT 1 AS a", {"sched", "exists", "line 1 col 26"}},
    {"CREATE PERFETTO FUNCTION t(x LONG) RETURNS TABLE(a LONG, a LONG) AS SELECT 1 AS a, 2 AS a",
     {"'a' is declared twice", "line 1 col 58"}},
    {"CREATE PERFETTO FUNCTION t(x LONG, x LONG) RETURNS LONG AS SELECT 1", {"'x' is declared twice", "line 1 col 36"}},
    {"CREATE PERFETTO FUNCTION g(x STRING) RETURNS LONG AS SELECT str_split($x, '', 0); SELECT g('a')",
     {"g: STR_SPLIT: delimiter must not be empty", "line 1 col 83"}},
    {"CREATE PERFETTO FUNCTION r(x LONG) RETURNS TABLE(a LONG) AS SELECT 1 AS a; CREATE OR REPLACE PERFETTO FUNCTION "
     "r(x LONG) RETURNS TABLE(a LONG) AS SELECT a FROM r($x); SELECT * FROM r(1)",
     {"too deep", "r: function calls", "line 1 col 168"}},
    {"SELECT a FROM nowhere", {"no such table: nowhere", "File \"test\" line 1"}},
    {"SELECT 1,\n  missing\nFROM (SELECT 2 AS b)", {"no such column: missing", "line 2 col 3", "      ^"}},
    {"CREATE PERFETTO TABLE t(a LONG) AS SELECT 1 AS b", {"do not exist: a", "line 1 col 23"}},
    {"CREATE PERFETTO TABLE t(a LONG) AS SELECT 1 AS a, 2 AS b", {"missing from the schema: b"}},
    {"CREATE PERFETTO TABLE t(a THING) AS SELECT 1 AS a", {"Unknown column type: THING", "line 1 col 27"}},
    {"CREATE PERFETTO TABLE t AS SELECT 1 AS a, 2 AS a", {"multiple columns are named: a"}},
    {"CREATE PERFETTO TABLE t AS SELECT 1 + 1", {"olumn"}},
    {"CREATE PERFETTO TABLE t AS SELECT x'00' AS b", {"lob"}},
    {"CREATE PERFETTO TABLE t AS SELECT 1 AS a; CREATE PERFETTO TABLE t AS SELECT 1 AS a",
     {"already exists", "col 65"}},
    {"CREATE PERFETTO VIEW v AS SELECT 1 AS a; CREATE PERFETTO VIEW v AS SELECT 1 AS a", {"already exists"}},
    {"CREATE PERFETTO VIEW v AS SELECT x FROM nowhere", {"no such table: nowhere"}},
    {"CREATE PERFETTO FUNCTION f() RETURNS LONG AS SELECT 1, 2", {"exactly one column"}},
    {"CREATE PERFETTO FUNCTION f() RETURNS LONG AS SELECT 1 UNION SELECT 2; SELECT f()", {"multiple values"}},
    {"CREATE PERFETTO FUNCTION f(a LONG) RETURNS LONG AS SELECT $b", {"no argument $b", "line 1 col 59"}},
    {"CREATE PERFETTO FUNCTION f(a LONG) RETURNS LONG AS SELECT :a", {"$name"}},
    {"CREATE PERFETTO FUNCTION f(a NUMBER) RETURNS LONG AS SELECT 1", {"Unknown argument type: NUMBER"}},
    {"CREATE PERFETTO FUNCTION f(a LONG) RETURNS NUMBER AS SELECT 1", {"Unknown return type: NUMBER"}},
    {"CREATE PERFETTO FUNCTION f(a LONG) RETURNS LONG AS SELECT $a; SELECT f('x')", {"argument 1", "f[a=x]"}},
    {"CREATE PERFETTO FUNCTION f() RETURNS LONG AS SELECT 1; CREATE PERFETTO FUNCTION f() RETURNS LONG AS SELECT 1",
     {"already exists", "col 81"}},
    {"CREATE PERFETTO FUNCTION hash(a LONG) RETURNS LONG AS SELECT 1", {"built-in"}},
    {"CREATE PERFETTO FUNCTION f(x LONG) RETURNS LONG AS SELECT f($x + 1); SELECT f(1)", {"too deep"}},
    {"CREATE PERFETTO FUNCTION f(x LONG) RETURNS TABLE(y LONG) AS SELECT y FROM f($x)", {"no such table: f"}},
    {"CREATE PERFETTO FUNCTION f(x LONG) RETURNS TABLE(a LONG, b LONG) AS SELECT 1 AS b, 2 AS a", {"order"}},
    {"CREATE PERFETTO FUNCTION f(x LONG) RETURNS TABLE(a LONG) AS SELECT 1 AS b", {"do not exist: a"}},
    {"CREATE PERFETTO FUNCTION f(x LONG) RETURNS TABLE(a LONG) AS SELECT 1 AS a; SELECT * FROM f()",
     {"an argument is missing"}},
    {"CREATE PERFETTO FUNCTION f(x LONG) RETURNS TABLE(a LONG) AS SELECT 1 AS a; SELECT * FROM f('q')", {"wrong type"}},
    {"CREATE PERFETTO FUNCTION f(a LONG) RETURNS LONG DELEGATES TO no_such_thing", {"no_such_thing", "line 1 col 62"}},
    {"CREATE PERFETTO MACRO m() RETURNS Expr AS m!(); SELECT m!()", {"nested too deep", "Macro \"m\""}},
    {"CREATE PERFETTO MACRO a() RETURNS Expr AS b!(); CREATE PERFETTO MACRO b() RETURNS Expr AS a!(); SELECT a!()",
     {"nested too deep"}},
    {"CREATE PERFETTO MACRO m(x Expr) RETURNS Expr AS $x; SELECT m!()", {"takes 1 argument, 0 given"}},
    {"CREATE PERFETTO MACRO m(x Expr, X Expr) RETURNS Expr AS 1", {"two arguments named"}},
    {"CREATE PERFETTO MACRO m() RETURNS Expr AS 1; CREATE PERFETTO MACRO m() RETURNS Expr AS 2", {"already exists"}},
    {"SELECT nope!(1)", {"Macro \"nope\" not found", "line 1 col 8"}},
    {"CREATE PERFETTO MACRO m(x Expr) RETURNS Expr AS (\nSELECT missing + $x); SELECT m!(2)",
     {"no such column: missing", "Macro \"m\" line 2 col 8", "File \"test\" line 2 col 30"}},
    {"CREATE PERFETTO INDEX i ON nowhere(a)", {"'nowhere' not found"}},
    {"CREATE PERFETTO TABLE t AS SELECT 1 AS a; CREATE PERFETTO INDEX i ON t(b)", {"no column 'b'"}},
    {"CREATE PERFETTO TABLE t AS SELECT 1.5 AS a; CREATE PERFETTO INDEX i ON t(a)", {"'a': it holds doubles"}},
    {"CREATE PERFETTO TABLE t AS SELECT 1 AS a; CREATE PERFETTO INDEX i ON t(a); CREATE PERFETTO INDEX i ON t(a)",
     {"index 'i' already exists", "col 98"}},
    {"DROP PERFETTO INDEX i ON t", {"no index 'i'"}},
    {"INCLUDE PERFETTO MODULE nowhere.at.all", {"INCLUDE: Package 'nowhere' not found", "line 1 col 25"}},
    {"INCLUDE PERFETTO MODULE time.nothing", {"INCLUDE: unknown module 'time.nothing'"}},
    {"INCLUDE PERFETTO MODULE a.*.b", {"only be the last part"}},
    {"CREATE VIRTUAL TABLE s USING span_join(sched)", {"expected 2 args"}},
    {"CREATE VIRTUAL TABLE s USING span_join(sched, nowhere)", {"no such table: nowhere"}},
    {"CREATE VIRTUAL TABLE s USING span_join(sched partitioned cpu, thread_state partitioned utid)", {"mismatching"}},
    {"CREATE VIRTUAL TABLE s USING span_join(sched by cpu, thread_state)", {"PARTITIONED"}},
    {"SELECT * FROM ancestor_slice(5)", {"no row with id 5"}},
    {"SELECT * FROM ancestor_slice('x')", {"start id should be an integer."}},
    {"SELECT * FROM perfetto_table_info('x')", {"Perfetto table 'x' not found."}},
    {"SELECT str_split('a', '', 0)", {"delimiter"}},
    {"SELECT regexp('(', 'a')", {"not valid"}},
    {"SELECT hash(1.5)", {"HASH: arg 0 has unknown type"}},
    {"SELECT unhex('')", {"invalid hex"}},
    {"SELECT to_ftrace(99)", {"TO_FTRACE"}},
    {"CREATE PERFETTO FUNCTION g() RETURNS ANY AS SELECT __intrinsic_graph_agg(1, 2); SELECT __intrinsic_dfs(g(), g())",
     {"cannot return a graph"}},
};

START_TEST(bad_statements_point_at_the_place)
{
    for (int i = 0; i < 3 && bad[_i].part[i]; i++) {
        char *rows = sql_rows(&f, bad[_i].sql);
        const char *text = engine_error_text(f.e);
        ck_assert_msg(rows == NULL, "%s\nmust fail", bad[_i].sql);
        ck_assert_msg(strstr(text, bad[_i].part[i]) != NULL, "%s\n%s\nshould tell: %s", bad[_i].sql, text,
                      bad[_i].part[i]);
        ck_assert_msg(strstr(text, "Traceback (most recent call last):") != NULL, "%s\n%s", bad[_i].sql, text);
        sql_expect(&f, "SELECT 1 + 1", "2"); /* the session goes on */
        teardown();
        setup();
    }
}
END_TEST

/* A CREATE OR REPLACE that fails leaves what was there. */
static const struct {
    const char *first, *fails, *part, *then, *rows;
} kept[] = {
    {"CREATE PERFETTO TABLE t AS SELECT 1 AS a", "CREATE OR REPLACE PERFETTO TABLE t AS SELECT 1 AS _auto_id",
     "_auto_id", "SELECT a FROM t", "1"},
    {"CREATE PERFETTO TABLE t AS SELECT 1 AS a", "CREATE OR REPLACE PERFETTO TABLE t AS SELECT abs('x', 2) AS a", "abs",
     "SELECT a FROM t", "1"},
    {"CREATE PERFETTO TABLE t AS SELECT 1 AS a",
     "CREATE OR REPLACE PERFETTO TABLE t AS SELECT 1 AS a UNION ALL SELECT str_split('a', '', 0)", "delimiter",
     "SELECT a FROM t", "1"},
    {"CREATE PERFETTO TABLE t AS SELECT 1 AS a", "CREATE OR REPLACE PERFETTO TABLE t(b LONG) AS SELECT 2 AS a",
     "do not exist: b", "SELECT a FROM t", "1"},
    {"CREATE PERFETTO TABLE t AS SELECT 1 AS a", "CREATE OR REPLACE PERFETTO VIEW t AS SELECT a FROM t", "circular",
     "SELECT a FROM t", "1"},
    {"CREATE PERFETTO VIEW v AS SELECT 1 AS a", "CREATE OR REPLACE PERFETTO VIEW v AS SELECT ?1 AS a", "parameters",
     "SELECT a FROM v", "1"},
    {"CREATE PERFETTO VIEW v AS SELECT 1 AS a", "CREATE OR REPLACE PERFETTO VIEW v AS SELECT a + 1 AS a FROM v",
     "circular", "SELECT a FROM v", "1"},
    {"CREATE PERFETTO VIEW v AS SELECT 1 AS a; CREATE PERFETTO VIEW w AS SELECT a + 1 AS a FROM v",
     "CREATE OR REPLACE PERFETTO VIEW v AS SELECT a FROM w", "circular", "SELECT a FROM w", "2"},
    {"CREATE PERFETTO VIEW v AS SELECT 1 AS a", "CREATE OR REPLACE PERFETTO TABLE v AS SELECT 1 AS _auto_id",
     "_auto_id", "SELECT a FROM v", "1"},
    {"CREATE TABLE p AS SELECT 1 AS a", "CREATE OR REPLACE PERFETTO VIEW p AS SELECT a FROM p", "circular",
     "SELECT a FROM p", "1"},
    {"CREATE PERFETTO FUNCTION f(x LONG) RETURNS LONG AS SELECT $x + 1",
     "CREATE OR REPLACE PERFETTO FUNCTION f(x LONG) RETURNS LONG AS SELECT y FROM nowhere", "nowhere", "SELECT f(1)",
     "2"},
    {"CREATE PERFETTO FUNCTION f(x STRING) RETURNS STRING DELEGATES TO reverse",
     "CREATE OR REPLACE PERFETTO FUNCTION f(x STRING) RETURNS STRING DELEGATES TO nothing", "nothing", "SELECT f('ab')",
     "ba"},
    {"CREATE PERFETTO FUNCTION f(x STRING) RETURNS STRING AS SELECT $x",
     "CREATE PERFETTO FUNCTION f(x STRING) RETURNS STRING DELEGATES TO reverse", "already exists", "SELECT f('ab')",
     "ab"},
    {"CREATE PERFETTO FUNCTION f(x STRING) RETURNS STRING DELEGATES TO reverse",
     "CREATE PERFETTO FUNCTION f(x STRING) RETURNS STRING DELEGATES TO base64_encode", "already exists",
     "SELECT f('ab')", "ba"},
    {"SELECT 1", "CREATE OR REPLACE PERFETTO FUNCTION hash(x STRING) RETURNS STRING DELEGATES TO reverse", "built-in",
     "SELECT typeof(hash('x'))", "integer"},
    {"CREATE PERFETTO FUNCTION f(x LONG) RETURNS TABLE(a LONG) AS SELECT $x AS a",
     "CREATE OR REPLACE PERFETTO FUNCTION f(x LONG) RETURNS TABLE(in_x LONG) AS SELECT 1 AS in_x", "in_x",
     "SELECT a FROM f(4)", "4"},
    {"CREATE PERFETTO FUNCTION f(x LONG) RETURNS TABLE(a LONG) AS SELECT $x AS a",
     "CREATE OR REPLACE PERFETTO FUNCTION f(x LONG) RETURNS TABLE(_primary_key LONG) AS SELECT 1 AS _primary_key",
     "_primary_key", "SELECT a FROM f(4)", "4"},
    {"CREATE PERFETTO MACRO m() RETURNS Expr AS 1",
     "CREATE OR REPLACE PERFETTO MACRO m(x Expr, x Expr) RETURNS Expr AS 2", "two arguments", "SELECT m!()", "1"},
    {"CREATE PERFETTO TABLE t AS SELECT 1 AS a, 0.5 AS d; CREATE PERFETTO INDEX i ON t(a)",
     "CREATE OR REPLACE PERFETTO INDEX i ON t(nothing)", "no column", "DROP PERFETTO INDEX i ON t; SELECT 1", "1"},
    {"CREATE PERFETTO TABLE t AS SELECT 1 AS a, 0.5 AS d; CREATE PERFETTO INDEX i ON t(a)",
     "CREATE OR REPLACE PERFETTO INDEX i ON t(d)", "holds doubles", "DROP PERFETTO INDEX i ON t; SELECT 1", "1"},
    {"CREATE PERFETTO TABLE t AS SELECT 1 AS a; CREATE PERFETTO INDEX i ON t(a)",
     "CREATE OR REPLACE PERFETTO INDEX i ON nowhere(a)", "not found", "DROP PERFETTO INDEX i ON t; SELECT 1", "1"},
};

START_TEST(what_cannot_be_replaced_stays)
{
    sql_run(&f, kept[_i].first);
    sql_must_fail(&f, kept[_i].fails, kept[_i].part);
    sql_expect(&f, kept[_i].then, kept[_i].rows);
    sql_must_fail(&f, kept[_i].fails, kept[_i].part);
}
END_TEST

/* An index goes with its table; its name is free then. */
START_TEST(indexes_go_with_their_tables)
{
    sql_run(&f, "CREATE PERFETTO TABLE t AS SELECT 1 AS a; CREATE PERFETTO INDEX i ON t(a); DROP TABLE t");
    sql_run(&f, "CREATE PERFETTO TABLE t AS SELECT 2 AS a; CREATE PERFETTO INDEX i ON t(a)");
    sql_run(&f, "CREATE OR REPLACE PERFETTO TABLE t AS SELECT 3 AS a; CREATE PERFETTO INDEX i ON t(a)");
    sql_run(&f, "CREATE PERFETTO TABLE u AS SELECT 2 AS b; CREATE OR REPLACE PERFETTO INDEX i ON u(b)");
    sql_must_fail(&f, "DROP PERFETTO INDEX i ON t", "no index");
    sql_expect(&f, "DROP PERFETTO INDEX i ON u; SELECT b FROM u WHERE b = 2", "2");
}
END_TEST

/* When a statement that changes the schema fails, SQLite takes all virtual tables down: they come back. */
START_TEST(a_failing_statement_leaves_all_tables)
{
    sql_run(&f, "CREATE PERFETTO TABLE t AS SELECT 1 AS a UNION ALL SELECT 2; CREATE PERFETTO INDEX i ON t(a);"
                "CREATE PERFETTO FUNCTION tf(x LONG) RETURNS TABLE(a LONG) AS SELECT $x AS a;"
                "CREATE TABLE plain AS SELECT 7 AS a; CREATE VIEW j AS SELECT 1 AS ts, 2 AS dur;"
                "CREATE VIEW k AS SELECT 1 AS ts, 2 AS dur, 3 AS z; CREATE VIRTUAL TABLE s USING span_join(j, k)");
    static const char *const fails[] = {"CREATE VIRTUAL TABLE x USING span_join(j, nowhere)",
                                        "CREATE PERFETTO TABLE x AS SELECT 1 AS _auto_id",
                                        "CREATE TABLE x AS SELECT str_split('a', '', 0)",
                                        "INSERT INTO plain SELECT iif(value = 1, value, str_split('a', '', 0)) FROM "
                                        "json_each('[1, 2]')"};
    for (size_t i = 0; i < sizeof fails / sizeof *fails; i++) {
        char *rows = sql_rows(&f, fails[i]);
        ck_assert_msg(rows == NULL, "%s", fails[i]);
        if (i == 0)
            sql_run(&f, "CREATE PERFETTO INDEX second ON t(a)"); /* before any query has named the table again */
        sql_must_fail(&f, "CREATE PERFETTO INDEX i ON t(a)", "already exists");
        sql_expect(&f, "SELECT (SELECT sum(a) FROM t WHERE a > 0), tf.a, plain.a, s.z FROM tf(4), plain, s", "3,4,7,3");
        sql_must_fail(&f, "SELECT * FROM x", "no such table: x");
    }
    sql_expect(&f, "ALTER TABLE t RENAME TO t2; SELECT sum(a) FROM t2", "3");
    sql_must_fail(&f, fails[0], "no such table: nowhere");
    sql_expect(&f, "SELECT sum(a) FROM t2", "3");
    sql_run(&f, "DROP TABLE t2; CREATE PERFETTO TABLE t2 AS SELECT 5 AS a");
    sql_expect(&f, "SELECT a FROM t2", "5");
}
END_TEST

/* ---- packages ---- */

static void package(const char *name, bool override, int expect, size_t n, const char *const *texts)
{
    struct module_text t[8];
    struct error err = {0};
    for (size_t i = 0; i < n; i++)
        t[i] = (struct module_text){texts[2 * i], slice_str(texts[2 * i + 1])};
    ck_assert_int_eq(module_registry_add(dialect_modules(f.e), name, t, n, override, &err), expect);
}

START_TEST(packages_of_the_user)
{
    static const char *const mine[] = {"mine.b",
                                       "INCLUDE PERFETTO MODULE mine.a; CREATE PERFETTO VIEW b AS SELECT * FROM a",
                                       "mine.a", "CREATE PERFETTO VIEW a AS SELECT 41 AS x"};
    static const char *const other[] = {"mine.c", "CREATE PERFETTO VIEW c AS SELECT 42 AS x"};
    static const char *const strange[] = {"yours.c", "SELECT 1"};
    static const char *const twice[] = {"mine.d", "SELECT 1", "mine.d", "SELECT 2"};
    package("mine", false, 0, 2, mine);
    sql_expect(&f, "INCLUDE PERFETTO MODULE mine.b; SELECT x FROM b", "41");
    sql_expect(&f, "INCLUDE PERFETTO MODULE mine.*; SELECT x FROM a", "41");
    package("mine", false, -MRD_EEXISTS, 1, other);
    package("mine", true, 0, 1, other);
    sql_expect(&f, "INCLUDE PERFETTO MODULE mine.c; SELECT x FROM c", "42");
    sql_must_fail(&f, "INCLUDE PERFETTO MODULE mine.a", "unknown module");
    package("mine", true, -MRD_EINVALID, 1, strange);
    package("mine", true, -MRD_EINVALID, 2, twice);
    sql_expect(&f, "INCLUDE PERFETTO MODULE mine.c; SELECT x FROM c", "42"); /* a refused one leaves the old */
    package("linux", false, -MRD_EEXISTS, 0, NULL);
}
END_TEST

START_TEST(modules_that_go_wrong)
{
    static const char *const texts[] = {
        "bad.loop",  "INCLUDE PERFETTO MODULE bad.pool",
        "bad.pool",  "INCLUDE PERFETTO MODULE bad.loop",
        "bad.sql",   "CREATE PERFETTO VIEW v AS\nSELECT x FROM nowhere",
        "bad.rows",  "SELECT 1",
        "bad.outer", "\nINCLUDE PERFETTO MODULE bad.sql;",
        "bad.macro", "CREATE PERFETTO MACRO broken(x Expr) RETURNS Expr AS (\nSELECT missing + $x)",
        "bad.user",  "INCLUDE PERFETTO MODULE bad.macro;\nCREATE PERFETTO TABLE t AS SELECT broken!(1) AS a"};
    package("bad", false, 0, 7, texts);
    sql_must_fail(&f, "INCLUDE PERFETTO MODULE bad.loop", "INCLUDE: cycle detected");
    sql_must_fail(&f, "INCLUDE PERFETTO MODULE bad.rows", "INCLUDE: Included module returning values.");
    sql_must_fail(&f, "INCLUDE PERFETTO MODULE bad.outer", "Module include \"bad.sql\" line 2 col");
    ck_assert_ptr_nonnull(strstr(engine_error_text(f.e), "Module include \"bad.outer\" line 2 col 25"));
    sql_must_fail(&f, "INCLUDE PERFETTO MODULE bad.sql", "failed before: no such table: nowhere");
    sql_must_fail(&f, "SELECT 1;\nINCLUDE PERFETTO MODULE bad.user", "Macro \"broken\" line 2 col 8");
    ck_assert_ptr_nonnull(strstr(engine_error_text(f.e), "Module include \"bad.user\" line 2 col 35"));
    ck_assert_ptr_nonnull(strstr(engine_error_text(f.e), "File \"test\" line 2 col 25"));
    sql_expect(&f, "SELECT 1", "1");
}
END_TEST

/* What a module made before it failed is gone again; modules that it had included whole stay. */
START_TEST(a_module_that_fails_leaves_nothing)
{
    static const char *const texts[] = {
        "half.whole",
        "CREATE PERFETTO TABLE whole AS SELECT 5 AS a; CREATE PERFETTO MACRO whole_m() RETURNS Expr AS 6",
        "half.inner",
        "INCLUDE PERFETTO MODULE half.whole; CREATE PERFETTO TABLE t AS SELECT 1 AS a;"
        "CREATE PERFETTO INDEX i ON t(a); CREATE PERFETTO VIEW v AS SELECT a FROM t;"
        "CREATE PERFETTO FUNCTION f(x LONG) RETURNS LONG AS SELECT $x;"
        "CREATE PERFETTO FUNCTION tf(x LONG) RETURNS TABLE(a LONG) AS SELECT $x AS a;"
        "CREATE PERFETTO FUNCTION del(x STRING) RETURNS STRING DELEGATES TO reverse;"
        "CREATE PERFETTO MACRO m() RETURNS Expr AS 1; CREATE TABLE plain(a); CREATE VIEW pv AS SELECT a FROM plain;"
        "CREATE VIEW j1 AS SELECT 1 AS ts, 2 AS dur; CREATE VIEW j2 AS SELECT 1 AS ts, 2 AS dur, 3 AS z;"
        "CREATE VIRTUAL TABLE sj USING span_join(j1, j2);"
        "CREATE TABLE IF NOT EXISTS users(a);"
        "SELECT missing FROM nowhere",
        "half.outer",
        "CREATE PERFETTO VIEW before_it AS SELECT a FROM users; INCLUDE PERFETTO MODULE half.inner;"};
    static const char *const gone[] = {"SELECT * FROM t",
                                       "SELECT * FROM v",
                                       "SELECT f(1)",
                                       "SELECT * FROM tf(1)",
                                       "SELECT del('x')",
                                       "SELECT m!()",
                                       "SELECT * FROM plain",
                                       "SELECT * FROM pv",
                                       "SELECT * FROM sj",
                                       "DROP PERFETTO INDEX i ON t",
                                       "SELECT * FROM before_it"};
    sql_run(&f, "CREATE TABLE users AS SELECT 9 AS a");
    package("half", false, 0, 3, texts);
    for (int i = 0; i < 2; i++) {
        sql_must_fail(&f, "INCLUDE PERFETTO MODULE half.outer", "no such table: nowhere");
        for (size_t k = 0; k < sizeof gone / sizeof *gone; k++) {
            char *rows = sql_rows(&f, gone[k]);
            ck_assert_msg(rows == NULL, "%s gave %s", gone[k], rows);
        }
        sql_expect(&f, "SELECT whole.a, whole_m!() FROM whole, users", "5,6");
    }
    sql_expect(&f,
               "CREATE PERFETTO FUNCTION f(x LONG) RETURNS LONG AS SELECT $x + 1;"
               "CREATE PERFETTO FUNCTION del(x STRING) RETURNS STRING AS SELECT 'mine'; SELECT f(1), del('x')",
               "2,mine");
}
END_TEST

/* Every module of the library, on an empty trace. */
START_TEST(every_module_loads)
{
    const struct module_registry *r = dialect_modules(f.e);
    size_t n = 0;
    for (size_t i = 0; i < r->packages.n; i++)
        for (size_t k = 0; k < r->packages.p[i].modules.n; k++, n++) {
            struct error err = {0};
            const char *name = r->packages.p[i].modules.p[k].name;
            ck_assert_msg(dialect_include(f.e, name, &err) == 0, "%s: %s", name, engine_error_text(f.e));
        }
    ck_assert_uint_gt(n, 80);
}
END_TEST

/* … and each by itself: what it needs, it includes. */
START_TEST(every_module_stands_alone)
{
    size_t n_packages = dialect_modules(f.e)->packages.n;
    for (size_t i = 0; i < n_packages; i++)
        for (size_t k = 0; k < dialect_modules(f.e)->packages.p[i].modules.n; k++) {
            struct error err = {0};
            const char *name = dialect_modules(f.e)->packages.p[i].modules.p[k].name;
            ck_assert_msg(dialect_include(f.e, name, &err) == 0, "%s: %s", name, engine_error_text(f.e));
            teardown();
            setup();
        }
}
END_TEST

/* A module says at its top what it is about, and every object that others may use says what it is, what it takes
 * and returns, and what its columns hold. */
START_TEST(the_library_is_documented)
{
    static const char *const fields[] = {"args", "cols"};
    sql_expect(&f,
               "SELECT module, name FROM __intrinsic_stdlib_objects WHERE exposed AND coalesce(description, '') = '' "
               "ORDER BY 1, 2",
               "");
    sql_expect(&f,
               "SELECT module, name FROM __intrinsic_stdlib_objects WHERE exposed AND object_type = 'FUNCTION' AND "
               "coalesce(return_description, '') = '' ORDER BY 1, 2",
               "");
    for (int i = 0; i < 2; i++) {
        char *from =
            sqlite3_mprintf("FROM __intrinsic_stdlib_objects AS o, json_each(o.%s) AS c WHERE exposed", fields[i]);
        char *sql = sqlite3_mprintf("SELECT count(*) > 150 %s", from);
        sql_expect(&f, sql, "1");
        sqlite3_free(sql);
        sql =
            sqlite3_mprintf("SELECT module, o.name, c.value ->> 'name' %s AND coalesce(c.value ->> 'description', '') "
                            "NOT LIKE '%% %%' ORDER BY 1, 2", /* a word alone, as "Start.", says nothing */
                            from);
        sql_expect(&f, sql, "");
        sqlite3_free(sql);
        sqlite3_free(from);
    }
}
END_TEST

/* The prelude declares columns and built-in functions for the documentation: they are there, so and in this order. */
START_TEST(the_prelude_is_as_declared)
{
    sql_expect(&f,
               "SELECT count(*) > 80 FROM __intrinsic_stdlib_objects WHERE package = 'prelude' AND exposed AND "
               "object_type IN ('TABLE', 'VIEW')",
               "1");
    sql_expect(&f,
               "SELECT name FROM __intrinsic_stdlib_objects AS o WHERE package = 'prelude' AND exposed AND object_type "
               "IN ('TABLE', 'VIEW') AND (SELECT group_concat(value ->> 'name') FROM json_each(o.cols)) IS NOT "
               "(SELECT group_concat(name) FROM pragma_table_info(o.name))",
               "");
    sql_expect(&f,
               "SELECT name FROM __intrinsic_stdlib_objects AS o WHERE package = 'prelude' AND object_type = "
               "'FUNCTION' AND NOT EXISTS (SELECT 1 FROM pragma_function_list AS l WHERE l.name = o.name AND "
               "l.narg IN (-1, json_array_length(o.args)))",
               "");
    sql_expect(&f, "SELECT cast_int!('7x'), cast_double!('2.5'), cast_string!(8) || ''", "7,2.5,8");
}
END_TEST

/* Every object of the library answers on an empty trace: views are only looked at when they are used. */
START_TEST(every_table_and_view_of_the_library_answers)
{
    struct engine_result r;
    struct error err = {0};
    sql_run(&f, "INCLUDE PERFETTO MODULE *");
    ck_assert_int_eq(
        engine_query(f.e, NULL,
                     slice_str("SELECT name FROM __intrinsic_stdlib_objects WHERE object_type IN ('TABLE', "
                               "'VIEW') AND package != 'prelude'"),
                     &r, NULL, &err),
        0);
    size_t n = 0;
    for (; engine_result_next(&r, &err) == 1; n++) {
        char *sql = sqlite3_mprintf("SELECT * FROM %s LIMIT 1", sqlite3_column_text(r.stmt, 0));
        sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v2(engine_db(f.e), sql, -1, &stmt, NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_step(stmt);
        ck_assert_msg(rc == SQLITE_DONE || rc == SQLITE_ROW, "%s: %s", sql, sqlite3_errmsg(engine_db(f.e)));
        sqlite3_finalize(stmt);
        sqlite3_free(sql);
    }
    engine_result_close(&r);
    ck_assert_uint_gt(n, 100);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

Suite *dialect_suite(void);
Suite *dialect_suite(void)
{
    Suite *s = suite_create("dialect");
    TCase *t = tcase_create("statements");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, good_statements, 0, COUNT(good));
    tcase_add_loop_test(t, bad_statements_point_at_the_place, 0, COUNT(bad));
    tcase_add_test(t, errors_of_recursive_functions);
    tcase_add_loop_test(t, what_cannot_be_replaced_stays, 0, COUNT(kept));
    tcase_add_test(t, indexes_go_with_their_tables);
    tcase_add_test(t, a_failing_statement_leaves_all_tables);
    tcase_add_test(t, packages_of_the_user);
    tcase_add_test(t, modules_that_go_wrong);
    tcase_add_test(t, a_module_that_fails_leaves_nothing);
    suite_add_tcase(s, t);
    t = tcase_create("library");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, every_module_loads);
    tcase_add_test(t, every_module_stands_alone);
    tcase_add_test(t, the_library_is_documented);
    tcase_add_test(t, the_prelude_is_as_declared);
    tcase_add_test(t, every_table_and_view_of_the_library_answers);
    suite_add_tcase(s, t);
    return s;
}
