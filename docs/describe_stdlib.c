/* Writes docs/stdlib.md from the comments of the standard library and docs/stdlib_examples.sql: describe_stdlib FILE.
 */
#include "base/file.h"
#include "describe_objects.h"

#include <stdlib.h>
#include <string.h>

static const char head[] =
    "# The standard library\n\n"
    "Made from the comments in `stdlib/` and from `docs/stdlib_examples.sql` by `make docs`. `INCLUDE PERFETTO MODULE "
    "a.b;`\n"
    "makes a module's objects known; `a.*` takes all modules below `a`. At the prompt `.docs NAME` shows the same. "
    "Names that\n"
    "begin with `_` are for other modules and not listed.\n\n"
    "| question | modules |\n|---|---|\n"
    "| Who uses the CPUs? | linux.cpu.utilization.process, .thread, .system, sched.time_in_state, machines.utilization "
    "|\n"
    "| Who waits for a CPU, and how long? | sched.latency, sched.runnable, sched.thread_level_parallelism |\n"
    "| What does a thread wait for, and who wakes it? | sched.states, machines.critical_path, sched.with_context |\n"
    "| What do interrupts cost? | linux.irqs |\n"
    "| How fast do the CPUs run, how deep do they sleep? | linux.cpu.frequency, linux.cpu.idle, linux.cpu.idle_stats "
    "|\n"
    "| Which containers and units of systemd take the CPUs? | linux.containers |\n"
    "| Memory, disks | linux.memory.process, linux.memory.high_watermark, linux.block_io |\n"
    "| Why do threads wait, where, and who wakes them? | linux.off_cpu |\n"
    "| Where do samples fall? | linux.perf.samples, linux.perf.counters, stacks.cpu_profiling |\n"
    "| Slices: their own time, CPU time, waits inside | slices.self_dur, slices.cpu_time, slices.time_in_state, "
    "slices.with_context |\n"
    "| Several machines: packets, paths, clocks | machines.overview, machines.network, machines.critical_path, "
    "clocks.quality |\n"
    "| Was anything lost, and what helps? | dataloss.summary, dataloss.gaps |\n"
    "| Spans of time: where they overlap, what lies within | intervals.intersect, intervals.overlap, "
    "counters.intervals |\n"
    "| Trees and graphs | graphs.search, graphs.dominator_tree, graphs.partition |\n"
    "| Pictures and other formats | export.to_svg, export.to_firefox_profile |\n";

/* Linux first; modules without a name for others last. */
static const char objects[] =
    "package != 'prelude' AND module IN (SELECT module FROM __intrinsic_stdlib_objects WHERE exposed AND "
    "object_type != 'MODULE') ORDER BY "
    "instr(',linux,sched,slices,machines,clocks,dataloss,counters,intervals,stacks,graphs,"
    "time,std,export,traced,android,chrome,', ',' || package || ',') = 0, "
    "instr(',linux,sched,slices,machines,clocks,dataloss,counters,intervals,stacks,graphs,time,std,export,traced,"
    "android,"
    "chrome,', ',' || package || ','), module, object_type != 'MODULE', name";

static char *examples;

static const char *find_example(const char *module)
{
    char mark[128];
    snprintf(mark, sizeof mark, "-- @ %s", module);
    for (const char *p = examples; (p = strstr(p, mark)); p++)
        if (strchr(" \n", p[strlen(mark)]) && (p == examples || p[-1] == '\n'))
            return strchr(p, '\n');
    return NULL;
}

static void example(FILE *out, const char *module, const char *table)
{
    const char *sql = find_example(module);
    if (!sql && !*table)
        return;
    fprintf(out, "\n```sql\nINCLUDE PERFETTO MODULE %s;\n", module);
    if (sql) {
        const char *end = strstr(sql, "\n-- @ ");
        fprintf(out, "%.*s\n", (int)(end ? end - sql - 1 : (long)strlen(sql) - 2), sql + 1);
    } else {
        fprintf(out, "SELECT * FROM %s LIMIT 10;\n", table);
    }
    fprintf(out, "```\n");
}

int main(int argc, char **argv)
{
    struct storage st;
    struct engine *e;
    struct error err = {0};
    size_t len;
    FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (!out || file_read_all(MERIDIAN_EXAMPLES, 1 << 20, &examples, &len, &err) || storage_init(&st) ||
        engine_open(&e, &st, &err) || fputs(head, out) < 0 || describe_objects(out, e, objects, example, &err)) {
        fprintf(stderr, "describe_stdlib: %s\n", err.text[0] ? err.text : "usage: describe_stdlib FILE");
        return 1;
    }
    engine_close(e);
    storage_free(&st);
    mem_free(examples);
    return fclose(out) != 0;
}
