/* Tests operators and functions statement by statement: their rows, and what happens when memory runs out. */
#include "sql_fixture.h"

#include "memory_gate.h"
#include "sql/engine/heap.h"

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
} cases[] = {
    {"SELECT id, parent_id, group_key FROM tree_structural_partition_by_group!((SELECT 1 AS id, NULL AS parent_id, 1 "
     "AS "
     "group_key UNION ALL SELECT 2, 1, 2 UNION ALL SELECT 3, 2, 1 UNION ALL SELECT 4, 3, 2 UNION ALL SELECT 5, 1, 2)) "
     "ORDER "
     "BY 1",
     "1,-,1;2,-,2;3,1,1;4,2,2;5,-,2"},
    {"SELECT node_id, next_node_id FROM graph_next_sibling!((SELECT 1 AS node_id, 0 AS node_parent_id, 5 AS sort_key "
     "UNION ALL "
     "SELECT 2, 0, 4 UNION ALL SELECT 3, 1, 1)) ORDER BY 1",
     "1,-;2,1;3,-"},
    {"SELECT root_node_id, node_id, parent_node_id FROM graph_reachable_weight_bounded_dfs!((SELECT 1 AS "
     "source_node_id, 2 AS "
     "dest_node_id, 3 AS edge_weight UNION ALL SELECT 2, 3, 4 UNION ALL SELECT 3, 4, 5), (SELECT 1 AS root_node_id, 7 "
     "AS "
     "root_target_weight), 1)",
     "1,1,-;1,2,1;1,3,2;1,4,3"},
    {"SELECT root_node_id, group_concat(node_id) FROM graph_reachable_weight_bounded_dfs!((SELECT 1 AS source_node_id, "
     "2 "
     "AS dest_node_id, 4 AS edge_weight UNION ALL SELECT 1, 3, 0 UNION ALL SELECT 3, 4, 1 UNION ALL SELECT 4, 5, 0), "
     "(SELECT 1 AS root_node_id, 4 AS root_target_weight UNION ALL SELECT 3, 1 UNION ALL SELECT 4, -1), 1) GROUP BY 1",
     "1,1,2,3,4;3,3,4,5;4,4"},
    {"SELECT root_node_id, node_id FROM graph_reachable_weight_bounded_dfs!((SELECT 1 AS source_node_id, 2 AS "
     "dest_node_id, 3 "
     "AS edge_weight UNION ALL SELECT 2, 3, 5), (SELECT 1 AS root_node_id, 7 AS root_target_weight), 0)",
     "1,1;1,2"},
    {"SELECT id, v FROM _graph_scan!((SELECT 1 AS source_node_id, 2 AS dest_node_id UNION ALL SELECT 2, 3), (SELECT 1 "
     "AS id, 10 "
     "AS v), (v), (SELECT id, v + 1 AS v FROM $table)) ORDER BY id",
     "1,10;2,11;3,12"},
    {"SELECT id, v FROM _graph_scan!((SELECT 1 AS source_node_id, 2 AS dest_node_id WHERE 0), (SELECT 1 AS id, 10 AS "
     "v), (v), (SELECT id, v + 1 AS v FROM $table))",
     "1,10"},
    {"SELECT id, v FROM _graph_scan!((SELECT 1 AS source_node_id, 2 AS dest_node_id UNION ALL SELECT 1, 3 UNION ALL "
     "SELECT 2, 3), (SELECT 1 AS id, 10 AS v), (v), (SELECT id, v + 1 AS v FROM $table))",
     "1,10;2,11;3,11;3,12"},
    {"SELECT id, v FROM _graph_scan!((SELECT 1 AS source_node_id, 2 AS dest_node_id UNION ALL SELECT 2, 1), (SELECT 1 "
     "AS id, 10 AS v), (v), (SELECT id, v + 1 AS v FROM $table))",
     "1,10"},
    {"SELECT id, v FROM _graph_aggregating_scan!((SELECT 1 AS source_node_id, 2 AS dest_node_id WHERE 0), (SELECT 1 AS "
     "id, 10 AS v UNION ALL SELECT 7, 1), (v), (SELECT id, sum(v) AS v FROM $table GROUP BY id)) ORDER BY id",
     "1,10;7,1"},
    {"SELECT id, v FROM _graph_aggregating_scan!((SELECT 1 AS source_node_id, 3 AS dest_node_id UNION ALL SELECT 2, "
     "3), (SELECT "
     "1 AS id, 10 AS v UNION ALL SELECT 2, 5 UNION ALL SELECT 3, 1), (v), (SELECT id, sum(v) AS v FROM $table GROUP BY "
     "id)) "
     "ORDER BY id",
     "1,10;2,5;3,16"},
    {"SELECT id, v FROM _graph_aggregating_scan!((SELECT 1 AS source_node_id, 3 AS dest_node_id UNION ALL SELECT 2, 3 "
     "UNION ALL SELECT 3, 4), (SELECT 1 AS id, 10 AS v UNION ALL SELECT 2, 5), (v), (SELECT id, max(v) + 1 AS v FROM "
     "$table GROUP BY id)) ORDER BY id",
     "1,10;2,5;3,11;4,12"},
    {"SELECT id, v FROM _graph_aggregating_scan!((SELECT 1 AS source_node_id, 2 AS dest_node_id UNION ALL SELECT 2, "
     "1), "
     "(SELECT 1 AS id, 10 AS v UNION ALL SELECT 2, 5), (v), (SELECT id, sum(v) AS v FROM $table GROUP BY id)) ORDER BY "
     "id",
     "1,10;2,5"},
    {"SELECT id, ts, dur, value, next_value, delta_value FROM counter_leading_intervals!((SELECT 1 AS id, 10 AS ts, 1 "
     "AS "
     "track_id, 5 AS value UNION ALL SELECT 2, 20, 1, 5 UNION ALL SELECT 3, 30, 1, 7)) ORDER BY ts",
     "1,10,10,5.0,5.0,-;2,20,10,5.0,7.0,0.0;3,30,-30,7.0,-,2.0"},
    {"SELECT ts, dur FROM _interval_create!((SELECT 1 AS ts UNION ALL SELECT 5 UNION ALL SELECT 9), (SELECT 3 AS ts "
     "UNION ALL "
     "SELECT 5 UNION ALL SELECT 8))",
     "1,2;5,3"},
    {"SELECT ts, dur, quantum_ts FROM __intrinsic_window(100, 25, 10)", "100,10,0;110,10,1;120,10,2"},
    {"SELECT ts, dur FROM __intrinsic_window(100, 25, 0)", "100,25"},
    {"CREATE VIRTUAL TABLE w USING __intrinsic_window; SELECT ts, dur FROM w WHERE window_start = 5 AND window_dur = "
     "10 AND "
     "quantum = 6",
     "5,6;11,6"},
    {"CREATE VIRTUAL TABLE w3 USING __intrinsic_window(100,50,20); SELECT * FROM w3", "100,20,0;120,20,1;140,20,2"},
    {"CREATE TABLE nested(ts BIGINT, dur BIGINT, p BIGINT); CREATE TABLE whole(ts BIGINT, dur BIGINT); INSERT INTO "
     "nested VALUES(10, 10, 1), (12, 3, 1); INSERT INTO whole VALUES(0, 40); CREATE VIRTUAL TABLE nw USING "
     "span_join(nested PARTITIONED p, whole); SELECT ts, dur, p FROM nw",
     "10,10,1;12,3,1"},
    {"SELECT internal_layout(ts, dur) OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM (SELECT "
     "5 AS ts, 0 AS dur UNION ALL SELECT 5, 0 UNION ALL SELECT 5, 9223372036854775807 UNION ALL SELECT 6, -1 UNION ALL "
     "SELECT 7, 0)",
     "0;0;0;1;2"},
    {"CREATE VIRTUAL TABLE none USING __intrinsic_counter_mipmap((SELECT 0 AS ts, 0.5 AS value WHERE 0)); SELECT "
     "min_value, max_value, last_ts, last_value FROM none(10, 40, 10)",
     "0.0,0.0,0,0.0"},
    {"INCLUDE PERFETTO MODULE viz.slices; CREATE PERFETTO TABLE tree AS SELECT 1 AS id, NULL AS parent_id, 'a' AS "
     "name, "
     "100 AS dur UNION ALL SELECT 2, 1, 'b', 30 UNION ALL SELECT 3, 1, 'c', 50; SELECT id, parentId, name, self_dur, "
     "simple_count FROM _viz_slice_ancestor_agg!((SELECT id, dur FROM tree WHERE id > 1), tree) ORDER BY id",
     "1,-,a,20,1;2,1,b,30,1;3,1,c,50,1"},
    {"CREATE VIRTUAL TABLE m USING __intrinsic_counter_mipmap((SELECT column1 AS ts, column2 AS value FROM (VALUES(0, "
     "9), (5, 1), "
     "(12, 4), (14, 2), (31, 7)))); SELECT min_value, max_value, last_ts, last_value FROM m(10, 40, 10)",
     "1.0,4.0,14,2.0;7.0,7.0,31,7.0"},
    {"CREATE VIRTUAL TABLE m USING __intrinsic_slice_mipmap((SELECT column1 AS id, column2 AS ts, column3 AS dur, "
     "column4 AS "
     "depth FROM (VALUES(0, 1, 3, 0), (1, 5, 9, 0), (2, 6, 2, 1), (3, 22, 1, 0)))); SELECT ts, id, count, dur, depth "
     "FROM "
     "m(0, 30, 10)",
     "5,1,2,9,0;22,3,1,1,0;6,2,1,2,1"},
    {"SELECT percentile(x, 50), percentile_cont(x, 0.25), percentile_disc(x, 0.9), median(x) FROM (SELECT 1 AS x UNION "
     "ALL "
     "SELECT 2 UNION ALL SELECT 4 UNION ALL SELECT 8)",
     "3.0,1.75,4.0,3.0"},
    {"SELECT median(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM (SELECT 1 AS x UNION ALL SELECT "
     "5 UNION "
     "ALL SELECT 6)",
     "3.0;5.0;5.5"},
    {"SELECT string_agg(x, '-'), value_at_max_ts(y, z) FROM (SELECT 'a' AS x, 1 AS y, 10 AS z UNION ALL SELECT 'b', 3, "
     "30 UNION "
     "ALL SELECT 'c', 2, 20)",
     "a-b-c,30"},
    {"SELECT last_non_null(x) OVER (ORDER BY o ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM (SELECT 1 AS o, 7 AS x "
     "UNION ALL "
     "SELECT 2, NULL UNION ALL SELECT 3, NULL UNION ALL SELECT 4, 9)",
     "7;7;-;9"},
    {"SELECT internal_layout(ts, dur) OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM (SELECT "
     "0 AS ts, "
     "10 AS dur UNION ALL SELECT 5, 10 UNION ALL SELECT 12, -1 UNION ALL SELECT 20, 0)",
     "0;1;0;1"},
    {"SELECT regexp_extract('cpu12x', '[0-9]+'), regexp_extract('k=v', 'k=(.*)'), regexp_extract('a', 'b'), 'abc' "
     "REGEXP "
     "'^a.c$', regexp('B', 'abc', 'i'), regexp('^(a|b)*c{2,3}\\b', 'ababccc d')",
     "12,v,-,1,1,1"},
    {"SELECT regexp_replace_simple('a1b22', '[0-9]+', '<$&>'), regexp_replace_simple('aaa', '', '-')",
     "a<1>b<22>,-a-a-a-"},
    {"SELECT str_split('a-b-c', '-', 2), str_split('a', '-', 1), reverse('abc'), unhex(' 0xFF '), "
     "base64_encode('hello'), "
     "CAST(base64_decode('aGVsbG8=') AS TEXT)",
     "c,-,cba,255,aGVsbG8=,hello"},
    {"SELECT unhex('-1'), unhex(' -0x1F'), unhex('+a'), unhex('-8000000000000000')", "-1,-31,10,-9223372036854775808"},
    {"SELECT concat('a', NULL, 1), concat_ws('-', 'a', NULL, 'b'), octet_length('\xc3\xa4'), hash('a', 1) = hash('a', "
     "1), "
     "to_timecode(3661001002003), unistr('\\0041')",
     "a1,a-b,2,1,01:01:01 001 002 003,A"},
    {"SELECT string_agg(x, '-' ORDER BY y DESC, x), group_concat(x ORDER BY y NULLS LAST) FROM (SELECT 'a' AS x, 1 AS "
     "y UNION "
     "ALL SELECT 'b', NULL UNION ALL SELECT 'c', 2 UNION ALL SELECT 'd', 1)",
     "c-a-d-b,a,d,c,b"},
    {"SELECT group_concat(DISTINCT x ORDER BY x DESC), json_group_array(DISTINCT x ORDER BY y) FROM (SELECT 1 AS x, 5 "
     "AS "
     "y UNION ALL SELECT 3, 4 UNION ALL SELECT 1, 1 UNION ALL SELECT NULL, 2 UNION ALL SELECT NULL, 9)",
     "3,1,[null,3,1]"},
    {"SELECT group_concat(DISTINCT x ORDER BY x), group_concat(x ORDER BY x DESC) FROM (SELECT 9007199254740993 AS x "
     "UNION ALL SELECT 9007199254740992.0 UNION ALL SELECT 9007199254740992 UNION ALL SELECT 2.5 UNION ALL SELECT 3 "
     "UNION ALL SELECT 9e30 UNION ALL SELECT -9e30)",
     "-9.0e+30,2.5,3,9.00719925474099e+15,9007199254740993,9.0e+30,9.0e+30,9007199254740993,9.00719925474099e+15,"
     "9007199254740992,3,2.5,-9.0e+30"},
    {"CREATE PERFETTO MACRO tens(x Expr) RETURNS Expr AS $x * 1_0; CREATE PERFETTO FUNCTION k(x LONG) RETURNS LONG AS "
     "SELECT $x * 1_000; SELECT 1_000_000, 0xf_f, tens!(2_0), k(3), x FROM (SELECT 5 AS x) WHERE x < 1_0",
     "1000000,255,200,3000,5"},
    {"SELECT json_group_array(x ORDER BY max(x, 5) DESC, x) FROM (SELECT 1 AS x UNION ALL SELECT 9 UNION ALL SELECT 3)",
     "[9,1,3]"},
    {"SELECT timediff('2023-03-01', '2023-02-27 12:00'), timediff('2000-01-01', '2001-03-04 05:06:07.5'), "
     "timediff('x', 'y')",
     "+0000-00-01 12:00:00.000,-0001-02-03 05:06:07.500,-"},
    {"INCLUDE PERFETTO MODULE std.trees.table_conversion; SELECT * FROM _tree_to_table!(_tree_from_table!((SELECT 1 AS "
     "id, NULL "
     "AS parent_id, 'a' AS n UNION ALL SELECT 2, 1, 'b'), (n)), (n))",
     "0,-,1,-,a;1,0,2,1,b"},
    {"WITH g(s, d, w) AS (VALUES (1, 2, 3), (2, 3, 5)) SELECT root_node_id, node_id FROM "
     "__intrinsic_dfs_weight_bounded("
     "(SELECT RepeatedField(s) FROM g), (SELECT RepeatedField(d) FROM g), (SELECT RepeatedField(w) FROM g), (SELECT "
     "RepeatedField(1)), (SELECT RepeatedField(7)), 0) AS dt",
     "1,1;1,2"},
    {"CREATE PERFETTO MACRO both(a TableOrSubQuery) RETURNS TableOrSubQuery AS (SELECT id_0 FROM _interval_intersect "
     "!(($a, "
     "$a), ())); SELECT * FROM both!((SELECT 5 AS id, 1 AS ts, 2 AS dur))",
     "5"},
    {"SELECT json_valid('{}', 1), json_valid('{', 1), json_valid('{}', 4), json_valid(NULL, 1)", "1,0,0,-"},
    {"SELECT json_error_position('{\"a\":[1,2}'), json_error_position('[1]'), jsonb_extract('{\"a\":5}', '$.a')",
     "10,0,5"},
    {"SELECT json_pretty('{\"a\":[1,{}]}')", "{\n    \"a\": [\n        1,\n        {}\n    ]\n}"},
    {"SELECT __intrinsic_strip_hex('0x7f3a thread-12 dead 1234', 2)", "0x<num> thread-<num> dead <num>"},
};

START_TEST(operators_and_functions)
{
    sql_run(
        &f,
        "INCLUDE PERFETTO MODULE graphs.*; INCLUDE PERFETTO MODULE intervals.*; INCLUDE PERFETTO MODULE counters.*");
    sql_expect(&f, cases[_i].sql, cases[_i].rows);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

/* A text that becomes longer than values may be is an error, not the empty text. */
/* ---- memory runs out ---- */

static struct gate memory;

static void set_gate(bool on)
{
    sql_heap_set_gated(on);
    alloc_set_gate(on ? gate_open : NULL, &memory);
}

static void open_with_modules(void)
{
    sql_open(&f);
    sql_run(
        &f,
        "INCLUDE PERFETTO MODULE graphs.*; INCLUDE PERFETTO MODULE intervals.*; INCLUDE PERFETTO MODULE counters.*");
}

/* As sql_rows(), with the gate while the engine works. */
static char *rows_at_gate(const char *sql)
{
    struct engine_result r;
    struct error err = {0};
    set_gate(true);
    int rc = engine_query(f.e, "test", slice_str(sql), &r, NULL, &err);
    set_gate(false);
    if (rc) {
        ck_assert_msg(err.text[0] || engine_error_text(f.e)[0], "%s: error %d without allocation %u, no text", sql, rc,
                      memory.fail_at);
        return NULL;
    }
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendall(s, "");
    for (int row = 0;; row++) {
        set_gate(true);
        rc = engine_result_next(&r, &err);
        set_gate(false);
        if (rc != 1)
            break;
        sql_append_row(s, r.stmt, row);
    }
    if (r.stmt)
        engine_result_close(&r);
    char *out = sqlite3_str_finish(s);
    if (rc == 0)
        return out ? out : sqlite3_mprintf("");
    sqlite3_free(out);
    return NULL;
}

/* Each allocation of a statement fails, ours and SQLite's, alone or with all that follow: an error or the right rows;
 * and the right rows from the same engine afterwards. */
START_TEST(operators_without_memory)
{
    const char *sql = cases[_i].sql, *rows = cases[_i].rows, *longer = getenv("MERIDIAN_LONG");
    bool creates = strstr(sql, "CREATE ") || strstr(sql, "INCLUDE "), reached = true;
    set_gate(false);
    sql_close(&f);
    open_with_modules();
    for (unsigned k = 1; reached; k += longer ? 1 : 1 + k / 8) {
        memory.calls = 0;
        memory.fail_at = k;
        memory.for_good = k % 2;
        char *answer = rows_at_gate(sql);
        reached = memory.calls >= k;
        ck_assert_msg(answer || reached, "%s\nfails with all the memory that it wants: %s", sql,
                      engine_error_text(f.e));
        ck_assert_msg(!answer || strcmp(answer, rows) == 0, "%s\nwithout allocation %u %s\nexpected %s", sql, k, answer,
                      rows);
        sqlite3_free(answer);
        if (creates) {
            sql_close(&f);
            open_with_modules();
        }
    }
    sql_expect(&f, sql, rows);
}
END_TEST

START_TEST(texts_that_grow_too_long_are_errors)
{
    static const char *const queries[] = {
        "select length(concat(a, a)) from (select printf('%.*c', 60000, 'x') as a)",
        "select length(concat_ws('-', a, a)) from (select printf('%.*c', 60000, 'x') as a)",
        "select length(string_agg(a, ',')) from (select printf('%.*c', 60000, 'x') as a union all select 'y' || "
        "printf('%.*c', 60000, 'x'))",
        "select length(string_agg(a, ',' order by a)) from (select printf('%.*c', 60000, 'x') as a union all select "
        "'y' "
        "|| printf('%.*c', 60000, 'x'))",
        "select length(regexp_replace_simple(printf('%.*c', 60000, 'x'), 'x', 'xx'))",
    };
    sqlite3_limit(engine_db(f.e), SQLITE_LIMIT_LENGTH, 100000);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        sql_must_fail(&f, queries[i], "too big");
    sql_expect(&f, "select length(concat(a, 'b')) from (select printf('%.*c', 60000, 'x') as a)", "60001");
    sql_expect(&f, "select concat(), concat(null), regexp_replace_simple('x', 'x', '')", ",,");
}
END_TEST

Suite *operator_cases_suite(void);
Suite *operator_cases_suite(void)
{
    Suite *s = suite_create("operator_cases");
    TCase *t = tcase_create("cases");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, texts_that_grow_too_long_are_errors);
    tcase_add_loop_test(t, operators_and_functions, 0, COUNT(cases));
    tcase_add_loop_test(t, operators_without_memory, 0, COUNT(cases));
    suite_add_tcase(s, t);
    return s;
}
