/* Queries within expressions: looked up, or asked by batches of the rows outside. */
#include "plan_shapes.h"

#include <check.h>

/* Queries within expressions that compare with rows outside: is there one, which is the last before, how many between.
 */
START_TEST(lookups_by_ranges)
{
    static const char *const planned[] = {
        "SELECT id, (SELECT c.value FROM v_counter c WHERE c.ts <= s.ts ORDER BY c.ts DESC LIMIT 1) FROM v_slice s",
        "SELECT id, (SELECT z.id FROM v_slice z WHERE z.track_id = s.track_id AND z.ts < s.ts ORDER BY z.ts DESC LIMIT "
        "1) FROM v_slice s",
        "SELECT id, (SELECT z.name FROM v_slice z WHERE z.depth = s.depth AND z.ts > s.ts AND z.dur > s.dur) FROM "
        "v_slice s",
        "SELECT id, (SELECT max(z.ts) FROM v_slice z WHERE z.track_id = s.track_id AND z.ts < s.ts) FROM v_slice s",
        "SELECT id, (SELECT min(z.dur) FROM v_slice z WHERE z.track_id = s.track_id AND z.ts BETWEEN s.ts AND s.ts + "
        "s.dur) FROM v_slice s",
        "SELECT id, (SELECT count(*) FROM v_counter c WHERE c.ts >= s.ts AND c.ts < s.ts + 90), (SELECT "
        "coalesce(sum(z.depth), -1) FROM v_slice z WHERE z.track_id = s.depth AND z.ts <= s.ts AND z.name != s.name) "
        "FROM v_slice s",
        "SELECT id, (SELECT avg(z.depth) FROM v_slice z WHERE z.track_id = s.track_id AND z.ts > s.ts), (SELECT "
        "total(z.depth) FROM v_slice z WHERE z.track_id = s.track_id AND z.ts > s.ts) FROM v_slice s",
        "SELECT count(*), sum(dur) FROM v_slice s WHERE NOT EXISTS (SELECT 1 FROM v_slice z WHERE z.track_id = "
        "s.track_id AND z.ts > s.ts AND z.ts < s.ts + 30)",
        "SELECT count(*) FROM v_slice s WHERE EXISTS (SELECT * FROM v_slice z WHERE z.ts = s.ts AND z.depth != "
        "s.depth)",
        "SELECT count(*) FROM v_slice s WHERE EXISTS (SELECT 1 FROM v_slice z WHERE z.track_id = s.track_id AND z.ts < "
        "s.ts AND z.ts + z.dur > s.ts AND z.name != s.name)",
        "SELECT id, (SELECT z.dur FROM v_slice z WHERE z.track_id = s.track_id ORDER BY z.ts DESC LIMIT 1) FROM "
        "v_slice s",
        "SELECT count(*) FROM v_slice s WHERE (SELECT count(*) FROM v_thread y JOIN v_slice z ON z.depth = y.tid WHERE "
        "z.track_id = s.track_id AND y.upid > s.depth) > 1"};
    static const char *const moved[] = {
        "SELECT id, (SELECT s.ts - max(z.ts + z.dur) FROM v_slice z WHERE z.track_id = s.track_id AND z.ts < s.ts) "
        "FROM "
        "v_slice s",
        "SELECT id, (SELECT count(*) > s.depth / 4 FROM v_slice z WHERE z.track_id = s.track_id AND z.ts < s.ts) FROM "
        "v_slice s",
        "SELECT id, (SELECT coalesce(max(c.value), 0.5) IS NULL FROM v_counter c WHERE c.track_id = s.track_id AND "
        "c.ts > s.ts) FROM v_slice s",
        "SELECT id, (SELECT s.name || max(z.dur) FROM v_slice z WHERE z.track_id = s.depth) FROM v_slice s",
        "SELECT id, (SELECT t.name FROM v_thread t JOIN v_machine m ON m.id = t.id WHERE t.id = s.depth) FROM v_slice "
        "s",
        "SELECT id, (SELECT max(c.value) FROM v_counter c WHERE c.track_id = s.track_id AND c.ts <= s.ts) FROM v_slice "
        "s",
        "SELECT count(*), min(ts) FROM v_slice WHERE ts > (SELECT min(ts) + 90 FROM v_slice) AND dur < (SELECT max(ts) "
        "FROM v_counter WHERE id < 0)",
        "SELECT (ts - (SELECT start_ts FROM trace_bounds)) / 100, count(*) FROM v_slice GROUP BY 1",
        "SELECT count(*), min(ts) FROM v_slice WHERE name IN ('a', 'B', 'none such') AND depth IN (3, 9, 200)",
        "SELECT name, dur, id FROM v_slice WHERE dur > 4 ORDER BY name, dur DESC, id",
        "SELECT id, dur + 1, upper(name) FROM v_slice ORDER BY category DESC, thread_ts",
        "SELECT thread_ts, id FROM v_slice ORDER BY thread_ts DESC, track_id"};
    static const char *const others[] = {
        "SELECT id, name, (id / 900) * 9223372036854775807 FROM v_slice ORDER BY depth, name",
        "SELECT id, (SELECT sum(z.ts * 4000000000000000) FROM v_slice z WHERE z.track_id = s.track_id AND z.ts < s.ts) "
        "FROM v_slice s",
        "SELECT id, (SELECT z.id FROM v_slice z WHERE z.ts = s.ts AND z.id > s.id ORDER BY z.ts DESC LIMIT 1) FROM "
        "v_slice s",
        "SELECT id, (SELECT max(c.value) FROM v_counter c WHERE c.ts < s.ts AND c.ts > s.ts - 50) FROM v_slice s",
        "SELECT id, (SELECT group_concat(z.id) FROM v_slice z WHERE z.track_id = s.track_id AND z.ts < s.ts) FROM "
        "v_slice s WHERE id < 300",
        "SELECT id, (SELECT z.ts - max(z.ts) FROM v_slice z WHERE z.track_id = s.track_id AND z.ts < s.ts) FROM "
        "v_slice s",
        "SELECT id, (SELECT t.name FROM v_thread t JOIN v_slice z ON z.depth = t.id WHERE t.tid = s.depth) FROM "
        "v_slice "
        "s WHERE id < 400"};
    struct mirror m;
    mirror_open(&m, 61, PLAN_ROWS);
    EACH(&m, planned, PLANNED);
    EACH(&m, moved, PLANNED);
    EACH(&m, others, EITHER);
    mirror_close(&m);
}
END_TEST

/* Queries within expressions that mix what they read with the rows outside: they are asked by batches of those. */
START_TEST(correlated_queries)
{
    static const char *const planned[] = {
        "SELECT s.id, (SELECT sum(min(c.ts + c.dur, s.ts + s.dur) - max(c.ts, s.ts)) FROM v_slice c WHERE c.track_id = "
        "s.track_id AND c.ts < s.ts + s.dur AND c.ts + c.dur > s.ts AND c.dur < 9999) FROM v_slice s WHERE s.dur < "
        "9999",
        "SELECT s.name, sum((SELECT sum(min(c.ts, s.ts)) FROM v_slice c WHERE c.depth = s.depth AND c.ts < s.ts)) FROM "
        "v_slice s GROUP BY 1",
        "SELECT t.id, (SELECT name FROM v_slice s WHERE s.depth = t.tid GROUP BY name ORDER BY count(*) DESC, name "
        "LIMIT 1) FROM v_thread t",
        "SELECT t.id, (SELECT count(*) FROM v_slice s WHERE s.depth = t.tid GROUP BY name HAVING count(*) > t.upid "
        "ORDER BY 1 LIMIT 1) FROM v_thread t",
        "SELECT t.id, (SELECT sum(s.ts - t.tid) * 1.0 / count(s.ts + t.tid) + t.upid FROM v_slice s WHERE s.depth = "
        "t.tid) FROM v_thread t",
        "SELECT t.id, (SELECT coalesce(sum(s.ts - t.tid), 0) * 2 + t.id FROM v_slice s WHERE s.depth = t.tid) FROM "
        "v_thread t",
        /* no rows: 0 of count(), NULL of the others */
        "SELECT t.id, (SELECT count(*) FROM v_slice s WHERE s.depth = t.tid AND s.dur + t.id < 0), (SELECT max(s.id + "
        "t.id) FROM v_slice s WHERE s.depth = t.tid AND s.dur + t.id < 0) FROM v_thread t",
        /* reals are added as SQLite finds them */
        "SELECT t.id, (SELECT sum(s.dur / 3.0 + t.id) FROM v_slice s WHERE s.depth = t.tid) FROM v_thread t",
        "SELECT t.id, (SELECT group_concat(s.id + t.id) FROM v_slice s WHERE s.depth = t.tid) FROM v_thread t",
        "SELECT id FROM v_slice s WHERE EXISTS (SELECT 1 FROM v_slice c WHERE c.track_id = s.track_id AND (c.ts > s.ts "
        "OR c.dur < s.dur) AND c.id != s.id)",
        "SELECT count(*) FROM v_thread t WHERE NOT EXISTS (SELECT * FROM v_slice s LEFT JOIN v_slice p ON p.id = "
        "s.parent_id WHERE s.depth = t.tid AND coalesce(p.ts, 0) > t.upid)",
        "SELECT t.id FROM v_thread t WHERE EXISTS (SELECT 1 FROM v_slice s WHERE s.depth = t.tid GROUP BY s.name "
        "HAVING count(*) > t.upid)",
        /* the same value of the first row, whichever that is */
        "SELECT s.id, (SELECT s.ts + c.depth FROM v_slice c WHERE c.id = s.parent_id LIMIT 1) FROM v_slice s",
        "SELECT s.id, (SELECT c.ts - s.ts AS d FROM v_slice c WHERE c.track_id = s.track_id AND c.ts >= s.ts ORDER BY "
        "d, c.id LIMIT 1) FROM v_slice s",
        /* a query within the query, which looks outside of both */
        "SELECT t.id, (SELECT count(*) FROM v_slice s WHERE s.depth = t.tid AND (SELECT count(*) FROM v_slice c WHERE "
        "c.parent_id = s.id AND c.ts > 5) < t.upid + s.ts % 2) FROM v_thread t",
    };
    static const char *const others[] = {
        /* an aggregate of nothing but outer columns is the outer query's */
        "SELECT (SELECT sum(t.tid) FROM v_slice s WHERE s.depth = t.tid AND s.dur + t.id > 0) FROM v_thread t",
        "SELECT t.id, (SELECT count(*) FROM v_slice s WHERE s.depth = t.tid AND sum(t.id) > 0) FROM v_thread t",
        "SELECT t.upid, (SELECT max(s.ts + t.upid) FROM v_slice s WHERE s.depth = t.upid), count(*) FROM v_thread t "
        "GROUP BY t.upid",
        "SELECT t.upid, (SELECT max(s.ts + sum(t.tid)) FROM v_slice s WHERE s.depth = t.upid) FROM v_thread t GROUP BY "
        "1",
        /* sums that overflow, and values of several types */
        "SELECT t.id, (SELECT sum(s.dur * 4611686018427387904 + t.tid) FROM v_slice s WHERE s.depth = t.tid) FROM "
        "v_thread t",
        "SELECT t.id, (SELECT iif(s.id % 2, s.dur + t.id, s.name) FROM v_slice s WHERE s.id = t.tid) FROM v_thread t",
        "SELECT t.id, (SELECT s.name || t.name FROM v_slice s WHERE s.id = t.tid + t.upid) AS x FROM v_thread t ORDER "
        "BY x COLLATE NOCASE, 1",
        "SELECT t.id, (SELECT count(*) FROM v_slice s WHERE s.name = t.name COLLATE NOCASE) FROM v_thread t",
        "SELECT t.id, (SELECT count(*) FROM v_slice s WHERE s.name COLLATE NOCASE > t.name AND s.depth = t.tid) FROM "
        "v_thread t",
        /* which row is the first nobody knows */
        "SELECT t.id, (SELECT s.id + t.id FROM v_slice s WHERE s.depth = t.tid) FROM v_thread t",
        "SELECT t.id, (SELECT s.id + t.id FROM v_slice s WHERE s.depth = t.tid ORDER BY s.name LIMIT 1) FROM v_thread "
        "t",
        "SELECT t.id, (SELECT s.name FROM v_slice s WHERE s.depth = t.tid GROUP BY s.name ORDER BY count(*) LIMIT 1) "
        "FROM v_thread t",
        "SELECT t.id, (SELECT max(s.ts + t.id) || s.name FROM v_slice s WHERE s.depth = t.tid) FROM v_thread t",
        "SELECT t.id, (SELECT s.name FROM v_slice s WHERE s.depth = t.tid GROUP BY s.depth ORDER BY max(s.ts)) FROM "
        "v_thread t",
        /* GROUP BY and ORDER BY see nothing outside */
        "SELECT t.id, (SELECT s.ts FROM v_slice s WHERE s.id = t.tid ORDER BY s.ts - t.id LIMIT 1) FROM v_thread t",
        "SELECT t.id, (SELECT s.ts - t.id FROM v_slice s WHERE s.id = t.tid ORDER BY s.ts - t.id LIMIT 1) FROM "
        "v_thread t",
        "SELECT t.id, (SELECT count(*) FROM v_slice s WHERE s.id = t.tid GROUP BY s.ts - t.id LIMIT 1) FROM v_thread t",
        "SELECT t.id, (SELECT s.ts - t.id AS x FROM v_slice s WHERE s.id = t.tid GROUP BY x LIMIT 1) FROM v_thread t",
        /* names: an alias, a column outside that the query has, too, words for truth */
        "SELECT t.id AS ts, (SELECT count(*) FROM v_slice s WHERE s.depth = tid AND ts + upid > 9) FROM v_thread t",
        "SELECT t.id, (SELECT s.ts + upid AS tid FROM v_slice s WHERE s.id = tid) FROM v_thread t",
        "SELECT t.id, (SELECT s.ts + tid AS x FROM v_slice s WHERE s.id = upid AND x > 3) FROM v_thread t",
        "SELECT q.\"true\", (SELECT count(*) FROM v_slice s WHERE s.depth = q.k AND true + s.ts > 1) FROM (SELECT "
        "depth AS k, 5 AS \"true\" FROM v_slice) q",
        "SELECT t.id, (SELECT count(*) FROM v_slice s WHERE s.depth = t.tid AND \"upid\" + s.ts > 9) FROM v_thread t",
        /* in order of lists, and windows */
        "SELECT t.id, (SELECT sum(s.dur / 3.0 + t.id) FROM v_slice s WHERE s.depth IN (7, 3, t.tid)) FROM v_thread t",
        "SELECT t.id, (SELECT row_number() OVER (ORDER BY s.id) + t.id FROM v_slice s WHERE s.depth = t.tid) FROM "
        "v_thread t",
        "SELECT t.id, (SELECT DISTINCT s.depth + t.id FROM v_slice s WHERE s.depth = t.tid) FROM v_thread t",
        "SELECT t.id, (SELECT s.id + t.id FROM v_slice s WHERE s.depth = t.tid UNION SELECT 5) FROM v_thread t",
        "SELECT t.id, (SELECT s.id + t.id FROM v_slice s WHERE s.depth = t.tid ORDER BY s.id LIMIT 1 OFFSET 2) FROM "
        "v_thread t",
        "SELECT t.id, (SELECT s.id + t.id FROM v_slice s WHERE s.depth = t.tid ORDER BY s.id LIMIT 0) FROM v_thread t",
        "SELECT t.id, (SELECT count(s.id + t.id) FROM v_slice s WHERE s.depth = t.tid LIMIT 0) FROM v_thread t",
        /* a join with nothing that finds rows, and a right join */
        "SELECT t.id, (SELECT count(*) FROM v_slice s WHERE s.depth != t.tid OR s.dur > t.id) FROM v_thread t",
        "SELECT t.id, EXISTS (SELECT 1 FROM v_slice s WHERE s.depth != t.tid OR s.dur > t.id) FROM v_thread t",
        "SELECT t.id, (SELECT count(*) FROM v_counter c RIGHT JOIN v_slice s ON c.id = s.id WHERE s.depth = t.tid AND "
        "s.ts > t.upid) FROM v_thread t",
    };
    struct mirror m;
    mirror_open(&m, 2061, PLAN_ROWS);
    EACH(&m, planned, PLANNED);
    EACH(&m, others, EITHER);
    mirror_close(&m);
}
END_TEST

/* Indices that hold the rows of those keys only that ask, first few and then others; rows that are walked to; sources
 * of one row. */
START_TEST(few_rows_ask)
{
    static const char *const planned[] = {
        "SELECT t.id, count(*), sum(min(s.ts + s.dur, t.upid + 900) - max(s.ts, t.upid)) FROM v_thread t JOIN v_slice "
        "s ON s.track_id = t.id AND s.ts < t.upid + 900 AND s.ts + s.dur > t.upid WHERE t.id IN (1, 3) GROUP BY t.id",
        /* the second thousand of rows has other keys than the first, and NULL is one of them */
        "SELECT a.k, count(*), sum(b.id) FROM (SELECT iif(id < 2000, id % 2, iif(id % 5, id % 7, NULL)) AS k, ts FROM "
        "v_slice WHERE dur > -90000) a JOIN v_slice b ON b.depth = a.k AND b.ts < a.ts AND b.ts + b.dur > a.ts GROUP "
        "BY 1",
        "SELECT count(*), count(b.id), sum(b.id) FROM (SELECT iif(id < 2300, NULL, id % 3) AS k, ts FROM v_slice) a "
        "LEFT JOIN v_slice b ON b.depth = a.k AND b.ts <= a.ts AND b.ts + b.dur >= a.ts",
        "SELECT count(*), sum(b.id) FROM v_thread t JOIN v_slice b ON b.depth = t.id - 900 AND b.ts < t.tid",
        /* the nearest row, from either end */
        "SELECT id, (SELECT max(z.ts) FROM v_slice z WHERE z.depth = s.depth AND z.ts < s.ts), (SELECT min(z.ts) FROM "
        "v_slice z WHERE z.depth = s.depth AND z.ts > s.ts AND z.dur > 5) FROM v_slice s WHERE id % 400 = 3",
        "SELECT id, (SELECT z.id FROM v_slice z WHERE z.depth = s.depth AND z.ts <= s.ts ORDER BY z.ts DESC LIMIT 1), "
        "(SELECT z.name FROM v_slice z WHERE z.track_id = s.depth AND z.ts >= s.ts LIMIT 1) FROM v_slice s WHERE id % "
        "400 = 3",
        "SELECT count(*) FROM v_slice s WHERE id % 300 < 2 AND EXISTS (SELECT 1 FROM v_slice z WHERE z.depth = s.depth "
        "AND z.ts > s.ts + 40 AND z.dur != s.dur)",
        "SELECT count(*) FROM v_slice s WHERE id % 300 < 2 AND NOT EXISTS (SELECT 1 FROM v_slice z WHERE z.name = 'zz' "
        "AND z.ts < s.ts - 900)",
        /* bounds at both ends come first, whatever stands before them */
        "SELECT count(*) FROM v_slice s WHERE NOT EXISTS (SELECT 1 FROM v_slice z WHERE z.track_id = s.track_id AND "
        "z.dur > s.dur AND z.depth != s.depth AND z.ts BETWEEN s.ts - 100 AND s.ts)",
        "SELECT id, (SELECT count(z.dur) FROM v_slice z WHERE z.track_id = s.track_id AND z.dur < s.dur AND z.ts > "
        "s.ts), (SELECT sum(z.ts) FROM v_slice z WHERE z.track_id = s.track_id AND z.depth < s.depth AND z.ts + "
        "z.depth > s.ts) FROM v_slice s WHERE s.dur < 9999",
        /* one row beside all */
        "SELECT s.track_id, sum(s.ts) * 1.0 / w.t, w.n FROM v_slice s, (SELECT sum(ts) AS t, count(*) AS n FROM "
        "v_slice) w GROUP BY 1",
        "SELECT count(*), sum(w.m) FROM v_slice s JOIN v_thread t ON t.id = s.depth LEFT JOIN (SELECT max(ts) AS m "
        "FROM v_slice WHERE dur < 0) w WHERE coalesce(w.m, 7) > s.depth",
        "SELECT count(*) FROM v_slice s, (SELECT max(ts) / 2 AS m FROM v_slice) w WHERE s.ts > w.m AND s.depth IS NOT "
        "NULL AND s.name IS NOT NULL AND s.dur != 7",
    };
    struct mirror m;
    mirror_open(&m, 2129, PLAN_ROWS);
    EACH(&m, planned, PLANNED);
    mirror_close(&m);
}
END_TEST

/* Of a query that SQLite computes first it makes an index for the rows that ask, sorted by all its columns: which row
 * of a key comes first is not that of the query itself. */
START_TEST(first_rows_of_what_is_computed)
{
    static const char *const either[] = {
        "SELECT name, (SELECT w FROM (SELECT depth AS k, name AS w, lag(id) OVER (ORDER BY ts, name) AS l FROM "
        "v_slice) "
        "WHERE k = t.id) FROM v_thread t",
        "SELECT name, (SELECT w FROM (SELECT depth AS k, name AS w FROM v_slice ORDER BY dur LIMIT 900) WHERE k = t.id "
        "LIMIT 1) FROM v_thread t",
        "SELECT name, (SELECT group_concat(w) FROM (SELECT depth AS k, name AS w, row_number() OVER (ORDER BY dur) "
        "FROM "
        "v_slice) WHERE k = t.id) FROM v_thread t",
        "SELECT name, (SELECT w FROM (SELECT DISTINCT depth AS k, name AS w FROM v_slice) n WHERE n.k = t.start_ts AND "
        "n.w <= t.name ORDER BY n.k DESC LIMIT 1) FROM v_thread t",
        "SELECT ts, (SELECT w FROM (SELECT DISTINCT depth AS k, name AS w FROM v_slice) n WHERE n.k = c.id AND n.w || "
        "'zz' >= 'abc' ORDER BY n.k DESC, n.k LIMIT 1) FROM v_counter c"};
    static const char *const planned[] = {
        "SELECT name, (SELECT n FROM (SELECT depth AS k, count(*) AS n FROM v_slice GROUP BY 1) WHERE k = t.id) FROM "
        "v_thread t",
        "SELECT name, (SELECT w FROM (SELECT depth AS k, id AS i, name AS w, lag(id) OVER (ORDER BY ts, name) AS l "
        "FROM "
        "v_slice) WHERE k = t.id ORDER BY i LIMIT 1) FROM v_thread t",
        "SELECT name, (SELECT max(w) FROM (SELECT depth AS k, name AS w, lag(id) OVER (ORDER BY ts, name) AS l FROM "
        "v_slice) WHERE k = t.id) FROM v_thread t"};
    struct mirror m;
    mirror_open(&m, 502, PLAN_ROWS);
    EACH(&m, either, EITHER);
    EACH(&m, planned, PLANNED);
    mirror_close(&m);
}
END_TEST

Suite *sql_plan_lookups_suite(void);
Suite *sql_plan_lookups_suite(void)
{
    Suite *s = suite_create("sql_plan_lookups");
    TCase *t = tcase_create("lookups");
    tcase_set_timeout(t, 0);
    tcase_add_test(t, lookups_by_ranges);
    tcase_add_test(t, correlated_queries);
    tcase_add_test(t, few_rows_ask);
    tcase_add_test(t, first_rows_of_what_is_computed);
    suite_add_tcase(s, t);
    return s;
}
