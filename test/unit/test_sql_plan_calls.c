/* Functions, patterns, joins that name their columns themselves, and windows that order have plans, and the answer of
 * SQLite. */
#include "plan_grammar.h"

#include <check.h>

static void all_planned(const char *const *statements, size_t n)
{
    struct mirror m;
    mirror_open(&m, 20261128, PLAN_ROWS);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(mirror_compare_planner(&m, statements[i]), "no plan: %s", statements[i]);
    mirror_close(&m);
}

static void compare(const char *const *statements, size_t n)
{
    struct mirror m;
    mirror_open(&m, 77, PLAN_ROWS);
    for (size_t i = 0; i < n; i++)
        mirror_compare_planner(&m, statements[i]);
    mirror_close(&m);
}

/* The literal without its sign is a floating-point number. */
START_TEST(smallest_integer)
{
    static const char *const statements[] = {
        "SELECT id, -9223372036854775808 FROM v_slice ORDER BY dur",
        "SELECT id, - 9223372036854775808, -9223372036854775809 FROM v_slice ORDER BY dur",
        "SELECT max(-9223372036854775808), sum(dur) FROM v_slice",
        "SELECT max(-9223372036854775808) OVER (ORDER BY id) FROM v_slice",
        "SELECT count(*) FROM v_slice WHERE dur > -9223372036854775808",
    };
    compare(statements, sizeof statements / sizeof *statements);
}
END_TEST

START_TEST(functions_of_texts)
{
    static const char *const statements[] = {
        "SELECT str_split(name, 'a', 0) AS a, str_split(name || '', 'b', 1) AS b, count(*) FROM v_slice GROUP BY 1, 2",
        "SELECT regexp_extract(name, '[a-k]+') AS w, count(*), sum(depth) FROM v_slice GROUP BY w",
        "SELECT regexp_replace_simple(t.name, '[aeiou]', '-') AS w, max(s.dur) FROM v_slice s JOIN v_thread t ON t.id "
        "= s.track_id GROUP BY w",
        "SELECT reverse(name), unicode(name), octet_length(name), count(*) FROM v_slice GROUP BY "
        "name",
        "SELECT concat(name, ':', depth), concat_ws('-', name, NULL, depth), count(*) FROM v_slice GROUP BY name, "
        "depth",
        "SELECT sign(dur), sign(c.value), sign(s.dur - 5), count(*) FROM v_slice s JOIN v_counter c ON c.id = s.id "
        "GROUP BY 1, 2, 3",
        "SELECT __intrinsic_strip_hex(name, 1), demangle(name), count(*) FROM v_slice GROUP BY name",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
}
END_TEST

START_TEST(patterns)
{
    static const char *const statements[] = {
        "SELECT count(*), sum(dur) FROM v_slice WHERE name REGEXP '^[a-k].*'",
        "SELECT count(*), sum(dur) FROM v_slice WHERE name NOT REGEXP 'a|e' OR regexp('B', name, 'i')",
        "SELECT name REGEXP category, count(*) FROM v_slice GROUP BY 1",
        "SELECT count(*) FROM v_slice WHERE name LIKE '%!_%' ESCAPE '!' OR name NOT LIKE 'a!%%' ESCAPE '!'",
    };
    static const char *const errors[] = {
        "SELECT count(*) FROM v_slice WHERE regexp('(', name)",
        "SELECT count(*), str_split(name, '', 1) FROM v_slice WHERE depth > 2 GROUP BY 2",
        "SELECT count(*) FROM v_slice WHERE name LIKE 'a' ESCAPE 'ab'",
        /* which of the conditions SQLite asks first shows in the error */
        "SELECT a, row_number() OVER (ORDER BY c) FROM (SELECT ts AS a, name AS b, depth AS c FROM v_slice ORDER BY "
        "name, id) q WHERE b GLOB '*qqq*' AND null_if_empty(b) > 'a'",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
    compare(errors, sizeof errors / sizeof *errors);
}
END_TEST

START_TEST(natural_joins)
{
    static const char *const statements[] = {
        "SELECT count(*), sum(x.dur), max(t.tid) FROM (SELECT id, dur, depth FROM v_slice) x NATURAL JOIN v_thread t",
        "SELECT * FROM v_thread NATURAL JOIN (SELECT id, dur, name AS w FROM v_slice) ORDER BY id",
        "SELECT t.id, x.dur, id FROM v_thread t NATURAL LEFT JOIN (SELECT id, tid, depth AS dur FROM (SELECT id, depth "
        "AS tid, depth FROM v_slice)) x ORDER BY t.id",
        "SELECT count(*) FROM (SELECT depth AS a FROM v_slice WHERE id < 90) NATURAL JOIN (SELECT id AS b FROM "
        "v_slice WHERE id < 90)",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
}
END_TEST

/* Which of a table's two places in FROM is SQLite's outer loop is told by the lookup of the other. */
START_TEST(joins_of_a_table_with_itself)
{
    static const char *const statements[] = {
        "SELECT c.name, avg(c.dur * 100.0 / p.dur), count(*) FROM v_slice c JOIN v_slice p ON c.parent_id = p.id WHERE "
        "p.dur > 0 GROUP BY c.name",
        "SELECT c.id, p.id, c.name FROM v_slice c JOIN v_slice p ON p.id = c.parent_id WHERE p.dur > 5",
        "SELECT sum(c.dur / 3.0), group_concat(p.id) FROM v_slice p JOIN v_slice c ON p.id = c.parent_id AND c.dur != "
        "0 AND p.depth > 0",
    };
    static const char *const open[] = {
        "SELECT a.id, b.id FROM v_slice a JOIN v_slice b ON a.depth = b.depth WHERE a.depth = 3 AND b.dur > 5",
        "SELECT a.id, b.id FROM v_slice a JOIN v_slice b ON a.depth = b.depth WHERE b.depth = 3 AND a.track_id = 2",
        "SELECT a.id, b.id, c.id FROM v_slice a JOIN v_slice b ON a.id = b.parent_id JOIN v_slice c ON c.id = "
        "a.parent_id WHERE b.depth = c.track_id",
        "SELECT a.id, b.id FROM v_slice a JOIN v_slice b ON a.track_id = b.depth AND a.depth = b.track_id WHERE a.id < "
        "700",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
    compare(open, sizeof open / sizeof *open);
}
END_TEST

/* Few rows ask what lies between times: no list of all rows is made. Many rows ask, and one is. */
START_TEST(lookups_of_few_rows)
{
#define BETWEEN "FROM spans z WHERE z.d > 3 AND z.ts BETWEEN t.id * 30 AND t.id * 30 + 200"
    static const char *const few[] = {
        "SELECT id, (SELECT count(*) " BETWEEN ") FROM v_slice t WHERE t.id < 8",
        "SELECT id, (SELECT sum(z.d) " BETWEEN "), (SELECT avg(z.d) " BETWEEN
        " AND z.p != t.depth), (SELECT min(z.d) " BETWEEN "), (SELECT max(z.d) " BETWEEN
        " AND z.p = t.depth % 3), (SELECT total(z.p) " BETWEEN "), (SELECT count(z.name) " BETWEEN
        ") FROM v_slice t WHERE t.id < 5",
        "SELECT count(*) FROM v_slice t WHERE t.id < 20 AND EXISTS (SELECT 1 " BETWEEN " AND z.d > t.dur)",
        "SELECT id FROM v_slice t WHERE t.id < 20 AND NOT EXISTS (SELECT 1 " BETWEEN " AND z.p + z.d > t.depth)",
    };
    static const char *const any[] = {
        "SELECT id, (SELECT count(*) FROM spans z WHERE z.d > 3 AND z.ts > s.ts AND z.ts < s.ts + 5000) FROM v_slice s",
        "SELECT id, (SELECT sum(z.d) FROM spans z WHERE z.p = s.depth AND z.ts >= s.ts - 400 AND z.ts < s.ts + 500), "
        "(SELECT min(z.d + 0.5) FROM spans z WHERE z.d > 9 AND z.ts >= s.ts - 400 AND z.ts < s.ts + 500) FROM v_slice "
        "s",
        "SELECT id, (SELECT sum(z.d * 4611686018427387904) FROM spans z WHERE z.ts >= s.ts AND z.ts < s.ts + 90) FROM "
        "v_slice s WHERE id < 40",
        "SELECT id, (SELECT max(z.ts) FROM spans z WHERE z.d > s.dur AND z.ts >= s.ts AND z.ts < s.ts + NULL) FROM "
        "v_slice s WHERE id < 40",
    };
    struct mirror m;
    struct error err = {0};
    mirror_open(&m, 20261128, PLAN_ROWS);
    ck_assert_msg(engine_run(m.e, "test", plan_objects, &err) == 0, "%s", err.text);
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        uint64_t n = mirror_visited_by(&m, few[i]);
        ck_assert_msg(n < PLAN_ROWS / 2, "%llu rows: %s", (unsigned long long)n, few[i]);
    }
    for (size_t i = 0; i < sizeof any / sizeof *any; i++)
        mirror_compare_planner(&m, any[i]);
    mirror_close(&m);
}
END_TEST

/* Those who ask come in any order; where they come in that of the list, each search begins where the last has ended. */
START_TEST(searches_near_the_last)
{
    static const char *const statements[] = {
        "SELECT count(*), sum(s.dur) FROM v_slice s WHERE NOT EXISTS (SELECT 1 FROM v_slice n WHERE n.track_id = "
        "s.track_id AND n.ts > s.ts AND n.depth = s.depth)",
        "SELECT id, (SELECT min(n.ts) FROM v_slice n WHERE n.track_id = s.track_id AND n.ts > s.ts) - s.ts FROM "
        "v_slice s",
        "SELECT id, (SELECT max(n.ts) FROM v_slice n WHERE n.track_id = s.depth AND n.ts < 5000 - s.ts) FROM v_slice s",
        "SELECT id, (SELECT count(*) FROM v_slice n WHERE n.track_id = s.track_id AND n.ts >= s.dur AND n.ts <= s.ts - "
        "s.dur) FROM v_slice s",
        "SELECT count(*), sum(a.id), sum(b.id) FROM v_slice a JOIN v_slice b ON b.track_id = a.track_id AND b.ts < "
        "a.ts + "
        "a.dur AND b.ts + b.dur > a.ts",
        "SELECT count(*), sum(a.id), sum(b.id) FROM (SELECT id, ts, track_id FROM v_slice ORDER BY dur, id LIMIT 900) "
        "a "
        "JOIN v_slice b ON b.track_id = a.track_id AND b.ts >= a.ts - 9 AND b.ts < a.ts + 40",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
}
END_TEST

/* A small table is worth a plan where a function that SQL has made looks through a large one. */
START_TEST(functions_over_large_tables)
{
    struct mirror m;
    struct error err = {0};
    mirror_open(&m, 20261129, PLAN_ROWS);
    ck_assert_msg(engine_run(m.e, "test", plan_objects, &err) == 0, "%s", err.text);
    ck_assert(mirror_compare_planner(&m, "SELECT id, most(tid) AS d FROM v_thread ORDER BY d DESC, id LIMIT 9"));
    ck_assert(mirror_compare_planner(&m, "SELECT id FROM v_thread WHERE coalesce(most(id), 0) > 50"));
    ck_assert(!mirror_compare_planner(&m, "SELECT id, twice(tid) FROM v_thread"));
    mirror_close(&m);
}
END_TEST

START_TEST(lists_of_numbers)
{
    static const char *const statements[] = {
        "SELECT name, group_concat(dur), group_concat(ts - 700, '') FROM v_slice GROUP BY name",
        "SELECT track_id, group_concat(dur / 4.0, ' ') FROM v_slice GROUP BY track_id",
        "SELECT depth, group_concat(printf('%s/%s', name, category)) FROM v_slice GROUP BY depth",
        "SELECT printf('%s/%s', s.name, t.name) AS p, count(*) FROM v_slice s JOIN v_thread t ON t.id = s.track_id "
        "GROUP "
        "BY p",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
}
END_TEST

/* Of equal zeros SQLite's min() gives the last, and max() the first. Integers stay integers among reals. */
START_TEST(least_and_greatest)
{
    static const char *const statements[] = {
        "SELECT s.id, min(c.value, 0.0), max(0.0, c.value), min(0.0, c.value), max(c.value, 0.0), min(c.value, -0.0, "
        "c.value + 1) FROM v_slice s JOIN v_counter c ON c.id = s.parent_id",
        "SELECT s.id, max(c.value, 0), min(7, c.value), max(0, c.value), min(c.value, 0, 3.5) FROM v_slice s JOIN "
        "v_counter c ON c.id = s.parent_id",
        "SELECT s.name, sum(max(c.value, 0)), avg(min(c.value, 3)), count(max(c.value, 9)) FROM v_slice s JOIN "
        "v_counter "
        "c ON c.id = s.parent_id WHERE c.value < 1e9 AND max(c.value, 2) > 2.5 GROUP BY s.name",
        "SELECT id, max(dur, 7), min(depth, NULL), max(ts, dur, 300) FROM v_slice WHERE max(dur, 7) > 9",
    };
    static const char *const others[] = {
        "SELECT count(*), max(name, 7), min(dur, 'a') FROM v_slice GROUP BY name, dur",
        "SELECT max(c.value, 0) AS m, count(*) FROM v_slice s JOIN v_counter c ON c.id = s.parent_id GROUP BY m",
        "SELECT max(c.value, s.dur) FROM v_slice s JOIN v_counter c ON c.id = s.parent_id",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
    compare(others, sizeof others / sizeof *others);
}
END_TEST

START_TEST(groups_by_json)
{
    static const char *const statements[] = {
        "SELECT json_object('n', name, 'd', depth / 9) AS k, count(*) FROM v_slice GROUP BY k ORDER BY 2 DESC, 1",
        "SELECT count(*), max(dur) FROM v_slice GROUP BY json_array(depth, track_id / 9)",
        "SELECT id, json_array(name) AS k FROM v_slice ORDER BY k, id LIMIT 30",
    };
    static const char *const others[] = {
        "SELECT json_array(k) FROM (SELECT json_object('n', name) AS k, count(*) FROM v_slice GROUP BY k)",
        "SELECT json_array(json_object('n', name)), count(*) FROM v_slice GROUP BY json_object('n', name)",
        "SELECT json_group_array(json_object('n', name)) FROM v_slice GROUP BY json_object('n', name)",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
    compare(others, sizeof others / sizeof *others);
}
END_TEST

START_TEST(values_by_their_type)
{
    static const char *const statements[] = {
        "SELECT typeof(dur), typeof(name), typeof(depth / 2.0), typeof(lower(name)), count(*) FROM "
        "v_slice GROUP BY 1, 2, 3, 4",
        "SELECT typeof(max(dur)), typeof(sum(id)), typeof(avg(id)) FROM v_slice GROUP BY depth",
        "SELECT CAST(coalesce(dur, 'none') AS INT) AS n, CAST(coalesce(name, 7.5) AS REAL) AS r, count(*) FROM v_slice "
        "GROUP BY 1, 2",
        "SELECT CAST(iif(depth > 3, name, dur) AS TEXT) AS w, count(*) FROM v_slice GROUP BY w",
        /* zeros of both signs in two keys */
        "SELECT dur / 4.0 AS a, depth * -0.0 AS b, count(*), min(id) FROM v_slice GROUP BY a, b",
        "SELECT round(dur / 1e3, 1) AS a, ceil(ts / 1e2) AS b, count(*) FROM v_slice GROUP BY 1, 2 ORDER BY 3 DESC, 1, "
        "2 LIMIT 20",
        "SELECT depth, json_group_array(DISTINCT name), json_group_array(DISTINCT track_id) FROM v_slice WHERE depth < "
        "0 GROUP BY depth",
        "SELECT depth, json_group_array(DISTINCT track_id) FROM v_slice GROUP BY depth",
        "SELECT count(*), sum(dur) FROM v_slice WHERE NOT (depth = 1 OR dur > 50 OR name IS NULL OR id IN (1, 2, "
        "NULL)) AND ts > 5",
        "SELECT count(*), sum(dur) FROM v_slice WHERE NOT (depth IS 3 OR name LIKE 'a%' OR (dur > 5 AND dur < 9) OR "
        "dur)",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
}
END_TEST

/* Windows of several levels, one of which orders the answer: those of the first level are computed beneath the others
 * once more. */
START_TEST(windows_that_order_the_answer)
{
    static const char *const statements[] = {
        "SELECT id, lag(id) OVER (PARTITION BY track_id ORDER BY ts) AS p, row_number() OVER (PARTITION BY depth ORDER "
        "BY dur DESC) AS n FROM v_slice ORDER BY n, depth, p",
        "SELECT id, row_number() OVER (PARTITION BY depth ORDER BY name) AS n, lag(id) OVER (PARTITION BY track_id "
        "ORDER "
        "BY category) AS p FROM v_slice ORDER BY n, p",
        "SELECT id, row_number() OVER (ORDER BY name) - rank() OVER (ORDER BY category, depth) AS n, first_value(id) "
        "OVER (PARTITION BY depth ORDER BY category) AS f FROM v_slice ORDER BY 2 DESC, f LIMIT 200",
        "SELECT name, sum(dur) AS d, 100.0 * count(*) / sum(count(*)) OVER () AS r, dense_rank() OVER (ORDER BY "
        "count(*) DESC) AS k FROM v_slice GROUP BY name ORDER BY k, 1",
        "SELECT name, ntile(3) OVER (ORDER BY count(*)) AS k, row_number() OVER (ORDER BY max(depth)) AS n FROM "
        "v_slice "
        "GROUP BY name, category ORDER BY k DESC, n",
        "SELECT DISTINCT depth, first_value(track_id) OVER w AS a, last_value(track_id) OVER w AS b FROM v_slice "
        "WINDOW "
        "w AS (PARTITION BY depth ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) ORDER BY depth "
        "LIMIT 10",
    };
    static const char *const others[] = {
        "SELECT id, row_number() OVER (ORDER BY name) AS n, rank() OVER (ORDER BY depth) AS k FROM v_slice ORDER BY n "
        "+ "
        "k, n",
        "SELECT id, row_number() OVER (ORDER BY name) AS n FROM v_slice ORDER BY lag(id) OVER (PARTITION BY depth "
        "ORDER "
        "BY dur), n",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
    compare(others, sizeof others / sizeof *others);
}
END_TEST

/* Queries that look at nothing outside have plans of their own: the first of equal rows, no row, a number that is a
 * text or too large, and the bounds of a few. */
START_TEST(queries_computed_once)
{
    static const char *const statements[] = {
        "SELECT count(*), sum(dur) FROM v_slice WHERE track_id = (SELECT track_id FROM v_slice GROUP BY track_id ORDER "
        "BY "
        "count(*) DESC LIMIT 1)",
        "SELECT id FROM v_slice WHERE dur > (SELECT dur FROM v_slice WHERE depth > 1000000 ORDER BY dur LIMIT 1)",
        "SELECT count(*) FROM v_slice WHERE dur > (SELECT percentile(depth, 90) FROM v_slice)",
        "SELECT count(*) FROM v_slice WHERE depth < (SELECT median(depth) FROM v_slice WHERE depth > 1000000)",
        "SELECT id, depth - (SELECT max(depth) FROM v_slice) FROM v_slice WHERE name = (SELECT name FROM v_slice WHERE "
        "name "
        "IS NOT NULL ORDER BY dur, id LIMIT 1)",
        "SELECT count(*) FROM v_slice WHERE dur > (SELECT sum(dur) FROM v_slice)",
        "SELECT count(*) FROM v_slice WHERE depth = (SELECT max(name) FROM v_slice)",
        "SELECT count(*), (SELECT depth FROM v_slice ORDER BY ts DESC LIMIT 1) FROM v_slice GROUP BY depth > (SELECT "
        "avg(depth) FROM v_slice)",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
}
END_TEST

Suite *sql_plan_calls_suite(void);
Suite *sql_plan_calls_suite(void)
{
    Suite *s = suite_create("sql_plan_calls");
    TCase *t = tcase_create("calls");
    tcase_set_timeout(t, 0);
    tcase_add_test(t, functions_of_texts);
    tcase_add_test(t, patterns);
    tcase_add_test(t, natural_joins);
    tcase_add_test(t, joins_of_a_table_with_itself);
    tcase_add_test(t, lookups_of_few_rows);
    tcase_add_test(t, searches_near_the_last);
    tcase_add_test(t, functions_over_large_tables);
    tcase_add_test(t, lists_of_numbers);
    tcase_add_test(t, least_and_greatest);
    tcase_add_test(t, groups_by_json);
    tcase_add_test(t, values_by_their_type);
    tcase_add_test(t, queries_computed_once);
    tcase_add_test(t, smallest_integer);
    tcase_add_test(t, windows_that_order_the_answer);
    suite_add_tcase(s, t);
    return s;
}
