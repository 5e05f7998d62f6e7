/* Measures SQL over a made-up storage the size of an amplified trace: bench_sql [MILLION_SCHED_SLICES] [FILE.sql ...].
 *
 * Without files: a set of typical queries. Prints milliseconds, best of three, and the first row of the answer. */
#include "sql/engine.h"

#include "base/alloc.h"
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

enum { CPUS = 8, THREADS = 400, PROCESSES = 80 };

static argset event_args(struct storage *st, uint64_t r)
{
    struct arg_list list = {0};
    arg_list_str(&st->args, &list, "prev_comm", strpool_printf(&st->strings, "thread-%d", (int)(r % THREADS)));
    arg_list_int(&st->args, &list, "prev_pid", (int64_t)(r % THREADS));
    arg_list_int(&st->args, &list, "prev_prio", 120);
    arg_list_int(&st->args, &list, "prev_state", (int64_t)(r % 3));
    arg_list_str(&st->args, &list, "next_comm", strpool_printf(&st->strings, "thread-%d", (int)((r >> 9) % THREADS)));
    arg_list_int(&st->args, &list, "next_pid", (int64_t)((r >> 9) % THREADS));
    arg_list_int(&st->args, &list, "next_prio", 120);
    argset set = args_intern(&st->args, list.p, list.n);
    arg_list_free(&list);
    return set;
}

/* As a scheduler-heavy recording: sched slices, thread states (twice as many), events (more than twice). */
static void fill(struct storage *st, uint32_t n)
{
    static const char *const states[] = {"S", "R", "D", "R+", "I"};
    static const char *const names[] = {"sched_switch",  "sched_waking", "irq_handler_entry",      "irq_handler_exit",
                                        "softirq_raise", "timer_start",  "workqueue_execute_start"};
    uint64_t r = 88172645463325252u;
    strid state_ids[5], name_ids[7];
    for (int i = 0; i < 5; i++)
        state_ids[i] = strpool_intern_str(&st->strings, states[i]);
    for (int i = 0; i < 7; i++)
        name_ids[i] = strpool_intern_str(&st->strings, names[i]);
    machine_insert(st, &(struct machine_row){.num_cpus = CPUS});
    for (int i = 0; i < CPUS; i++)
        cpu_insert(st, &(struct cpu_row){.cpu = i, .capacity = COL_NULL});
    for (int i = 0; i < PROCESSES; i++)
        process_insert(st, &(struct process_row){.pid = i,
                                                 .name = strpool_printf(&st->strings, "process-%d", i),
                                                 .start_ts = COL_NULL,
                                                 .end_ts = COL_NULL,
                                                 .parent_upid = COL_NULL});
    for (int i = 0; i < THREADS; i++)
        thread_insert(st, &(struct thread_row){.tid = i,
                                               .name = strpool_printf(&st->strings, "thread-%d", i),
                                               .start_ts = COL_NULL,
                                               .end_ts = COL_NULL,
                                               .upid = i % PROCESSES});
    argset sets[4096];
    for (int i = 0; i < 4096; i++)
        sets[i] = event_args(st, next_random(&r));
    int64_t ts = 27126638290;
    st->trace_start_ns = ts;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t x = next_random(&r);
        ts += (int64_t)(x % 20000);
        int64_t dur = (int64_t)((x >> 16) % 100000), utid = (int64_t)((x >> 33) % THREADS);
        sched_slice_insert(st,
                           &(struct sched_slice_row){ts, dur, utid, state_ids[(x >> 42) % 5], 120, (x >> 50) % CPUS});
        for (int k = 0; k < 2; k++)
            thread_state_insert(st, &(struct thread_state_row){.ts = ts + k * 100,
                                                               .dur = dur,
                                                               .utid = k ? (utid + 1) % THREADS : utid,
                                                               .state = k ? state_ids[(x >> 40) % 5] : state_ids[1],
                                                               .io_wait = COL_NULL,
                                                               .waker_utid = k ? utid : COL_NULL,
                                                               .waker_id = COL_NULL,
                                                               .irq_context = k ? 0 : COL_NULL,
                                                               .ucpu = k ? COL_NULL : (int64_t)((x >> 50) % CPUS)});
        for (unsigned k = 0; k < 2 + (i % 10 < 3); k++)
            ftrace_event_insert(st, &(struct ftrace_event_row){ts + k, name_ids[k ? (x >> 20) % 7 : 0], utid,
                                                               sets[(x >> 30) % 4096], 0, (x >> 50) % CPUS});
    }
    st->trace_end_ns = ts;
}

static const char *const queries[] = {
    "select count(*) from ftrace_event",
    "select sum(dur) from sched where ucpu = 1 and dur > 10000",
    "select ucpu, count(*), sum(dur), max(dur) from sched group by ucpu order by ucpu",
    "select utid, count(*) as n, sum(dur) as d from sched group by utid order by d desc limit 20",
    "select p.name, sum(s.dur) as d from sched s join thread t using (utid) join process p using (upid) group by "
    "p.upid "
    "order by d desc limit 20",
    "with b as (select start_ts + (end_ts - start_ts) / 2 as mid from trace_bounds) select count(*), min(ts), max(ts) "
    "from "
    "sched, b where ts between b.mid and b.mid + 1000000000",
    "select count(*), sum(ts.dur) from (select id from sched where id % 100 = 0) k join sched s on s.id = k.id join "
    "thread_state ts on ts.utid = s.utid and ts.ts = s.ts",
    "select name, count(*) from ftrace_event group by name order by 2 desc",
    "select ucpu, max(gap) from (select ucpu, lead(ts) over (partition by ucpu order by ts) - ts as gap from sched) "
    "group "
    "by ucpu order by ucpu",
    "select state, count(*), sum(dur) from thread_state where dur > 0 group by state order by 3 desc",
    "select extract_arg(arg_set_id, 'next_pid') as pid, count(*) from ftrace_event where name = 'sched_switch' group "
    "by 1 "
    "order by 2 desc limit 20",
    "select flat_key, count(*), sum(int_value) from args group by flat_key order by 2 desc limit 20",
    "select t.name, count(*) as n, max(r.dur) as worst, sum(r.dur) as total from thread_state r join thread t using "
    "(utid) "
    "where r.state = 'R' and r.dur > 0 group by r.utid order by total desc limit 20",
    "select count(*), sum(dur) from (select ts, dur, ucpu, utid from sched where dur > 0)",
    "select distinct name from ftrace_event",
    "select id, dur from sched order by dur desc limit 10",
    "select count(*) from sched where utid in (1, 2, 3)",
    "select count(*) from ftrace_event where name glob 'sched_*'",
};

static void run(struct engine *e, const char *label, const char *sql)
{
    double best = 1e18;
    char first[400] = "";
    for (int i = 0; i < 3; i++) {
        struct engine_result r;
        struct error err = {0};
        double start = now_ms();
        int rc = engine_query(e, NULL, slice_str(sql), &r, NULL, &err);
        int rows = 0;
        while (rc == 0 && (rc = engine_result_next(&r, &err)) == 1) {
            for (int c = 0; rows < 4 && c < r.n_columns; c++) {
                const char *text = (const char *)sqlite3_column_text(r.stmt, c);
                size_t at = strlen(first);
                if (i == 0)
                    snprintf(first + at, sizeof first - at, "%s%s", c ? "," : "", text ? text : "NULL");
            }
            rows++;
            rc = 0;
        }
        double took = now_ms() - start;
        best = took < best ? took : best;
        if (rc < 0)
            snprintf(first, sizeof first, "ERROR %.100s", err.text);
        if (rc == 0)
            engine_result_close(&r);
    }
    printf("%9.1f ms  %-40.40s  %s\n", best, label, first);
}

int main(int argc, char **argv)
{
    double millions = argc > 1 ? atof(argv[1]) : 3.8;
    struct storage st;
    struct engine *e;
    struct error err = {0};
    if (storage_init(&st))
        return 1;
    double start = now_ms();
    fill(&st, (uint32_t)(millions * 1e6));
    printf("%9.1f ms  fill\n", now_ms() - start);
    start = now_ms();
    if (engine_open(&e, &st, &err) || engine_loaded(e, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("%9.1f ms  open\n", now_ms() - start);
    for (int i = 2; i < argc; i++) {
        char *text;
        size_t len;
        if (file_read_all(argv[i], 1 << 20, &text, &len, &err) == 0) {
            run(e, argv[i], text);
            mem_free(text);
        }
    }
    for (size_t i = 0; argc <= 2 && i < sizeof queries / sizeof *queries; i++)
        run(e, queries[i], queries[i]);
    engine_close(e);
    storage_free(&st);
    return 0;
}
