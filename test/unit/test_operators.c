/* Tests the operators against slow and simple ones on random input: span joins, intervals, graphs. */
#include "sql_fixture.h"

#include <time.h>

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

/* ---- span join ---- */

struct span {
    int64_t part, ts, dur, id;
};

struct spans {
    struct span p[64];
    int n;
};

/* Disjoint spans in each partition: empty, touching, apart, of no length, unfinished. */
static struct spans random_spans(uint32_t parts)
{
    struct spans s = {.n = 0};
    for (uint32_t part = 0; part < parts; part++) {
        int64_t at = random_below(4);
        if (random_below(4) == 0)
            continue; /* not in this table at all */
        for (uint32_t i = random_below(6); i > 0; i--) {
            int64_t dur = random_below(4) == 0 ? 0 : random_below(6);
            bool last = i == 1 && random_below(3) == 0;
            s.p[s.n] = (struct span){part, at, last ? -1 : dur, s.n};
            s.n++;
            at += dur + random_below(3) + (dur == 0); /* spans of no length do not share their moment */
        }
    }
    return s;
}

static void make_table(const char *name, const char *value, const struct spans *s)
{
    char *sql = sqlite3_mprintf(
        "DROP TABLE IF EXISTS %s; CREATE TABLE %s(ts BIGINT, dur BIGINT, part BIGINT, %s BIGINT)", name, name, value);
    sql_run(&f, sql);
    sqlite3_free(sql);
    for (int i = s->n; i-- > 0;) { /* not in order: the operator sorts */
        sql = sqlite3_mprintf("INSERT INTO %s VALUES(%lld, %lld, %lld, %lld)", name, s->p[i].ts, s->p[i].dur,
                              s->p[i].part, s->p[i].id);
        sql_run(&f, sql);
        sqlite3_free(sql);
    }
}

/* A segment of one side in one partition, as tables.md 4.2 describes them: spans and the gaps between. */
struct segment {
    int64_t start, end, adjusted;
    int64_t id; /* -1: a gap */
};

struct segments {
    struct segment p[200];
    int n;
};

static struct segments segments_of(const struct spans *s, int64_t part, bool gaps)
{
    struct segments out = {.n = 0};
    int64_t at = INT64_MIN;
    for (int i = 0; i < s->n; i++) {
        const struct span *v = &s->p[i];
        if (part >= 0 && v->part != part)
            continue;
        if (gaps && at < v->ts)
            out.p[out.n++] = (struct segment){at, v->ts, v->ts, -1};
        at = v->ts + (v->dur < 0 ? 0 : v->dur);
        out.p[out.n++] = (struct segment){v->ts, v->ts + v->dur, at, v->id};
    }
    if (gaps)
        out.p[out.n++] = (struct segment){at, INT64_MAX, INT64_MAX, -1};
    return out;
}

static int compare_rows(const void *a, const void *b)
{
    return memcmp(a, b, 5 * sizeof(int64_t));
}

struct rows {
    int64_t p[20000][5]; /* part, ts, dur, a, b */
    int n;
};

/* One begins within the other; a span of no length is where it begins. */
static bool overlaps(const struct segment *a, const struct segment *b)
{
    if (a->id < 0 && b->id < 0)
        return false;
    if (a->start > b->start)
        return a->start < b->adjusted;
    if (a->start < b->start)
        return b->start < a->adjusted;
    return (a->id >= 0 && b->id >= 0) || a->start < a->adjusted || b->start < b->adjusted;
}

/* Every pair of segments, the definition of overlap, nothing else. */
static void oracle(const struct spans *a, const struct spans *b, bool gaps_a, bool gaps_b, int64_t parts, bool mixed,
                   struct rows *out)
{
    for (int64_t part = 0; part < (parts ? parts : 1); part++) {
        bool in_a = false, in_b = mixed || !parts;
        for (int i = 0; i < a->n; i++)
            in_a |= !parts || a->p[i].part == part;
        for (int i = 0; i < b->n; i++)
            in_b |= b->p[i].part == part;
        if (parts && (mixed ? !in_a : !in_a && !in_b))
            continue;
        struct segments x = segments_of(a, parts ? part : -1, gaps_a);
        struct segments y = segments_of(b, parts && !mixed ? part : -1, gaps_b);
        for (int i = 0; i < x.n; i++)
            for (int k = 0; k < y.n; k++) {
                const struct segment *s = &x.p[i], *t = &y.p[k];
                int64_t from = s->start > t->start ? s->start : t->start;
                int64_t to = s->end < t->end ? s->end : t->end;
                bool was_left =
                    i && s->id < 0 && x.p[i - 1].start == s->start; /* of two without length b's goes first */
                if (!overlaps(s, t) || (was_left && t->start == t->adjusted && t->start == s->start))
                    continue;
                int64_t row[5] = {part, from, to - from, s->id, t->id};
                memcpy(out->p[out->n++], row, sizeof row);
            }
    }
    qsort(out->p, (size_t)out->n, sizeof *out->p, compare_rows);
}

static void read_rows(const char *sql, struct rows *out)
{
    struct engine_result r;
    struct error err = {0};
    ck_assert_msg(engine_query(f.e, NULL, slice_str(sql), &r, NULL, &err) == 0, "%s", engine_error_text(f.e));
    int rc;
    while ((rc = engine_result_next(&r, &err)) == 1) {
        for (int i = 0; i < 5; i++)
            out->p[out->n][i] = sqlite3_column_type(r.stmt, i) == SQLITE_NULL ? -1 : sqlite3_column_int64(r.stmt, i);
        out->n++;
    }
    ck_assert_msg(rc == 0, "%s", engine_error_text(f.e));
    engine_result_close(&r);
    qsort(out->p, (size_t)out->n, sizeof *out->p, compare_rows);
}

static struct rows want, got;

START_TEST(span_joins_agree_with_a_quadratic_one)
{
    static const struct {
        const char *module;
        bool gaps_a, gaps_b;
    } kinds[] = {{"span_join", false, false}, {"span_left_join", false, true}, {"span_outer_join", true, true}};
    static const char *const partitions[][2] = {
        {"", ""}, {" PARTITIONED part", " PARTITIONED part"}, {" PARTITIONED part", ""}};
    seed = (uint64_t)_i + 1;
    int how = _i % 3, kind = _i / 3 % 3;
    for (int round = 0; round < 12; round++) {
        struct spans a = random_spans(how == 0 ? 1 : 4), b = random_spans(how == 1 ? 4 : 1);
        make_table("a", "va", &a);
        make_table("b", how == 0 || how == 2 ? "vb" : "vb", &b);
        if (how != 1) /* both sides must not have the same plain column */
            sql_run(&f, "ALTER TABLE b DROP COLUMN part");
        if (how == 0)
            sql_run(&f, "ALTER TABLE a DROP COLUMN part");
        char *sql =
            sqlite3_mprintf("DROP TABLE IF EXISTS j; CREATE VIRTUAL TABLE j USING %s(a%s, b%s); "
                            "SELECT %s, ts, dur, va, vb FROM j",
                            kinds[kind].module, partitions[how][0], partitions[how][1], how == 0 ? "0" : "part");
        want.n = got.n = 0;
        oracle(&a, &b, kinds[kind].gaps_a, kinds[kind].gaps_b, how == 0 ? 0 : 4, how == 2, &want);
        read_rows(sql, &got);
        ck_assert_msg(want.n == got.n && memcmp(want.p, got.p, (size_t)want.n * sizeof *want.p) == 0,
                      "%s: %d rows, expected %d (seed %d, round %d)", sql, got.n, want.n, _i + 1, round);
        sqlite3_free(sql);
    }
}
END_TEST

/* Each partition meets a few of the spans of a side without partitions, and looks at no others: the time does not go by
 * partitions times spans. Seconds of CPU, 20 times what it takes; it was 100 times as much. */
START_TEST(span_joins_pass_over_spans_that_are_apart)
{
    static const double most = 2;
    sql_run(&f,
            "CREATE PERFETTO TABLE u AS WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c LIMIT 20000) "
            "SELECT i * 10 AS ts, 7 AS dur, i AS v FROM c; "
            "CREATE PERFETTO TABLE p AS WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c LIMIT 40000) "
            "SELECT i % 2 * 199000 + i / 1000 * 10 AS ts, 5 AS dur, i / 2 AS part FROM c; "
            "CREATE VIRTUAL TABLE j USING span_join(p PARTITIONED part, u); "
            "CREATE VIRTUAL TABLE jl USING span_left_join(p PARTITIONED part, u)");
    clock_t start = clock();
    sql_expect(&f, "SELECT count(*), sum(v), sum(dur) FROM j", "40000,398780000,200000");
    sql_expect(&f, "SELECT count(v), sum(v), sum(dur) FROM jl WHERE v IS NOT NULL", "40000,398780000,200000");
    double took = (double)(clock() - start) / CLOCKS_PER_SEC;
    ck_assert_msg(took < most, "%.2f s", took);
}
END_TEST

START_TEST(span_joins_refuse_what_overlaps)
{
    sql_run(
        &f,
        "CREATE TABLE a(ts BIGINT, dur BIGINT, p BIGINT, x TEXT); CREATE TABLE b(ts BIGINT, dur BIGINT, p BIGINT, y "
        "TEXT); INSERT INTO a VALUES(0, 10, 1, 'u'), (5, 10, 1, 'v'); INSERT INTO b VALUES(0, 100, 1, 'w'); CREATE "
        "VIRTUAL TABLE j USING span_join(a PARTITIONED p, b PARTITIONED p)");
    sql_must_fail(&f, "SELECT * FROM j", "table a has overlapping spans in partition 1: one begins at 5");
    sql_run(&f, "UPDATE a SET p = 2 WHERE ts = 5");
    sql_expect(&f, "SELECT * FROM j", "0,10,1,u,w");
    sql_run(&f, "UPDATE a SET p = NULL WHERE p = 2"); /* NULL partitions are left out */
    sql_expect(&f, "SELECT * FROM j", "0,10,1,u,w");
    sql_run(&f, "UPDATE a SET p = 'one'");
    sql_must_fail(&f, "SELECT * FROM j", "partition is not an INT");
    sql_run(&f, "UPDATE a SET p = 1, dur = -5");
    sql_must_fail(&f, "SELECT * FROM j", "negative dur (-5)");
    sql_run(&f, "UPDATE a SET ts = NULL");
    sql_must_fail(&f, "SELECT * FROM j", "ts is NULL");
}
END_TEST

START_TEST(span_joins_push_and_nest)
{
    sql_run(
        &f,
        "CREATE TABLE a(ts BIGINT, dur BIGINT, cpu BIGINT, x BIGINT); CREATE TABLE b(ts BIGINT, dur BIGINT, cpu "
        "BIGINT, "
        "y BIGINT); CREATE TABLE c(ts BIGINT, dur BIGINT, z BIGINT); INSERT INTO a VALUES(0, 10, 0, 1), (10, 10, 0, "
        "2), (0, 20, 1, 3); INSERT INTO b VALUES(5, 10, 0, 4), (5, 10, 1, 5); INSERT INTO c VALUES(7, 100, 9); CREATE "
        "VIRTUAL TABLE ab USING span_join(a PARTITIONED cpu, b PARTITIONED cpu); CREATE VIRTUAL TABLE abc USING "
        "span_left_join(ab PARTITIONED cpu, c)");
    sql_expect(&f, "SELECT ts, dur, cpu, x, y FROM ab", "5,5,0,1,4;10,5,0,2,4;5,10,1,3,5");
    sql_expect(&f, "SELECT ts, dur, cpu, x FROM ab WHERE cpu = 1", "5,10,1,3");
    sql_expect(&f, "SELECT ts, dur, cpu, x FROM ab WHERE x >= 2 AND y < 5", "10,5,0,2");
    sql_expect(&f, "SELECT ts FROM ab ORDER BY ts DESC", "10;5;5");
    sql_expect(&f, "SELECT ts, dur, cpu, x, y, z FROM abc",
               "5,2,0,1,4,-;7,3,0,1,4,9;10,5,0,2,4,9;5,2,1,3,5,-;7,8,1,3,5,9");
    sql_expect(&f, "SELECT count(*) FROM abc WHERE z IS NULL", "2");
    sql_expect(&f, "SELECT count(*) FROM abc WHERE z = 9", "3");
    sql_expect(&f, "SELECT ts, dur, x FROM ab WHERE source_geq(ts, 5)", "10,5,2");
}
END_TEST

/* ---- intervals ---- */

START_TEST(intersections_agree_with_a_join)
{
    seed = (uint64_t)_i + 1;
    sql_run(
        &f,
        "INCLUDE PERFETTO MODULE intervals.intersect; CREATE TABLE a(id, ts, dur, p); CREATE TABLE b(id, ts, dur, p)");
    for (int t = 0; t < 2; t++)
        for (uint32_t i = 0, n = random_below(20); i < n; i++) {
            char *sql = sqlite3_mprintf("INSERT INTO %s VALUES(%u, %u, %u, %u)", t ? "b" : "a", i, random_below(20),
                                        random_below(6), random_below(3));
            sql_run(&f, sql);
            sqlite3_free(sql);
        }
    /* spans that share a moment; one of no length shares the moment it stands on */
    char *expected =
        sql_rows(&f, "SELECT max(a.ts, b.ts), min(a.ts + a.dur, b.ts + b.dur) - max(a.ts, b.ts), a.id, b.id, a.p "
                     "FROM a JOIN b USING (p) WHERE max(a.ts, b.ts) < min(a.ts + a.dur, b.ts + b.dur) OR (a.dur "
                     "= 0 AND a.ts >= b.ts AND a.ts < b.ts + b.dur) OR (b.dur = 0 AND b.ts >= a.ts AND b.ts < "
                     "a.ts + a.dur) OR (a.dur = 0 AND b.dur = 0 AND a.ts = b.ts) ORDER BY 1, 2, 3, 4, 5");
    sql_expect(&f, "SELECT ts, dur, id_0, id_1, p FROM _interval_intersect!((a, b), (p)) ORDER BY 1, 2, 3, 4, 5",
               expected);
    sqlite3_free(expected);
    expected = sql_rows(
        &f, "SELECT max(a.ts, b.ts, c.ts), min(a.ts + a.dur, b.ts + b.dur, c.ts + c.dur), a.id, b.id, c.id FROM "
            "a JOIN b JOIN a AS c WHERE a.dur > 0 AND b.dur > 0 AND c.dur > 0 AND max(a.ts, b.ts, c.ts) < "
            "min(a.ts + a.dur, b.ts + b.dur, c.ts + c.dur) ORDER BY 1, 2, 3, 4, 5");
    sql_expect(
        &f,
        "SELECT ts, ts + dur, id_0, id_1, id_2 FROM _interval_intersect!(((SELECT * FROM a WHERE dur > 0), (SELECT * "
        "FROM b WHERE dur > 0), (SELECT * FROM a WHERE dur > 0)), ()) ORDER BY 1, 2, 3, 4, 5",
        expected);
    sqlite3_free(expected);
}
END_TEST

/* What the macros say about each moment, against counting. */
START_TEST(merges_and_counts_agree_with_counting)
{
    seed = (uint64_t)_i + 1;
    sql_run(&f, "INCLUDE PERFETTO MODULE intervals.*; CREATE TABLE a(id, ts, dur); CREATE TABLE moments(t)");
    for (uint32_t i = 0, n = random_below(15); i < n; i++) {
        char *sql = sqlite3_mprintf("INSERT INTO a VALUES(%u, %u, %u)", i, random_below(30), 1 + random_below(6));
        sql_run(&f, sql);
        sqlite3_free(sql);
    }
    sql_run(&f, "INSERT INTO moments SELECT value FROM "
                "json_each('[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,"
                "24,25,26,27,28,29,30,31,32,33,34,35,36]')");
    char *expected = sql_rows(&f, "SELECT t, (SELECT count(*) FROM a WHERE ts <= t AND ts + dur > t) FROM moments");
    sql_expect(
        &f,
        "SELECT t, coalesce((SELECT value FROM intervals_overlap_count!(a, ts, dur) WHERE ts <= t ORDER BY ts DESC "
        "LIMIT 1), 0) FROM moments",
        expected);
    sqlite3_free(expected);
    expected = sql_rows(&f, "SELECT t FROM moments WHERE EXISTS (SELECT 1 FROM a WHERE ts <= t AND ts + dur > t)");
    sql_expect(
        &f,
        "SELECT t FROM moments WHERE EXISTS (SELECT 1 FROM interval_merge_overlapping!(a, 0) WHERE ts <= t AND ts + "
        "dur > t)",
        expected);
    /* merged spans do not touch */
    sql_expect(
        &f,
        "SELECT count(*) FROM interval_merge_overlapping!(a, 0) x JOIN interval_merge_overlapping!(a, 0) y ON y.ts > "
        "x.ts AND y.ts <= x.ts + x.dur",
        "0");
    sqlite3_free(expected);
    expected = sql_rows(&f, "SELECT t, a.id FROM moments JOIN a ON ts <= t AND ts + dur > t ORDER BY 1, 2");
    sql_expect(&f,
               "SELECT t, id FROM moments JOIN interval_self_intersect!(a) i ON i.ts <= t AND i.ts + i.dur > t WHERE "
               "interval_ends_at_ts = 0 ORDER BY 1, 2",
               expected);
    sqlite3_free(expected);
}
END_TEST

START_TEST(intervals_refuse_what_is_unfinished)
{
    sql_run(&f,
            "INCLUDE PERFETTO MODULE intervals.intersect; CREATE TABLE a(id, ts, dur); INSERT INTO a VALUES(1, 5, -1)");
    sql_must_fail(&f, "SELECT * FROM _interval_intersect!((a, a), ())", "dur >= 0");
    sql_run(&f, "DELETE FROM a");
    sql_expect(&f, "SELECT count(*) FROM _interval_intersect!((a, a), ())", "0");
}
END_TEST

/* ---- graphs ---- */

START_TEST(intervals_refuse_partitions_without_a_name)
{
    sql_must_fail(&f, "SELECT __intrinsic_interval_tree_intervals_agg(1, 2, 3, NULL, 4)",
                  "the name of partition column 1 is NULL");
    sql_must_fail(&f, "SELECT __intrinsic_interval_tree_intervals_agg(1, 2, 3, 'a', 4, NULL, 5)",
                  "the name of partition column 2 is NULL");
}
END_TEST

START_TEST(reachability_agrees_with_a_recursive_query)
{
    seed = (uint64_t)_i + 1;
    sql_run(&f,
            "INCLUDE PERFETTO MODULE graphs.*; CREATE TABLE g(source_node_id, dest_node_id); CREATE TABLE s(node_id)");
    for (uint32_t i = 0, n = random_below(30); i < n; i++) {
        char *sql = sqlite3_mprintf("INSERT INTO g VALUES(%u, %u)", random_below(12), random_below(12));
        sql_run(&f, sql);
        sqlite3_free(sql);
    }
    sql_run(&f, "INSERT INTO s VALUES(0), (3), (99)");
    static const char reach[] =
        "WITH RECURSIVE r(n) AS (SELECT node_id FROM s UNION SELECT dest_node_id FROM r JOIN g ON "
        "source_node_id = n) SELECT n FROM r ORDER BY n";
    char *expected = sql_rows(&f, reach);
    sql_expect(&f, "SELECT node_id FROM graph_reachable_dfs!(g, s) ORDER BY 1", expected);
    sql_expect(&f, "SELECT node_id FROM graph_reachable_bfs!(g, s) ORDER BY 1", expected);
    sqlite3_free(expected);
    /* a parent is a node with an edge to it */
    sql_expect(
        &f,
        "SELECT count(*) FROM graph_reachable_dfs!(g, s) WHERE parent_node_id IS NOT NULL AND NOT EXISTS (SELECT 1 "
        "FROM g WHERE source_node_id = parent_node_id AND dest_node_id = node_id)",
        "0");
    /* d dominates n: without d, n cannot be reached; and no other dominator of n lies below d */
    expected = sql_rows(
        &f, "WITH RECURSIVE nodes(n) AS (SELECT 0 UNION SELECT dest_node_id FROM nodes JOIN g ON source_node_id = "
            "n), cut(d, n) AS (SELECT d.n, 0 FROM nodes d WHERE d.n != 0 UNION SELECT d, dest_node_id FROM cut "
            "JOIN g ON source_node_id = n WHERE dest_node_id != d), dom(d, n) AS (SELECT d.n, m.n FROM nodes d "
            "JOIN nodes m WHERE d.n != m.n AND (d.n = 0 OR NOT EXISTS (SELECT 1 FROM cut WHERE cut.d = d.n AND "
            "cut.n = m.n))) SELECT m.n, (SELECT d FROM dom x WHERE x.n = m.n ORDER BY (SELECT count(*) FROM dom "
            "y WHERE y.n = x.d) DESC LIMIT 1) FROM nodes m ORDER BY 1");
    sql_expect(
        &f,
        "SELECT node_id, dominator_node_id FROM (SELECT * FROM graph_dominator_tree!(g, 0) UNION SELECT 0, NULL) "
        "GROUP BY node_id ORDER BY 1",
        expected);
    sqlite3_free(expected);
}
END_TEST

/* A ring with links both ways, as lists in heaps are, takes no more than another graph of its size. */
START_TEST(dominators_of_a_ring)
{
    sql_run(&f, "INCLUDE PERFETTO MODULE graphs.dominator_tree; CREATE TABLE ring AS WITH RECURSIVE n(i) AS (SELECT 0 "
                "UNION ALL SELECT i + 1 FROM n WHERE i < 60000) SELECT i AS source_node_id, (i + 1) % 60001 AS "
                "dest_node_id FROM n UNION ALL SELECT (i + 1) % 60001, i FROM n");
    sql_expect(&f, "SELECT count(*), sum(dominator_node_id = 0) FROM graph_dominator_tree!(ring, 0)", "60001,60000");
}
END_TEST

/* Threads that run, sleep and wake each other, in any order. */
static void random_thread_states(uint32_t threads)
{
    static const char *const names[] = {"S", "R", "Running"};
    int64_t at[8], kind[8], running[8]; /* running: row of the state in which the thread runs now */
    for (uint32_t t = 0; t < threads; t++) {
        running[t] = COL_NULL;
        at[t] = 1 + random_below(20);
        kind[t] = random_below(3);
        thread_insert(
            &f.st,
            &(struct thread_row){
                .tid = t, .upid = COL_NULL, .start_ts = COL_NULL, .end_ts = COL_NULL, .is_main_thread = COL_NULL});
    }
    for (int64_t now = 0; now < 200; now++)
        for (uint32_t t = 0; t < threads; t++) {
            if (at[t] != now)
                continue;
            int64_t dur = 1 + random_below(15);
            bool woken = kind[t] == 1 && random_below(5) > 0;
            uint32_t waker = random_below(threads);
            running[t] = kind[t] == 2 ? (int64_t)f.st.t[T_thread_state].n_rows : COL_NULL;
            thread_state_insert(&f.st,
                                &(struct thread_state_row){.ts = now,
                                                           .dur = now + dur > 190 ? -1 : dur,
                                                           .utid = t,
                                                           .state = strpool_intern_str(&f.st.strings, names[kind[t]]),
                                                           .io_wait = COL_NULL,
                                                           .waker_utid = woken ? (int64_t)waker : COL_NULL,
                                                           .waker_id = woken ? running[waker] : COL_NULL,
                                                           .irq_context = random_below(8) == 0,
                                                           .ucpu = COL_NULL});
            at[t] = now + dur > 190 ? INT64_MAX : now + dur;
            kind[t] = kind[t] == 2 ? (random_below(3) ? 0 : 1) : kind[t] + 1;
        }
    f.st.trace_end_ns = 250;
}

/* The walk in C as a query, which says its rules. */
#define WALK                                                                                                           \
    "WITH RECURSIVE w(root, id, lo, hi) AS (SELECT id, id, ts - coalesce(idle_dur, 0), ts + dur FROM _wakeup_graph "   \
    "UNION ALL SELECT root, prev_id, lo, min(hi, ts - idle_dur) FROM w JOIN _wakeup_graph AS g USING (id) WHERE lo < " \
    "hi AND lo < ts - idle_dur AND prev_id IS NOT NULL UNION ALL SELECT root, waker_id, max(lo, coalesce(ts - "        \
    "idle_dur, lo)), min(hi, ts, ts + dur) FROM w JOIN _wakeup_graph AS g USING (id) WHERE lo < hi AND waker_id IS "   \
    "NOT NULL), p AS (SELECT root, id, max(lo, coalesce(ts - idle_dur, lo)) AS a, min(hi, ts + dur) AS b, ts, "        \
    "waker_id IS NULL AND prev_id IS NOT NULL AS alone FROM w JOIN _wakeup_graph AS g USING (id) WHERE lo < hi) "      \
    "SELECT root, max(a, ts), b - max(a, ts), id FROM p WHERE b > max(a, ts) UNION ALL SELECT root, a, min(b, ts) - "  \
    "a, id FROM p WHERE alone AND a < min(b, ts) ORDER BY 1, 2"

/* The critical path of a thread is one piece after the other, without overlap, within its window. */
START_TEST(a_critical_path_follows_its_rules)
{
    struct error err = {0};
    seed = (uint64_t)_i + 1;
    random_thread_states(5);
    ck_assert_int_eq(engine_loaded(f.e, &err), 0);
    sql_run(&f, "INCLUDE PERFETTO MODULE sched.thread_executing_span");
    char *expected = sql_rows(&f, WALK);
    ck_assert_int_gt(strlen(expected), 20);
    sql_expect(&f,
               "SELECT root_id, ts, dur, id FROM _critical_path_with_depth_by_roots!((SELECT id AS root_node_id FROM "
               "_wakeup_graph), _wakeup_graph) ORDER BY 1, 2",
               expected);
    sqlite3_free(expected);
    for (uint32_t root = 0; root < 5; root++) {
        int64_t ts = random_below(100), dur = 1 + random_below(100);
        char *sql = sqlite3_mprintf(
            "WITH p AS MATERIALIZED (SELECT ts, dur FROM _thread_executing_span_critical_path(%u, %lld, %lld)) SELECT "
            "(SELECT count(*) FROM p a JOIN p b ON a.ts < b.ts AND a.ts + a.dur > b.ts), (SELECT count(*) FROM p WHERE "
            "ts < %lld OR ts + dur > %lld)",
            root, ts, dur, ts, ts + dur);
        sql_expect(&f, sql, "0,0");
        sqlite3_free(sql);
    }
}
END_TEST

/* What the library says of CPU time, against adding up by hand. */
START_TEST(cpu_time_of_the_library_adds_up)
{
    struct error err = {0};
    seed = (uint64_t)_i + 1;
    machine_insert(&f.st, &(struct machine_row){.num_cpus = 2});
    for (int c = 0; c < 2; c++)
        cpu_insert(&f.st, &(struct cpu_row){.cpu = c, .capacity = COL_NULL});
    for (uint32_t t = 0; t < 4; t++)
        thread_insert(&f.st, &(struct thread_row){.tid = t,
                                                  .upid = COL_NULL,
                                                  .start_ts = COL_NULL,
                                                  .end_ts = COL_NULL,
                                                  .is_main_thread = COL_NULL,
                                                  .is_idle = t == 0});
    int64_t at[2] = {0, 0};
    for (int64_t now = 0; now < 300; now++)
        for (int c = 0; c < 2; c++) {
            if (at[c] != now)
                continue;
            int64_t dur = 1 + random_below(20);
            sched_slice_insert(&f.st,
                               &(struct sched_slice_row){.ts = now, .dur = dur, .utid = random_below(4), .ucpu = c});
            at[c] = now + dur + (random_below(4) ? 0 : random_below(9));
        }
    f.st.trace_end_ns = 320;
    ck_assert_int_eq(engine_loaded(f.e, &err), 0);
    sql_run(&f, "INCLUDE PERFETTO MODULE linux.cpu.utilization.*; INCLUDE PERFETTO MODULE machines.utilization");
    char *busy = sql_rows(&f, "SELECT sum(dur) FROM sched WHERE utid != 0");
    sql_expect(&f, "SELECT runtime FROM cpu_cycles", busy);
    sql_expect(&f, "SELECT sum(runtime) FROM cpu_cycles_per_thread", busy);
    sql_expect(&f, "SELECT sum(runtime) FROM cpu_cycles_per_thread_per_cpu", busy);
    sql_expect(&f, "SELECT busy_dur FROM machine_cpu_utilization", busy);
    sqlite3_free(busy);
    /* what reaches over the end of a period counts up to there */
    busy = sql_rows(&f, "SELECT sum(min(ts + dur, ts / 50 * 50 + 50) - ts) FROM sched WHERE utid != 0");
    sql_expect(&f, "SELECT CAST(round(sum(unnormalized_utilization * 50)) AS INT) FROM cpu_utilization_per_period(50)",
               busy);
    sql_expect(&f, "SELECT CAST(round(sum(utilization * 2 * 50)) AS INT) FROM cpu_utilization_per_period(50)", busy);
    sqlite3_free(busy);
    char *part = sql_rows(
        &f, "SELECT sum(min(ts + dur, 200) - max(ts, 70)) FROM sched WHERE utid != 0 AND ts < 200 AND ts + dur > 70");
    sql_expect(&f, "SELECT awake_dur FROM cpu_utilization_in_interval(70, 130)", part);
    sql_expect(&f, "SELECT sum(runtime) FROM cpu_cycles_per_cpu_in_interval(70, 130)", part);
    sqlite3_free(part);
    part = sql_rows(
        &f,
        "SELECT utid, sum(min(ts + dur, 200) - max(ts, 70)) FROM sched WHERE utid != 0 AND ts < 200 AND ts + dur > 70 "
        "GROUP BY 1 ORDER BY 1");
    sql_expect(&f, "SELECT utid, awake_dur FROM cpu_thread_utilization_in_interval(70, 130) ORDER BY 1", part);
    sqlite3_free(part);
}
END_TEST

/* The readings of two clocks of two machines at random times, in order or not: what the rule finds by looking at all.
 */
START_TEST(times_on_other_clocks_are_found_in_order_and_out_of_it)
{
    enum { READINGS = 40, ASKED = 60 };
    struct sql_fixture own;
    int64_t ts = 0;
    seed = 7 + (uint64_t)_i;
    sql_open(&own);
    for (uint32_t i = 0; i < READINGS; i++) {
        ts = _i % 2 ? random_below(500) : ts + random_below(3) * 10;
        clock_snapshot_insert(&own.st, &(struct clock_snapshot_row){.ts = ts,
                                                                    .clock_id = random_below(2) ? 1 : 3,
                                                                    .clock_value = ts + random_below(100),
                                                                    .snapshot_id = i,
                                                                    .machine_id = random_below(4) == 0});
    }
    storage_finalize(&own.st);
    for (int64_t at = -20; at < ASKED * 10; at += 7) {
        char sql[1200];
        snprintf(
            sql, sizeof sql,
            "WITH r AS (SELECT id, ts, clock_value AS v FROM clock_snapshot WHERE clock_id = 1 AND machine_id = 0), "
            "b AS (SELECT ts, v FROM r WHERE ts <= %1$d ORDER BY ts DESC, id DESC LIMIT 1), "
            "a AS (SELECT v FROM r WHERE ts > %1$d ORDER BY ts, id LIMIT 1) "
            "SELECT to_realtime(%1$d) IS coalesce(min((SELECT v + %1$d - ts FROM b), ifnull((SELECT v FROM a), 1 << "
            "60)), (SELECT v FROM a))",
            (int)at);
        sql_expect(&own, sql, "1");
    }
    sql_close(&own);
}
END_TEST

Suite *operators_suite(void);
Suite *operators_suite(void)
{
    Suite *s = suite_create("operators");
    TCase *t = tcase_create("spans");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, span_joins_agree_with_a_quadratic_one, 0, 27);
    tcase_add_loop_test(t, times_on_other_clocks_are_found_in_order_and_out_of_it, 0, 8);
    tcase_add_test(t, span_joins_pass_over_spans_that_are_apart);
    tcase_add_test(t, span_joins_refuse_what_overlaps);
    tcase_add_test(t, span_joins_push_and_nest);
    tcase_add_loop_test(t, intersections_agree_with_a_join, 0, 20);
    tcase_add_loop_test(t, merges_and_counts_agree_with_counting, 0, 20);
    tcase_add_test(t, intervals_refuse_what_is_unfinished);
    tcase_add_test(t, intervals_refuse_partitions_without_a_name);
    tcase_add_loop_test(t, reachability_agrees_with_a_recursive_query, 0, 20);
    tcase_add_test(t, dominators_of_a_ring);
    tcase_add_loop_test(t, a_critical_path_follows_its_rules, 0, 20);
    tcase_add_loop_test(t, cpu_time_of_the_library_adds_up, 0, 5);
    suite_add_tcase(s, t);
    return s;
}
