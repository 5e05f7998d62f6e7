/* The events of one cpu: a leader with its followers, and the ring that the kernel writes samples into. */
#ifndef MERIDIAN_CAPTURE_PERF_PERF_CPU_H
#define MERIDIAN_CAPTURE_PERF_PERF_CPU_H

#include "capture/perf/perf_attr.h"

struct perf_event_mmap_page;

struct perf_cpu {
    uint32_t cpu;
    int leader; /* -1: not open */
    int followers[PERF_MAX_FOLLOWERS];
    uint32_t n_followers;
    struct perf_event_mmap_page *map; /* NULL when polling */
    size_t map_bytes;
    struct perf_ring ring;
    uint64_t head;   /* at the beginning of the tick */
    uint64_t looked; /* position up to which the records of maps and forks were read ahead */
};

typedef VEC(struct perf_cpu) perf_cpu_list;

/* Opens the events of a config, disabled, on every cpu that it asks for and that is online. `layout`: of their records.
 * With ignore_open_failure cpus that cannot be opened are left out, and *left_out says why. What is in the list is to
 * be closed, whatever is returned. */
int perf_cpus_open(perf_cpu_list *cpus, struct perf_config *c, struct perf_layout *layout, struct error *left_out,
                   struct error *err);
void perf_cpus_close(perf_cpu_list *cpus);

int perf_cpu_enable(const struct perf_cpu *p, struct error *err);
void perf_cpu_disable(const struct perf_cpu *p);

/* How far the kernel has written, and has been told that we have read. */
uint64_t perf_cpu_head(const struct perf_cpu *p);
uint64_t perf_cpu_tail(const struct perf_cpu *p);
void perf_cpu_set_tail(struct perf_cpu *p, uint64_t tail);

/* Records that had no room in the ring so far; it tells of them in front of the next record that has. 0 where the
 * kernel does not say it (before 6.0). */
uint64_t perf_cpu_lost(const struct perf_cpu *p, const struct perf_layout *layout);

/* The counts of now, the leader's first; the number of them, 0: they could not be read. */
unsigned perf_cpu_read(const struct perf_cpu *p, uint64_t counts[PERF_MAX_FOLLOWERS + 1]);

#endif
