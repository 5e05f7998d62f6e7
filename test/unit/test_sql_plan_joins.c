/* Joins of all kinds, row values, and texts of values and times have plans, and the answer of SQLite. */
#include "plan_grammar.h"

#include "sql/engine_private.h"
#include "sql/vtab/vtab.h"

#include <check.h>
#include <string.h>

static void all_planned(const char *const *statements, size_t n)
{
    struct mirror m;
    mirror_open(&m, 20261129, PLAN_ROWS);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(mirror_compare_planner(&m, statements[i]), "no plan: %s", statements[i]);
    mirror_close(&m);
}

static void compare(const char *const *statements, size_t n)
{
    struct mirror m;
    mirror_open(&m, 78, PLAN_ROWS);
    for (size_t i = 0; i < n; i++)
        mirror_compare_planner(&m, statements[i]);
    mirror_close(&m);
}

START_TEST(right_and_full_joins)
{
    static const char *const statements[] = {
        "SELECT t.name, count(s.id), sum(s.dur), count(*) FROM v_slice s RIGHT JOIN v_thread t ON t.id = s.depth AND "
        "s.dur > 50 GROUP BY t.name",
        /* what WHERE says comes behind the join, what ON says of the others before it */
        "SELECT count(*), count(s.id), count(t.id) FROM v_slice s RIGHT JOIN v_thread t ON t.id = s.depth WHERE "
        "coalesce(s.dur, 9) > 3",
        "SELECT count(*), count(s.id), sum(c.id) FROM v_slice s JOIN v_thread t ON t.id = s.depth AND t.tid > 5 RIGHT "
        "JOIN v_counter c ON c.track_id = s.id WHERE c.ts > 20",
        "SELECT k, count(*), sum(n), sum(m), count(g.k), count(h.k) FROM (SELECT track_id AS k, count(*) AS n FROM "
        "v_slice GROUP BY 1) g FULL JOIN (SELECT depth AS k, max(dur) AS m FROM v_slice WHERE depth > 2 GROUP BY 1) h "
        "USING (k) GROUP BY k",
        "SELECT count(*), count(a), sum(c), count(b) FROM (SELECT id, dur + 1 AS a, 7 AS c, coalesce(name, 'x') AS b "
        "FROM v_slice) q RIGHT JOIN (SELECT id * 3 AS id, 1 AS x FROM v_slice) w ON w.id = q.a",
        "SELECT * FROM v_thread t FULL JOIN (SELECT depth AS d, count(*) AS n FROM v_slice GROUP BY 1) s ON s.d = "
        "t.tid ORDER BY t.id, d, n",
        /* rows without a partner come last, and are the first ones in order */
        "SELECT t.id, d FROM v_thread t FULL JOIN (SELECT depth + 1000 AS d FROM v_slice GROUP BY 1) s ON s.d = t.tid "
        "ORDER BY t.id LIMIT 3",
        "SELECT s.id, c.id FROM v_slice s RIGHT JOIN v_counter c ON c.track_id = s.depth AND c.ts = s.ts",
        "SELECT count(*), sum(s.dur), count(c.id) FROM v_slice s FULL JOIN v_counter c ON c.ts >= s.ts AND c.ts < "
        "s.ts + s.dur AND c.track_id = s.track_id",
        "SELECT count(*), max(x.dur), count(t.id) FROM v_slice s FULL JOIN v_thread t ON t.id = s.depth LEFT JOIN "
        "v_slice x ON x.id = t.tid",
        /* nothing on one side */
        "SELECT count(*), count(s.id), count(t.id) FROM (SELECT * FROM v_slice WHERE id < 0) s RIGHT JOIN v_thread t "
        "ON t.id = s.depth JOIN v_slice y ON y.track_id = t.id",
        "SELECT count(*), count(s.id), count(t.id) FROM v_slice s FULL JOIN (SELECT * FROM v_thread WHERE id < 0) t "
        "ON t.id = s.depth",
        "SELECT count(*) FROM v_slice s RIGHT JOIN (SELECT * FROM v_thread WHERE id < 0) t ON t.id = s.depth",
        /* no row passes what ON says of the right side alone: all of them come without a partner */
        "SELECT s.name, t.id FROM v_thread t RIGHT JOIN v_slice s ON s.dur < -9 AND t.id = s.depth",
        "SELECT count(*), count(t.id) FROM v_thread t RIGHT JOIN v_slice s ON s.dur < -9",
        "SELECT count(*), count(s.id), count(q.k) FROM v_slice s RIGHT JOIN (SELECT t.upid AS k FROM v_thread x LEFT "
        "JOIN v_thread t ON t.id = x.id + 1000) q ON q.k = s.depth",
        "SELECT count(*), count(s.id), count(t.id) FROM v_slice s FULL JOIN v_thread t ON t.id < 0 AND t.id = s.depth",
    };
    static const char *const others[] = {
        "SELECT count(*) FROM v_slice s NATURAL FULL JOIN v_thread t",
        /* refused by SQLite: two tables on the left have the column */
        "SELECT count(*) FROM v_slice s FULL JOIN v_counter c ON c.id = s.depth JOIN v_thread t USING (id)",
        "SELECT count(*) FROM v_slice s JOIN v_counter c ON c.id = s.depth NATURAL JOIN (SELECT id, tid FROM v_thread) "
        "t RIGHT JOIN v_machine m ON m.id = t.tid",
        "SELECT count(*), sum(q.upid) FROM v_slice s FULL JOIN v_thread t USING (id) NATURAL JOIN (SELECT id, upid "
        "FROM v_thread) q",
        "SELECT count(*), count(c.id) FROM v_slice s FULL JOIN v_thread t USING (id) FULL JOIN v_counter c USING (id)",
        "SELECT s.id, t.id, c.id FROM v_slice s JOIN v_thread t ON t.id = s.depth RIGHT JOIN v_counter c ON c.id = "
        "t.tid",
        "SELECT count(*) FROM v_slice s RIGHT JOIN v_thread t ON 1 WHERE 2 > 1",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
    compare(others, sizeof others / sizeof *others);
}
END_TEST

START_TEST(row_values)
{
    static const char *const statements[] = {
        "SELECT count(*), sum(dur) FROM v_slice WHERE (depth, track_id) = (3, 4)",
        "SELECT count(*), sum(dur) FROM v_slice WHERE (depth, track_id) IS (3, NULL) OR 0",
        "SELECT count(*), sum(dur) FROM v_slice WHERE (depth, dur, ts) > (3, 7, 100) AND (depth, dur) <= (8, 50)",
        "SELECT id FROM v_slice WHERE (ts, id) >= (900, 5) AND (ts, id) < (2000, 9)",
        "SELECT count(*) FROM v_slice WHERE (depth, name) != (3, 'aa')",
        "SELECT count(*) FROM v_slice WHERE (depth, track_id) BETWEEN (1, 5) AND (6, 2)",
        "SELECT count(*), sum(a.dur) FROM v_slice a JOIN v_slice b ON (a.depth, a.ts) = (b.track_id, b.ts)",
    };
    static const char *const others[] = {
        "SELECT (depth, track_id) = (3, 4), count(*) FROM v_slice GROUP BY 1",
        "SELECT count(*) FROM v_slice WHERE NOT (depth, dur) < (3, NULL)",
        "SELECT count(*) FROM v_slice WHERE (depth, name) < (name, 3)",
    };
    all_planned(statements + 2, sizeof statements / sizeof *statements - 2);
    compare(statements, 2);
    compare(others, sizeof others / sizeof *others);
}
END_TEST

START_TEST(texts_of_values_and_times)
{
    static const char *const statements[] = {
        "SELECT hex(name), hex(dur), hex(NULL || name), quote(name), quote(dur) FROM v_slice",
        "SELECT quote(name || '''' || dur || ''''), char(65 + id % 26, 200 + id, 2000 + id, 70000 + id, id - 5) FROM "
        "v_slice WHERE id > 0",
        "SELECT char(depth), char(dur), count(*) FROM v_slice GROUP BY 1, 2",
        "SELECT strftime('%Y-%m-%d %H:%M:%S %j %w %s %f %%', id * 1234567, 'unixepoch') FROM v_slice",
        /* days of each month around ends of centuries; what SQLite called the last one of February 300 */
        "SELECT strftime('%Y-%m-%d %j %w', -62167219200 + (id % 100 + 1) * 3155760000 + id / 100 * 2630016, "
        "'unixepoch') FROM v_slice",
        "SELECT strftime('%Y-%m-%d', -52695100800 + id % 3 * 86400, 'unixepoch') FROM v_slice",
        "SELECT strftime('%Y-%m-%d %j', (id - 900) * 32140800, 'unixepoch'), date(id * 86400, 'unixepoch') FROM "
        "v_slice WHERE id < 3000",
        "SELECT strftime('%f|%s|%H:%M', id / 7.0, 'unixepoch'), time(id / -3.0, 'unixepoch') FROM v_slice",
        "SELECT datetime(id * 97654321, 'unixepoch') AS d, count(*) FROM v_slice GROUP BY d",
        "SELECT strftime('%W', id * 86400, 'unixepoch'), strftime('%Y', id, 'unixepoch', '+1 day') FROM v_slice",
        "SELECT date(dur, 'unixepoch'), datetime(ts * 100000000000, 'unixepoch') FROM v_slice",
        "SELECT track_id, string_agg(name || ':' || dur, ', ') FROM v_slice GROUP BY track_id",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
}
END_TEST

START_TEST(first_rows_of_arms)
{
    static const char *const statements[] = {
        "SELECT id, dur, name FROM v_slice WHERE depth < 4 UNION ALL SELECT id, dur, name FROM v_slice WHERE depth > 2 "
        "ORDER BY dur DESC LIMIT 20 OFFSET 7",
        "SELECT name, id FROM v_slice UNION ALL SELECT name, ts FROM v_slice WHERE dur > 5 ORDER BY 1 NULLS LAST LIMIT "
        "30",
        "SELECT depth, 'a' AS k FROM v_slice UNION ALL SELECT track_id, NULL FROM v_slice ORDER BY k DESC, 1 LIMIT 15",
        "SELECT max(dur), depth FROM v_slice GROUP BY depth UNION ALL SELECT dur, id FROM v_slice ORDER BY 1, 2 LIMIT "
        "9",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
}
END_TEST

START_TEST(kin_of_slices)
{
    static const char *const statements[] = {
        "SELECT a.name, count(*), sum(s.dur / 2) FROM v_slice s, ancestor_slice(s.id) a WHERE s.depth >= 1 GROUP BY "
        "a.name",
        "SELECT s.name, count(*), max(a.ts), min(a.thread_ts) FROM v_slice s JOIN ancestor_slice(s.parent_id) a ON "
        "a.depth = s.depth - 1 WHERE a.name IS NOT NULL GROUP BY 1",
        "SELECT s.id, a.id, a.name, a.arg_set_id FROM v_slice s JOIN ancestor_slice(s.id) a WHERE a.dur > 3 ORDER BY "
        "s.id, a.id",
        "SELECT count(*), count(d.parent_id), sum(d.depth) FROM v_slice s JOIN descendant_slice(s.id) d WHERE s.id % "
        "20 = 0",
        "SELECT t.name, count(*) FROM v_slice s JOIN ancestor_slice(s.id) AS a JOIN v_thread t ON t.id = a.depth GROUP "
        "BY t.name",
        "SELECT count(*) FROM v_slice s JOIN ancestor_slice(s.id) a JOIN ancestor_slice(a.id) b",
    };
    static const char *const others[] = {
        "SELECT s.id, a.id FROM v_slice s JOIN ancestor_slice(s.id) a",
        "SELECT count(*) FROM v_slice s JOIN ancestor_slice(s.id + 5) a",
        "SELECT count(*) FROM v_slice s LEFT JOIN ancestor_slice(s.id) a",
        "SELECT count(*) FROM v_slice s JOIN ancestor_slice(17) a",
        "SELECT count(*) FROM v_slice s JOIN ancestor_slice(s.name) a",
        "SELECT count(*) FROM v_thread t JOIN v_slice s ON s.id = t.id RIGHT JOIN descendant_slice(s.id) d ON d.id = "
        "t.id",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
    compare(others, sizeof others / sizeof *others);
}
END_TEST

/* What flows meet at a slice is found once, for plans and for SQLite. */
START_TEST(flows_of_slices)
{
    static const char *const statements[] = {
        "SELECT s.name, count(*), sum(f.trace_id), min(f.arg_set_id) FROM v_slice s JOIN directly_connected_flow(s.id) "
        "f GROUP BY 1",
        "SELECT count(*), min(o.ts), sum(f.slice_out) FROM v_slice s JOIN preceding_flow(s.id) f JOIN v_slice o ON "
        "o.id = f.slice_out WHERE s.depth < 9",
        "SELECT f.slice_in, count(*), max(s.dur) FROM v_slice s JOIN following_flow(s.id) AS f WHERE s.depth < 9 AND "
        "f.slice_in > 3 GROUP BY f.slice_in",
    };
    static const char *const others[] = {
        "SELECT s.id, f.id, f.slice_in FROM v_slice s JOIN following_flow(s.id) f WHERE s.id < 90",
        "SELECT s.id, f.* FROM v_slice s JOIN directly_connected_flow(s.id) f WHERE s.depth < 20",
        "SELECT count(*) FROM v_slice s JOIN directly_connected_flow(s.id + 5) f",
        "SELECT count(*), sum(f.id) FROM v_slice s JOIN preceding_flow(s.parent_id) f WHERE s.depth < 9",
        "SELECT * FROM directly_connected_flow(37)",
        "SELECT count(*) FROM v_slice s LEFT JOIN directly_connected_flow(s.id) f",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
    compare(others, sizeof others / sizeof *others);
}
END_TEST

/* SQLite leaves out the order of a query that is joined, or ordered once more. */
START_TEST(orders_that_are_left_out)
{
    static const char *const statements[] = {
        "WITH w AS (SELECT DISTINCT name, track_id FROM v_slice ORDER BY 1 DESC, 2) SELECT w.*, t.tid FROM w JOIN "
        "v_thread t ON t.id = w.track_id",
        "WITH w AS (SELECT id, name, row_number() OVER (PARTITION BY track_id ORDER BY ts, id) AS rn FROM v_slice "
        "ORDER BY rn, id) SELECT w.*, t.tid FROM w JOIN v_thread t ON t.id = w.rn",
        "SELECT * FROM (SELECT DISTINCT depth / 3 AS a, track_id AS b FROM v_slice ORDER BY 1 DESC, 2) ORDER BY b",
        "SELECT * FROM (SELECT * FROM (SELECT DISTINCT depth / 3 AS a, track_id AS b FROM v_slice ORDER BY 1 DESC, 2)) "
        "ORDER BY b",
        "WITH w AS (SELECT track_id, max(dur) AS m FROM v_slice GROUP BY 1 ORDER BY 2 DESC) SELECT w.*, t.name FROM w "
        "JOIN v_thread t ON t.id = w.track_id",
        "WITH w AS (SELECT track_id, count(*) AS m FROM v_slice GROUP BY 1 ORDER BY 2 DESC) SELECT w.*, t.name FROM w "
        "JOIN v_thread t ON t.id = w.track_id",
        "WITH w AS (SELECT track_id, sum(dur / 100) AS m FROM v_slice GROUP BY 1 ORDER BY 2 DESC, 1) SELECT w.*, "
        "t.name FROM w, v_thread t WHERE t.id = w.track_id ORDER BY t.name",
        "WITH w AS (SELECT depth, min(ts) AS m FROM v_slice GROUP BY 1 ORDER BY 1 DESC) SELECT w.*, 'a' AS y FROM w, "
        "(SELECT id AS other FROM v_thread LIMIT 3)",
        "WITH w AS (SELECT DISTINCT depth FROM v_slice ORDER BY 1) SELECT *, 'a' AS y FROM w, (SELECT id AS other FROM "
        "v_thread LIMIT 3)",
        "WITH w AS (SELECT id, ts, lag(dur) OVER (ORDER BY ts, id) AS p FROM v_slice ORDER BY p DESC, id) SELECT "
        "group_concat(w.p), count(*) FROM w JOIN v_thread t ON t.id = w.id % 9",
    };
    static const char *const taken_apart[] = {
        "WITH w AS (SELECT id, name, dur FROM v_slice WHERE depth < 9 ORDER BY dur DESC) SELECT w.*, t.name FROM w "
        "JOIN "
        "v_thread t ON t.id = w.id % 50 ORDER BY t.name, w.dur",
        "SELECT t.name, w.dur FROM (SELECT ts, dur, track_id FROM v_slice ORDER BY ts, id) w JOIN v_thread t ON t.id = "
        "w.track_id ORDER BY w.dur, t.name",
        "SELECT depth, dur, name FROM (SELECT * FROM (SELECT depth, dur, name FROM v_slice ORDER BY name)) ORDER BY "
        "depth, dur",
    };
    static const char *const not_taken_apart[] = {
        "SELECT * FROM (SELECT depth, dur, name FROM v_slice ORDER BY name, id)",
        "SELECT t.name, group_concat(w.dur) FROM (SELECT dur, track_id FROM v_slice ORDER BY dur DESC, id) w JOIN "
        "v_thread t ON t.id = w.track_id GROUP BY t.name",
        "SELECT t.name, sum(w.dur / 2), max(w.dur), w.id FROM (SELECT id, dur, track_id FROM v_slice ORDER BY dur, id) "
        "w JOIN v_thread t ON t.id = w.track_id GROUP BY t.name",
        "SELECT a.id, b.id FROM (SELECT id, dur FROM v_slice WHERE id < 40 ORDER BY dur DESC, id) a, (SELECT id, dur "
        "FROM v_slice WHERE id < 40 ORDER BY dur, id) b WHERE a.dur = b.dur",
        "SELECT name, row_number() OVER (ORDER BY depth) AS n FROM (SELECT depth, name FROM v_slice ORDER BY name, id) "
        "ORDER BY n",
        "SELECT avg(k) OVER (), q.i FROM (SELECT id AS i, depth AS k, dur AS d FROM v_slice ORDER BY dur DESC, ts) q "
        "JOIN v_thread t ON t.id = q.k",
        "SELECT lag(w.dur) OVER (PARTITION BY t.tid ORDER BY w.depth), w.id FROM (SELECT id, depth, dur FROM v_slice "
        "ORDER BY dur) w JOIN v_thread t ON t.id = w.depth ORDER BY w.depth",
        "SELECT DISTINCT depth, name FROM (SELECT depth, name FROM v_slice ORDER BY name, id) ORDER BY depth",
    };
    all_planned(taken_apart, sizeof taken_apart / sizeof *taken_apart);
    compare(statements, sizeof statements / sizeof *statements);
    compare(not_taken_apart, sizeof not_taken_apart / sizeof *not_taken_apart);
}
END_TEST

/* SQLite computes a query first, and makes an index of it: rows of one key come sorted by the columns that are named.
 */
START_TEST(orders_of_indexes)
{
    static const char *const others[] = {
        /* SQLite nests the loops of the first arm otherwise than where the compound stands alone */
        "SELECT *, strftime('%Y', '1970-01-01') AS y FROM (SELECT t.upid, s.name FROM v_slice s JOIN v_thread t ON "
        "t.id = "
        "s.depth UNION ALL SELECT s.id, s.name FROM v_slice s FULL JOIN v_counter c ON c.ts >= s.ts AND c.ts < s.ts + "
        "s.dur WHERE c.ts IN (9, 27) LIMIT 10)",
    };
    static const char *const statements[] = {
        "WITH w AS (SELECT track_id AS k, name, dur, ts - lag(ts) OVER (PARTITION BY track_id ORDER BY ts) AS gap FROM "
        "v_slice) SELECT w.name, w.gap, t.name FROM w JOIN v_thread t ON t.id = w.k",
        "WITH w AS (SELECT track_id AS k, name, dur, dur / 1.5 - lag(dur) OVER (PARTITION BY track_id ORDER BY ts) AS "
        "r "
        "FROM v_slice) SELECT t.name, sum(w.r / 3), avg(w.r), group_concat(w.dur) FROM w JOIN v_thread t ON t.id = w.k "
        "GROUP BY t.name",
        "SELECT * FROM (SELECT q.d, t.tid AS b, q.w FROM (SELECT depth AS k, name AS w, dur AS d, rank() OVER (ORDER "
        "BY "
        "dur) AS r FROM v_slice) q JOIN v_thread t ON t.id = q.k) z",
        "SELECT t.id, s.ts, s.name, s.dur FROM v_thread t LEFT JOIN v_slice s ON s.depth = t.tid",
        "SELECT t.upid, s.name, s.ts FROM v_thread t LEFT JOIN v_slice s ON s.depth = t.tid AND s.dur > 4 ORDER BY 1",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
    compare(others, sizeof others / sizeof *others);
}
END_TEST

/* SQLite passes over constants in an order, and walks backwards through a table that is sorted by the only other term.
 */
START_TEST(constants_in_orders)
{
    static const char *const statements[] = {
        "SELECT id, ts FROM v_slice WHERE dur > 3 ORDER BY 2.5, ts DESC",
        "SELECT id, ts FROM v_slice WHERE dur > 3 ORDER BY ts DESC, max(1, 2)",
        "SELECT id, ts FROM v_slice ORDER BY NULL, ts DESC LIMIT 50",
        "SELECT id, ts FROM v_slice WHERE dur > 3 ORDER BY ts DESC, ts",
        "SELECT s.id, t.tid FROM v_slice s JOIN v_thread t ON t.id = s.depth ORDER BY 'a', s.ts DESC",
        "SELECT id, sum(dur) OVER (PARTITION BY 7 ORDER BY ts DESC ROWS 3 PRECEDING) FROM v_slice",
        "SELECT id, row_number() OVER (ORDER BY 1 + 1, ts DESC) FROM v_slice",
        "SELECT ts, group_concat(id), 5 AS z FROM v_slice GROUP BY z, ts ORDER BY z, ts DESC",
    };
    compare(statements, sizeof statements / sizeof *statements);
}
END_TEST

/* Where WHERE passes no row of a left join without a partner, SQLite turns the loops around, which bear one name here.
 */
START_TEST(left_joins_that_are_inner)
{
    static const char *const statements[] = {
        "SELECT a.id, b.id FROM v_slice a LEFT JOIN v_slice b ON a.depth = b.depth AND a.track_id = b.track_id "
        "WHERE (b.dur > 3) = (a.id > 23) AND a.id % 5 = 0 ORDER BY b.dur",
        "SELECT a.id, b.id FROM v_slice a LEFT JOIN v_slice b ON a.track_id = b.track_id "
        "JOIN (SELECT arg_set_id AS c FROM v_slice WHERE depth < 3) k ON a.id = k.c "
        "WHERE (b.dur > 3) = (a.id BETWEEN 23 AND 1000) AND b.id % 7 = 0 ORDER BY b.depth",
        "SELECT a.id, b.id FROM v_slice a LEFT JOIN v_slice b ON a.track_id = b.track_id WHERE b.id = 40",
        "SELECT a.id, b.id FROM v_slice a LEFT JOIN v_slice b ON a.track_id = b.track_id "
        "WHERE b.id IN (40, 7, 300) AND a.depth > 1",
        "SELECT a.id, b.id FROM v_slice a LEFT JOIN v_slice b ON a.depth = b.depth WHERE b.ts = 1000 OR b.ts IS NULL",
    };
    compare(statements, sizeof statements / sizeof *statements);
}
END_TEST

/* A join that knows few keys reads those rows only: from the index of the column once one is worth it, which SQLite's
 * own way has not made here. */
START_TEST(joins_with_few_keys)
{
    static const char *const statements[] = {
        "SELECT s.ts, s.dur, t.name FROM v_slice s JOIN v_thread t ON t.id = s.track_id WHERE t.tid = 7",
        "SELECT s.id, s.name FROM v_slice s JOIN v_thread t ON t.id = s.parent_id WHERE t.id IN (5, 11, 2) AND s.dur > "
        "3",
        "SELECT s.name, count(*), sum(s.depth) FROM v_slice s JOIN v_thread t ON t.id = s.parent_id AND t.upid = 3 "
        "GROUP BY 1",
        "SELECT s.id, v.column2 FROM v_slice s JOIN (VALUES (3, 'a'), (700, 'b'), (NULL, 'c'), (3, 'd')) v ON "
        "v.column1 = "
        "s.parent_id",
        "SELECT s.id, v.n FROM v_slice s LEFT JOIN (SELECT 3 AS k, 'a' AS n UNION ALL SELECT 9, 'b') v ON v.k = "
        "s.parent_id",
        "SELECT count(*) FROM v_slice s JOIN v_thread t ON t.id = s.parent_id WHERE t.id = -1"};
    struct mirror m;
    struct engine_result r;
    struct error err = {0};
    mirror_open(&m, 99, 20000);
    const struct engine_known_table *slices = engine_find_known(m.e, "__intrinsic_slice");
    uint32_t column = 0;
    ck_assert(slices && slices->vtab);
    while (strcmp(slices->table->def->columns[column].name, "parent_id") != 0)
        column++;
    for (int i = 0; i < 6; i++) {
        ck_assert_msg(engine_query(m.e, "test", slice_str(statements[2]), &r, NULL, &err) == 0, "%s", err.text);
        ck_assert_int_ge(engine_result_next(&r, &err), 0);
        engine_result_close(&r);
    }
    ck_assert_ptr_nonnull(index_peek(slices->vtab, slices->table, column));
    for (size_t k = 0; k < sizeof statements / sizeof *statements; k++)
        mirror_compare_planner(&m, statements[k]);
    mirror_close(&m);
    mirror_open(&m, 99, 20000); /* the same without the index, at first */
    for (size_t k = 0; k < sizeof statements / sizeof *statements; k++)
        ck_assert_msg(mirror_compare_planner(&m, statements[k]), "no plan: %s", statements[k]);
    mirror_close(&m);
}
END_TEST

/* Conditions on the columns of a query are tested on the rows that it is made of: the query gives few rows, and arms
 * that cannot give any are not read. */
START_TEST(conditions_on_queries)
{
    static const char *const few[] = {
        "SELECT count(*), sum(b) FROM (SELECT ts AS a, dur AS b FROM v_slice UNION ALL SELECT ts, track_id FROM "
        "v_slice) "
        "WHERE b = -77",
        "SELECT count(*), max(p) FROM (SELECT track_id AS k, ts, lag(dur) OVER (PARTITION BY track_id ORDER BY ts, id) "
        "AS p FROM v_slice) WHERE k = -77",
        "SELECT count(*), sum(n) FROM (SELECT depth AS d, track_id + 1 AS k, count(*) AS n FROM v_slice GROUP BY 1, 2) "
        "WHERE k = -77",
        "SELECT count(*), max(w) FROM (SELECT track_id AS k, depth, sum(count(*)) OVER (PARTITION BY track_id ORDER BY "
        "depth) AS w FROM v_slice GROUP BY 1, 2) WHERE k < -77",
        "SELECT count(*) FROM (SELECT ts AS a, name FROM v_slice UNION SELECT ts, category FROM v_slice) WHERE a = -77",
        "SELECT kind, count(*), sum(b) FROM (SELECT 'one' AS kind, dur AS b FROM v_slice UNION ALL SELECT 'two', depth "
        "FROM v_slice UNION ALL SELECT 'three', ts FROM v_slice) WHERE kind = 'four' GROUP BY 1",
    };
    /* what cannot be handed down: the column of a window, of an aggregate, of a limited query, of one partition only */
    static const char *const others[] = {
        "SELECT k, p FROM (SELECT track_id AS k, lag(dur) OVER (PARTITION BY track_id ORDER BY ts, id) AS p FROM "
        "v_slice) WHERE p > 50 AND k > 3",
        "SELECT k, n FROM (SELECT track_id AS k, count(*) AS n FROM v_slice GROUP BY 1) WHERE n > 5 AND k > 2",
        "SELECT * FROM (SELECT ts, dur FROM v_slice ORDER BY ts, id LIMIT 100) WHERE dur > 50",
        "SELECT * FROM (SELECT track_id AS k, depth AS d, count(*) OVER (PARTITION BY track_id) AS n, row_number() "
        "OVER "
        "(PARTITION BY depth ORDER BY ts, id) AS r FROM v_slice) WHERE k = 3 ORDER BY k, d, n, r",
        "SELECT * FROM (SELECT track_id AS k, row_number() OVER (ORDER BY ts, id) AS r FROM v_slice) WHERE k = 3",
        "SELECT * FROM (SELECT count(*) AS n, 7 AS k FROM v_slice) WHERE k = 8",
        "SELECT t.tid, q.n FROM v_thread t LEFT JOIN (SELECT depth AS k, count(*) AS n FROM v_slice GROUP BY 1) q ON "
        "q.k = t.id AND q.k > 2",
        "SELECT t.tid, q.k, q.n FROM v_thread t RIGHT JOIN (SELECT depth AS k, count(*) AS n FROM v_slice GROUP BY 1) "
        "q "
        "ON q.k = t.id AND q.k > 2 ORDER BY 2, 1",
        "SELECT t.tid, q.k, q.n FROM v_thread t FULL JOIN (SELECT depth AS k, ts AS n FROM v_slice UNION ALL SELECT "
        "track_id, id FROM v_slice) q ON q.k = t.id AND q.k > 2 AND q.n > 9 ORDER BY 2, 1, 3",
        "SELECT a, count(*) FROM (SELECT ts AS a FROM v_slice EXCEPT SELECT ts FROM v_counter) WHERE a > 50 GROUP BY 1",
        "SELECT k, b FROM (SELECT 'one' AS k, dur AS b FROM v_slice UNION ALL SELECT 'two', depth FROM v_slice) WHERE "
        "k "
        "= 'two' AND b > 3",
        "SELECT k, b FROM (SELECT NULL AS k, dur AS b FROM v_slice UNION ALL SELECT depth, depth FROM v_slice) WHERE k "
        "IS NULL AND b > 30 OR k > 4",
    };
    struct mirror m;
    mirror_open(&m, 454, PLAN_ROWS);
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        uint64_t arms = i == 0 || i == 4 ? 2 : i == 5 ? 0 : 1;
        ck_assert_msg(mirror_visited_by(&m, few[i]) <= arms * m.st.t[T_slice].n_rows + 20, "%s", few[i]);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        mirror_compare_planner(&m, others[i]);
    mirror_close(&m);
}
END_TEST

/* A query whose rows are the arguments of a function that returns a table is planned by itself. */
START_TEST(queries_before_functions)
{
    static const char *const statements[] = {
        "SELECT q.k, q.n, x.n FROM (SELECT track_id AS k, count(*) AS n FROM v_slice GROUP BY 1) q JOIN most_of(q.k, "
        "3) x "
        "WHERE x.n > 5 ORDER BY 1, 2, 3",
        "WITH q AS (SELECT DISTINCT ts / 50 AS k FROM v_slice) SELECT q.k, x.n FROM q, most_of(q.k, 2) x",
    };
    struct mirror m;
    struct error err = {0};
    mirror_open(&m, 455, PLAN_ROWS);
    ck_assert_msg(engine_run(m.e, "test", plan_objects, &err) == 0, "%s", err.text);
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        ck_assert_msg(mirror_compare_planner(&m, statements[i]), "no plan: %s", statements[i]);
    mirror_close(&m);
}
END_TEST

START_TEST(bounds_of_the_trace)
{
    static const char *const statements[] = {
        "SELECT s.depth, count(*), sum(s.dur - b.start_ts) FROM v_slice s, trace_bounds b GROUP BY s.depth",
        "SELECT (s.ts - b.start_ts) / 100 AS k, count(*), max(end_ts) FROM v_slice s CROSS JOIN trace_bounds b GROUP "
        "BY k",
        "SELECT t.name, count(*) AS n FROM trace_bounds b JOIN v_slice s ON s.ts >= b.start_ts + 20 AND s.ts < "
        "b.end_ts + 700 JOIN v_thread t ON t.id = s.depth GROUP BY t.name ORDER BY n DESC, 1",
        "SELECT s.id, a, w FROM v_slice s, (SELECT start_ts + 7 AS a, end_ts - start_ts AS w FROM trace_bounds) ORDER "
        "BY s.dur, s.id",
        "SELECT s.depth, (SELECT count(*) FROM v_slice z, trace_bounds x WHERE z.track_id = s.depth AND z.ts > "
        "x.start_ts + 50) FROM v_slice s, _trace_bounds y WHERE s.dur > y.start_ts GROUP BY 1",
    };
    static const char *const others[] = {
        "SELECT group_concat(s.id), b.* FROM v_slice s, trace_bounds b GROUP BY s.track_id ORDER BY count(*) DESC, 1",
        "SELECT * FROM trace_bounds",
        "SELECT count(*) FROM trace_bounds b LEFT JOIN v_slice s ON s.id < 0",
        "SELECT count(*), sum(end_ts) FROM v_slice s LEFT JOIN trace_bounds b ON b.start_ts > s.ts",
        "SELECT count(*) FROM trace_bounds a, trace_bounds b",
        "SELECT (SELECT s.ts - start_ts FROM trace_bounds) FROM v_slice s ORDER BY 1",
    };
    all_planned(statements, sizeof statements / sizeof *statements);
    compare(others, sizeof others / sizeof *others);
}
END_TEST

/* Rows are found by expressions that are equal, as by ranges. */
START_TEST(expressions_that_are_equal)
{
    static const char *const statements[] = {
        "SELECT count(*), sum(a.dur) FROM v_slice a LEFT JOIN v_slice b ON b.depth = a.depth AND b.ts + b.dur = a.ts "
        "WHERE b.id IS NULL",
        "SELECT a.id, b.id FROM v_slice a JOIN v_slice b ON b.ts + b.depth = a.ts - a.depth WHERE a.id < 900 ORDER BY "
        "1, 2",
        "SELECT t.id, count(s.id), min(s.id) FROM v_thread t LEFT JOIN v_slice s ON s.depth * 2 = t.tid - t.upid AND "
        "s.ts > t.upid AND s.dur > t.id GROUP BY t.id",
        "SELECT count(*) FROM v_slice a JOIN v_slice b ON a.ts + a.dur = b.ts + b.dur AND a.id + 1 = b.id * 1",
    };
    struct mirror m;
    all_planned(statements, sizeof statements / sizeof *statements);
    mirror_open(&m, 20261130, PLAN_ROWS);
    uint64_t visited = mirror_visited_by(&m, statements[0]);
    ck_assert_msg(visited < 40 * PLAN_ROWS, "%llu rows", (unsigned long long)visited);
    mirror_close(&m);
}
END_TEST

Suite *sql_plan_joins_suite(void);
Suite *sql_plan_joins_suite(void)
{
    Suite *suite = suite_create("sql_plan_joins");
    TCase *tc = tcase_create("joins");
    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, right_and_full_joins);
    tcase_add_test(tc, orders_of_indexes);
    tcase_add_test(tc, row_values);
    tcase_add_test(tc, texts_of_values_and_times);
    tcase_add_test(tc, first_rows_of_arms);
    tcase_add_test(tc, kin_of_slices);
    tcase_add_test(tc, flows_of_slices);
    tcase_add_test(tc, orders_that_are_left_out);
    tcase_add_test(tc, constants_in_orders);
    tcase_add_test(tc, left_joins_that_are_inner);
    tcase_add_test(tc, joins_with_few_keys);
    tcase_add_test(tc, conditions_on_queries);
    tcase_add_test(tc, queries_before_functions);
    tcase_add_test(tc, bounds_of_the_trace);
    tcase_add_test(tc, expressions_that_are_equal);
    suite_add_tcase(suite, tc);
    return suite;
}
