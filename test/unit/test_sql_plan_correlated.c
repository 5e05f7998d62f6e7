/* Queries that rows outside ask: errors in the middle, NULLs, duplicates, LIMIT, depth, and more than a plan has room
 * for. Their answers are those of SQLite alone. */
#include "plan_shapes.h"

/* What raises an error does so in some rows only, or where nobody looks. */
START_TEST(errors_in_the_middle)
{
    static const char *const statements[] = {
        "SELECT t.id, (SELECT max(abs(CASE WHEN s.id = 77 AND t.id > 5 THEN -9223372036854775807 - 1 ELSE s.ts + t.id "
        "END)) FROM v_slice s WHERE s.track_id = t.tid OR s.id = 77) FROM v_thread t",
        "SELECT t.id, CASE WHEN t.id < 3 THEN (SELECT max(abs(CASE WHEN t.id > 5 THEN -9223372036854775807 - 1 ELSE "
        "s.ts + t.id END)) FROM v_slice s WHERE s.track_id = t.tid) END FROM v_thread t",
        "SELECT t.id FROM v_thread t WHERE EXISTS (SELECT 1 FROM v_slice s WHERE s.depth = t.tid AND (s.id > t.id OR "
        "abs(-9223372036854775807 - s.id) > 0))",
        "SELECT t.id, (SELECT sum(s.dur + t.id) * 4611686018427387904 FROM v_slice s WHERE s.depth = t.tid) FROM "
        "v_thread t",
        "SELECT t.id, (SELECT sum(s.thread_ts * 3 + t.id) FROM v_slice s WHERE s.depth = t.tid OR s.dur < t.id) FROM "
        "v_thread t",
        "SELECT t.id, (SELECT json_extract(s.name || t.id, '$.a') FROM v_slice s WHERE s.depth = t.tid AND s.dur > "
        "t.id - 5 ORDER BY s.id LIMIT 1) FROM v_thread t",
        "SELECT t.id, (SELECT percentile(s.dur - t.id, t.id * 3) FROM v_slice s WHERE s.depth = t.tid) FROM v_thread t",
        "SELECT t.id, (SELECT count(*) FROM ancestor_slice(t.id * 60) a WHERE a.depth > t.tid) FROM v_thread t",
        "SELECT t.id, (SELECT count(*) FROM v_slice s WHERE s.depth = t.tid AND s.name REGEXP t.name || '(') FROM "
        "v_thread t",
        "SELECT t.id, (SELECT no_such(s.id + t.id) FROM v_slice s WHERE s.depth = t.tid) FROM v_thread t",
        "SELECT t.id, (SELECT s.id + t.id, s.ts FROM v_slice s WHERE s.depth = t.tid) FROM v_thread t",
        "SELECT t.id, (SELECT max(s.id + u.id) FROM v_slice s WHERE s.depth = t.tid) FROM v_thread t"};
    struct mirror m;
    mirror_open(&m, 3111, PLAN_ROWS);
    EACH(&m, statements, EITHER);
    mirror_close(&m);
}
END_TEST

START_TEST(nulls_duplicates_and_limits)
{
    static const char *const planned[] = {
        /* NULL asks, and is among what is asked for */
        "SELECT s.id, (SELECT count(*) FROM v_slice z WHERE z.parent_id IS s.parent_id AND z.dur + s.depth > 900) FROM "
        "v_slice s WHERE s.id % 50 = 7",
        "SELECT s.id, (SELECT max(z.parent_id + s.parent_id) FROM v_slice z WHERE z.depth = s.depth) FROM v_slice s",
        "SELECT s.parent_id, (SELECT min(coalesce(z.parent_id, s.parent_id)) FROM v_slice z WHERE z.depth = s.depth) "
        "FROM v_slice s",
        "SELECT t.id, (SELECT count(z.name || t.name) FROM v_slice z WHERE z.depth = t.tid) FROM v_thread t",
        "SELECT t.id FROM v_thread t WHERE NOT EXISTS (SELECT 1 FROM v_slice z WHERE z.depth = t.tid AND (z.name < "
        "t.name OR z.dur = t.upid))",
        /* many rows ask for the same, and then none does again */
        "SELECT s.depth % 3, sum((SELECT count(*) FROM v_slice z WHERE z.depth = s.depth % 3 AND z.dur + s.depth % 3 > "
        "50)) FROM v_slice s GROUP BY 1",
        "SELECT s.id, (SELECT sum(z.dur + s.id) FROM v_slice z WHERE z.depth = s.track_id) FROM v_slice s",
        "SELECT s.id, (SELECT z.id + s.depth FROM v_slice z WHERE z.depth = s.track_id ORDER BY z.id LIMIT 1) FROM "
        "v_slice s",
        "SELECT s.id, (SELECT z.id + s.depth FROM v_slice z WHERE z.depth = s.track_id ORDER BY z.dur DESC, z.id DESC "
        "LIMIT 1) FROM v_slice s"};
    static const char *const either[] = {
        "SELECT s.id, (SELECT z.id + s.depth FROM v_slice z WHERE z.depth = s.track_id ORDER BY z.id LIMIT 1 OFFSET 1) "
        "FROM v_slice s WHERE s.id < 300",
        "SELECT s.id, (SELECT z.id + s.depth FROM v_slice z WHERE z.depth = s.track_id ORDER BY z.id LIMIT 0) FROM "
        "v_slice s WHERE s.id < 300",
        "SELECT s.id, (SELECT z.id + s.depth FROM v_slice z WHERE z.depth = s.track_id ORDER BY z.id LIMIT -1) FROM "
        "v_slice s WHERE s.id < 300",
        "SELECT s.id, (SELECT z.id + s.depth FROM v_slice z WHERE z.depth = s.track_id ORDER BY z.id LIMIT s.depth) "
        "FROM v_slice s WHERE s.id < 300",
        "SELECT s.id, (SELECT z.id + s.depth FROM v_slice z WHERE z.depth = s.track_id ORDER BY z.id LIMIT 1 OFFSET "
        "s.depth) FROM v_slice s WHERE s.id < 300",
        "SELECT s.id, EXISTS (SELECT 1 FROM v_slice z WHERE z.depth = s.track_id AND (z.dur > s.dur OR z.ts < s.ts) "
        "LIMIT 0) FROM v_slice s WHERE s.id < 300",
        "SELECT s.id, EXISTS (SELECT 1 FROM v_slice z WHERE z.depth = s.track_id AND (z.dur > s.dur OR z.ts < s.ts) "
        "LIMIT 3 OFFSET 2) FROM v_slice s WHERE s.id < 300",
        /* equals with different values, texts that differ by case alone, zeros of both signs */
        "SELECT t.id, (SELECT z.name || t.id FROM v_slice z WHERE z.depth = t.tid ORDER BY z.depth LIMIT 1) FROM "
        "v_thread t",
        "SELECT t.id, (SELECT z.id + t.id FROM v_slice z WHERE z.depth = t.tid ORDER BY z.name COLLATE NOCASE LIMIT 1) "
        "FROM v_thread t",
        "SELECT t.id, (SELECT min(c.value * (t.id - 20)) FROM v_counter c WHERE c.track_id = t.tid) FROM v_thread t",
        "SELECT t.id, (SELECT c.id + t.id FROM v_counter c WHERE c.track_id = t.tid ORDER BY c.value LIMIT 1) FROM "
        "v_thread t",
        "SELECT c.value, (SELECT count(*) FROM v_slice z WHERE z.depth = c.track_id AND z.dur / 4.0 > c.value) FROM "
        "v_counter c",
        /* names that the rows outside have, too */
        "SELECT id, (SELECT max(id + s.id) FROM v_slice WHERE depth = s.track_id) FROM v_slice s",
        "SELECT id AS dur, (SELECT max(dur + s.ts) FROM v_slice z WHERE z.depth = s.track_id) FROM v_slice s",
        "SELECT s.id, (SELECT s.ts FROM v_slice s WHERE s.depth = track_id ORDER BY s.id LIMIT 1) FROM v_slice s"};
    struct mirror m;
    mirror_open(&m, 3112, 2 * PLAN_ROWS);
    EACH(&m, planned, PLANNED);
    EACH(&m, either, EITHER);
    mirror_close(&m);
}
END_TEST

/* Queries within queries, each level found by its number. SQLite's own parser has no room for more than 6 to 12 of
 * them, ours for more: what is deeper has an answer, or an error, and the same each time. */
START_TEST(queries_lie_deep)
{
    struct mirror m;
    mirror_open(&m, 3113, PLAN_ROWS);
    for (int depth = 1; depth < 40; depth += depth < 8 ? 1 : 7)
        for (int value = 0; value < 2; value++) {
            struct text t = {.n = 0};
            put(&t, "SELECT s0.id FROM v_slice s0 WHERE s0.id < 200");
            for (int i = 1; i <= depth; i++)
                put(&t,
                    value ? " AND coalesce((SELECT max(s%d.dur + s%d.dur) FROM v_slice s%d WHERE s%d.id = s%d.parent_id"
                          : " AND (s%d.dur > s%d.ts OR EXISTS (SELECT 1 FROM v_slice s%d WHERE s%d.id = s%d.parent_id",
                    value ? i : i - 1, i - 1, i, i, i - 1);
            for (int i = 0; i < depth; i++)
                put(&t, value ? "), 1) > 0" : "))");
            ck_assert_uint_lt(t.n, sizeof t.p - 1);
            if (depth < 6)
                mirror_compare_planner(&m, t.p);
            else
                mirror_check_memory(&m, t.p, 17u * (unsigned)depth, false);
        }
    mirror_close(&m);
}
END_TEST

/* More columns of the rows outside, and more queries, than a plan has room for. */
START_TEST(more_than_there_is_room_for)
{
    struct mirror m;
    mirror_open(&m, 3114, PLAN_ROWS);
    for (int n = 1; n < 40; n += 3) {
        struct text columns = {.n = 0}, queries = {.n = 0};
        put(&columns, "SELECT t.id, (SELECT max(s.id");
        put(&queries, "SELECT t.id");
        for (int i = 0; i < n; i++) {
            put(&columns, " + (t.tid + %d) %% %d", i, i + 2);
            put(&queries, ", (SELECT max(s.id + t.tid * %d) FROM v_slice s WHERE s.depth = t.id)", i);
        }
        put(&columns, ") FROM v_slice s WHERE s.depth = t.id) FROM v_thread t");
        put(&queries, " FROM v_thread t");
        mirror_compare_planner(&m, columns.p);
        if (queries.n < sizeof queries.p - 1)
            mirror_compare_planner(&m, queries.p);
    }
    mirror_close(&m);
}
END_TEST

/* An aggregate that names columns of the query around alone is that query's, which is then a group: of a column that
 * nobody asks for, too. */
START_TEST(aggregates_of_the_query_around)
{
    static const char *const owed[] = {
        "SELECT count(*) FROM (SELECT s.id, (SELECT count(*) FILTER (WHERE 'ab' < s.category) FROM v_counter n WHERE "
        "n.track_id = s.id) FROM v_slice s)",
        "SELECT count(*) FROM (SELECT s.id, (SELECT sum(s.id) FROM v_counter) FROM v_slice s)",
        "SELECT id FROM (SELECT s.id, (SELECT max(s.id) FROM v_counter n WHERE n.track_id = s.id) AS x FROM v_slice s)",
        "SELECT count(*) FROM (SELECT s.id, (SELECT 1 FROM v_counter n WHERE n.track_id = s.id HAVING sum(s.id) > 3) "
        "FROM v_slice s)",
        "SELECT count(*) FROM (SELECT s.id, (SELECT n.id FROM v_counter n ORDER BY sum(s.id) > 3 LIMIT 1) FROM v_slice "
        "s)",
        "SELECT count(*) FROM (SELECT s.id, EXISTS (SELECT 1 FROM v_counter n WHERE n.track_id = sum(s.id)) FROM "
        "v_slice s)",
        "SELECT count(*) FROM (SELECT s.id, (SELECT 1 FROM v_counter n JOIN v_thread t ON t.id = max(s.id)) FROM "
        "v_slice s)",
        "SELECT count(*) FROM (SELECT s.id FROM v_slice s ORDER BY (SELECT sum(s.id) FROM v_counter)) q JOIN v_thread "
        "t ON t.id = q.id",
        "SELECT count(*) FROM (SELECT id FROM v_slice ORDER BY count(*)) JOIN v_thread t USING (id)",
        "SELECT count(*), max(w.id) FROM v_thread t LEFT JOIN (SELECT s.id, (SELECT max(s.rowid) FROM v_counter) FROM "
        "v_slice s) w ON w.id = t.id",
        "WITH w AS (SELECT s.dur, (SELECT group_concat(s.name) FROM v_thread) FROM v_slice s) SELECT sum(dur) FROM w",
    };
    static const char *const not_owed[] = {
        "SELECT count(*) FROM (SELECT s.id, (SELECT strftime('%Y', max(n.name)) FROM v_slice n WHERE n.id = s.depth) "
        "FROM v_slice s) WHERE id > 5",
        "SELECT sum(id) FROM (SELECT s.id, (SELECT strftime('%Y', count(*)) FROM v_slice n WHERE n.dur > s.dur) FROM "
        "v_slice s)",
        "SELECT sum(id) FROM (SELECT s.id, (SELECT strftime('%Y', sum(n.dur + s.dur)) FROM v_slice n) FROM v_slice s)",
    };
    struct mirror m;
    mirror_open(&m, 3115, PLAN_ROWS);
    for (size_t i = 0; i < sizeof owed / sizeof *owed; i++)
        mirror_compare_planner(&m, owed[i]);
    for (size_t i = 0; i < sizeof not_owed / sizeof *not_owed; i++)
        ck_assert_msg(mirror_compare_planner(&m, not_owed[i]), "no plan: %s", not_owed[i]);
    mirror_close(&m);
}
END_TEST

/* Where an allocation fails, the error says so or SQLite answers. */
START_TEST(memory_runs_out)
{
    static const char *const queries[] = {
        "SELECT s.id, (SELECT sum(z.dur + s.id) FROM v_slice z WHERE z.depth = s.track_id) FROM v_slice s",
        "SELECT t.id, (SELECT name FROM v_slice s WHERE s.depth = t.tid GROUP BY name ORDER BY count(*) DESC, name "
        "LIMIT 1) FROM v_thread t",
        "SELECT count(*) FROM v_slice s WHERE EXISTS (SELECT 1 FROM v_slice z WHERE z.depth = s.track_id AND (z.dur > "
        "s.dur OR z.ts < s.ts))"};
    struct mirror m;
    mirror_open(&m, 3115, PLAN_ROWS / 2);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        for (unsigned at = 1; at < 400; at += at < 40 ? 1 : 13)
            mirror_check_memory(&m, queries[i], at, at % 2);
    mirror_close(&m);
}
END_TEST

Suite *sql_plan_correlated_suite(void);
Suite *sql_plan_correlated_suite(void)
{
    Suite *s = suite_create("sql_plan_correlated");
    TCase *t = tcase_create("correlated");
    tcase_set_timeout(t, 0);
    tcase_add_test(t, errors_in_the_middle);
    tcase_add_test(t, nulls_duplicates_and_limits);
    tcase_add_test(t, queries_lie_deep);
    tcase_add_test(t, more_than_there_is_room_for);
    tcase_add_test(t, aggregates_of_the_query_around);
    tcase_add_test(t, memory_runs_out);
    suite_add_tcase(s, t);
    return s;
}
