/* Tests what is answered without SQLite's own loops, aggregates and neighbours, against what SQLite answers. */
#include "mirror.h"

#include "base/alloc.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 9000 };

/* Statements of the shape that aggregate.h answers natively; rows must come in SQLite's own order, ties too. */
static uint32_t make_aggregate(struct text *t)
{
    static const char *const groups[] = {"track_id", "name",      "category",
                                         "depth",    "parent_id", "thread_instruction_delta"};
    static const char *const aggregates[] = {"count(*)",        "sum(dur)",       "max(dur)", "min(ts)",  "count(name)",
                                             "sum(arg_set_id)", "max(parent_id)", "sum(id)",  "avg(dur)", "max(name)"};
    static const char *const filters[] = {"dur > 10",
                                          "name = 'abc'",
                                          "name GLOB 'a*'",
                                          "name != 'ab'",
                                          "parent_id IS NULL",
                                          "category IS NOT NULL",
                                          "ts BETWEEN 50 AND 9000.5",
                                          "track_id <> 7",
                                          "id < 4000",
                                          "dur = -1",
                                          "depth >= 1000",
                                          "t1.dur <= 100",
                                          "name < 'b'",
                                          "depth = '12'",
                                          "arg_set_id > -5",
                                          "dur % 2 = 0"};
    bool counter = pick(4) == 0;
    uint32_t n_groups = pick(3), n_items = 0;
    const char *g[2];
    t->n = 0;
    put(t, "SELECT ");
    for (uint32_t i = 0; i < n_groups; i++) {
        g[i] = counter ? (i ? "arg_set_id" : "track_id") : groups[(pick(3) + i * 3) % 6];
        put(t, "%s%s%s", n_items++ ? ", " : "", pick(4) ? "" : "t1.", g[i]);
    }
    for (uint32_t i = 0, n = 1 + pick(3); i < n; i++) {
        const char *a = counter ? (const char *[]){"sum(value)", "max(value)", "min(value)", "count(*)"}[pick(4)]
                                : aggregates[pick(20) ? pick(8) : pick(10)];
        put(t, "%s%s", n_items++ ? ", " : "", a);
        if (pick(3) == 0)
            put(t, " AS a%u", i);
    }
    put(t, " FROM @%s t1", counter ? "counter" : "slice");
    for (uint32_t i = 0, n = counter ? 0 : pick(4); i < n; i++)
        put(t, "%s%s", i ? " AND " : " WHERE ", filters[pick(16)]);
    for (uint32_t i = 0; i < n_groups; i++)
        put(t, "%s%s", i ? ", " : " GROUP BY ", g[i]);
    if (n_groups && pick(3)) {
        put(t, " ORDER BY %u%s", 1 + pick(n_items), pick(2) ? " DESC" : "");
        if (pick(2))
            put(t, ", %u%s", 1 + pick(n_items), pick(2) ? " DESC" : "");
        if (pick(2))
            put(t, " LIMIT %u", pick(30));
    }
    return n_items;
}

START_TEST(aggregates_answer_in_the_same_order)
{
    struct mirror m;
    mirror_open(&m, 1234567 + (uint64_t)_i, ROWS);
    mirror_compare_made(&m, make_aggregate, 300);
    mirror_close(&m);
}
END_TEST

/* Selects with values of the row before or behind, alone and within other queries. */
static uint32_t make_neighbours(struct text *t)
{
    static const char *const values[] = {"ts", "dur", "name", "parent_id", "id", "t1.arg_set_id", "category"};
    static const char *const partitions[] = {"", "PARTITION BY track_id ", "PARTITION BY t1.name ",
                                             "PARTITION BY parent_id, name ",
                                             "PARTITION BY thread_instruction_delta, category "};
    static const char *const orders[] = {"ts, id", "dur DESC, id", "name, t1.id DESC", "parent_id, ts, id",
                                         "ts + 0, id"};
    static const char *const wraps[][2] = {{"", ""},
                                           {"SELECT b, count(*), max(a), sum(c) FROM (", ") GROUP BY b"},
                                           {"SELECT c, a, b FROM (", ") WHERE b IS NOT NULL"},
                                           {"WITH w AS (", ") SELECT max(b), count(c) FROM w"},
                                           {"SELECT x.a, x.b FROM (", ") x JOIN @counter y ON y.id = x.a"}};
    const char *partition = partitions[pick(5)], *order = orders[pick(20) ? pick(4) : 4];
    uint32_t w = pick(5);
    t->n = 0;
    put(t, "%sSELECT t1.id AS a, %s(%s) OVER (%sORDER BY %s) AS b", wraps[w][0], pick(2) ? "lead" : "lag",
        values[pick(7)], partition, order);
    if (pick(2))
        put(t, ", (%s(ts) OVER (%sORDER BY %s) - t1.ts) * 2 AS c", pick(2) ? "lead" : "lag", partition, order);
    else
        put(t, ", %s AS c", values[pick(7)]);
    put(t, " FROM @slice t1%s%s", pick(10) ? "" : " WHERE t1.dur > 5", wraps[w][1]);
    return w == 0 ? 3 : w == 2 ? 3 : 0;
}

START_TEST(neighbours_are_those_of_sqlite)
{
    struct mirror m;
    mirror_open(&m, 424242 + (uint64_t)_i, ROWS);
    mirror_compare_made(&m, make_neighbours, 60);
    mirror_close(&m);
}
END_TEST

START_TEST(neighbours_are_native)
{
    static const struct {
        const char *sql;
        bool native;
    } statements[] = {
        {"SELECT max(g) FROM (SELECT lead(ts) OVER (PARTITION BY track_id ORDER BY ts) - ts AS g FROM slice)", true},
        {"select count(b) from (select lag(s.name) over (order by s.ts) as b from slice as s) where b > 'a'", true},
        {"SELECT lead(ts) OVER (ORDER BY ts) AS next, track_id FROM slice", true},
        {"SELECT lead(ts) OVER (ORDER BY ts), track_id FROM slice", true}, /* its column is named after the text */
        {"SELECT max(g) FROM (SELECT lead(ts, 2) OVER (ORDER BY ts) - ts AS g FROM slice)", true},
        {"SELECT max(g) FROM (SELECT lead(ts) OVER (ORDER BY ts) - abs(ts) AS g FROM slice)", true},
        {"SELECT max(g) FROM (SELECT lead(ts) OVER (ORDER BY ts) - max(ts) AS g FROM slice)", false},
        {"SELECT max(g) FROM (SELECT lead(ts) OVER (ORDER BY ts) - ts AS g FROM slice WHERE dur > 3)", true},
        {"SELECT max(g) FROM (SELECT lead(ts) OVER (ORDER BY ts) + lag(ts) OVER (ORDER BY dur) AS g FROM slice)",
         true},
        {"SELECT max(g) FROM (SELECT lead(ts) OVER (PARTITION BY value ORDER BY ts) AS g FROM counter)", true},
        {"SELECT max(g) FROM (SELECT lead(ts) OVER (ORDER BY ts ROWS 1 PRECEDING) AS g FROM slice)", true},
        {"WITH slice AS (SELECT 1 AS ts) SELECT lead(ts) OVER (ORDER BY ts) AS g FROM slice", false},
        {"WITH a AS (SELECT 1), slice(ts) AS (SELECT 1) SELECT lead(ts) OVER (ORDER BY ts) AS g FROM slice", false},
        {"WITH a AS (SELECT lead(ts) OVER (ORDER BY ts) AS g FROM slice) SELECT max(g) FROM a", true},
        {"CREATE VIEW of_slice AS SELECT lead(ts) OVER (ORDER BY ts) AS g FROM slice", false}};
    struct mirror m;
    struct engine_result r;
    struct error err = {0};
    mirror_open(&m, 6, ROWS);
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        ck_assert_msg(engine_query(m.e, NULL, slice_str(statements[i].sql), &r, NULL, &err) == 0, "%s", err.text);
        const char *run = sqlite3_sql(r.stmt);
        bool native = strstr(run, "__intrinsic_plan") != NULL;
        ck_assert_msg(native == statements[i].native, "%s", statements[i].sql);
        engine_result_close(&r);
    }
    mirror_close(&m);
}
END_TEST

START_TEST(aggregates_are_native)
{
    static const char *const native[] = {"SELECT count(*) FROM slice",
                                         "select track_id, sum(dur) d from slice group by 1 order by d desc limit 3",
                                         "select s.name, max(s.dur) from slice s where s.dur > 5 group by s.name;"};
    static const char *const foreign[] = {"SELECT count(*) FROM instant",
                                          "SELECT count(*), name FROM slice",
                                          "SELECT sum(dur + 1) FROM slice",
                                          "SELECT count(*) FROM slice, counter",
                                          "SELECT count(*) FROM (SELECT * FROM slice LIMIT 5)",
                                          "SELECT count(*) FROM slice WHERE dur > 5 OR dur < 3",
                                          "SELECT count(*) FROM slice GROUP BY track_id HAVING count(*) > 5"};
    struct mirror m;
    struct engine_result r;
    struct error err = {0};
    mirror_open(&m, 5, ROWS);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(engine_query(m.e, NULL, slice_str(native[i]), &r, NULL, &err), 0);
        ck_assert_ptr_nonnull(strstr(sqlite3_sql(r.stmt), "__intrinsic_aggregate"));
        engine_result_close(&r);
    }
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        ck_assert_msg(engine_query(m.e, NULL, slice_str(foreign[i]), &r, NULL, &err) == 0, "%s", err.text);
        ck_assert_ptr_null(strstr(sqlite3_sql(r.stmt), "__intrinsic_aggregate"));
        engine_result_close(&r);
    }
    /* names are those of the original */
    ck_assert_int_eq(
        engine_query(m.e, NULL, slice_str("select Track_ID, count( * ) from slice group by track_id"), &r, NULL, &err),
        0);
    ck_assert_str_eq(engine_result_column_name(&r, 0), "track_id");
    ck_assert_str_eq(engine_result_column_name(&r, 1), "count( * )");
    engine_result_close(&r);
    mirror_close(&m);
}
END_TEST

/* Expressions of every kind around windows, columns compared with values of other types, several selects. */
static uint32_t make_wide(struct text *t)
{
    static const char *const outputs[] = {"%s - ts",
                                          "%s",
                                          "CASE WHEN %s IS NULL THEN name ELSE depth END",
                                          "name = 12",
                                          "name = '12' OR %s > 5",
                                          "ts < '7'",
                                          "%s IN (1, '2', NULL, name)",
                                          "depth BETWEEN %s AND '100'",
                                          "coalesce(%s, name, 'none') || x.category",
                                          "CAST(%s AS TEXT) LIKE '%%1%%'",
                                          "\"name\" COLLATE nocase = 'ABC'",
                                          "-%s",
                                          "x.parent_id",
                                          "[dur]",
                                          "max(%s, 3)",
                                          "id"};
    static const char *const wraps[][2] = {
        {"", ""},
        {"SELECT * FROM (", ") WHERE a = 12 OR c > '5'"},
        {"SELECT a, count(*), min(b) FROM (", ") GROUP BY a"},
        {"SELECT * FROM v_counter WHERE track_id IN (SELECT b % 40 FROM (", "))"},
        {"WITH w(p, q, r) AS (", ") SELECT count(*), max(q), p = '12' FROM w GROUP BY 3"},
        {"SELECT a, b, c FROM v_slice2 UNION ALL ", ""}};
    static const char *const orders[] = {"ts, id", "x.name, id DESC", "depth DESC, \"id\""};
    uint32_t w = pick(6);
    const char *order = orders[pick(3)], *partition = pick(2) ? "PARTITION BY track_id " : "";
    t->n = 0;
    put(t, "%sSELECT ", wraps[w][0]);
    for (int i = 0; i < 3; i++) {
        char window[200];
        snprintf(window, sizeof window, "%s(%s) OVER (%sORDER BY %s)", pick(2) ? "lead" : "Lag",
                 (const char *[]){"ts", "name", "x.dur", "parent_id"}[pick(4)], partition, order);
        const char *output = outputs[pick(16)], *hole = strstr(output, "%s");
        for (const char *p = output; *p; p++)
            if (p == hole) {
                put(t, "%s", window);
                p++;
            } else if (p[0] != '%' || p[1] != '%') {
                put(t, "%c", *p);
            }
        if (w || pick(2))
            put(t, " AS %c", "abc"[i]);
        put(t, "%s", i < 2 ? ", " : "");
    }
    put(t, " FROM v_slice x%s", wraps[w][1]);
    return 0;
}

START_TEST(the_planner_changes_no_answer)
{
    static uint32_t (*const makers[])(struct text *) = {make_aggregate, make_neighbours, make_wide, make_wide};
    struct mirror m;
    struct error err = {0};
    int planned = 0;
    mirror_open(&m, 99 + (uint64_t)_i, 2500);
    ck_assert_int_eq(engine_run(m.e, NULL,
                                "CREATE VIEW v_slice2 AS SELECT lead(ts) OVER (ORDER BY ts, id) AS a, name AS b, "
                                "dur AS c FROM v_slice LIMIT 50",
                                &err),
                     0);
    for (int i = 0; i < 120; i++) {
        struct text made, query = {.n = 0};
        makers[i % 4](&made);
        for (const char *s = made.p; *s; s++)
            *s == '@' ? put(&query, "v_") : put(&query, "%c", *s);
        planned += mirror_compare_planner(&m, query.p);
    }
    ck_assert_int_gt(planned, 40);
    mirror_close(&m);
}
END_TEST

static void must_fail(struct mirror *m, const char *sql, const char *part)
{
    struct engine_result r;
    struct error err = {0};
    int rc = engine_query(m->e, NULL, slice_str(sql), &r, NULL, &err);
    if (rc == 0)
        engine_result_close(&r);
    ck_assert_msg(rc < 0, "%s", sql);
    ck_assert_msg(strstr(engine_error_text(m->e), part) != NULL, "%s\n%s", sql, engine_error_text(m->e));
}

/* Anybody may call the table functions of plans. */
START_TEST(what_is_no_plan_is_refused)
{
    static const char *const calls[] = {"('slice g:0 *:-1')", "(NULL)",         "(7)",
                                        "(x'00112233')",      "('x', 1, 2, 3)", "(ts)"};
    struct mirror m;
    char sql[300];
    mirror_open(&m, 5, 100);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        snprintf(sql, sizeof sql, "SELECT f.c0 FROM v_slice, __intrinsic_aggregate%s f", calls[i]);
        must_fail(&m, sql, "no plan");
    }
    must_fail(&m, "SELECT * FROM __intrinsic_aggregate", "no query solution");
    mirror_close(&m);
}
END_TEST

/* max - min + 2 wrapped round, and groups were written outside of their array. */
START_TEST(columns_too_wide_for_groups_stay_with_sqlite)
{
    static const char make[] =
        "CREATE PERFETTO TABLE wide AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
        "SELECT CASE WHEN i % 2 THEN 9223372036854775807 ELSE -9223372036854775807 END AS a, i % 3 AS b FROM n; ";
    struct mirror m;
    struct engine_result r;
    struct error err = {0};
    mirror_open(&m, 5, 100);
    ck_assert_msg(engine_run(m.e, NULL, make, &err) == 0, "%s", err.text);
    ck_assert_int_eq(
        engine_query(m.e, NULL, slice_str("SELECT a, count(*) FROM wide GROUP BY a ORDER BY a"), &r, NULL, &err), 0);
    ck_assert_ptr_null(strstr(sqlite3_sql(r.stmt), "__intrinsic_aggregate"));
    ck_assert_int_eq(engine_result_next(&r, &err), 1);
    ck_assert_int_eq(sqlite3_column_int64(r.stmt, 0), -9223372036854775807);
    ck_assert_int_eq(sqlite3_column_int64(r.stmt, 1), 1501);
    engine_result_close(&r);
    ck_assert_int_eq(engine_query(m.e, NULL, slice_str("SELECT b, count(*) FROM wide GROUP BY b"), &r, NULL, &err), 0);
    ck_assert_ptr_nonnull(strstr(sqlite3_sql(r.stmt), "__intrinsic_aggregate"));
    engine_result_close(&r);
    mirror_close(&m);
}
END_TEST

/* A plan is held against what its table has become. */
START_TEST(plans_outlive_their_tables)
{
    static const char make[] =
        "CREATE OR REPLACE PERFETTO TABLE gone AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n "
        "WHERE i < 3000) SELECT i AS a, i % 3 AS b FROM n; ";
    static const char *const queries[] = {"SELECT b, count(*) FROM gone GROUP BY b",
                                          "SELECT lead(a) OVER (ORDER BY a) AS x, b FROM gone"};
    struct mirror m;
    struct error err = {0};
    mirror_open(&m, 5, 100);
    for (size_t i = 0; i < 2; i++) {
        struct engine_result r;
        ck_assert_msg(engine_run(m.e, NULL, make, &err) == 0, "%s", err.text);
        ck_assert_int_eq(engine_query(m.e, NULL, slice_str(queries[i]), &r, NULL, &err), 0);
        ck_assert_ptr_nonnull(strstr(sqlite3_sql(r.stmt), "__intrinsic_"));
        sqlite3_reset(r.stmt);
        ck_assert_msg(engine_run(m.e, NULL, "DROP TABLE gone", &err) == 0, "%s", err.text);
        r.row = r.done = false;
        int rc = sqlite3_step(r.stmt);
        ck_assert(rc == SQLITE_ROW || rc == SQLITE_ERROR); /* the rows are kept, or the name is gone */
        engine_result_close(&r);
    }
    mirror_close(&m);
}
END_TEST

/* Names mean what the schema says now. */
START_TEST(names_follow_the_schema)
{
    static const char *const steps[] = {
        "CREATE VIEW w AS SELECT ts AS a, dur AS b, ts + dur AS c FROM v_slice",
        "CREATE TEMP VIEW v_slice AS SELECT 1 AS ts, 2 AS dur, 'x' AS name",
        "DROP VIEW temp.v_slice",
        "CREATE VIEW v_slice2 AS SELECT * FROM v_slice WHERE dur > 5",
        "BEGIN; DROP VIEW w; CREATE VIEW w AS SELECT dur AS a, ts AS b FROM v_slice; ROLLBACK",
        "DROP VIEW w; CREATE VIEW w AS SELECT count(*) AS a, ts AS b FROM v_slice",
        "DROP VIEW w; CREATE VIEW w AS SELECT lead(ts) OVER (ORDER BY ts) AS c, ts AS a, ts AS b FROM v_slice",
        "DROP VIEW w; CREATE VIEW w(b, a) AS SELECT ts, dur FROM v_slice",
        "DROP VIEW w; CREATE VIEW w AS SELECT ts AS a, dur AS \"A\", depth AS b FROM v_slice",
        "DROP VIEW w; CREATE VIEW w AS SELECT DISTINCT depth AS a, depth AS b FROM v_slice",
        "DROP VIEW w; CREATE VIEW w AS SELECT x.depth a, (dur) b, * FROM v_slice AS x",
        "CREATE PERFETTO FUNCTION sum(x LONG) RETURNS LONG AS SELECT 5",
    };
    static const char *const queries[] = {"SELECT count(*), sum(a), max(b) FROM w", "SELECT count(*) FROM v_slice",
                                          "SELECT max(a), min(b) FROM w AS x WHERE x.b > 3",
                                          "SELECT lead(a) OVER (ORDER BY a, b) AS l, b FROM w"};
    struct mirror m;
    struct error err = {0};
    mirror_open(&m, 9, 2200);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        ck_assert_msg(engine_run(m.e, NULL, steps[i], &err) == 0, "%s: %s", steps[i], err.text);
        for (size_t q = 0; q < sizeof queries / sizeof *queries; q++)
            mirror_compare_planner(&m, queries[q]);
    }
    mirror_close(&m);
}
END_TEST

static size_t calls_left;

static bool gate(void *ctx, size_t size)
{
    (void)ctx;
    (void)size;
    return calls_left && calls_left--;
}

START_TEST(aggregates_survive_failing_allocations)
{
    struct mirror m;
    struct engine_result r;
    struct error err = {0};
    mirror_open(&m, 5, ROWS);
    int rc = -1;
    for (size_t k = 0; rc && k < 1000; k++) {
        calls_left = k;
        alloc_set_gate(gate, NULL);
        rc = engine_query(m.e, NULL,
                          slice_str("select track_id, name, sum(dur) from slice where name glob 'a*' group by 1, 2"),
                          &r, NULL, &err);
        alloc_set_gate(NULL, NULL);
        if (rc == 0)
            engine_result_close(&r);
    }
    ck_assert_int_eq(rc, 0);
    mirror_close(&m);
}
END_TEST

/* Bytes changed, dropped and doubled at random: any answer will do, or an error. */
START_TEST(mutated_statements_do_no_harm)
{
    static const char *const texts[] = {"SELECT t.track_id, count(*) AS n, sum(t.dur) d FROM v_slice AS t WHERE t.dur "
                                        ">= -1 AND name = 'abc' GROUP BY t.track_id "
                                        "ORDER BY n DESC, 1 LIMIT 5 OFFSET 2",
                                        ("select count(name), max(depth) from slice where ts between 1.5 and 99 and "
                                         "parent_id is not null and name glob 'a*';"),
                                        "select category, name, min(id) from slice group by 1, 2 order by 2 desc"};
    struct mirror m;
    mirror_open(&m, 77, ROWS / 3);
    for (int i = 0; i < 3000; i++) {
        char text[400];
        struct engine_result r;
        struct error err = {0};
        size_t n = (size_t)snprintf(text, sizeof text, "%s", texts[pick(3)]);
        for (uint32_t k = 1 + pick(4); k > 0 && n > 8; k--) {
            size_t at = pick((uint32_t)n);
            switch (pick(4)) {
            case 0:
                text[at] = (char)(pick(95) + 32);
                break;
            case 1:
                memmove(text + at, text + at + 1, --n - at);
                break;
            case 2:
                text[at] = " '*(),;.<>=-"[pick(12)];
                break;
            default:
                n = pick(20) ? n : at + 1;
            }
        }
        char *exact = malloc(n + 1); /* so that a read behind the end is seen */
        ck_assert_ptr_nonnull(exact);
        memcpy(exact, text, n);
        if (engine_query(m.e, NULL, slice_of(exact, n), &r, NULL, &err) == 0)
            engine_result_close(&r);
        free(exact);
    }
    mirror_close(&m);
}
END_TEST

Suite *sql_native_suite(void);
Suite *sql_native_suite(void)
{
    Suite *s = suite_create("sql_native");
    TCase *t = tcase_create("differential");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, aggregates_answer_in_the_same_order, 0, 4);
    tcase_add_test(t, aggregates_are_native);
    tcase_add_loop_test(t, neighbours_are_those_of_sqlite, 0, 3);
    tcase_add_test(t, neighbours_are_native);
    tcase_add_loop_test(t, the_planner_changes_no_answer, 0, 4);
    tcase_add_test(t, what_is_no_plan_is_refused);
    tcase_add_test(t, columns_too_wide_for_groups_stay_with_sqlite);
    tcase_add_test(t, plans_outlive_their_tables);
    tcase_add_test(t, names_follow_the_schema);
    tcase_add_test(t, mutated_statements_do_no_harm);
    tcase_add_test(t, aggregates_survive_failing_allocations);
    suite_add_tcase(s, t);
    return s;
}
