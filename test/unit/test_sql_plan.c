/* Plans and SQLite alone give the same rows, in the same order, under the same names, or the same error: statements of
 * a grammar (plan_grammar.h), with memory that runs out or is bounded, and with interrupts.
 *
 * MERIDIAN_PLAN_STATEMENTS in the environment makes that many; MERIDIAN_PLAN_SEED begins elsewhere, MERIDIAN_PLAN_SHOW
 * prints each before it runs, MERIDIAN_PLAN_MOST_MS leaves out those that take longer, and MERIDIAN_PLAN_FILE has
 * others in their place, a line each. CK_RUN_CASE=grammar runs nothing else. */
#include "plan_grammar.h"

#include "sql/engine_private.h"
#include "sql/planner/planner.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int from_environment(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

/* The next statement, of the grammar where there is no file; false: the file has no more. */
static bool next_statement(FILE *file, struct text *query)
{
    if (!file) {
        make_statement(query);
        return true;
    }
    if (!fgets(query->p, sizeof query->p, file))
        return false;
    query->p[strcspn(query->p, "\n")] = 0;
    return true;
}

START_TEST(plans_change_no_answer)
{
    struct mirror m;
    struct text query;
    const char *path = getenv("MERIDIAN_PLAN_FILE");
    FILE *file = path ? fopen(path, "r") : NULL;
    int n = from_environment("MERIDIAN_PLAN_STATEMENTS", 400), planned = 0;
    struct error err = {0};
    ck_assert_msg(!path || file, "%s", path);
    mirror_open(&m, (uint64_t)from_environment("MERIDIAN_PLAN_SEED", 2027) + (uint64_t)_i, PLAN_ROWS);
    m.e->plan_every_call = true;
    m.most_ms = (uint32_t)from_environment("MERIDIAN_PLAN_MOST_MS", 0);
    ck_assert_msg(engine_run(m.e, "test", plan_objects, &err) == 0, "%s", err.text);
    for (int i = 0; i < n && next_statement(file, &query); i++) {
        if (getenv("MERIDIAN_PLAN_SHOW"))
            fprintf(stderr, "%s\n", query.p);
        planned += mirror_compare_planner(&m, query.p);
    }
    ck_assert(file || planned > n / 3);
    if (getenv("MERIDIAN_PLAN_STATEMENTS"))
        fprintf(stderr, "%d of %d statements had a plan as a whole, %llu some\n", planned, n,
                (unsigned long long)m.compared);
    if (file)
        fclose(file);
    mirror_close(&m);
}
END_TEST

/* Memory runs out somewhere in each statement. */
START_TEST(plans_without_memory)
{
    struct mirror m;
    int n = from_environment("MERIDIAN_PLAN_WITHOUT_MEMORY", 150);
    struct error err = {0};
    mirror_open(&m, (uint64_t)from_environment("MERIDIAN_PLAN_SEED", 2030), PLAN_ROWS / 4);
    ck_assert_msg(engine_run(m.e, "test", plan_objects, &err) == 0, "%s", err.text);
    for (int i = 0; i < n; i++) {
        struct text query;
        make_statement(&query);
        mirror_check_memory(&m, query.p, 1 + pick(pick(2) ? 1000 : 200), pick(2));
    }
    mirror_close(&m);
}
END_TEST

static int64_t ask_number(struct engine *e, const char *sql)
{
    struct engine_result r;
    struct error err = {0};
    ck_assert_msg(engine_query(e, "test", slice_str(sql), &r, NULL, &err) == 0, "%s", err.text);
    ck_assert_int_eq(engine_result_next(&r, &err), 1);
    int64_t n = sqlite3_column_int64(r.stmt, 0);
    engine_result_close(&r);
    return n;
}

/* The same table is made twice, and compared value by value in the order of its rows. */
START_TEST(tables_are_the_same)
{
    static const char same[] =
        "SELECT (SELECT count(*) FROM made_a) - (SELECT count(*) FROM made_b) + "
        "(SELECT count(*) FROM made_a JOIN made_b USING (_auto_id) WHERE quote(made_a.x) IS NOT quote(made_b.x) OR "
        "quote(made_a.y) IS NOT quote(made_b.y) OR quote(made_a.z) IS NOT quote(made_b.z))";
    struct mirror m;
    struct error err = {0};
    mirror_open(&m, 31, PLAN_ROWS);
    ck_assert_msg(engine_run(m.e, "test", plan_objects, &err) == 0, "%s", err.text);
    for (int i = 0; i < 60; i++) {
        struct text q = {.n = 0}, a = {.n = 0}, b = {.n = 0};
        plan_at = &plan_froms[pick(plan_n_froms)];
        put_any(&q, 1);
        put(&q, " AS x, ");
        put_text(&q, 1);
        put(&q, " AS y, ");
        pick(3) ? put_int(&q, 1) : (void)put(&q, "NULL");
        put(&q, " AS z");
        put_from(&q);
        put_tail(&q, 3);
        put(&a, "CREATE OR REPLACE PERFETTO TABLE made_a AS SELECT %s", q.p);
        put(&b, "CREATE OR REPLACE PERFETTO TABLE made_b AS SELECT %s", q.p);
        int rc = engine_run(m.e, "test", a.p, &err);
        planner_switch(m.e, false);
        ck_assert_msg(engine_run(m.e, "test", b.p, &err) == rc, "%s: %s", b.p, err.text);
        if (rc == 0)
            ck_assert_msg(ask_number(m.e, same) == 0, "%s", q.p);
        planner_switch(m.e, true);
    }
    mirror_close(&m);
}
END_TEST

/* A temporary view or table hides what has its name, but not from views that are not temporary. */
START_TEST(temporary_names_are_hidden_from_views)
{
    static const char *const hiding[] = {"CREATE TEMP VIEW below AS SELECT id, ts, depth FROM v_slice",
                                         "CREATE TEMP TABLE below AS SELECT 1 AS id, 2 AS ts, 3 AS depth",
                                         "CREATE TEMP VIEW __intrinsic_slice AS SELECT 1 AS id, 2 AS ts, 3 AS depth"};
    static const char *const queries[] = {
        "SELECT depth, count(*), sum(ts) FROM above GROUP BY depth", "SELECT depth, count(*) FROM below GROUP BY depth",
        "SELECT count(*), sum(depth) FROM main.below WHERE ts > 5",
        "SELECT depth, count(*) FROM __intrinsic_slice GROUP BY depth",
        "SELECT a.id, b.ts FROM above a JOIN v_slice b ON b.id = a.id WHERE b.depth > 3"};
    for (size_t h = 0; h < sizeof hiding / sizeof *hiding; h++) {
        struct mirror m;
        mirror_open(&m, 281105, PLAN_ROWS);
        mirror_run(&m, "CREATE VIEW below AS SELECT id, ts, depth FROM __intrinsic_slice WHERE depth < 100;"
                       "CREATE VIEW above AS SELECT * FROM below");
        ck_assert(mirror_compare_planner(&m, queries[0]));
        mirror_run(&m, "%s", hiding[h]);
        for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
            mirror_compare_planner(&m, queries[i]);
        mirror_close(&m);
    }
}
END_TEST

/* What a plan may hold is bounded: where groups, windows, lists or joins need more, SQLite answers, and says the same.
 */
START_TEST(memory_of_a_plan_is_bounded)
{
    static const char *const queries[] = {
        "SELECT ts, name, count(*), sum(dur) FROM v_slice GROUP BY ts, name HAVING count(*) > 0",
        "SELECT DISTINCT ts, dur FROM v_slice ORDER BY 1, 2",
        "SELECT ts, lag(dur) OVER (PARTITION BY track_id ORDER BY ts, id) FROM v_slice",
        "SELECT count(*), sum(b.dur) FROM v_slice a JOIN v_slice b ON a.track_id = b.depth AND a.depth = b.track_id",
        "SELECT group_concat(ts) FROM v_slice GROUP BY track_id",
        "SELECT count(*) FROM v_slice WHERE ts IN (SELECT ts FROM v_slice WHERE depth > 1)",
        "SELECT count(*) FROM v_slice s WHERE EXISTS (SELECT 1 FROM v_slice z WHERE z.track_id = s.track_id AND z.ts > "
        "s.ts AND z.dur < s.dur)",
        "SELECT max((SELECT sum(z.dur) FROM v_slice z WHERE z.track_id = s.track_id AND z.ts < s.ts)) FROM v_slice s",
        "SELECT max((SELECT sum(z.dur + s.dur) FROM v_slice z WHERE z.track_id = s.track_id AND z.ts < s.ts)) FROM "
        "v_slice s"};
    struct mirror m;
    mirror_open(&m, 9, 4 * PLAN_ROWS);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        m.e->plan_max_bytes = 0;
        ck_assert_msg(mirror_compare_planner(&m, queries[i]), "%s", queries[i]);
        uint64_t whole = m.e->plan_bytes;
        ck_assert_msg(!m.e->plan_gave_up && whole > 4096, "%s", queries[i]);
        for (int part = 1; part < 8; part++) {
            m.e->plan_max_bytes = whole * (uint64_t)part / 8;
            mirror_compare_planner(&m, queries[i]);
            ck_assert_msg(m.e->plan_gave_up, "%s within %d/8 of %llu bytes", queries[i], part,
                          (unsigned long long)whole);
        }
    }
    mirror_close(&m);
}
END_TEST

struct interrupter {
    struct engine *e;
    atomic_bool done;
};

/* Again and again: an interrupt that comes before the statement runs is for nobody. */
static void *interrupt_soon(void *ctx)
{
    struct interrupter *i = ctx;
    while (!atomic_load(&i->done)) {
        nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
        engine_interrupt(i->e);
    }
    return NULL;
}

/* Some 10^10 pairs of rows: without the interrupt the test would not end. */
START_TEST(a_plan_is_interrupted)
{
    static const char *const forever[] = {
        "SELECT count(*), sum(a.dur) FROM v_slice a JOIN v_slice b ON a.track_id = b.track_id "
        "JOIN v_slice c ON c.track_id = b.track_id JOIN v_slice d ON d.track_id = c.track_id "
        "WHERE a.dur + b.dur + c.dur + d.dur < -100",
        "SELECT sum((SELECT count(*) FROM v_slice z JOIN v_slice y ON y.track_id = z.track_id WHERE z.track_id = "
        "s.track_id AND (z.dur < s.dur OR y.ts > s.ts + z.dur))) FROM v_slice s",
        "SELECT sum((SELECT count(*) FROM v_slice z WHERE z.dur > s.dur AND z.depth != u.depth AND z.ts - z.depth < "
        "u.ts)) FROM v_slice s JOIN v_slice u ON u.track_id = s.track_id"};
    struct mirror m;
    struct engine_result r = {0};
    struct error err = {0};
    pthread_t thread;
    mirror_open(&m, 8, 20 * PLAN_ROWS);
    struct interrupter i = {.e = m.e};
    ck_assert_int_eq(pthread_create(&thread, NULL, interrupt_soon, &i), 0);
    int rc = engine_query(m.e, "test", slice_str(forever[_i]), &r, NULL, &err);
    if (rc == 0) {
        ck_assert_ptr_nonnull(strstr(sqlite3_sql(r.stmt), "__intrinsic_plan"));
        rc = engine_result_next(&r, &err);
    }
    atomic_store(&i.done, true);
    pthread_join(thread, NULL);
    ck_assert_int_eq(rc, -MRD_ECANCELLED);
    engine_result_close(&r);
    mirror_close(&m);
}
END_TEST

Suite *sql_plan_suite(void);
Suite *sql_plan_suite(void)
{
    Suite *s = suite_create("sql_plan");
    TCase *grammar = tcase_create("grammar"), *t = tcase_create("plans");
    tcase_set_timeout(grammar, 0);
    tcase_add_loop_test(grammar, plans_change_no_answer, 0, 2);
    suite_add_tcase(s, grammar);
    tcase_set_timeout(t, 0);
    tcase_add_test(t, plans_without_memory);
    tcase_add_test(t, tables_are_the_same);
    tcase_add_test(t, temporary_names_are_hidden_from_views);
    tcase_add_test(t, memory_of_a_plan_is_bounded);
    tcase_add_loop_test(t, a_plan_is_interrupted, 0, 3);
    suite_add_tcase(s, t);
    return s;
}
