/* What statements made from a grammar ask: joins, queries behind FROM, span joins, table functions. */
#include "plan_grammar.h"

const struct plan_from plan_froms[] = {
    {"(SELECT 'one' AS kind, dur AS x, track_id AS k FROM v_slice UNION ALL SELECT 'two', upid, id FROM v_thread UNION "
     "ALL "
     "SELECT category, dur, max(depth) FROM v_slice GROUP BY 1, 2) u",
     {"x", "k", "u.k"},
     {0},
     {"kind"}},
    {"(SELECT track_id AS k, depth AS d, count(*) AS n, sum(max(dur)) OVER (PARTITION BY track_id ORDER BY depth) AS w "
     "FROM v_slice WHERE dur < 1000 GROUP BY 1, 2) q",
     {"k", "d", "n", "w"},
     {0},
     {0}},
    {"(SELECT DISTINCT depth AS k FROM v_slice WHERE depth < 9) q JOIN most_of(q.k, 3) x",
     {"q.k", "x.n", "x.k"},
     {0},
     {"x.w"}},
    {"v_slice s",
     {"s.ts", "s.dur", "s.depth", "s.parent_id", "s.thread_ts", "s.id", "s.track_id"},
     {0},
     {"s.name", "category"}},
    {"v_counter c", {"c.ts", "track_id", "c.id", "c.arg_set_id"}, {"c.value", "value"}, {0}},
    {"v_slice s JOIN v_thread t ON t.id = s.depth",
     {"s.ts", "dur", "t.tid", "t.upid", "parent_id", "s.thread_ts", "t.start_ts"},
     {0},
     {"t.name", "s.name", "category"}},
    {"v_slice AS s LEFT JOIN v_thread t ON t.id = s.depth AND t.tid > 5",
     {"s.ts", "s.dur", "t.tid", "t.upid", "depth", "t.id"},
     {0},
     {"t.name", "s.name"}},
    {"v_slice s JOIN v_counter c ON c.track_id = s.track_id AND c.ts = s.ts",
     {"s.ts", "s.dur", "s.depth", "c.arg_set_id", "c.id"},
     {"c.value"},
     {"s.name"}},
    {"v_counter c LEFT JOIN v_slice s ON s.id = c.track_id * 7 WHERE_",
     {"c.ts", "s.dur", "c.track_id", "s.parent_id"},
     {"value"},
     {"s.name", "s.category"}},
    {"v_slice a JOIN v_slice b ON a.parent_id = b.id JOIN v_thread t ON t.id = b.track_id",
     {"a.ts", "b.ts", "a.depth", "b.track_id", "t.upid"},
     {0},
     {"a.name", "b.name", "t.name"}},
    {"(SELECT track_id AS k, count(*) AS n, max(dur) AS m, avg(depth) AS r, name AS w FROM v_slice WHERE dur >= 0 "
     "GROUP BY 1) g "
     "JOIN v_thread t ON t.id = g.k",
     {"k", "n", "m", "t.tid"},
     {"r"},
     {"t.name"}},
    {"(SELECT ts, dur + depth AS x, name, lag(dur) OVER (PARTITION BY track_id ORDER BY ts, id) AS p FROM v_slice) q",
     {"ts", "x", "p"},
     {0},
     {"name", "q.name"}},
    {"(SELECT ts AS a, name AS b, dur AS c FROM v_slice UNION ALL SELECT tid, name, upid FROM v_thread UNION ALL "
     "SELECT track_id, NULL, ts FROM v_counter WHERE ts > 100) u",
     {"a", "c", "u.a"},
     {0},
     {"b"}},
    {"(SELECT depth AS k, count(*) AS n, name AS w FROM v_slice GROUP BY 1 UNION ALL SELECT track_id, max(ts), 'x' "
     "FROM "
     "v_counter GROUP BY 1) u JOIN v_thread t ON t.id = u.k",
     {"k", "n", "t.tid"},
     {0},
     {"w", "t.name"}},
    {"(SELECT s.ts AS a, s.dur AS b, t.name AS w, s.depth AS d FROM v_slice s JOIN v_thread t ON t.id = s.depth UNION "
     "ALL "
     "SELECT s.ts + s.dur, -s.dur, t.name, s.track_id FROM v_slice s JOIN v_thread t ON t.id = s.track_id WHERE dur > "
     "5) u",
     {"u.a", "b", "u.d"},
     {0},
     {"w", "u.w"}},
    {"(SELECT s.depth AS k, t.name AS w, avg(s.dur) AS r, s.ts AS x FROM v_slice s JOIN v_thread t ON t.id = "
     "s.track_id GROUP "
     "BY s.depth, s.ts) q JOIN v_thread t ON t.id = q.k",
     {"k", "x", "t.tid"},
     {"q.r"},
     {"q.w", "t.name"}},
    {"(SELECT ts AS a, name AS b FROM v_slice UNION SELECT tid, name FROM v_thread WHERE upid > 3) u",
     {"a", "u.a"},
     {0},
     {"b"}},
    {"(SELECT depth AS k, median(dur) AS m, count(*) AS n FROM v_slice GROUP BY 1) JOIN v_thread t ON t.id = k",
     {"k", "n", "t.tid", "t.upid"},
     {"m"},
     {"t.name"}},
    {"v_thread t LEFT JOIN (SELECT track_id AS k, max(dur) AS m FROM v_slice GROUP BY 1) ON k = t.id LEFT JOIN (SELECT "
     "depth "
     "AS d, count(*) AS n FROM v_slice GROUP BY 1) ON d = t.tid",
     {"k", "n", "m", "t.tid", "t.id"},
     {0},
     {"t.name"}},
    {"j", {"ts", "dur", "p", "w", "d"}, {0}, {"name"}},
    {"jo", {"ts", "dur", "p", "w", "d"}, {0}, {"name"}},
    {"v_thread t JOIN v_slice s USING (id)", {"id", "s.ts", "tid", "upid", "dur"}, {0}, {"s.name", "t.name"}},
    {"v_machine m, v_thread t LEFT JOIN v_slice s ON s.depth = t.tid AND s.dur > 100000",
     {"m.id", "m.raw_id", "t.tid", "s.dur", "s.ts"},
     {0},
     {"m.name", "s.name"}},
    {"v_slice s JOIN v_counter c ON c.track_id = s.track_id AND c.ts >= s.ts AND c.ts < s.ts + s.dur",
     {"s.ts", "c.ts", "s.dur", "s.depth", "c.id"},
     {"c.value"},
     {"s.name"}},
    {"v_slice a JOIN v_slice b ON a.depth = b.depth AND b.ts > a.ts AND b.ts - 3 <= a.ts + a.track_id",
     {"a.ts", "b.ts", "a.dur", "b.dur", "b.id"},
     {0},
     {"a.name", "b.name"}},
    {"v_thread t JOIN v_slice s ON s.ts BETWEEN t.tid AND t.tid + 20",
     {"t.tid", "s.ts", "s.dur", "t.upid"},
     {0},
     {"t.name", "s.name"}},
    {"v_thread t LEFT JOIN v_slice s ON s.depth = t.tid AND s.dur > t.start_ts AND s.id > t.upid",
     {"t.tid", "s.ts", "s.dur", "s.id", "t.start_ts"},
     {0},
     {"t.name", "s.name"}},
    {"v_thread t JOIN within(t.tid, t.name) b", {"b.x", "t.tid", "b.d", "t.upid"}, {"b.r"}, {"b.w", "t.name"}},
    {"v_machine m JOIN v_thread t ON t.id < 9 LEFT JOIN most_of(t.id, 3) b ON b.n > 1",
     {"b.k", "b.n", "t.tid", "t.id"},
     {0},
     {"b.w", "t.name"}},
    {"v_thread t JOIN quoted(t.upid, t.tid * 1.5) b", {"b.n", "b.m", "t.tid"}, {0}, {"b.w", "t.name"}},
    {"within(40, NULL) b JOIN most_of(2, 20) o ON o.k = b.d", {"b.x", "b.d", "o.n", "o.k"}, {"b.r"}, {"b.w", "o.w"}},
    {"(WITH RECURSIVE c(id, up, d) AS (SELECT id, parent_id, 0 FROM v_slice WHERE depth < 40 UNION ALL SELECT s.id, "
     "s.parent_id, c.d + 1 FROM c JOIN v_slice s ON s.id = c.up WHERE c.d < 6) SELECT c.*, s.name, s.dur FROM c JOIN "
     "v_slice s ON s.id = c.id) r",
     {"r.id", "up", "d", "dur"},
     {0},
     {"name"}},
    {"(WITH RECURSIVE c AS (SELECT id AS i, name AS w, ts AS t FROM v_slice WHERE id < 30 UNION ALL SELECT s.id, "
     "coalesce(s.name, c.w), c.t FROM v_slice s JOIN c ON s.parent_id = c.i AND s.id > c.i) SELECT * FROM c) r",
     {"i", "r.t"},
     {0},
     {"w"}},
    {"v_slice s LEFT JOIN v_slice p ON s.parent_id = p.id JOIN v_thread t ON t.id = s.depth",
     {"s.id", "p.id", "s.ts", "p.dur", "t.tid", "s.dur"},
     {0},
     {"p.name", "t.name", "s.name"}},
    {"v_thread t LEFT JOIN v_slice s ON s.depth = t.tid LEFT JOIN v_counter c ON c.track_id = s.id",
     {"t.id", "s.id", "c.id", "t.tid", "s.dur", "c.ts"},
     {"c.value"},
     {"t.name", "s.name"}},
    {"(SELECT t.id AS i, t.tid AS n, t.name AS w, s.dur AS d FROM v_thread t LEFT JOIN v_slice s ON s.track_id = "
     "t.tid WHERE s.id IS NULL) q",
     {"i", "n", "d"},
     {0},
     {"w"}},
    {"(WITH RECURSIVE b(ts) AS (SELECT 1 UNION ALL SELECT ts + 17 FROM b WHERE ts < 3000) SELECT b.ts AS a, s.dur AS "
     "d, s.name AS w, s.id AS i FROM b LEFT JOIN v_slice s ON s.ts >= b.ts AND s.ts < b.ts + 17) q",
     {"a", "d", "i"},
     {0},
     {"w"}},
    {"v_slice c JOIN v_slice p ON c.parent_id = p.id AND p.dur > 3",
     {"c.id", "p.id", "c.dur", "p.depth"},
     {0},
     {"c.name", "p.name"}},
    {"v_slice a JOIN v_slice b ON b.depth = a.track_id AND a.depth = 3",
     {"a.id", "b.id", "a.dur", "b.depth"},
     {0},
     {"a.name", "b.name"}},
    {"v_thread t NATURAL JOIN (SELECT id, dur, depth, name AS w FROM v_slice) s",
     {"id", "t.id", "dur", "tid"},
     {0},
     {"w", "t.name"}},
    {"v_slice s RIGHT JOIN v_thread t ON t.id = s.depth AND s.dur > 5",
     {"s.ts", "t.tid", "s.dur", "t.upid", "s.id", "t.id"},
     {0},
     {"t.name", "s.name"}},
    {"v_thread t FULL JOIN v_slice s ON s.depth = t.tid AND s.track_id < 9 AND t.upid > 1",
     {"t.tid", "s.ts", "s.dur", "t.id", "s.id", "s.depth"},
     {0},
     {"s.name", "t.name"}},
    {"(SELECT track_id AS k, count(*) AS n, max(name) AS w FROM v_slice GROUP BY 1) g FULL JOIN (SELECT depth AS k, "
     "sum(dur / 1000) AS m, avg(ts) AS r FROM v_slice WHERE depth > 2 GROUP BY 1) h USING (k)",
     {"k", "n", "m", "g.k", "h.k"},
     {"h.r"},
     {"w"}},
    {"v_slice s JOIN v_thread t ON t.id = s.depth RIGHT JOIN v_counter c ON c.track_id = s.id AND c.ts > t.tid LEFT "
     "JOIN v_slice x ON x.id = c.ts",
     {"s.ts", "t.tid", "c.id", "c.ts", "x.dur", "s.dur"},
     {"c.value"},
     {"t.name", "s.name", "x.name"}},
    {"(SELECT id, ts + 1 AS a, coalesce(name, 'x') AS b, 7 AS c FROM v_slice WHERE dur > 3) q RIGHT JOIN v_thread t "
     "USING (id)",
     {"id", "a", "c", "q.id", "t.id", "tid"},
     {0},
     {"b", "t.name"}},
    {"v_slice s FULL JOIN v_counter c ON c.ts >= s.ts AND c.ts < s.ts + s.dur AND c.track_id = s.track_id",
     {"s.ts", "c.ts", "s.dur", "s.depth", "c.id", "s.id"},
     {"c.value"},
     {"s.name"}},
    {"(SELECT id AS i, depth AS k, name AS w, dur AS d FROM v_slice ORDER BY dur DESC, ts) q JOIN v_thread t ON t.id = "
     "q.k",
     {"q.i", "k", "d", "t.tid"},
     {0},
     {"w", "t.name"}},
    {"(SELECT DISTINCT name AS w, track_id AS k FROM v_slice ORDER BY 1 DESC, 2) q JOIN v_thread t ON t.id = q.k",
     {"k", "t.tid", "t.upid"},
     {0},
     {"q.w", "t.name"}},
    {"(SELECT ts AS a, name AS b, depth AS c FROM v_slice ORDER BY name, id) q", {"a", "q.c"}, {0}, {"b"}},
    {"v_slice s JOIN ancestor_slice(s.id) a ON a.dur > 2",
     {"s.ts", "a.ts", "a.id", "s.dur", "a.depth"},
     {0},
     {"s.name", "a.name"}},
    {"v_thread t JOIN v_slice s ON s.id = t.tid JOIN descendant_slice(s.id) d",
     {"t.tid", "d.ts", "d.id", "s.dur", "d.parent_id"},
     {0},
     {"d.name", "t.name"}},
    /* SQLite makes an index of what it has computed first */
    {"(SELECT track_id AS k, depth AS d, dur - lag(dur) OVER (PARTITION BY track_id ORDER BY ts) AS x, name AS w, "
     "avg(dur) "
     "OVER (PARTITION BY depth ORDER BY id ROWS 3 PRECEDING) AS m FROM v_slice) q JOIN v_thread t ON t.id = q.k",
     {"q.k", "d", "x", "t.tid", "t.upid"},
     {"m"},
     {"q.w", "t.name"}},
    {"v_thread t LEFT JOIN (SELECT depth AS k, ts AS a, coalesce(name, 'x') AS w, dur AS d FROM v_slice WHERE dur > 3) "
     "q ON "
     "q.k = t.tid",
     {"t.tid", "k", "a", "q.d", "t.upid"},
     {0},
     {"w", "t.name"}},
    {"(SELECT q.x AS a, t.tid AS b, q.w AS c, q.r AS r, t.name AS n FROM (SELECT depth AS k, name AS w, dur AS x, "
     "rank() OVER "
     "(ORDER BY dur) / 2.5 AS r FROM v_slice) q JOIN v_thread t ON t.id = q.k) z",
     {"a", "z.b"},
     {"r"},
     {"c", "n"}},
    {"v_thread t LEFT JOIN v_slice s USING (id) JOIN (SELECT tid % 7 AS k, upid AS u, min(name) AS w, count(*) AS n "
     "FROM "
     "v_thread GROUP BY 1, 2) g ON g.k = t.upid",
     {"t.tid", "u", "g.n", "s.dur"},
     {0},
     {"w", "s.name", "t.name"}},
    /* the bounds of the trace are constants */
    {"v_slice s, trace_bounds b", {"s.ts", "s.dur", "b.start_ts", "end_ts", "s.id"}, {0}, {"s.name"}},
    {"trace_bounds b JOIN v_slice s ON s.ts >= b.start_ts + 40 AND s.ts < b.end_ts + 900 JOIN v_thread t ON t.id = "
     "s.depth CROSS JOIN trace_bounds x",
     {"s.ts", "t.tid", "b.end_ts", "s.dur", "x.start_ts"},
     {0},
     {"s.name", "t.name"}},
    {"v_thread t JOIN (SELECT start_ts + 7 AS a, end_ts - start_ts AS w FROM trace_bounds) b LEFT JOIN v_slice s ON "
     "s.depth = t.tid AND s.ts > a",
     {"t.tid", "a", "b.w", "s.ts", "s.id"},
     {0},
     {"s.name", "t.name"}},
    /* expressions that are equal */
    {"(SELECT * FROM v_slice WHERE id < 500) a LEFT JOIN v_slice b ON b.track_id = a.track_id AND b.ts + b.depth = "
     "a.ts",
     {"a.ts", "b.ts", "a.depth", "b.id", "b.dur"},
     {0},
     {"a.name", "b.name"}},
    {"v_slice a JOIN v_slice b ON a.id < 90 AND a.ts - a.depth = b.ts + b.depth AND b.ts > a.track_id",
     {"a.ts", "b.ts", "a.dur", "b.id", "b.dur"},
     {0},
     {"a.name", "b.name"}},
    {"(SELECT * FROM v_thread WHERE id < 60) t LEFT JOIN v_slice s ON s.depth * 2 = t.tid - t.upid AND s.id > t.upid",
     {"t.tid", "s.ts", "s.dur", "s.id", "t.upid"},
     {0},
     {"t.name", "s.name"}},
    {"below(3) b JOIN v_thread t ON t.id = b.d", {"b.ts", "b.dur", "d", "t.tid"}, {0}, {"b.name", "t.name"}},
};
const uint32_t plan_n_froms = sizeof plan_froms / sizeof *plan_froms;

const char plan_objects[] =
    "CREATE PERFETTO TABLE spans AS SELECT id * 10 AS ts, 7 AS dur, depth AS p, name, dur AS d FROM v_slice;"
    "CREATE PERFETTO TABLE windows AS SELECT id * 95 AS ts, 40 AS dur, id AS w FROM v_slice WHERE id < 250;"
    "CREATE PERFETTO TABLE nested AS SELECT id AS ts, 100 AS dur, 1 AS p, id AS x FROM v_slice;"
    "INCLUDE PERFETTO MODULE intervals.intersect;"
    "CREATE PERFETTO TABLE meets AS SELECT ts, dur, id_0, id_1, id_0 % 40 AS k FROM _interval_intersect!(((SELECT "
    "ts / 10 AS id, ts, dur FROM spans), (SELECT w AS id, ts, dur FROM windows)), ());"
    "CREATE PERFETTO FUNCTION twice(a LONG) RETURNS LONG AS SELECT $a * 2 + 1;"
    "CREATE PERFETTO FUNCTION nested(a LONG, b LONG) RETURNS LONG AS SELECT CASE WHEN $a > $b THEN twice($a) ELSE $b "
    "END;"
    "CREATE PERFETTO FUNCTION label(t STRING, n LONG) RETURNS STRING AS SELECT coalesce($t, 'none') || ':' || $n;"
    "CREATE PERFETTO FUNCTION name_of(i LONG) RETURNS STRING AS SELECT name FROM v_thread WHERE id = $i;"
    "CREATE PERFETTO FUNCTION most(d LONG) RETURNS LONG AS SELECT max(dur) FROM v_slice WHERE depth = $d;"
    "CREATE PERFETTO FUNCTION some(d LONG) RETURNS LONG AS SELECT dur FROM v_slice WHERE id = $d AND dur > 5;"
    "CREATE PERFETTO FUNCTION below(n LONG) RETURNS TABLE(ts LONG, dur LONG, name STRING, d LONG) AS "
    "SELECT ts, dur, name, depth AS d FROM v_slice WHERE depth < $n;"
    "CREATE PERFETTO FUNCTION within(n LONG, w STRING) RETURNS TABLE(x LONG, d LONG, w STRING, r DOUBLE) AS "
    "SELECT s.ts + $n AS x, s.depth AS d, coalesce(t.name, $w) AS w, (SELECT avg(c.value) FROM v_counter c WHERE "
    "c.ts > $n) AS r FROM v_slice s JOIN v_thread t ON t.id = s.track_id WHERE s.ts > $n AND s.ts < $n + 60 AND "
    "(t.name >= $w OR $w IS NULL) AND s.depth IN (1, $n, 3);"
    "CREATE PERFETTO FUNCTION most_of(d LONG, n LONG) RETURNS TABLE(k LONG, n LONG, w STRING) AS "
    "SELECT depth AS k, count(*) AS n, max(name) AS w FROM v_slice WHERE track_id = $d OR dur < $d GROUP BY 1 "
    "ORDER BY 2 DESC, 1 LIMIT $n;"
    "CREATE PERFETTO FUNCTION quoted(d LONG, x DOUBLE) RETURNS TABLE(n LONG, m LONG, w STRING) AS "
    "SELECT n, m, json_quote(m) || typeof($d) AS w FROM (SELECT depth AS n, max(dur) AS m FROM v_slice WHERE id > $d "
    "AND ts > $x GROUP BY 1);"
    "CREATE VIRTUAL TABLE j USING span_join(spans PARTITIONED p, windows);"
    "CREATE VIRTUAL TABLE jl USING span_left_join(spans, windows);"
    "CREATE VIRTUAL TABLE jo USING span_outer_join(windows, spans PARTITIONED p);"
    "CREATE VIRTUAL TABLE bad USING span_join(nested PARTITIONED p, spans PARTITIONED p);";
