/* Measures PerfettoSQL's own machinery: bench_operators [MILLIONS_OF_ROWS]. Prints rows per second, best of three.
 *
 * Materialising (CREATE PERFETTO TABLE AS SELECT over a table of ours), span joins of 1 M by 1 M spans, interval
 * intersection, function calls and table function calls. */
#include "base/alloc.h"
#include "sql/dialect/dialect.h"
#include "sql/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
    fprintf(stderr, "bench_operators: %s\n", what);
    exit(1);
}

/* (ts, dur, part, NAME), by ts: spans of a partition touch or lie apart. */
static void add_spans(struct engine *e, const char *table, const char *value, uint32_t n, uint32_t parts, uint64_t seed)
{
    const char *names[] = {"ts", "dur", "part", value};
    static const uint8_t types[] = {RUNTIME_LONG, RUNTIME_LONG, RUNTIME_LONG, RUNTIME_LONG};
    struct table_builder b;
    struct runtime_table *t;
    struct error err = {0};
    int64_t *at = calloc(parts, sizeof *at);
    if (!at || table_builder_init(&b, engine_storage(e), 4, names, types, &err))
        die(err.text);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t part = i % parts;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int64_t dur = (int64_t)(seed >> 40) % 2000 + 1;
        table_builder_int(&b, 0, at[part], &err);
        table_builder_int(&b, 1, dur, &err);
        table_builder_int(&b, 2, part, &err);
        table_builder_int(&b, 3, i, &err);
        if (table_builder_commit(&b, &err))
            die(err.text);
        at[part] += dur + (int64_t)(seed >> 20) % 500;
    }
    free(at);
    if (table_builder_finish(&b, &t, &err) || engine_add_table(e, table, t, &err))
        die(err.text);
}

static void run(struct engine *e, const char *sql)
{
    struct error err = {0};
    if (engine_run(e, "bench", sql, &err))
        die(engine_error_text(e));
}

static int64_t number(struct engine *e, const char *sql)
{
    struct engine_result r;
    struct error err = {0};
    if (engine_query(e, "bench", slice_str(sql), &r, NULL, &err) || engine_result_next(&r, &err) != 1)
        die(engine_error_text(e));
    int64_t v = sqlite3_column_int64(r.stmt, 0);
    engine_result_close(&r);
    return v;
}

/* `rows`: what the rate is counted in; 0: the answer of the query. */
static void measure(struct engine *e, const char *what, const char *before, const char *sql, double rows)
{
    double best = 1e9;
    int64_t answer = 0;
    for (int i = 0; i < 3; i++) {
        if (before)
            run(e, before);
        double start = now();
        answer = number(e, sql);
        double s = now() - start;
        best = s < best ? s : best;
    }
    printf("%-52s %9.1f ms  %12.0f rows/s  (answer %lld)\n", what, best * 1e3,
           (rows > 0 ? rows : (double)answer) / best, (long long)answer);
}

int main(int argc, char **argv)
{
    double millions = argc > 1 ? atof(argv[1]) : 1;
    uint32_t n = (uint32_t)(millions * 1e6);
    struct storage st;
    struct engine *e;
    struct error err = {0};
    if (storage_init(&st) || engine_open(&e, &st, &err) || engine_loaded(e, &err))
        die(err.text);
    add_spans(e, "a", "x", n, 1, 1);
    add_spans(e, "b", "y", n, 1, 2);
    add_spans(e, "pa", "x", n, 64, 3);
    add_spans(e, "pb", "y", n, 64, 4);
    add_spans(e, "big", "x", 10 * n, 8, 5);
    run(e, "CREATE PERFETTO VIEW na AS SELECT ts, dur, x FROM a; CREATE PERFETTO VIEW nb AS SELECT ts, dur, y FROM b;"
           "CREATE VIRTUAL TABLE j USING span_join(na, nb);"
           "CREATE VIRTUAL TABLE lj USING span_left_join(na, nb);"
           "CREATE VIRTUAL TABLE pj USING span_join(pa PARTITIONED part, pb PARTITIONED part);"
           "CREATE PERFETTO FUNCTION plus(v LONG) RETURNS LONG AS SELECT $v + 1;"
           "CREATE PERFETTO FUNCTION two(v LONG) RETURNS TABLE(w LONG) AS SELECT $v AS w UNION ALL SELECT $v + 1;"
           "INCLUDE PERFETTO MODULE intervals.intersect");
    double rows = 10.0 * n;
    measure(e, "CREATE PERFETTO TABLE AS SELECT 4 columns, 10x", "DROP TABLE IF EXISTS m",
            "CREATE PERFETTO TABLE m AS SELECT * FROM big; SELECT count(*) FROM m", rows);
    measure(e, "CREATE PERFETTO TABLE AS SELECT 1 column, 10x", "DROP TABLE IF EXISTS m",
            "CREATE PERFETTO TABLE m AS SELECT ts FROM big; SELECT count(*) FROM m", rows);
    measure(e, "CREATE PERFETTO TABLE AS SELECT expressions, 10x", "DROP TABLE IF EXISTS m",
            "CREATE PERFETTO TABLE m AS SELECT ts, dur + 1 AS d, x * 2 AS z FROM big WHERE part < 6; SELECT 1", rows);
    measure(e, "span_join n x n (input rows)", NULL, "SELECT sum(dur) FROM j", 2.0 * n);
    measure(e, "span_join n x n (output rows)", NULL, "SELECT count(*) FROM j", 0);
    measure(e, "span_join n x n, all columns (input rows)", NULL, "SELECT sum(ts + dur + x + y) FROM j", 2.0 * n);
    measure(e, "span_left_join n x n (input rows)", NULL, "SELECT sum(dur) FROM lj", 2.0 * n);
    measure(e, "span_join n x n, 64 partitions (input rows)", NULL, "SELECT sum(dur) FROM pj", 2.0 * n);
    measure(e, "interval intersect n x n (input rows)", NULL,
            "SELECT count(*) FROM _interval_intersect!(((SELECT x AS id, ts, dur FROM a), (SELECT y AS id, ts, dur "
            "FROM b)), ())",
            2.0 * n);
    measure(e, "calls of a SQL function", NULL, "SELECT sum(plus(x)) FROM a", n);
    measure(e, "calls of a SQL table function", NULL, "SELECT sum(w) FROM (SELECT x FROM a LIMIT 100000) JOIN two(x)",
            n < 100000 ? n : 100000);
    engine_close(e);
    storage_free(&st);
    return 0;
}
