/* Tests that every operator ends soon when it is interrupted, wherever it is: each runs over a large input, is
 * interrupted a third, a half and nine tenths through, and must be back within a tenth of a second. */
#include "sql_fixture.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

static struct sql_fixture f;

/* With sanitizers everything takes some ten times as long, the distance between two looks at the flag as well. */
#ifdef __SANITIZE_ADDRESS__
enum { ROWS = 30000, BOUND_MS = 1000 };
#else
enum { ROWS = 100000, BOUND_MS = 100 };
#endif

static int64_t read_us(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Once for all tests: each runs in a process of its own that inherits the tables. */
static void setup_all(void)
{
    char sql[4096];
    sql_open(&f);
    for (uint32_t i = 0; i < ROWS; i++) {
        uint32_t depth = i % 100;
        slice_insert(&f.st, &(struct slice_row){.ts = i,
                                                .dur = 100 - depth,
                                                .track_id = 0,
                                                .depth = depth,
                                                .parent_id = depth ? i - 1 : COL_NULL,
                                                .name = strpool_intern(&f.st.strings, "s", 1)});
        flow_insert(&f.st, &(struct flow_row){.slice_out = i, .slice_in = (i + 1) % ROWS});
    }
    track_insert(&f.st, &(struct track_row){.name = strpool_intern(&f.st.strings, "t", 1)});
    struct error err = {0};
    ck_assert_int_eq(engine_loaded(f.e, &err), 0);
    /* r: scattered numbers; p: parents of a tree with branches; chain: parents of a list */
    snprintf(sql, sizeof sql,
             "CREATE PERFETTO TABLE n AS WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < %d) "
             "SELECT i, (i * 7919) %% 1000003 AS r, iif(i = 0, NULL, i / 2) AS p, iif(i = 0, NULL, i - 1) AS chain, "
             "'name ' || ((i * 7919) %% 1000003) AS t, i * 0.37 AS d FROM s",
             ROWS - 1);
    sql_run(&f, sql);
}

static void teardown_all(void)
{
    sql_close(&f);
}

static const char *const works[] = {
    /* what SQLite asks of our tables */
    "SELECT i FROM n ORDER BY t, r LIMIT 1 OFFSET 29000",
    "SELECT i FROM n ORDER BY d DESC, r",
    "SELECT count(*) FROM (SELECT DISTINCT r, t FROM n)",
    "SELECT t, count(*) FROM n GROUP BY t",
    "SELECT r, lag(r) OVER (ORDER BY r) FROM n",
    "SELECT count(*) FROM n a JOIN n b ON a.r = b.i AND a.t < b.t",
    "CREATE PERFETTO TABLE m AS SELECT * FROM n ORDER BY t",
    "SELECT median(d) FROM n",
    "SELECT group_concat(t ORDER BY t) FROM n WHERE i < 50000",
    /* intervals */
    "CREATE VIEW a AS SELECT i AS ts, 1 AS dur, i AS x FROM n; CREATE VIEW b AS SELECT i AS ts, 1 AS dur, i AS y FROM "
    "n; CREATE VIRTUAL TABLE sj USING span_join(a, b); SELECT count(*) FROM sj WHERE x + y < 0",
    "SELECT __intrinsic_interval_intersect(x, x, '()') FROM (SELECT __intrinsic_interval_tree_intervals_agg(i, i, 30) "
    "AS x FROM n)",
    "SELECT __intrinsic_interval_create(__intrinsic_timestamp_set_agg(r), __intrinsic_timestamp_set_agg(r + 1)) FROM n",
    "SELECT __intrinsic_counter_intervals('leading', 1000, __intrinsic_counter_per_track_agg(i, i, i % 3, r)) FROM n",
    /* graphs and trees */
    "SELECT __intrinsic_dominator_tree(p, i, 0) FROM n WHERE i > 0",
    "SELECT __intrinsic_dominator_tree(chain, i, 0) FROM (SELECT chain, i FROM n WHERE i > 0 UNION ALL SELECT i, chain "
    "FROM n WHERE i > 0)",
    "SELECT __intrinsic_dfs(__intrinsic_graph_agg(i, r), __intrinsic_array_agg(i)) FROM n",
    "SELECT __intrinsic_bfs(__intrinsic_graph_agg(i, r), __intrinsic_array_agg(i)) FROM n",
    "SELECT __intrinsic_graph_scan(g, s, 'SELECT id, v + 1 AS v FROM $table', '(v)') FROM (SELECT "
    "__intrinsic_graph_agg(chain, i) AS g FROM n WHERE i > 0), (SELECT __intrinsic_row_dataframe_agg('id', 0, 'v', 1) "
    "AS s)",
    "SELECT __intrinsic_graph_aggregating_scan(g, s, 'SELECT id, sum(v) AS v FROM $table GROUP BY id', '(v)') FROM "
    "(SELECT __intrinsic_graph_agg(i, p) AS g, __intrinsic_row_dataframe_agg('id', i, 'v', 1) AS s FROM n WHERE i > 0)",
    "SELECT __intrinsic_structural_tree_partition(i, p, i % 7) FROM n",
    "SELECT __intrinsic_tree_to_table(__intrinsic_tree_from_table('id', i, 'parent_id', p, 'v', r)) FROM n",
    "SELECT __intrinsic_tree_dominator_summary(__intrinsic_tree_from_table('id', i, 'parent_id', p, 'a', 1, 'b', 2, "
    "'c', 3)) FROM n",
    "SELECT count(*) FROM __intrinsic_dfs_weight_bounded((SELECT __intrinsic_array_agg(chain) FROM n WHERE i > 0), "
    "(SELECT __intrinsic_array_agg(i) FROM n WHERE i > 0), (SELECT __intrinsic_array_agg(i - i) FROM n WHERE i > 0), "
    "(SELECT __intrinsic_array_agg(i) FROM n WHERE i < 30), (SELECT __intrinsic_array_agg(1) FROM n WHERE i < 30), "
    "1)",
    "SELECT __intrinsic_critical_path_walk(__intrinsic_wakeup_graph_agg(i, i, i * 10, 5, 5, chain, chain), "
    "__intrinsic_array_agg(i)) FROM n",
    /* pictures */
    "CREATE VIRTUAL TABLE cm USING __intrinsic_counter_mipmap((SELECT 1000003 - r AS ts, d AS value FROM n)); SELECT "
    "sum(max_value) FROM cm(0, 1000003, 1)",
    "CREATE VIRTUAL TABLE sm USING __intrinsic_slice_mipmap((SELECT i AS id, 1000003 - r AS ts, 5 AS dur, i % 5 AS "
    "depth FROM n)); SELECT sum(count) FROM sm(0, 1000003, 1)",
    "CREATE VIRTUAL TABLE fg USING __intrinsic_flamegraph((SELECT i AS id, p AS parent_id, t AS name, r AS v FROM n)); "
    "SELECT sum(cumulative_v) FROM fg(__intrinsic_flamegraph_config('value', 'v'))",
    "CREATE VIRTUAL TABLE fg USING __intrinsic_flamegraph((SELECT i AS id, iif(i % 20 = 0, NULL, i - 1) AS parent_id, "
    "t AS name, r AS v FROM n)); SELECT sum(cumulative_v) FROM fg(__intrinsic_flamegraph_config('value', 'v', "
    "'view', 'BOTTOM_UP'))",
    "SELECT count(*) FROM experimental_slice_layout('0')",
    "SELECT count(*) FROM experimental_flat_slice(0, 1000000)",
    "SELECT sum(a.id) FROM n JOIN ancestor_slice(n.i) a WHERE n.i < 9000",
    "SELECT sum(a.id) FROM n JOIN descendant_slice(n.i) a WHERE n.i < 9000",
    "SELECT count(*) FROM following_flow(0)",
    "SELECT count(*) FROM preceding_flow(5)",
    "SELECT count(*) FROM directly_connected_flow(5)",
    "SELECT count(*) FROM __intrinsic_slice_stacks",
};

/* Times are processor time of the thread that works: other programs may keep it waiting. */
struct alarm {
    int64_t at_us, fired_us;
    clockid_t worker;
    atomic_bool over;
};

static void *ring(void *p)
{
    struct alarm *a = p;
    while (read_us(a->worker) < a->at_us && !atomic_load(&a->over))
        usleep(200);
    a->fired_us = read_us(a->worker);
    engine_interrupt(f.e);
    return NULL;
}

/* Everything before the last semicolon is made ready once; the last statement is what is interrupted, or all of it when
 * that makes a table. */
START_TEST(an_interrupt_ends_it)
{
    const char *sql = works[_i];
    static const int parts[] = {3, 5, 9};
    int64_t start = read_us(CLOCK_THREAD_CPUTIME_ID), total, worst = 0;
    sql_run(&f, sql);
    total = read_us(CLOCK_THREAD_CPUTIME_ID) - start;
    for (int k = 0; k < 3; k++) {
        struct alarm a = {0};
        struct engine_result r;
        struct error err = {0};
        pthread_t thread;
        sql_run(&f, "DROP VIEW IF EXISTS a; DROP VIEW IF EXISTS b; DROP TABLE IF EXISTS sj; DROP TABLE IF EXISTS cm; "
                    "DROP TABLE IF EXISTS sm; DROP TABLE IF EXISTS fg; DROP TABLE IF EXISTS m");
        pthread_getcpuclockid(pthread_self(), &a.worker);
        a.at_us = read_us(a.worker) + total * parts[k] / 10;
        pthread_create(&thread, NULL, ring, &a);
        int rc = engine_query(f.e, "test", slice_str(sql), &r, NULL, &err);
        bool open = rc == 0;
        while (rc == 0 && (rc = engine_result_next(&r, &err)) == 1)
            rc = 0;
        int64_t end = read_us(CLOCK_THREAD_CPUTIME_ID);
        if (open && r.stmt)
            engine_result_close(&r);
        atomic_store(&a.over, true);
        pthread_join(thread, NULL);
        if (rc == 0) /* it was done before */
            continue;
        ck_assert_msg(rc == -MRD_ECANCELLED, "%s\n%d: %s", sql, rc, engine_error_text(f.e));
        worst = end - a.fired_us > worst ? end - a.fired_us : worst;
    }
    if (getenv("INTERRUPT_REPORT"))
        fprintf(stderr, "%6.0f ms of %6.0f: %.90s\n", (double)worst / 1e3, (double)total / 1e3, sql);
    ck_assert_msg(worst < BOUND_MS * 1000, "%s\nended %.0f ms after the interrupt; it takes %.0f ms in all", sql,
                  (double)worst / 1e3, (double)total / 1e3);
    sql_expect(&f, "SELECT 1 + 1", "2");
}
END_TEST

Suite *interrupt_suite(void);
Suite *interrupt_suite(void)
{
    Suite *s = suite_create("interrupt");
    TCase *t = tcase_create("interrupt");
    tcase_add_unchecked_fixture(t, setup_all, teardown_all);
    tcase_set_timeout(t, 120);
    const char *only = getenv("INTERRUPT_ONLY"); /* the number of one */
    int first = only ? atoi(only) : 0;
    tcase_add_loop_test(t, an_interrupt_ends_it, first, only ? first + 1 : (int)(sizeof works / sizeof *works));
    suite_add_tcase(s, t);
    return s;
}
