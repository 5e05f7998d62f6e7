/* Tests the library's macros over spans, counters and trees against slow and simple queries on random input. */
#include "sql_fixture.h"

static struct sql_fixture f;
static uint64_t seed;

static void setup(void)
{
    sql_open(&f);
}

static void teardown(void)
{
    sql_close(&f);
}

static uint32_t random_below(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

/* Compares what two queries give; the second is the simple one. */
static void agree(const char *sql, const char *oracle)
{
    char *expected = sql_rows(&f, oracle);
    ck_assert_msg(expected != NULL, "%s\n%s", oracle, engine_error_text(f.e));
    sql_expect(&f, sql, expected);
    sqlite3_free(expected);
}

static void insert(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    char *sql = sqlite3_vmprintf(format, ap);
    va_end(ap);
    sql_run(&f, sql);
    sqlite3_free(sql);
}

#define MOMENTS                                                                                                        \
    "CREATE TABLE moments(t); INSERT INTO moments WITH RECURSIVE m(t) AS (SELECT 0 UNION ALL SELECT t + 1 FROM m "     \
    "WHERE t < 45) SELECT t FROM m;"

/* Empty, touching, equal, of no length, unfinished. */
START_TEST(grouped_spans_agree_with_moments)
{
    seed = (uint64_t)_i + 1;
    sql_run(&f, "INCLUDE PERFETTO MODULE intervals.*; CREATE TABLE a(id, ts, dur, p); " MOMENTS);
    for (uint32_t i = 0, n = random_below(20); i < n; i++)
        insert("INSERT INTO a VALUES(%u, %u, %d, %u)", i, random_below(30),
               random_below(8) == 0 ? -1 : (int)random_below(6), random_below(3));
    agree(
        "SELECT p, t FROM moments JOIN interval_merge_overlapping_partitioned!(a, (p)) m ON m.ts <= t AND m.ts + m.dur "
        "> t ORDER BY 1, 2",
        "SELECT DISTINCT p, t FROM moments JOIN a ON ts <= t AND ts + dur > t WHERE dur != -1 ORDER BY 1, 2");
    /* what is merged does not touch */
    sql_expect(&f,
               "WITH m AS MATERIALIZED (SELECT * FROM interval_merge_overlapping_partitioned!(a, (p))) SELECT count(*) "
               "FROM m x JOIN m y USING (p) WHERE y.ts > x.ts AND y.ts <= x.ts + x.dur",
               "0");
    /* with a gap allowed: the moments of spans, and those of the gaps that are narrow enough */
    agree(
        "SELECT t FROM moments WHERE EXISTS (SELECT 1 FROM interval_merge_overlapping!(a, 2) m WHERE m.ts <= t AND "
        "m.ts + m.dur > t)",
        "WITH ends AS (SELECT max(x.ts + x.dur) AS e, y.ts AS s FROM a x JOIN a y ON x.ts < y.ts WHERE x.dur != -1 AND "
        "y.dur != -1 GROUP BY y.ts) SELECT t FROM moments WHERE EXISTS (SELECT 1 FROM a WHERE dur != -1 AND ts <= t "
        "AND ts + dur > t) OR EXISTS (SELECT 1 FROM ends WHERE e <= t AND s > t AND s <= e + 2)");
    agree(
        "SELECT p, t, coalesce((SELECT value FROM intervals_overlap_count_by_group!(a, ts, dur, p) c WHERE "
        "c.group_name "
        "= p AND c.ts <= t ORDER BY c.ts DESC LIMIT 1), 0) FROM (SELECT DISTINCT p FROM a) JOIN moments ORDER BY 1, 2",
        "SELECT p, t, (SELECT count(*) FROM a WHERE a.p = g.p AND ts <= t AND (dur = -1 OR ts + dur > t)) FROM (SELECT "
        "DISTINCT p FROM a) g JOIN moments ORDER BY 1, 2");
}
END_TEST

START_TEST(counters_agree_with_a_search)
{
    seed = (uint64_t)_i + 1;
    sql_run(&f, "INCLUDE PERFETTO MODULE counters.intervals; CREATE TABLE c(id, ts, track_id, value)");
    for (uint32_t i = 0, n = random_below(25); i < n; i++)
        insert("INSERT INTO c VALUES(%u, %u, %u, %u)", i, i * 3 + random_below(3), random_below(3), random_below(3));
    f.st.trace_end_ns = 100;
    /* of a run of equal samples the first two stay, and the last where another value follows */
    agree(
        "SELECT id, ts, dur, track_id, value, next_value FROM counter_leading_intervals!(c) ORDER BY id",
        "WITH r AS (SELECT *, lag(value) OVER w AS b, lag(value, 2) OVER w AS bb, lead(value) OVER w AS a FROM c "
        "WINDOW w AS (PARTITION BY track_id ORDER BY ts)), k AS (SELECT * FROM r WHERE b IS NOT value OR bb IS NOT "
        "value OR a != value) SELECT id, ts, coalesce((SELECT "
        "min(n.ts) FROM k n WHERE n.track_id = k.track_id AND n.ts > k.ts), trace_end()) - ts, track_id, value * 1.0, "
        "(SELECT n.value * 1.0 FROM k n WHERE n.track_id = k.track_id AND n.ts > k.ts ORDER BY n.ts LIMIT 1) FROM k "
        "ORDER BY id");
    sql_expect(&f, "SELECT count(*) FROM counter_leading_intervals!((SELECT * FROM c WHERE 0))", "0");
}
END_TEST

START_TEST(trees_agree_with_recursion)
{
    seed = (uint64_t)_i + 1;
    sql_run(&f, "INCLUDE PERFETTO MODULE graphs.*; CREATE TABLE t(id, parent_id, group_key)");
    for (uint32_t i = 0, n = random_below(25); i < n; i++) {
        if (i && random_below(6))
            insert("INSERT INTO t VALUES(%u, %u, %u)", i, random_below(i), random_below(3));
        else
            insert("INSERT INTO t VALUES(%u, NULL, %u)", i, random_below(3));
    }
    /* the nearest above of the same group */
    agree("SELECT id, parent_id, group_key FROM tree_structural_partition_by_group!(t) ORDER BY 1",
          "WITH RECURSIVE up(id, at, steps) AS (SELECT id, parent_id, 1 FROM t UNION ALL SELECT up.id, t.parent_id, "
          "steps "
          "+ 1 FROM up JOIN t ON t.id = up.at) SELECT id, (SELECT u.id FROM up JOIN t u ON u.id = up.at WHERE up.id = "
          "t.id AND u.group_key = t.group_key ORDER BY steps LIMIT 1), group_key FROM t ORDER BY 1");
    agree(
        "SELECT node_id, next_node_id FROM graph_next_sibling!((SELECT id AS node_id, parent_id AS node_parent_id, -id "
        "AS sort_key FROM t WHERE parent_id IS NOT NULL)) ORDER BY 1",
        "SELECT id, (SELECT max(n.id) FROM t n WHERE n.parent_id = t.parent_id AND n.id < t.id) FROM t WHERE parent_id "
        "IS NOT NULL ORDER BY 1");
    agree(
        "SELECT c0, c2, c3, c5 FROM __intrinsic_table_ptr((SELECT __intrinsic_tree_dominator_summary("
        "__intrinsic_tree_from_table('id', id, 'parent_id', parent_id, 'self_size', id * 10, 'native_size', 0, "
        "'self_count', 1)) FROM t)) WHERE __intrinsic_table_ptr_bind(c0, 'id') AND __intrinsic_table_ptr_bind(c2, "
        "'dominated_obj_count') AND __intrinsic_table_ptr_bind(c3, 'dominated_size_bytes') AND "
        "__intrinsic_table_ptr_bind(c5, 'depth') ORDER BY c0",
        "WITH RECURSIVE up(id, at, steps) AS (SELECT id, id, 1 FROM t UNION ALL SELECT up.id, t.parent_id, steps + 1 "
        "FROM up JOIN t ON t.id = up.at WHERE t.parent_id IS NOT NULL) SELECT t.id, count(*), sum(d.id) * 10, (SELECT "
        "max(steps) FROM up WHERE up.id = t.id) FROM t JOIN up d ON d.at = t.id GROUP BY t.id ORDER BY 1");
}
END_TEST

START_TEST(starts_and_ends_agree_with_a_search)
{
    seed = (uint64_t)_i + 1;
    sql_run(&f, "INCLUDE PERFETTO MODULE intervals.create_intervals; CREATE TABLE s(ts); CREATE TABLE e(ts)");
    for (uint32_t i = 0, n = random_below(15); i < n; i++)
        insert("INSERT INTO %s VALUES(%u)", random_below(2) ? "s" : "e", random_below(40));
    agree("SELECT ts, dur FROM _interval_create!((SELECT DISTINCT ts FROM s), (SELECT DISTINCT ts FROM e)) ORDER BY 1",
          "SELECT DISTINCT ts, (SELECT min(ts) FROM e WHERE e.ts > s.ts) - ts AS d FROM s WHERE d IS NOT NULL ORDER BY "
          "1");
}
END_TEST

/* Slices of a track in [lo, hi), and inside them others; the last may be unfinished. */
static void random_slices(uint32_t track, int64_t parent, uint32_t depth, int64_t lo, int64_t hi)
{
    for (int64_t at = lo + random_below(4); at < hi;) {
        int64_t dur = random_below(12), end = at + dur < hi ? at + dur : hi;
        bool unfinished = end == hi && parent == COL_NULL && random_below(2);
        int64_t id = f.st.t[T_slice].n_rows;
        slice_insert(&f.st, &(struct slice_row){.ts = at,
                                                .dur = unfinished ? -1 : end - at,
                                                .track_id = track,
                                                .name = strpool_intern_str(&f.st.strings, "x"),
                                                .depth = depth,
                                                .parent_id = parent,
                                                .thread_ts = COL_NULL,
                                                .thread_dur = COL_NULL,
                                                .thread_instruction_count = COL_NULL,
                                                .thread_instruction_delta = COL_NULL});
        if (depth < 3 && random_below(2))
            random_slices(track, id, depth + 1, at, end);
        at = end + (end == at) + random_below(4);
    }
}

START_TEST(flattened_slices_agree_with_moments)
{
    struct error err = {0};
    seed = (uint64_t)_i + 1;
    thread_insert(&f.st, &(struct thread_row){.tid = 7, .upid = COL_NULL, .start_ts = COL_NULL, .end_ts = COL_NULL});
    struct arg_list dims = {0};
    arg_list_int(&f.st.args, &dims, "utid", 0);
    track_insert(&f.st, &(struct track_row){.event_type = strpool_intern_str(&f.st.strings, "slice"),
                                            .parent_id = COL_NULL,
                                            .dimension_arg_set_id = args_intern(&f.st.args, dims.p, dims.n),
                                            .track_group_id = COL_NULL,
                                            .utid = COL_NULL,
                                            .upid = COL_NULL});
    arg_list_free(&dims);
    random_slices(0, COL_NULL, 0, 0, 40);
    f.st.trace_end_ns = 45;
    ck_assert_int_eq(engine_loaded(f.e, &err), 0);
    sql_run(&f, "INCLUDE PERFETTO MODULE slices.flat_slices; " MOMENTS);
    agree("SELECT t, slice_id FROM moments JOIN _slice_flattened ON ts <= t AND ts + dur > t ORDER BY 1, 2",
          "SELECT t, (SELECT id FROM slice WHERE ts <= t AND (dur = -1 OR ts + dur > t) ORDER BY depth DESC LIMIT 1) "
          "AS s "
          "FROM moments WHERE t < 45 AND s IS NOT NULL AND NOT EXISTS (SELECT 1 FROM slice WHERE dur = -1 AND ts <= t) "
          "ORDER BY 1");
}
END_TEST

Suite *library_oracles_suite(void);
Suite *library_oracles_suite(void)
{
    Suite *s = suite_create("library_oracles");
    TCase *t = tcase_create("random");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, grouped_spans_agree_with_moments, 0, 20);
    tcase_add_loop_test(t, counters_agree_with_a_search, 0, 20);
    tcase_add_loop_test(t, trees_agree_with_recursion, 0, 20);
    tcase_add_loop_test(t, starts_and_ends_agree_with_a_search, 0, 20);
    tcase_add_loop_test(t, flattened_slices_agree_with_moments, 0, 30);
    suite_add_tcase(s, t);
    return s;
}
