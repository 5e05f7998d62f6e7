/* Tests flame graphs: views, filters, grouping, aggregates, layout, and what they refuse. */
#include "sql_fixture.h"

static struct sql_fixture f;

/* main -> work -> read, main -> work -> read (another call), main -> idle; other -> read */
#define FRAMES                                                                                                         \
    "CREATE VIRTUAL TABLE f USING __intrinsic_flamegraph((SELECT column1 AS id, column2 AS parent_id, column3 AS "     \
    "name, "                                                                                                           \
    "column4 AS ns, column5 AS bytes, column6 AS lib, column7 AS tag FROM (VALUES "                                    \
    "(4, 2, 'read', 4, 0, 'libc', 'a'), (1, NULL, 'main', 1, 1, 'app', 'm'), (2, 1, 'work', 2, 0, 'app', 'w'), "       \
    "(3, 1, 'work', 3, 0, 'app', 'v'), (5, 3, 'read', 5, 2, 'kernel', 'b'), (6, 1, 'idle', 20, 0, NULL, NULL), "       \
    "(7, NULL, 'other', 0, 0, 'app', 'o'), (8, 7, 'read', 7, 0, 'libc', 'c')))); "

static void setup(void)
{
    sql_open(&f);
    sql_run(&f, FRAMES);
}

static void teardown(void)
{
    sql_close(&f);
}

#define CALL(config) "f(__intrinsic_flamegraph_config('value', 'ns', " config "))"
#define COLUMNS      "SELECT name, depth, self_ns, cumulative_ns, x_start, x_end FROM "

static const struct {
    const char *sql, *rows;
} cases[] = {
    {COLUMNS CALL("'view', 'TOP_DOWN'"),
     "main,1,1,35,0,35;other,1,0,7,35,42;idle,2,20,20,0,20;work,2,5,14,20,34;read,2,7,7,"
     "35,42;read,3,9,9,20,29"},
    {"SELECT _tree_id, _tree_parent_id, parent_cumulative_ns FROM (SELECT *, parent_cumulative_value AS "
     "parent_cumulative_ns FROM " CALL("'view', 'TOP_DOWN'") ") WHERE depth = 2",
     "2,0,35;3,0,35;4,1,7"},
    {COLUMNS CALL("'view', 'BOTTOM_UP'"),
     "idle,-1,20,20,0,20;read,-1,16,16,20,36;work,-1,5,5,36,41;main,-1,1,1,41,42;main,-2,0,20,0,20;work,-2,0,9,20,29;"
     "other,-2,0,7,29,36;main,-2,0,5,36,41;main,-3,0,9,20,29"},
    {COLUMNS CALL("'view', 'PIVOT', 'view_pattern', '^work$', ''"),
     "work,1,5,14,0,14;work,-1,14,14,0,14;read,2,9,9,0,9;main,-2,0,14,0,14"},
    {COLUMNS CALL("'view', 'FROM_FRAME', 'view_pattern', 'WORK', 'i'"), "work,1,5,14,0,14;read,2,9,9,0,9"},
    {COLUMNS CALL("'view', 'TOP_DOWN', 'filter', 'SHOW_STACK', 'work', ''"),
     "main,1,0,14,0,14;work,2,5,14,0,14;read,3,9,9,0,9"},
    {COLUMNS CALL("'view', 'TOP_DOWN', 'filter', 'HIDE_STACK', '^(work|idle)$', ''"),
     "other,1,0,7,0,7;main,1,1,1,7,8;read,2,7,7,0,7"},
    {COLUMNS CALL("'view', 'TOP_DOWN', 'filter', 'HIDE_FRAME', '^work$', '', 'filter', 'HIDE_STACK', 'idle', ''"),
     "main,1,6,15,0,15;other,1,0,7,15,22;read,2,9,9,0,9;read,2,7,7,15,22"},
    {COLUMNS CALL("'view', 'TOP_DOWN', 'filter', 'HIDE_FRAME', 'main|other', ''"),
     "idle,1,20,20,0,20;work,1,5,14,20,34;read,1,7,7,34,41;read,2,9,9,20,29"},
    {"SELECT name, lib, cumulative_ns FROM " CALL("'view', 'TOP_DOWN', 'grouping', 'lib'"),
     "main,app,35;other,app,7;idle,-,20;work,app,14;read,libc,7;read,kernel,5;read,libc,4"},
    {"SELECT name, cumulative_ns FROM " CALL(
         "'view', 'TOP_DOWN', 'grouping', 'lib', 'filter', 'SHOW_STACK', 'kernel', ''"),
     "main,5;work,5;read,5"},
    {"SELECT name, tag, bytes FROM " CALL("'view', 'TOP_DOWN', 'aggregate', 'CONCAT_WITH_COMMA', 'tag', 'tag', "
                                          "'aggregate', 'SUM', 'bytes', 'bytes'"),
     "main,m,1;other,o,0;idle,-,0;work,w,v,0;read,c,0;read,a,b,2"},
    {"SELECT name, tag FROM " CALL(
         "'view', 'TOP_DOWN', 'aggregate', 'ONE_OR_SUMMARY', 'tag', 'tag'") " WHERE depth > 1",
     "idle,-;work,w and 2 others;read,c;read,a and 2 others"},
    {"SELECT name, tag FROM " CALL("'view', 'TOP_DOWN', 'filter', 'HIDE_FRAME', 'work', '', 'aggregate', "
                                   "'CONCAT_WITH_COMMA', 'tag', 'tag'") " WHERE name = 'main'",
     "main,m,w,v"},
    {"SELECT name, self_ns, self_bytes, cumulative_bytes FROM " CALL(
         "'view', 'TOP_DOWN', 'value', 'bytes'") " WHERE "
                                                 "depth = 1",
     "main,1,1,3;other,0,0,0"},
    {"SELECT _tree_parent_id, depth, name, cumulative_ns FROM " CALL("'view', 'TOP_DOWN'") " WHERE "
                                                                                           "__intrinsic_flamegraph_find"
                                                                                           "(_tree_id, 'SUPER_ROOT')",
     "-,0,-,42.0"},
    {"CREATE VIRTUAL TABLE e USING __intrinsic_flamegraph((SELECT 1 AS id, NULL AS parent_id, 'x' AS name, 1 AS v "
     "WHERE 0)); "
     "SELECT * FROM e(__intrinsic_flamegraph_config('value', 'v', 'view', 'TOP_DOWN'))",
     ""},
    /* frames that hang on a cycle belong to no root */
    {"CREATE VIRTUAL TABLE e USING __intrinsic_flamegraph((SELECT column1 AS id, column2 AS parent_id, column3 AS "
     "name, "
     "column4 AS v FROM (VALUES (1, 2, 'a', 1), (2, 1, 'b', 1), (3, 9, 'c', 1.5)))); SELECT name, self_v FROM "
     "e(__intrinsic_flamegraph_config('value', 'v', 'view', 'TOP_DOWN'))",
     "c,1.5"},
};

START_TEST(graphs_are_right)
{
    sql_expect(&f, cases[_i].sql, cases[_i].rows);
}
END_TEST

static const struct {
    const char *sql, *part;
} bad[] = {
    {"SELECT * FROM f", "__intrinsic_flamegraph_config"},
    {"SELECT * FROM f(1)", "should be made by"},
    {"SELECT * FROM f(__intrinsic_flamegraph_config('view', 'TOP_DOWN'))", "at least one 'value'"},
    {"SELECT * FROM f(__intrinsic_flamegraph_config('value', 'nothing'))", "no column 'nothing' for 'value'"},
    {"SELECT * FROM " CALL("'view', 'SIDEWAYS'"), "unknown view 'SIDEWAYS'"},
    {"SELECT * FROM " CALL("'view', 'PIVOT'"), "needs a 'view_pattern'"},
    {"SELECT * FROM " CALL("'filter', 'SHOW_STACK', '(', ''"), "not valid"},
    {"SELECT * FROM " CALL("'filter', 'SHOW_STACK'"), "takes 3 arguments"},
    {"SELECT * FROM " CALL("'colour', 'red'"), "unknown tag 'colour'"},
    {"SELECT * FROM " CALL("'grouping', 5"), "must be a string"},
    {"SELECT __intrinsic_flamegraph_find(1, 'SUPER_ROOT')", "WHERE clause"},
    {"SELECT 1 FROM f(__intrinsic_flamegraph_config('value', 'value')) WHERE __intrinsic_flamegraph_find(_tree_id, "
     "NULL)",
     "only 'SUPER_ROOT' can be found"},
    {"CREATE VIRTUAL TABLE e USING __intrinsic_flamegraph((SELECT 1 AS id, 'x' AS name))", "no column parent_id"},
    {"CREATE VIRTUAL TABLE e USING __intrinsic_flamegraph((SELECT 1 AS id, NULL AS parent_id, 'x' AS name, -1 AS v)); "
     "SELECT * FROM e(__intrinsic_flamegraph_config('value', 'v'))",
     "value columns must be non-negative"},
    {"CREATE VIRTUAL TABLE e USING __intrinsic_flamegraph((WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
     "FROM "
     "n WHERE i < 9000) SELECT 0 AS id, NULL AS parent_id, 'r' AS name, 0 AS v UNION ALL SELECT i, 0, iif(i % 2, 'h', "
     "i), "
     "1 FROM n)); SELECT * FROM e(__intrinsic_flamegraph_config('value', 'v', 'view', 'BOTTOM_UP', 'filter', "
     "'HIDE_FRAME', '^h$', ''))",
     "more than 16777216 nodes"},
};

START_TEST(misuse_is_told)
{
    sql_must_fail(&f, bad[_i].sql, bad[_i].part);
    sql_expect(&f, "SELECT 1", "1");
}
END_TEST

/* Random trees: what the roots hold is what all frames hold, in every view, and children lie within their parents. */
START_TEST(sums_hold_on_random_trees)
{
    static const char *const views[] = {"TOP_DOWN", "BOTTOM_UP"};
    char sql[1024];
    snprintf(
        sql, sizeof sql,
        "CREATE PERFETTO TABLE t AS WITH RECURSIVE r(id, seed) AS (SELECT 0, %d UNION ALL SELECT id + 1, (seed * "
        "1103515245 + 12345) & 0x7fffffff FROM r WHERE id < 400) SELECT id, iif(id = 0 OR seed %% 17 = 0, NULL, seed / "
        "7 %% id) AS parent_id, 'n' || (seed / 3 %% 5) AS name, seed / 11 %% 9 AS v FROM r; CREATE VIRTUAL TABLE g "
        "USING __intrinsic_flamegraph((SELECT * FROM t))",
        _i * 7919 + 1);
    sql_run(&f, sql);
    char *total = sql_rows(&f, "SELECT sum(v) FROM t");
    for (int i = 0; i < 2; i++) {
        snprintf(sql, sizeof sql,
                 "SELECT sum(cumulative_v) FROM g(__intrinsic_flamegraph_config('value', 'v', 'view', '%s')) WHERE "
                 "abs(depth) = 1",
                 views[i]);
        sql_expect(&f, sql, total);
        snprintf(sql, sizeof sql,
                 "WITH n AS MATERIALIZED (SELECT * FROM g(__intrinsic_flamegraph_config('value', 'v', 'view', '%s'))) "
                 "SELECT count(*) FROM n c JOIN n p ON p._tree_id = c._tree_parent_id WHERE c.x_start < p.x_start OR "
                 "c.x_end "
                 "> p.x_end OR abs(c.depth) != abs(p.depth) + 1 OR c.parent_cumulative_value != p.cumulative_v",
                 views[i]);
        sql_expect(&f, sql, "0");
    }
    sqlite3_free(total);
    /* merged frames: as many as there are different paths of names with something below them */
    char *paths =
        sql_rows(&f, "WITH RECURSIVE p(id, path) AS (SELECT id, name FROM t WHERE parent_id IS NULL UNION ALL SELECT "
                     "t.id, path || '/' || t.name FROM p JOIN t ON t.parent_id = p.id) SELECT count(DISTINCT path) "
                     "FROM p a WHERE EXISTS (SELECT 1 FROM p b JOIN t ON t.id = b.id WHERE t.v > 0 AND (b.path = "
                     "a.path OR substr(b.path, 1, length(a.path) + 1) = a.path || '/'))");
    sql_expect(&f, "SELECT count(*) FROM g(__intrinsic_flamegraph_config('value', 'v'))", paths);
    sqlite3_free(paths);
}
END_TEST

Suite *flamegraph_suite(void);
Suite *flamegraph_suite(void)
{
    Suite *s = suite_create("flamegraph");
    TCase *t = tcase_create("graphs");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, graphs_are_right, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(t, misuse_is_told, 0, sizeof bad / sizeof *bad);
    tcase_add_loop_test(t, sums_hold_on_random_trees, 0, 5);
    suite_add_tcase(s, t);
    return s;
}
