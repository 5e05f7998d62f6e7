/* Statements of certain shapes have plans, or none, and the answer of SQLite alone. */
#include "plan_shapes.h"

#include "sql/engine_private.h"

#include <check.h>
#include <string.h>

/* What was wrong once. */
START_TEST(answers_that_were_wrong)
{
    static const char *const statements[] = {
        /* WHERE found the rows of a left join, by their number, and ON was forgotten */
        "SELECT t.id, s.id, s.depth FROM v_thread t LEFT JOIN v_slice s ON s.depth = t.tid WHERE length(t.name) = s.id",
        "SELECT count(*) FROM v_thread t LEFT JOIN v_slice s ON s.depth = t.tid AND s.dur > 5 WHERE s.id = t.upid + 1",
        /* so was the WHERE of a query in the query on the right of a left join: it became one of the whole */
        "SELECT count(*), count(x.k), sum(x.k) FROM v_thread t LEFT JOIN (SELECT k FROM (SELECT track_id AS k FROM "
        "v_slice WHERE dur > 900000)) x ON x.k = t.id",
        "SELECT t.id, count(*), sum(x.k) FROM v_thread t LEFT JOIN (SELECT z.k FROM (SELECT * FROM (SELECT depth AS k, "
        "name AS n FROM v_slice WHERE dur < 90) WHERE n != 'a') z) x ON x.k = t.id GROUP BY t.id",
        "SELECT t.upid, count(x.one), max(x.k) FROM v_thread t LEFT JOIN (SELECT 1 AS one, k FROM (SELECT depth AS k "
        "FROM v_slice WHERE id % 7 = 3)) x ON x.k = t.id AND x.one < t.tid GROUP BY 1",
        /* the greatest integer was taken for the NULL before it */
        "SELECT t.id, (SELECT min(CASE WHEN s.id > 900 THEN 9223372036854775807 END) FROM v_slice s WHERE s.id < t.id "
        "+ 905) "
        "FROM v_thread t",
        /* sums of reals over frames that slide: added and taken away in SQLite's order */
        "SELECT id, sum(dur / 3.0) OVER (PARTITION BY track_id ORDER BY ts, id ROWS BETWEEN 4 PRECEDING AND 2 "
        "FOLLOWING), "
        "avg(dur * 0.1) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 3 FOLLOWING) FROM v_slice",
        "SELECT id, total(dur / 7.0) OVER (ORDER BY id DESC RANGE BETWEEN 9 PRECEDING AND 5 FOLLOWING), sum(dur / 1e3) "
        "OVER (ORDER BY depth GROUPS BETWEEN 2 PRECEDING AND 1 FOLLOWING) FROM v_slice",
        /* parts of frames that are left out */
        "SELECT id, sum(dur) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING EXCLUDE CURRENT ROW), min(ts) "
        "OVER "
        "(ORDER BY depth GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) FROM v_slice WHERE id < 400",
        "SELECT id, count(*) FILTER (WHERE dur > 5) OVER (PARTITION BY track_id ORDER BY depth RANGE BETWEEN 1 "
        "PRECEDING AND "
        "CURRENT ROW EXCLUDE GROUP), avg(dur / 3.0) OVER (PARTITION BY track_id ROWS BETWEEN UNBOUNDED PRECEDING AND 2 "
        "FOLLOWING EXCLUDE CURRENT ROW) FROM v_slice WHERE id < 900",
        "SELECT id, max(dur) OVER (PARTITION BY depth ORDER BY id DESC RANGE BETWEEN 40 PRECEDING AND 9 FOLLOWING "
        "EXCLUDE "
        "GROUP), total(dur / 7.0) FILTER (WHERE depth > 2) OVER (ORDER BY track_id GROUPS BETWEEN 2 PRECEDING AND "
        "CURRENT "
        "ROW EXCLUDE TIES), row_number() OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING EXCLUDE CURRENT "
        "ROW) "
        "FROM v_slice WHERE id < 700",
        "SELECT id, count(name) OVER (PARTITION BY track_id RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING "
        "EXCLUDE TIES), min(dur) OVER (PARTITION BY track_id ROWS 4 PRECEDING EXCLUDE GROUP) FROM v_slice WHERE id < "
        "700",
        /* DISTINCT of groups and of windows: the first of each kind, as they come */
        "SELECT DISTINCT count(*) / 10, max(depth) FROM v_slice GROUP BY name",
        "SELECT DISTINCT count(*) / 10 AS n FROM v_slice GROUP BY name ORDER BY name DESC LIMIT 5 OFFSET 1",
        "SELECT DISTINCT depth, first_value(name) OVER w, last_value(name) OVER w FROM v_slice WINDOW w AS (PARTITION "
        "BY depth ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        "SELECT DISTINCT track_id, dur / 2.5 - lag(dur) OVER (ORDER BY id) FROM v_slice ORDER BY 2, 1",
        "SELECT DISTINCT ntile(4) OVER (ORDER BY dur, id) AS n FROM v_slice ORDER BY depth, id LIMIT 3",
        /* an empty text alone is NULL to a window */
        "SELECT id, group_concat(name) OVER (PARTITION BY id), group_concat(name, '') OVER (ORDER BY id) FROM v_slice "
        "WHERE name = '' OR id > 2500",
    };
    /* which of equal rows DISTINCT keeps shows where they are ordered by something else */
    static const char *const unknown[] = {
        "SELECT DISTINCT name FROM v_slice ORDER BY dur, name",
        "SELECT DISTINCT depth, name FROM v_slice ORDER BY dur DESC, depth, name",
    };
    struct mirror m;
    mirror_open(&m, 20261126, PLAN_ROWS);
    EACH(&m, statements, PLANNED);
    EACH(&m, unknown, NOT_PLANNED);
    mirror_close(&m);
}
END_TEST

/* Which row stands for a group, or is the first of its key; texts of frames; numbers that are rounded. */
START_TEST(rows_of_extremes_and_frames)
{
    static const char *const statements[] = {
        "SELECT t.upid, max(s.depth), s.id, s.name, t.id FROM v_slice s JOIN v_thread t ON t.id = s.track_id GROUP BY "
        "1",
        "SELECT s.depth, min(t.upid), s.id, t.id FROM v_thread t JOIN v_slice s ON s.track_id = t.id GROUP BY s.depth",
        "SELECT t.name, s.id, count(*) FROM v_slice s JOIN v_thread t ON t.id = s.track_id GROUP BY t.name",
        "SELECT x.id, (SELECT z.name FROM v_thread y JOIN v_slice z ON z.depth = y.tid WHERE z.track_id = x.depth "
        "ORDER "
        "BY z.dur DESC, z.id, y.id LIMIT 1) FROM v_slice x",
        "SELECT x.id, (SELECT z.id FROM v_thread y JOIN v_slice z ON z.depth = y.tid WHERE z.track_id = x.depth AND "
        "z.ts > "
        "x.ts ORDER BY z.ts, z.id, y.id DESC LIMIT 1) FROM v_slice x",
        "SELECT id, group_concat(name, '>') OVER (PARTITION BY track_id ORDER BY ts, id ROWS BETWEEN 2 PRECEDING AND "
        "CURRENT ROW) FROM v_slice WHERE name != ''",
        "SELECT id, group_concat(depth) OVER (PARTITION BY depth, track_id ORDER BY id) FROM v_slice",
        "SELECT s.id, round(value, 2), round(value / 7, 1), round(-value * 0.001), round(value, 9) FROM v_slice s JOIN "
        "v_counter c ON c.id = s.id ORDER BY 2, 1",
        "SELECT round((id - 1000) / 8.0, 2) AS r, count(*) FROM v_slice GROUP BY r",
    };
    struct mirror m;
    mirror_open(&m, 411, PLAN_ROWS);
    EACH(&m, statements, PLANNED);
    mirror_close(&m);
}
END_TEST

/* Left joins whose order the answer does not show, or which keep what has no partner. */
START_TEST(left_joins)
{
    static const char *const statements[] = {
        "SELECT s.id, s.name, p.name, t.name FROM v_slice s LEFT JOIN v_slice p ON p.id = s.parent_id JOIN v_thread t "
        "ON "
        "t.id = s.depth WHERE s.dur > 5 ORDER BY s.dur DESC, s.id",
        "SELECT s.name, p.name, count(*), group_concat(s.id) FROM v_slice s LEFT JOIN v_slice p ON p.id = s.parent_id "
        "JOIN v_thread t ON t.id = s.depth GROUP BY 1, 2",
        "SELECT t.id, t.name, s.id FROM v_thread t LEFT JOIN v_slice s ON s.depth = t.tid ORDER BY t.name, s.id, t.id",
        "SELECT t.id, t.name, s.dur FROM v_thread t LEFT JOIN v_slice s ON s.track_id = t.tid WHERE s.id IS NULL",
        "SELECT count(*), group_concat(t.id) FROM v_thread t LEFT JOIN v_slice s ON s.track_id = t.tid AND s.dur > 5 "
        "WHERE s.id IS NULL AND t.upid > 2",
    };
    struct mirror m;
    mirror_open(&m, 61, PLAN_ROWS);
    EACH(&m, statements, PLANNED);
    mirror_close(&m);
}
END_TEST

/* Integers beside reals show as what they are, and what is made of both is known only where it is a real anyway. */
START_TEST(integers_beside_reals)
{
    static const char *const statements[] = {
        "SELECT t.name, sum(iif(s.dur > 500, s.dur / 1e3, 0)), sum(CASE WHEN s.dur < -5 THEN 0.5 ELSE -3 END) FROM "
        "v_slice s JOIN v_thread t ON t.id = s.depth GROUP BY 1 ORDER BY 2 DESC, 3, 1",
        "SELECT id, coalesce(value, 0), lag(value, 1, 0) OVER (ORDER BY id), value - lag(value, 1, 7) OVER (ORDER BY "
        "id) FROM v_counter",
        "SELECT id, coalesce(value, 0) / 2.5, round(coalesce(value, -1), 1), CAST(coalesce(value, 3) AS INT) FROM "
        "v_counter WHERE coalesce(value, 0) > -5 ORDER BY coalesce(value, 0), id",
        "SELECT track_id, sum(x), avg(x), total(x), count(x), median(x) FROM (SELECT track_id, iif(value > 100, value, "
        "0) AS x FROM v_counter) GROUP BY 1 HAVING sum(x) >= 0",
        "SELECT coalesce(sum(CASE WHEN value > 1e300 THEN value ELSE 2 END), 0) FROM v_counter GROUP BY track_id",
    };
    static const char *const unknown[] = {
        "SELECT id, coalesce(value, 0) * 2 FROM v_counter ORDER BY 2",
        "SELECT coalesce(value, 0) AS x, count(*) FROM v_counter GROUP BY x",
        "SELECT max(coalesce(value, 0)), min(iif(id > 5, value, 7)) FROM v_counter",
        "SELECT id, iif(id > 5, value, 5000000000) FROM v_counter ORDER BY 1 DESC",
        "SELECT DISTINCT coalesce(value, 0), coalesce(value, 0) || 'x' FROM v_counter",
    };
#define MIXED "mixed AS (SELECT iif(value > 100, value, 0) AS m, id FROM v_counter) "
    static const char *const by_star[] = {
        "WITH " MIXED "SELECT max(m), min(m), sum(m) FROM (SELECT * FROM mixed ORDER BY id LIMIT 3000)",
        "WITH " MIXED "SELECT m, count(*) FROM (SELECT * FROM mixed LIMIT 3000) GROUP BY m",
        "WITH " MIXED "SELECT sum(m) FROM (SELECT * FROM mixed UNION ALL SELECT * FROM mixed)",
        "WITH " MIXED "SELECT * FROM mixed UNION ALL SELECT value, id FROM v_counter ORDER BY 1, 2",
        "WITH " MIXED "SELECT max(m), count(rn) FROM (SELECT *, row_number() OVER (ORDER BY id) AS rn FROM mixed)",
        "WITH " MIXED "SELECT max(m) FROM (SELECT x.*, count(*) AS c FROM mixed x GROUP BY id)",
        "WITH " MIXED
        "SELECT t.id, x.m FROM v_thread t LEFT JOIN (SELECT * FROM mixed LIMIT 3000) x ON x.id = t.tid WHERE x.m < 100",
        "WITH " MIXED "SELECT t.id, x.m FROM v_thread t LEFT JOIN (SELECT * FROM mixed) x ON x.id = t.id + 5",
        "WITH " MIXED "SELECT count(*), sum(t.id) FROM mixed JOIN (SELECT id, tid AS m FROM v_thread) t USING (m)",
        "WITH " MIXED "SELECT count(*), sum(t.id) FROM (SELECT id, tid AS m FROM v_thread) t JOIN mixed USING (m)",
        "WITH RECURSIVE " MIXED
        ", c(m, x) AS (SELECT * FROM mixed WHERE id < 5 UNION ALL SELECT m, x + 1 FROM c WHERE x < 50) "
        "SELECT max(m), sum(m), min(m) FROM c",
        "WITH " MIXED "SELECT * FROM mixed",
        "WITH " MIXED "SELECT m, id FROM mixed ORDER BY m, id",
    };
    struct mirror m;
    mirror_open(&m, 62, 8 * PLAN_ROWS);
    EACH(&m, statements, PLANNED);
    EACH(&m, unknown, NOT_PLANNED);
    EACH(&m, by_star, EITHER);
    mirror_close(&m);
}
END_TEST

/* Numbers by a recursion that reads no table, of which there may be many; arms of a compound, and their order. */
START_TEST(series_and_ordered_arms)
{
    static const char *const statements[] = {
        "WITH RECURSIVE b(ts) AS (SELECT 0 UNION ALL SELECT ts + 10 FROM b WHERE ts < 20000) SELECT b.ts, count(s.id), "
        "sum(s.depth) FROM b LEFT JOIN v_slice s ON s.ts >= b.ts AND s.ts < b.ts + 10 GROUP BY b.ts",
        "SELECT ts, 'slice' AS k, name FROM v_slice WHERE dur > 7 UNION ALL SELECT id, 'other', NULL FROM v_slice "
        "UNION "
        "ALL SELECT depth, 'last', name FROM v_slice WHERE id > 1900 ORDER BY name DESC, 1",
        "SELECT ts, id FROM v_slice UNION ALL SELECT id, ts FROM v_slice WHERE dur > 3 ORDER BY 2, 1 LIMIT 40 OFFSET 5",
    };
    struct mirror m;
    mirror_open(&m, 63, PLAN_ROWS);
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        each(&m, &statements[i], 1, PLANNED);
        ck_assert_msg(!m.e->plan_gave_up, "%s", statements[i]);
    }
    mirror_close(&m);
}
END_TEST

/* What has no plan as a whole (json_quote) may have plans for the sides of a left join. */
START_TEST(sides_of_a_left_join)
{
    static const char *const statements[] = {
        "SELECT json_quote(t.name), g.n, g.w FROM v_thread t LEFT JOIN (SELECT depth AS k, count(*) AS n, min(name) AS "
        "w "
        "FROM v_slice GROUP BY depth) g ON g.k = t.tid",
        "SELECT json_quote(g.w), t.tid FROM (SELECT depth AS k, max(dur) AS w FROM v_slice GROUP BY 1) g LEFT JOIN "
        "v_thread t ON t.tid = g.k",
        "SELECT json_quote(t.name), g.id FROM v_thread t LEFT JOIN (SELECT id, depth FROM v_slice ORDER BY dur, id "
        "LIMIT "
        "300) g ON g.depth = t.tid",
        "SELECT json_quote(t.tid), g.id FROM v_thread t LEFT JOIN (SELECT DISTINCT depth AS id FROM v_slice) g ON g.id "
        "> "
        "t.tid ORDER BY t.upid",
        "SELECT json_quote(t.tid), count(g.r) FROM v_thread t LEFT JOIN (SELECT depth, rank() OVER (ORDER BY dur) AS r "
        "FROM "
        "v_slice) g ON g.depth = t.tid GROUP BY t.name",
    };
    struct mirror m;
    mirror_open(&m, 9, PLAN_ROWS);
    EACH(&m, statements, PLANNED);
    mirror_close(&m);
}
END_TEST

/* A scan hands out its rows while it goes on. What it has not foreseen comes late here: behind some thousand rows, in
 * the list or the conditions; the rest is SQLite's. */
START_TEST(scans_that_give_up_late)
{
    static const char *const statements[] = {
        "SELECT id, ts, (id / 9000) * 9223372036854775807, name FROM v_slice",
        "SELECT id, name FROM v_slice WHERE (id / 9000) * 9223372036854775807 != 7",
        "SELECT id, dur + 1, name || id, thread_ts FROM v_slice WHERE dur > 0 AND name IS NOT NULL",
        "SELECT id, value, value * 2 FROM v_counter WHERE value > (SELECT avg(value) FROM v_counter)",
        "SELECT name, category FROM v_slice WHERE dur > 9223372036854775806",
    };
    struct mirror m;
    mirror_open(&m, 77, 20000);
    EACH(&m, statements, PLANNED);
    struct engine_result r;
    struct error err = {0};
    struct engine_script script = {.direct = true};
    ck_assert_int_eq(engine_query(m.e, "test", slice_str(statements[0]), &r, &script, &err), 0);
    ck_assert(r.direct != NULL);
    ck_assert_int_eq(engine_result_next(&r, &err), 1);
    engine_interrupt(m.e);
    int rc;
    while ((rc = engine_result_next(&r, &err)) == 1)
        ;
    ck_assert_int_eq(rc, -MRD_ECANCELLED);
    engine_result_close(&r);
    ck_assert(!engine_was_interrupted(m.e));
    mirror_close(&m);
}
END_TEST

static void open_direct(struct mirror *m, const char *sql, struct engine_result *r, struct error *err)
{
    struct engine_script script = {.direct = true};
    ck_assert_msg(engine_query(m->e, "test", slice_str(sql), r, &script, err) == 0, "%s", err->text);
    ck_assert_msg(r->direct != NULL, "%s", sql);
    ck_assert_int_eq(engine_result_next(r, err), 1);
}

/* No statement of SQLite's holds the table of a scan. The scan does; when it gives up, SQLite must not go on in another
 * table of that name. */
START_TEST(tables_change_under_a_scan)
{
    static const char make[] = "CREATE OR REPLACE PERFETTO TABLE kept AS SELECT id AS i, name FROM v_slice";
    static const char late[] = "SELECT i, (i / 9000) * 9223372036854775807, name FROM kept";
    static const char *const changes[] = {
        "DROP TABLE kept",
        "CREATE OR REPLACE PERFETTO TABLE kept AS SELECT id + 100000 AS i, 'other' AS name FROM v_slice",
        "CREATE TEMP VIEW kept AS SELECT 7 AS i, 'view' AS name",
    };
    struct mirror m;
    struct engine_result r;
    struct error err = {0};
    mirror_open(&m, 78, 20000);
    for (size_t i = 0; i < 2 * sizeof changes / sizeof *changes; i++) {
        bool gives_up = i % 2;
        int64_t n = 1;
        int rc;
        ck_assert_msg(engine_run(m.e, "test", make, &err) == 0, "%s", err.text);
        open_direct(&m, gives_up ? late : "SELECT i, name FROM kept", &r, &err);
        ck_assert_msg(engine_run(m.e, "test", changes[i / 2], &err) == 0, "%s", err.text);
        for (; (rc = engine_result_next(&r, &err)) == 1; n++)
            ck_assert_int_eq(engine_value_int64(&r, 0), n);
        ck_assert_int_eq(rc, gives_up ? -MRD_ESQL : 0);
        if (gives_up)
            ck_assert_msg(strstr(err.text, "was replaced"), "%s", err.text);
        else
            ck_assert_int_eq(n, 20000);
        engine_result_close(&r);
        engine_run(m.e, "test", "DROP VIEW temp.kept", NULL);
    }
    mirror_close(&m);
}
END_TEST

/* COLLATE, and JSON in the list: what is planned, and what only looks like it. */
START_TEST(collations_and_json)
{
    static const char *const planned[] = {
        "SELECT name, count(*) FROM v_slice GROUP BY name COLLATE NOCASE",
        "SELECT name COLLATE NOCASE AS n, count(*), max(dur) FROM v_slice GROUP BY n ORDER BY 2 DESC, 1",
        "SELECT name, ts FROM v_slice WHERE dur > 3 ORDER BY name COLLATE NOCASE DESC, ts LIMIT 300",
        "SELECT count(*) FROM v_slice WHERE name = 'AB' COLLATE NOCASE OR name COLLATE NOCASE IN ('b', 'ZZ')",
        "SELECT count(*) FROM v_slice s JOIN v_thread t ON t.name = s.name COLLATE NOCASE AND t.id = s.depth",
        "SELECT s.name, t.name FROM v_slice s JOIN v_thread t ON t.id = s.depth WHERE s.name COLLATE BINARY > t.name "
        "COLLATE NOCASE ORDER BY 1 COLLATE NOCASE, 2",
        "SELECT depth, json_group_array(name), json_group_array(dur) FILTER (WHERE dur > 900) FROM v_slice GROUP BY 1",
        "SELECT json_object('n', name, 'count', count(*), 'sum', sum(dur), 'least', min(ts), 'real', avg(dur)) FROM "
        "v_slice GROUP BY name",
        "SELECT json_group_array(json_object('v', dur / 3.0, 't', s.ts)) FROM v_slice s GROUP BY track_id",
        "SELECT json_group_array(dur / 7.0) FROM v_slice WHERE ts < -5000"};
    static const char *const others[] = {
        "SELECT n FROM (SELECT DISTINCT name COLLATE NOCASE AS n FROM v_slice) ORDER BY n",
        "SELECT * FROM (SELECT name COLLATE NOCASE AS n, max(dur) AS d FROM v_slice GROUP BY 1) WHERE n = 'AB'",
        "SELECT name COLLATE RTRIM, count(*) FROM v_slice GROUP BY 1",
        "SELECT json_array(j) FROM (SELECT json_object('n', name, 'c', count(*)) AS j FROM v_slice GROUP BY name)",
        "SELECT json_array(json_array(max(dur)), 1) FROM v_slice",
        "SELECT json_group_array(j) FROM (SELECT json_group_array(dur) AS j FROM v_slice GROUP BY depth)",
        "SELECT json_object(max(dur), 1) FROM v_slice"};
    struct mirror m;
    mirror_open(&m, 41, PLAN_ROWS);
    EACH(&m, planned, PLANNED);
    EACH(&m, others, EITHER);
    mirror_close(&m);
}
END_TEST

/* Texts that are put together of values: as the rows of a scan, behind joins, in groups, and counted. */
START_TEST(texts_that_are_put_together)
{
    static const char *const planned[] = {
        "SELECT id, printf('%5d|%-6s|%.3s|%08x|%+d|%,d|%%', depth, name, name, ts, dur, ts) FROM v_slice",
        "SELECT printf('%e|%g|%.2f|%s|%d|%s', dur / 3.0, dur, dur / 7, dur, dur / 2.0, dur / 4.0) FROM v_slice",
        "SELECT printf('%s', parent_id), printf('%d%.1f', parent_id, parent_id), format('%10s', depth) FROM v_slice",
        "SELECT id, name || ':' || dur || '/' || (dur / 3.0) || parent_id FROM v_slice",
        "SELECT id, json_object('a\"\\b', name, 'd', dur, 'r', dur / 3.0, 'n', parent_id) FROM v_slice",
        "SELECT json_array(name, dur, parent_id), length(name || dur) FROM v_slice WHERE depth > 1",
        "SELECT max(length(printf('%s %d', name, dur))), count(DISTINCT name || depth), sum(length(name)) FROM v_slice",
        "SELECT t.name || ' ' || s.ts AS l FROM v_slice s JOIN v_thread t ON t.id = s.depth ORDER BY l LIMIT 100",
        "SELECT depth, json_group_array(json_object('id', id, 'n', name)), group_concat(name || dur, '; ') FROM "
        "v_slice "
        "GROUP BY depth",
        "SELECT dur, printf('%d %s', ts, name) AS l FROM v_slice ORDER BY dur DESC, l LIMIT 40"};
    static const char *const others[] = {
        "SELECT json_object(name, dur) FROM v_slice", /* a label that is NULL */
        "SELECT json_array(1e999 * dur) FROM v_slice",
        "SELECT printf('%c%q', name, name), printf('%d', name), printf('%s %s', name), printf('%', dur) FROM v_slice",
        "SELECT printf('%*d', depth, dur), printf('%300d', dur), printf('%.400f', dur / 3.0) FROM v_slice"};
    struct mirror m;
    mirror_open(&m, 77, PLAN_ROWS);
    EACH(&m, planned, PLANNED);
    EACH(&m, others, EITHER);
    mirror_close(&m);
}
END_TEST

/* Calls of table functions, with arguments of all types, some of them again and again: more than are planned at first.
 */
START_TEST(bodies_of_table_functions)
{
    static const char *const statements[] = {
        "SELECT t.tid, b.* FROM v_thread t JOIN within(t.tid, t.name) b",
        "SELECT t.tid, (SELECT sum(b.n) FROM most_of(t.tid % 3, 2) b) FROM v_thread t",
        "SELECT * FROM v_thread t JOIN quoted(t.upid, t.tid / 2.0) b",
        "SELECT a.column1, b.* FROM (VALUES (NULL), (1), (1), (5)) a JOIN quoted(a.column1, 3) b",
        "SELECT a.column1, b.* FROM (VALUES (9223372036854775807), (-9223372036854775807 - 1), (7)) a JOIN "
        "within(a.column1, 'a') b",
        "SELECT count(*) FROM (SELECT 1 AS a UNION ALL SELECT 'x') u JOIN below(u.a) b",
        "SELECT a.column1, b.n FROM (VALUES (0), (-1), (NULL), (3)) a JOIN most_of(1, a.column1) b"};
    struct mirror m;
    struct error err = {0};
    mirror_open(&m, 5, PLAN_ROWS);
    ck_assert_msg(engine_run(m.e, "test", plan_objects, &err) == 0, "%s", err.text);
    for (size_t i = 0; i < 2 * (sizeof statements / sizeof *statements); i++) {
        const char *statement = statements[i / 2];
        m.e->plan_every_call = i % 2;
        m.e->plan_bytes = 0;
        mirror_compare_planner(&m, statement);
        ck_assert_msg(i % 2 == 0 || m.e->plan_bytes > 0 || strstr(statement, "below"), "no plan has run: %s",
                      statement);
    }
    mirror_close(&m);
}
END_TEST

/* Joins of spans, as columns and row by row; with tables that SQLite must refuse. */
START_TEST(span_joins_are_read_as_columns)
{
    static const char *const queries[] = {
        "SELECT count(*), sum(dur), min(ts), max(ts) FROM j",
        "SELECT p, w, count(*), sum(dur) FROM j GROUP BY p, w",
        "SELECT name, count(*), sum(d), avg(w) FROM jl GROUP BY name",
        "SELECT w, name, ts, dur, p FROM jo",
        "SELECT p, count(w), count(name), group_concat(w) FROM jo GROUP BY p",
        "SELECT * FROM j ORDER BY dur DESC, ts, p LIMIT 20",
        "SELECT t.name, count(*), sum(j.dur) FROM j JOIN v_thread t ON t.id = j.p GROUP BY 1",
        "SELECT w, sum(dur) FROM j WHERE name IS NOT NULL GROUP BY w HAVING count(*) > 2",
        "SELECT p, ts, lag(ts) OVER (PARTITION BY p ORDER BY ts) FROM jl",
        "SELECT p, sum(dur) FROM jo WHERE ts > 5000 GROUP BY p",
        "SELECT ts, dur, w FROM j WHERE w IN (200, 3, 17)",
        "SELECT ts, dur, w FROM j WHERE w = 200 OR w = 3",
        "SELECT ts, name, w FROM j WHERE p IN (SELECT 9 - id FROM v_thread WHERE id < 9)",
        "SELECT group_concat(w) FROM j WHERE w IN (SELECT 200 - id FROM v_thread)",
        "SELECT w, count(*) FROM j WHERE w IN (SELECT id FROM v_thread) GROUP BY w",
        "SELECT t.id, j.ts FROM v_thread t JOIN j ON j.w = t.id AND j.p IN (3, 1, 2)",
        "SELECT count(*) FROM bad",
        "SELECT count(*) FROM v_thread t WHERE t.id IN (SELECT p FROM j)"};
    struct mirror m;
    struct error err = {0};
    int planned = 0;
    mirror_open(&m, 77, PLAN_ROWS);
    ck_assert_msg(engine_run(m.e, "test", plan_objects, &err) == 0, "%s", err.text);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        planned += mirror_compare_planner(&m, queries[i]);
    ck_assert_int_ge(planned, 7);
    mirror_close(&m);
}
END_TEST

/* SQLite makes these groups or rows one by one, and ends with the last that is asked for. */
START_TEST(first_groups_are_left_to_sqlite)
{
    static const char *const left[] = {
        "SELECT s.id, count(*), max(c.value) FROM v_slice s JOIN v_counter c ON "
        "c.track_id = s.track_id GROUP BY s.id LIMIT 5",
        "SELECT s.id, max(c.value) FROM v_slice s LEFT JOIN v_counter c ON c.track_id = "
        "s.depth GROUP BY s.id ORDER BY s.id LIMIT 9",
        "SELECT s.id, c.id FROM v_slice s JOIN v_counter c ON c.track_id = s.track_id "
        "ORDER BY s.ts LIMIT 9",
        "SELECT s.id, c.id FROM v_slice s LEFT JOIN v_counter c ON c.track_id = s.depth "
        "ORDER BY s.depth, s.dur LIMIT 4 OFFSET 3",
        "SELECT s.name, count(*) FROM v_slice s JOIN v_thread t ON t.id = s.depth GROUP BY 1 ORDER BY 2 LIMIT 0"};
    static const char *const planned[] = {
        "SELECT s.id, count(*) AS n FROM v_slice s JOIN v_counter c ON c.track_id = s.track_id GROUP BY s.id ORDER BY "
        "n DESC, s.id LIMIT 5",
        "SELECT s.id, count(*) FROM v_slice s JOIN v_counter c ON c.track_id = s.track_id GROUP BY s.id LIMIT 2000",
        "SELECT name, count(*) FROM v_slice GROUP BY name LIMIT 2",
        "SELECT s.id, c.id FROM v_slice s JOIN v_counter c ON c.track_id = s.track_id ORDER BY c.value, s.id, c.id "
        "LIMIT 9",
        "SELECT s.id, c.id FROM v_slice s JOIN v_counter c ON c.track_id = s.track_id ORDER BY s.ts LIMIT 2000",
        "SELECT s.id, t.tid FROM v_slice s JOIN v_thread t ON t.id = s.depth ORDER BY s.ts LIMIT 9"};
    struct mirror m;
    mirror_open(&m, 17, PLAN_ROWS);
    EACH(&m, left, NOT_PLANNED);
    EACH(&m, planned, PLANNED);
    mirror_close(&m);
}
END_TEST

/* UNION ALL, UNION, EXCEPT and INTERSECT in one statement; SQLite takes them from the left. */
START_TEST(compounds_of_several_kinds)
{
    static const char *const planned[] = {
        "SELECT depth FROM v_slice WHERE dur > 9 EXCEPT SELECT track_id FROM v_slice UNION ALL SELECT tid FROM "
        "v_thread",
        "SELECT depth FROM v_slice EXCEPT SELECT track_id FROM v_slice UNION ALL SELECT tid FROM v_thread ORDER BY 1 "
        "DESC",
        "SELECT depth, name FROM v_slice UNION SELECT tid, name FROM v_thread EXCEPT SELECT track_id, name FROM "
        "v_slice",
        "SELECT name FROM v_slice INTERSECT SELECT name FROM v_thread UNION SELECT category FROM v_slice ORDER BY 1",
        "SELECT depth, dur FROM v_slice UNION ALL SELECT tid, upid FROM v_thread INTERSECT SELECT track_id, depth FROM "
        "v_slice UNION ALL SELECT 1, NULL LIMIT 40 OFFSET 3",
        "SELECT depth, count(*) FROM (SELECT depth FROM v_slice EXCEPT SELECT track_id FROM v_slice UNION ALL SELECT "
        "track_id FROM v_counter) GROUP BY 1",
        "SELECT count(*) FROM v_slice WHERE depth IN (SELECT tid FROM v_thread UNION SELECT track_id FROM v_slice "
        "EXCEPT "
        "SELECT 5)"};
    static const char *const others[] = {
        "SELECT depth FROM v_slice EXCEPT SELECT 'a' UNION ALL SELECT tid FROM v_thread",
        "SELECT dur / 2.0 FROM v_slice EXCEPT SELECT value FROM v_counter UNION ALL SELECT 1.5",
        "SELECT depth, dur FROM v_slice UNION SELECT tid FROM v_thread EXCEPT SELECT 1"};
    struct mirror m;
    mirror_open(&m, 62, 8 * PLAN_ROWS);
    EACH(&m, planned, PLANNED);
    EACH(&m, others, EITHER);
    mirror_close(&m);
}
END_TEST

/* What the step of a recursion finds rows by is made once: rounds of few rows do not go through the table, by keys or
 * by numbers whose rows have tests of their own. */
START_TEST(rounds_do_not_go_through_a_table)
{
    static const char *const statements[] = {
        "WITH RECURSIVE up(id, n) AS (SELECT id, 0 FROM v_slice WHERE id % 40 = 7 UNION ALL SELECT s.id, n + 1 FROM up "
        "JOIN "
        "v_slice s ON s.id = up.id - 1 AND s.track_id IS NOT NULL WHERE n < 40) SELECT count(*), sum(n) FROM up",
        "WITH RECURSIVE up(k, n) AS (SELECT id, 0 FROM v_slice WHERE id % 40 = 7 UNION ALL SELECT s.parent_id, n + 1 "
        "FROM "
        "up JOIN v_slice s ON s.parent_id = up.k WHERE n < 3) SELECT count(*), sum(n) FROM up"};
    struct mirror m;
    mirror_open(&m, 64, PLAN_ROWS);
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        uint64_t n = mirror_visited_by(&m, statements[i]);
        ck_assert_msg(n > PLAN_ROWS && n < 4 * PLAN_ROWS, "%llu rows were looked at: %s", (unsigned long long)n,
                      statements[i]);
    }
    mirror_close(&m);
}
END_TEST

/* Tables of WITH whose columns have names of the clause; queries of one row beside tables of WITH. */
START_TEST(columns_of_with)
{
    static const char *const planned[] = {
        "WITH lim(n, l) AS (VALUES ('a', 5), ('ab', 50), ('b', 500)) SELECT lim.n, count(*) FROM v_slice s JOIN lim ON "
        "s.name = lim.n AND s.dur > lim.l GROUP BY lim.n ORDER BY 1",
        "WITH w(a, b) AS (SELECT depth, max(dur) FROM v_slice GROUP BY depth) SELECT a, b, s.id FROM v_slice s JOIN w "
        "ON "
        "s.depth = a AND s.dur = b",
        "WITH w(a, ts) AS (SELECT ts, id FROM v_slice WHERE dur > 3) SELECT *, ts - a FROM w",
        "WITH w AS (SELECT depth AS d, max(dur) AS m FROM v_slice GROUP BY 1) SELECT d, m, (SELECT min(ts) FROM "
        "v_slice) "
        "FROM w"};
    static const char *const others[] = {
        "WITH w(a, a) AS (SELECT ts, id FROM v_slice) SELECT * FROM w",
        "WITH w(a) AS (SELECT ts, id FROM v_slice) SELECT * FROM w",
        "WITH w AS (SELECT ts, id FROM v_slice) SELECT id, (SELECT max(ts) FROM w) FROM w",
        "WITH v_slice AS (SELECT 7 AS ts, id FROM v_thread) SELECT id, (SELECT max(ts) FROM v_slice) FROM v_slice"};
    struct mirror m;
    mirror_open(&m, 65, PLAN_ROWS);
    EACH(&m, planned, PLANNED);
    EACH(&m, others, EITHER);
    mirror_close(&m);
}
END_TEST

/* WITH RECURSIVE: ancestors, descendants, numbers that ranges are made of; and what is left to SQLite. */
START_TEST(recursions)
{
    static const char *const planned[] = {
        "WITH RECURSIVE up(leaf, id, parent, d) AS (SELECT id, id, parent_id, 0 FROM v_slice WHERE depth = 7 UNION ALL "
        "SELECT u.leaf, s.id, s.parent_id, u.d + 1 FROM up u JOIN v_slice s ON s.id = u.parent WHERE u.d < 9) SELECT * "
        "FROM up",
        "WITH RECURSIVE up(id, parent, d) AS (SELECT id, parent_id, 0 FROM v_slice WHERE depth = 7 UNION ALL SELECT "
        "s.id, s.parent_id, up.d + 1 FROM up, v_slice s WHERE s.id = up.parent AND d < 5) SELECT d, count(*), "
        "count(parent) FROM up GROUP BY d",
        "WITH RECURSIVE down AS (SELECT id AS i, 0 AS d FROM v_slice WHERE parent_id IS NULL UNION ALL SELECT s.id, "
        "down.d + 1 FROM down JOIN v_slice s ON s.parent_id = down.i AND s.id > down.i) SELECT d, count(*), sum(s.dur) "
        "FROM down JOIN v_slice s ON s.id = i GROUP BY d",
        "WITH RECURSIVE b(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM b WHERE i < 99) SELECT i, count(s.id) FROM b "
        "LEFT "
        "JOIN v_slice s ON s.ts >= i * 40 AND s.ts < i * 40 + 40 GROUP BY i",
        "WITH RECURSIVE down(i, w) AS (SELECT id, name FROM v_slice WHERE parent_id IS NULL UNION ALL SELECT s.id, "
        "s.name FROM down JOIN v_slice s ON s.parent_id = down.i WHERE s.id > down.i AND s.dur IS NOT NULL) SELECT * "
        "FROM "
        "down",
        "WITH RECURSIVE b(i, t) AS (SELECT 0, (SELECT min(ts) FROM v_slice) UNION ALL SELECT i + 1, t + 40 FROM b "
        "WHERE "
        "i < 30) SELECT i, count(s.id), sum(s.dur) FROM b LEFT JOIN v_slice s ON s.ts >= t AND s.ts < t + 40 GROUP BY "
        "i",
        "WITH RECURSIVE plain AS (SELECT depth AS k, max(dur) AS m FROM v_slice GROUP BY 1), b(i) AS (SELECT 1 UNION "
        "ALL "
        "SELECT i * 2 FROM b WHERE i < 300) SELECT i, m FROM b JOIN plain ON k = i"};
    static const char *const others[] = {
        "WITH RECURSIVE up(id, parent) AS (SELECT id, parent_id FROM v_slice WHERE depth = 7 UNION SELECT s.id, "
        "s.parent_id FROM up JOIN v_slice s ON s.id = up.parent) SELECT count(*) FROM up",
        "WITH RECURSIVE b(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM b) SELECT i, (SELECT count(*) FROM v_slice) FROM "
        "b LIMIT 20",
        "WITH RECURSIVE b(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM b WHERE i < 5000) SELECT count(*), sum(s.dur) "
        "FROM "
        "b JOIN v_slice s ON s.id = i",
        "WITH RECURSIVE b(i) AS (SELECT 4611686018427387904 UNION ALL SELECT i * 2 FROM b WHERE i < 1e30) SELECT "
        "count(*), max(i) FROM b JOIN v_slice s ON s.id < 3",
        "WITH RECURSIVE b(i) AS (SELECT 1 UNION ALL SELECT i || 'a' FROM b WHERE length(i) < 5) SELECT count(*) FROM "
        "b, v_slice",
        "WITH RECURSIVE b(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM b WHERE i < (SELECT max(i) FROM b)) SELECT "
        "count(*) FROM b, v_slice",
        "WITH RECURSIVE b(i, j) AS (SELECT id FROM v_slice UNION ALL SELECT i + 1 FROM b WHERE i < 5) SELECT count(*) "
        "FROM b"};
    struct mirror m;
    mirror_open(&m, 63, PLAN_ROWS);
    EACH(&m, planned, PLANNED);
    EACH(&m, others, EITHER);
    mirror_close(&m);
}
END_TEST

/* The bounds of the trace are a row, which is not there where an aggregate has none. */
START_TEST(bounds_beside_aggregates_of_no_rows)
{
    static const char *const either[] = {
        "SELECT count(s.id), x.start_ts FROM v_slice s, trace_bounds x WHERE s.dur < -100",
        "SELECT max(s.ts), coalesce(x.start_ts, 7) FROM v_slice s, trace_bounds x WHERE s.dur < -100 ORDER BY x.end_ts",
        "SELECT max(s.ts) - a FROM v_slice s, (SELECT start_ts + 7 AS a FROM trace_bounds) WHERE s.dur < -100",
        "SELECT count(*), a FROM v_slice s, (SELECT start_ts + 7 AS a FROM trace_bounds) WHERE s.dur < -100",
        "SELECT count(*), max(a) FROM v_slice s, (SELECT start_ts + 7 AS a FROM trace_bounds) WHERE s.dur < -100 "
        "HAVING "
        "a IS NULL"};
    static const char *const planned[] = {
        "SELECT max(s.ts - x.start_ts), min(x.end_ts) FROM v_slice s, trace_bounds x WHERE s.dur < -100",
        "SELECT s.depth, count(*), x.start_ts FROM v_slice s, trace_bounds x WHERE s.ts > x.start_ts GROUP BY 1"};
    struct mirror m;
    mirror_open(&m, 40003, PLAN_ROWS);
    EACH(&m, either, EITHER);
    EACH(&m, planned, PLANNED);
    mirror_close(&m);
}
END_TEST

/* SQLite sorts an index that it makes for one statement by the columns that are still asked for when it has taken the
 * queries around apart. */
START_TEST(indexes_made_for_a_statement)
{
#define RANKED                                                                                                         \
    "(SELECT q.x AS a, t.tid AS b, q.w AS c, q.r AS r, t.name AS n FROM (SELECT depth AS k, name AS w, dur AS x, "     \
    "rank() OVER (ORDER BY dur) / 2.5 AS r FROM v_slice) q JOIN v_thread t ON t.id = q.k) z"
    static const char *const planned[] = {
        "SELECT * FROM " RANKED,
        "SELECT a FROM " RANKED,
        "SELECT b, c FROM " RANKED " WHERE a > 3",
        "SELECT row_number() OVER (), a FROM " RANKED,
        "SELECT row_number() OVER (PARTITION BY n), a, b FROM " RANKED " WHERE r / b >= -b",
        "SELECT total(abs(r)) OVER (PARTITION BY n ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING EXCLUDE GROUP) + a, "
        "upper(n) FROM " RANKED " WHERE 8 <= z.b AND r / z.b >= -z.b ORDER BY 2 DESC",
        "SELECT group_concat(a), count(c) FROM " RANKED " GROUP BY n"};
#undef RANKED
    struct mirror m;
    mirror_open(&m, 919, PLAN_ROWS);
    EACH(&m, planned, PLANNED);
    mirror_close(&m);
}
END_TEST

/* The text of an item is the name of its column, also where a query in it has a plan of its own. */
START_TEST(items_without_alias)
{
    static const char *const planned[] = {
        "SELECT count(*) /* all */ , sum(depth) -- of them\n , max(depth  ) /* end */ \n FROM v_slice",
        "SELECT count(*)/* all */, sum(depth) + 1 /*a*/ --b\n FROM v_slice s JOIN v_thread t ON t.id = s.depth",
        "SELECT (SELECT sum(depth)  FROM v_slice), ((SELECT count(*) FROM v_slice WHERE depth = 3)) /* c */ , "
        "5 + (SELECT max(track_id) FROM v_slice) * (SELECT min(depth) FROM v_slice WHERE dur > 5)",
        "SELECT (SELECT track_id FROM v_slice GROUP BY track_id ORDER BY sum(depth) DESC, track_id LIMIT 1)",
        "SELECT *, \"(SELECT sum(depth) FROM v_slice)\" + 1 FROM (SELECT (SELECT sum(depth) FROM v_slice), 2)",
        "SELECT (SELECT sum(depth) FROM v_slice) UNION ALL SELECT (SELECT count(*) FROM v_slice) ORDER BY 1",
        "SELECT 1 IN (SELECT depth FROM v_slice GROUP BY 1), (SELECT count(name) FROM v_slice) ORDER BY (SELECT "
        "count(name) FROM v_slice)",
        "SELECT \"a\"\"b\", (SELECT count(dur) || \"a\"\"b\" FROM v_slice), (SELECT count(dur) FROM v_slice) FROM "
        "(SELECT "
        "'x' AS \"a\"\"b\")"};
    struct mirror m;
    mirror_open(&m, 5, PLAN_ROWS);
    EACH(&m, planned, PLANNED);
    mirror_close(&m);
}
END_TEST

/* Of a column that sorts the table the first and the last row are looked at. */
START_TEST(ends_of_a_table)
{
    static const char *const planned[] = {
        "SELECT min(id) FROM v_slice",
        "SELECT min(id), max(id), max(DISTINCT id) FROM v_slice",
        "SELECT min(id), max(id) FROM v_slice WHERE id > 7 AND id < 1900",
        "SELECT min(id), max(id) FROM v_slice WHERE id > 7 AND id < 9",
        "SELECT min(id), max(id) FROM v_slice WHERE id BETWEEN 7 AND 8",
        "SELECT min(id), max(id) FROM v_slice WHERE id < 0",
        "SELECT min(id), max(id) FROM v_slice WHERE depth = 3 AND id > 20",
        "SELECT min(id), max(id) FROM v_slice WHERE id IN (SELECT depth FROM v_slice)",
        "SELECT min(id), max(id) FILTER (WHERE depth = 2) FROM v_slice",
        "SELECT min(id), max(id), count(*) FROM v_slice",
        "SELECT min(id), max(id + depth) FROM v_slice",
        "SELECT depth, count(*) FROM v_slice WHERE id > (SELECT min(id) FROM v_slice WHERE id > 3) + 5 GROUP BY depth",
        "SELECT a.depth, max(a.id), min(b.id) FROM v_slice a JOIN v_slice b ON b.id = a.id + 1 GROUP BY 1"};
    static const char *const others[] = {"SELECT min(id), max(id), depth, name FROM v_slice WHERE id > 3",
                                         "SELECT max(ts), depth, name FROM v_slice", "SELECT min(name) FROM v_slice"};
    static const char *const left[] = {"SELECT max(id) FROM v_slice"};
    struct mirror m;
    mirror_open(&m, 23, PLAN_ROWS);
    EACH(&m, planned, PLANNED);
    EACH(&m, others, EITHER);
    EACH(&m, left, NOT_PLANNED);
    mirror_close(&m);
}
END_TEST

Suite *sql_plan_shapes_suite(void);
Suite *sql_plan_shapes_suite(void)
{
    Suite *s = suite_create("sql_plan_shapes");
    TCase *t = tcase_create("shapes");
    tcase_set_timeout(t, 0);
    tcase_add_test(t, answers_that_were_wrong);
    tcase_add_test(t, rows_of_extremes_and_frames);
    tcase_add_test(t, left_joins);
    tcase_add_test(t, integers_beside_reals);
    tcase_add_test(t, series_and_ordered_arms);
    tcase_add_test(t, sides_of_a_left_join);
    tcase_add_test(t, scans_that_give_up_late);
    tcase_add_test(t, tables_change_under_a_scan);
    tcase_add_test(t, collations_and_json);
    tcase_add_test(t, texts_that_are_put_together);
    tcase_add_test(t, bodies_of_table_functions);
    tcase_add_test(t, span_joins_are_read_as_columns);
    tcase_add_test(t, first_groups_are_left_to_sqlite);
    tcase_add_test(t, compounds_of_several_kinds);
    tcase_add_test(t, recursions);
    tcase_add_test(t, rounds_do_not_go_through_a_table);
    tcase_add_test(t, columns_of_with);
    tcase_add_test(t, indexes_made_for_a_statement);
    tcase_add_test(t, bounds_beside_aggregates_of_no_rows);
    tcase_add_test(t, items_without_alias);
    tcase_add_test(t, ends_of_a_table);
    suite_add_tcase(s, t);
    return s;
}
