/* Measures what a statement costs before its first row: bench_prepare [FILE.sql ...].
 *
 * Prints the microseconds of preparing each statement (best of five passes), then of running the modules of the
 * standard library on an empty trace, per statement. Without files: statements as the web UI sends them. */
#include "sql/engine_private.h"

#include "base/alloc.h"
#include "base/file.h"
#include "sql/dialect/dialect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static const char *const statements[] = {
    "select count(*) as cnt from slice",
    "select min(ts) as lo, max(ts) as hi, count(*) as n from sched where ucpu = 3",
    "select utid, count(*) as n, sum(dur) as d from sched group by utid order by d desc limit 20",
    "select name, count(*) as n from ftrace_event group by name order by n desc",
    "select max(g) from (select lead(ts) over (partition by utid order by ts) - ts as g from sched)",
    "select ts, dur, ifnull(name, '') as name, depth from slice where track_id in (1, 2, 3) and ts + dur >= 1000 and "
    "ts <= 5000000 order by ts limit 1000",
    "select (ts / 1000) * 1000 as tsq, max(dur) as tsqEnd, id, depth from slice where track_id = 7 group by depth, tsq",
    "select p.upid, p.pid, coalesce(p.name, p.cmdline) as name, count(t.utid) as threads from process p left join "
    "thread t using (upid) group by p.upid order by name",
    "select c.id as trackId, c.name, count(*) as n, min(v.value) as lo, max(v.value) as hi from counter_track c join "
    "counter v on v.track_id = c.id group by c.id",
    "with w as (select ts, dur, utid from thread_state where state = 'R' and dur > 0), t as (select utid, sum(dur) as "
    "d from w group by utid) select t.utid, thread.name, t.d from t join thread using (utid) order by t.d desc",
    "select flat_key, key, int_value, string_value, real_value, value_type, display_value from args where arg_set_id = "
    "12 order by id",
    "select s.id, s.name, extract_arg(s.arg_set_id, 'debug.url') as url, case when s.dur < 0 then trace_end() - s.ts "
    "else s.dur end as dur from slice s where s.name glob 'Load*' or s.category like '%net%' order by s.dur desc",
    "select name, str_value from metadata where name in ('trace_uuid', 'system_name') order by name",
    "select name, value from stats where severity in ('error', 'data_loss') and value > 0"};

static void fill(struct storage *st)
{
    for (int i = 0; i < 5000; i++) {
        sched_slice_insert(st, &(struct sched_slice_row){.ts = i * 10, .dur = i % 7, .utid = i % 40, .ucpu = i % 4});
        slice_insert(st, &(struct slice_row){.ts = i * 10, .dur = i % 9, .track_id = i % 30, .depth = i % 5});
        ftrace_event_insert(st, &(struct ftrace_event_row){.ts = i, .name = strpool_intern_str(&st->strings, "x")});
    }
}

static bool open_engine(struct storage *st, struct engine **e)
{
    struct error err = {0};
    if (storage_init(st) == 0) {
        fill(st);
        if (engine_open(e, st, &err) == 0 && engine_loaded(*e, &err) == 0)
            return true;
    }
    fprintf(stderr, "bench_prepare: %s\n", err.text);
    return false;
}

/* Prepares every statement of a text `times` times; microseconds for one of them, or a negative number. */
static double prepare_us(struct engine *e, const char *sql, int times)
{
    int n = 0;
    double start = cpu_us();
    for (int k = 0; k < times; k++)
        for (size_t at = 0;;) {
            struct engine_statement s;
            struct error err = {0};
            if (e->dialect.next(e->dialect.ctx, e, "bench", slice_str(sql), &at, &s, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                return -1;
            }
            if (s.none)
                break;
            sqlite3_finalize(s.stmt);
            n++;
        }
    return (cpu_us() - start) / n;
}

static double best_us(struct engine *e, const char *sql)
{
    double best = 1e18;
    prepare_us(e, sql, 3);
    for (int pass = 0; pass < 5; pass++) {
        double us = prepare_us(e, sql, 400);
        best = us < best ? us : best;
    }
    return best;
}

static void stdlib(void)
{
    double best = 1e18;
    for (int pass = 0; pass < 5; pass++) {
        struct storage st;
        struct engine *e;
        struct error err = {0};
        if (!open_engine(&st, &e))
            return;
        double start = cpu_us();
        int rc = dialect_include(e, "*", &err);
        double us = cpu_us() - start;
        best = us < best ? us : best;
        if (rc)
            fprintf(stderr, "%s\n", err.text);
        engine_close(e);
        storage_free(&st);
    }
    printf("%9.1f ms  every module of the standard library\n", best / 1e3);
}

int main(int argc, char **argv)
{
    struct storage st;
    struct engine *e;
    double all = 0;
    double start = cpu_us();
    if (!open_engine(&st, &e))
        return 1;
    printf("%9.1f us  opening with the prelude\n", cpu_us() - start);
    for (int i = 1; i < argc; i++) {
        char *sql;
        size_t len;
        struct error err = {0};
        if (file_read_all(argv[i], 1 << 20, &sql, &len, &err)) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        printf("%9.1f us  %s\n", best_us(e, sql), argv[i]);
        mem_free(sql);
    }
    size_t n = sizeof statements / sizeof *statements;
    for (size_t i = 0; argc < 2 && i < n; i++) {
        double us = best_us(e, statements[i]);
        all += us;
        printf("%9.1f us  %.70s\n", us, statements[i]);
    }
    if (argc < 2) {
        printf("%9.1f us  mean of %zu statements\n", all / (double)n, n);
        stdlib();
    }
    engine_close(e);
    storage_free(&st);
    return 0;
}
