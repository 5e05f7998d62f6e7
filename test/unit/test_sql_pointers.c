/* Tables that functions give as pointers, in plans and without (src/sql/plan/pointer.c). */
#include "mirror.h"

#include <check.h>

enum { ROWS = 2600 };

#define SET(keys, from)                                                                                                \
    "(SELECT __intrinsic_interval_tree_intervals_agg(input.id, input.ts, input.dur" keys ") FROM (SELECT * FROM " from \
    " ORDER BY ts) AS input)"
#define SPANS(where) "(SELECT * FROM v_slice WHERE dur >= 0 AND ts IS NOT NULL AND " where ")"
#define MEET(columns, a, b, keys)                                                                                      \
    "(SELECT c0 AS ts, c1 AS dur, c2 AS id_0, c3 AS id_1" columns                                                      \
    " FROM __intrinsic_table_ptr(__intrinsic_interval_intersect(" a ", " b ", '" keys "')) WHERE "                     \
    "__intrinsic_table_ptr_bind(c0, 'ts') AND __intrinsic_table_ptr_bind(c1, 'dur') AND "                              \
    "__intrinsic_table_ptr_bind(c2, 'id_0') AND __intrinsic_table_ptr_bind(c3, 'id_1')"
#define BY_TRACK                                                                                                       \
    MEET(", c4 AS track_id", SET(", 'track_id', input.track_id", SPANS("depth < 2")),                                  \
         SET(", 'track_id', input.track_id", SPANS("depth > 2")), "(track_id)")                                        \
    " AND __intrinsic_table_ptr_bind(c4, 'track_id'))"
#define BY_NAME                                                                                                        \
    MEET(", c4 AS name", SET(", 'name', input.name", SPANS("depth = 1")),                                              \
         SET(", 'name', input.name", SPANS("id < 200")), "(name)")                                                     \
    " AND __intrinsic_table_ptr_bind(c4, 'name'))"
#define BY_NOTHING MEET("", SET("", SPANS("id < 60")), SET("", SPANS("id > 700 AND id < 800")), "()") ")"

/* Tables that functions give: what they are made of is read as columns, and so are they. Some fail; memory runs out in
 * all. */
START_TEST(tables_of_functions_are_read_as_columns)
{
    static const char *const queries[] = {
        "SELECT * FROM " BY_TRACK,
        "SELECT count(*), sum(dur), min(ts), max(id_1), sum(track_id) FROM " BY_TRACK,
        "SELECT s.name, count(*), sum(i.dur) FROM " BY_TRACK " AS i JOIN v_slice s ON s.id = i.id_0 GROUP BY 1",
        "SELECT t.name, i.* FROM " BY_TRACK " AS i LEFT JOIN v_thread t ON t.id = i.track_id ORDER BY i.ts, 2, 3, 4",
        "SELECT name, count(*), sum(dur) FROM " BY_NAME " GROUP BY name",
        "SELECT a.name, b.depth, i.name FROM " BY_NAME " AS i JOIN v_slice a ON a.id = i.id_0 JOIN v_slice b ON b.id = "
        "i.id_1 WHERE i.dur > 3",
        "SELECT * FROM " BY_NOTHING " ORDER BY dur DESC, ts, id_0, id_1 LIMIT 30",
        "SELECT id_0, count(*) FROM " BY_NOTHING " GROUP BY id_0",
        "WITH w AS (SELECT id, ts, dur, depth AS track_id FROM v_slice WHERE dur > 0 AND ts > 0) SELECT count(*), "
        "sum(dur) FROM " MEET("", SET(", 'track_id', input.track_id", "w"),
                              SET(", 'track_id', input.track_id", SPANS("id > 100")), "(track_id)") ")",
        "SELECT count(*) FROM " MEET("", SET("", SPANS("id < 0")), SET("", SPANS("id > 7")), "()") ")",
        "SELECT count(*) FROM " MEET("", SET("", "v_slice"), SET("", SPANS("id > 7")), "()") ")",
        "SELECT count(*), sum(dur) FROM " MEET("", SET("", "(SELECT id, ts, dur FROM v_slice)"),
                                               SET("", SPANS("id > 7")), "()") ")",
        "SELECT count(*) FROM " MEET("", SET(", 'a', input.depth", SPANS("id < 9")), SET("", SPANS("id > 7")),
                                     "(a)") ")",
        "SELECT count(*), sum(dur) FROM " MEET("",
                                               SET(", 'r', input.value", "(SELECT id, 5 AS ts, 9 AS dur, value FROM "
                                                                         "v_counter WHERE id < 300)"),
                                               SET(", 'r', input.value", "(SELECT id, 7 AS ts, 1 AS dur, value FROM "
                                                                         "v_counter WHERE id > 200)"),
                                               "(r)") ")",
        "SELECT count(*), sum(dur), min(id_0) FROM " MEET("", SET("", "(SELECT 1 AS id, 0 AS ts, 9000 AS dur)"),
                                                          SET("", SPANS("id > 7")), "()") ")",
        "SELECT count(*), sum(dur), min(id_1) FROM " MEET(
            "", SET("", SPANS("id > 7")),
            SET("", "(SELECT id, ts, dur FROM (VALUES (1, 5, 700)) v, (SELECT 2 AS id, "
                    "7 AS ts, 90 AS dur))"),
            "()") ")",
        "SELECT c0 FROM __intrinsic_table_ptr(__intrinsic_interval_intersect(" SET(
            "", SPANS("id < 90")) ", '()')) WHERE "
                                  "__intrinsic_table_ptr_bind(c0, 'nothing')",
        "SELECT c0, c9 FROM __intrinsic_table_ptr(__intrinsic_interval_intersect(" SET(
            "", SPANS("id < 90")) ", '()')) "
                                  "WHERE __intrinsic_table_ptr_bind(c0, 'ts')",
        "SELECT c0 + 1 FROM __intrinsic_table_ptr(__intrinsic_interval_intersect(" SET(
            "", SPANS("id < 90")) ", '()')) "
                                  "WHERE __intrinsic_table_ptr_bind(c0, 'ts') AND c0 > 100 ORDER BY c0 LIMIT 10"};
    struct mirror m;
    int planned = 0;
    mirror_open(&m, 78, ROWS);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        planned += mirror_compare_planner(&m, queries[i]);
    ck_assert_int_ge(planned, 10);
    for (unsigned fail_at = 1; fail_at < 400; fail_at += 13)
        mirror_check_memory(&m, queries[fail_at % (sizeof queries / sizeof *queries)], fail_at, fail_at % 2);
    mirror_close(&m);
}
END_TEST

Suite *sql_pointers_suite(void);
Suite *sql_pointers_suite(void)
{
    Suite *s = suite_create("sql_pointers");
    TCase *t = tcase_create("pointers");
    tcase_set_timeout(t, 0);
    tcase_add_test(t, tables_of_functions_are_read_as_columns);
    suite_add_tcase(s, t);
    return s;
}
