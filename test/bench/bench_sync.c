/* Relates a million packets between ten machines, and measures what packets without a partner cost:
 *
 *     bench_sync [PACKETS [HOSTS]]
 *
 * Each run is a process of its own, so that its peak memory is its own. Exit code 1 when a truth lies outside its
 * bound.
 */
#include "network_simulator.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double peak_mb(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss / 1024;
}

static int run(uint64_t packets, uint32_t hosts, uint32_t lost_percent)
{
    struct simulated_network n = {.hosts = hosts,
                                  .packets = packets,
                                  .lost_percent = lost_percent,
                                  .span_ns = 600000000000,
                                  .delay_ns = 50000,
                                  .jitter_ns = 200000,
                                  .seed = 11};
    struct sync_session s = {0};
    double idle_mb = peak_mb();
    if (!simulate_network(&n, &s))
        return 1;
    double begin = cpu_now();
    if (sync_session_solve(&s, hosts, SYNC_METHOD_EXACT, (struct sync_limits){1000000}, SYNC_NO_HOST))
        return 1;
    double seconds = cpu_now() - begin, mb = peak_mb() - idle_mb;
    struct match_counts c = matcher_counts(s.matcher, UINT32_MAX);
    int64_t error = 0, bound = 0;
    uint64_t outside = c.matched ? simulated_outside(&n, &s.network, 20000, &error, &bound) : 0;
    printf("%9" PRIu64 " sent, %9" PRIu64 " matched, %9" PRIu64
           " waiting: %6.2f s, %7.1f MB = %5.0f bytes a packet event",
           c.sent, c.matched, c.unmatched_sent, seconds, mb, mb * 1048576 / (double)(c.sent + c.received));
    if (c.matched)
        printf("; error %.1f us, bound %.1f us at most, %" PRIu64 " of 20000 outside", (double)error / 1e3,
               (double)bound / 1e3, outside);
    printf("\n");
    sync_session_free(&s);
    return outside != 0;
}

static int run_apart(uint64_t packets, uint32_t hosts, uint32_t lost_percent)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int rc = run(packets, hosts, lost_percent);
        fflush(stdout);
        _exit(rc);
    }
    int status = 1;
    return child < 0 || waitpid(child, &status, 0) < 0 || status != 0;
}

int main(int argc, char **argv)
{
    uint64_t packets = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    uint32_t hosts = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 10;
    if (hosts < 2 || hosts > SIMULATED_HOSTS_MAX)
        return 2;
    int rc = run_apart(packets, hosts, 5);
    for (int k = 4; k; k /= 2) /* nobody receives anything: all of them wait */
        rc |= run_apart(packets / (uint64_t)k, hosts, 100);
    return rc;
}
