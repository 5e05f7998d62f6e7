/* Writes a long trace of ftrace as text: ftrace_text MEGABYTES FILE. Half of the lines are switches, the rest wakeups,
 * markers and frequencies, of 8 CPUs and 500 threads. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t seed = 88172645463325252u;

static unsigned random_below(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed % n);
}

int main(int argc, char **argv)
{
    enum { CPUS = 8, THREADS = 500 };
    if (argc != 3) {
        fprintf(stderr, "usage: ftrace_text MEGABYTES FILE\n");
        return 1;
    }
    FILE *f = fopen(argv[2], "w");
    if (!f) {
        perror(argv[2]);
        return 1;
    }
    uint64_t bytes = strtoull(argv[1], NULL, 10) << 20, us = 1000000000, done = 0;
    unsigned running[CPUS] = {0};
    fputs("# tracer: nop\n#\n#           TASK-PID    TGID   CPU#  ||||   TIMESTAMP  FUNCTION\n", f);
    while (done < bytes) {
        unsigned cpu = random_below(CPUS), now = running[cpu], other = 1 + random_below(THREADS),
                 kind = random_below(10);
        us += 1 + random_below(9);
        int n = fprintf(f, "%11s%u-%-5u (%5u) [%03u] d..2. %5" PRIu64 ".%06" PRIu64 ": ", "worker-", now, 1000 + now,
                        1000 + now / 8 * 8, cpu, us / 1000000, us % 1000000);
        if (kind < 5) {
            n += fprintf(f,
                         "sched_switch: prev_comm=worker-%u prev_pid=%u prev_prio=120 prev_state=%s ==> "
                         "next_comm=worker-%u next_pid=%u next_prio=120\n",
                         now, 1000 + now, random_below(3) ? "S" : "R", other, 1000 + other);
            running[cpu] = other;
        } else if (kind < 8) {
            n += fprintf(f, "sched_waking: comm=worker-%u pid=%u prio=120 target_cpu=%03u\n", other, 1000 + other, cpu);
        } else if (kind < 9) {
            n += fprintf(f, "tracing_mark_write: %s|%u%s\n", random_below(2) ? "B" : "E", 1000 + now / 8 * 8,
                         "|doFrame 1234");
        } else {
            n += fprintf(f, "cpu_frequency: state=%u cpu_id=%u\n", 300000 + 100000 * random_below(20), cpu);
        }
        done += n > 0 ? (uint64_t)n : 0;
    }
    return fclose(f) ? 1 : 0;
}
