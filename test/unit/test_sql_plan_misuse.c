/* Aggregates and windows wherever an expression can stand, most of them where SQLite refuses them; and orders around a
 * query with LIMIT: plans give the same rows, or the same error. */
#include "mirror.h"

#include <check.h>
#include <string.h>

enum { ROWS = 300 };

static const char *const calls[] = {"row_number() OVER (ORDER BY id)",
                                    "sum(dur) OVER ()",
                                    "lag(ts) OVER (ORDER BY ts)",
                                    "count(*) OVER (PARTITION BY depth)",
                                    "group_concat(depth) OVER (ORDER BY id)",
                                    "ntile(3) OVER (ORDER BY id)",
                                    "sum(dur)",
                                    "count(*)",
                                    "max(ts)",
                                    "group_concat(depth)",
                                    "count(DISTINCT depth)",
                                    "total(dur)",
                                    "min(dur, sum(ts))",
                                    "id",
                                    "'a'",
                                    "NULL"};
enum { N_CALLS = sizeof calls / sizeof *calls };

/* $ is the call, # a query with the rows. */
static const char *const places[] = {
    "SELECT $ FROM #",
    "SELECT sum($) FROM #",
    "SELECT max($) FROM #",
    "SELECT count($), total($ + 1) FROM #",
    "SELECT count(DISTINCT $) FROM #",
    "SELECT group_concat($) FROM #",
    "SELECT group_concat(depth, $) FROM #",
    "SELECT count(*) FILTER (WHERE $ > 1) FROM #",
    "SELECT sum(dur) FILTER (WHERE $ > 1) OVER () FROM #",
    "SELECT sum(CASE WHEN $ > 1 THEN 1 END) FROM #",
    "SELECT sum((SELECT $)) FROM #",
    "SELECT id FROM # WHERE $ > 1",
    "SELECT id FROM # WHERE id IN (SELECT $ FROM #)",
    "SELECT depth FROM # GROUP BY $",
    "SELECT depth, count(*) FROM # GROUP BY depth HAVING $ > 1",
    "SELECT id FROM # ORDER BY $",
    "SELECT depth, count(*) FROM # GROUP BY depth ORDER BY $",
    "SELECT DISTINCT $ FROM #",
    "SELECT sum($) OVER () FROM #",
    "SELECT lag(id, $) OVER (ORDER BY id) FROM #",
    "SELECT sum(id) OVER (ORDER BY $) FROM #",
    "SELECT sum(id) OVER (PARTITION BY $) FROM #",
    "SELECT id FROM # LIMIT $",
    "SELECT a.id FROM # a JOIN # b ON b.id = $",
    "SELECT (SELECT $ FROM #) FROM # LIMIT 3",
    "SELECT $ AS y FROM # WHERE y > 1",
    "SELECT $ AS y, sum(dur) FROM # GROUP BY y",
    "SELECT $ FROM # UNION ALL SELECT $ FROM #",
    "SELECT id FROM # UNION SELECT $ FROM # ORDER BY 1",
    "SELECT sum(y), count(*) FROM (SELECT $ AS y FROM #)",
    "SELECT depth, $ FROM # GROUP BY depth",
    "SELECT a.id, (SELECT $ FROM # b WHERE b.id = a.id AND b.ts + a.ts > 0) FROM # a",
    "SELECT a.id, (SELECT sum(a.dur) + $ FROM # b WHERE b.id < a.depth) FROM # a",
    "SELECT a.id, (SELECT $ FROM # b WHERE b.id < a.depth GROUP BY b.depth % 3 ORDER BY a.id - $ LIMIT 1) FROM # a",
    "SELECT a.id FROM # a WHERE EXISTS (SELECT 1 FROM # b WHERE b.id < a.depth GROUP BY b.depth HAVING $ > a.ts)",
    "SELECT a.id, (SELECT max(a.dur - b.ts) FROM # b WHERE b.id = a.id AND $ > a.dur) FROM # a",
};
static const char *const rows[] = {"(SELECT id, ts, dur, depth FROM v_slice LIMIT 90)", "v_slice"};

START_TEST(calls_in_every_place)
{
    struct mirror m;
    mirror_open(&m, 20261129, ROWS);
    for (uint32_t k = 0; k < N_CALLS * sizeof rows / sizeof *rows; k++) {
        struct text t = {.n = 0};
        for (const char *c = places[_i]; *c; c++)
            if (*c == '$')
                put(&t, "%s", calls[k % N_CALLS]);
            else if (*c == '#')
                put(&t, "%s", rows[k / N_CALLS]);
            else
                put(&t, "%c", *c);
        mirror_compare_planner(&m, t.p);
    }
    mirror_close(&m);
}
END_TEST

/* SQLite makes one query of an order and of a LIMIT without one beneath it, where it can: the order chooses the rows.
 */
static const char *const around_limits[] = {
    "SELECT id FROM (SELECT id, dur FROM v_slice LIMIT 50) ORDER BY dur, id",
    "SELECT count(*), sum(id) FROM (SELECT id FROM (SELECT id, dur FROM v_slice LIMIT 50) ORDER BY dur, id)",
    "WITH c AS (SELECT id, dur FROM v_slice LIMIT 50) SELECT id FROM c ORDER BY dur, id",
    "WITH c AS MATERIALIZED (SELECT id, dur FROM v_slice LIMIT 50) SELECT id FROM c ORDER BY dur, id",
    "SELECT id FROM (SELECT id, dur + 1 AS d FROM (SELECT id, dur FROM v_slice LIMIT 50)) ORDER BY d, id",
    "SELECT id FROM (SELECT id, dur FROM v_slice WHERE depth > 1 LIMIT 50) ORDER BY dur, id",
    "SELECT id FROM (SELECT id, dur FROM v_slice LIMIT 50) WHERE id > 3 ORDER BY dur, id",
    "SELECT id FROM (SELECT id, dur FROM v_slice LIMIT 50 OFFSET 7) ORDER BY dur, id",
    "SELECT id FROM (SELECT id, dur FROM v_slice LIMIT 50) ORDER BY dur, id LIMIT 5",
    "SELECT DISTINCT dur FROM (SELECT id, dur FROM v_slice LIMIT 50) ORDER BY dur",
    "SELECT depth, max(dur) FROM (SELECT * FROM v_slice LIMIT 50) GROUP BY depth ORDER BY 2, 1",
    "SELECT sum(y) FROM (SELECT count(*) OVER (PARTITION BY depth) AS y FROM (SELECT * FROM v_slice LIMIT 50))",
    "SELECT sum(y) FROM (SELECT sum(id) OVER (ORDER BY dur, id) AS y FROM (SELECT id, dur FROM v_slice LIMIT 50))",
    "SELECT sum(y) FROM (SELECT sum(id) OVER () AS y FROM (SELECT id, dur FROM v_slice LIMIT 50))",
    "SELECT a.id FROM (SELECT id, dur FROM v_slice LIMIT 50) a JOIN v_slice b USING (id) ORDER BY a.dur, a.id",
    "SELECT dur FROM (SELECT id, dur FROM v_slice LIMIT 50) UNION ALL SELECT 5 ORDER BY 1",
    "SELECT dur FROM (SELECT id, dur FROM v_slice LIMIT 50) UNION SELECT 5",
    "SELECT id FROM (SELECT depth AS id, sum(dur) AS d FROM v_slice GROUP BY 1 LIMIT 4) ORDER BY d",
    "SELECT id FROM (SELECT id, dur, row_number() OVER (ORDER BY id) FROM (SELECT * FROM v_slice LIMIT 50)) ORDER BY "
    "dur, id",
};

START_TEST(orders_around_limits)
{
    struct mirror m;
    mirror_open(&m, 20261130, ROWS);
    mirror_compare_planner(&m, around_limits[_i]);
    mirror_close(&m);
}
END_TEST

Suite *sql_plan_misuse_suite(void);
Suite *sql_plan_misuse_suite(void)
{
    Suite *s = suite_create("sql_plan_misuse");
    TCase *t = tcase_create("misuse");
    tcase_set_timeout(t, 0);
    tcase_add_loop_test(t, calls_in_every_place, 0, sizeof places / sizeof *places);
    tcase_add_loop_test(t, orders_around_limits, 0, sizeof around_limits / sizeof *around_limits);
    suite_add_tcase(s, t);
    return s;
}
