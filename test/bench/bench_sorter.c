/* Measures the sorter: its peak memory by windows and with --full-sort on the traces given, and the cost of an event by
 * the number of queues. */
#include "importer/core/context.h"
#include "importer/importer.h"
#include "importer/sort/sorter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MERGED_EVENTS = 4000000 };

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench_sorter: %s\n", what);
    exit(1);
}

/* The sorter's peak while a file is imported. */
static size_t peak_of(const char *path, bool full_sort)
{
    struct storage st;
    struct importer *im;
    struct error err = {0};
    struct import_options options = {.full_sort = full_sort};
    must(storage_init(&st) == 0, "out of memory");
    must(importer_open(&im, &st, &options, &err) == 0, err.text);
    must(importer_add_file(im, path, &err) == 0, err.text);
    must(importer_finish(im, &err) == 0, err.text);
    size_t peak = sorter_peak_bytes(im->sorter);
    importer_close(im);
    storage_free(&st);
    return peak;
}

static void count_events(void *owner, const struct sort_event *events, size_t n)
{
    (void)events;
    *(size_t *)owner += n;
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* CPU time of an event that is pushed to one of so many queues at random and merged. */
static double ns_per_event(uint32_t n_queues)
{
    struct stats stats = {0};
    struct sorter *s = sorter_open(&stats, true);
    size_t total = 0;
    uint64_t seed = 1;
    must(s != NULL, "out of memory");
    for (uint32_t q = 0; q < n_queues; q++)
        sorter_add_queue(s, count_events, &total);
    double begin = cpu_seconds();
    for (size_t i = 0; i < MERGED_EVENTS; i++) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        sorter_push(s, (uint32_t)((seed >> 33) % n_queues), (struct sort_event){(int64_t)i, i, 0});
    }
    sorter_drain(s, NULL, NULL);
    double seconds = cpu_seconds() - begin;
    must(total == MERGED_EVENTS && !sorter_failed(s), "events are missing");
    sorter_close(s);
    stats_free(&stats);
    return seconds / MERGED_EVENTS * 1e9;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        printf("window %zu %zu\n", peak_of(argv[i], false), peak_of(argv[i], true));
    for (uint32_t machines = 1; machines <= 1000; machines *= 10)
        printf("merge %u %.0f\n", machines * 64, ns_per_event(machines * 64));
    return 0;
}
