/* linux.sys_stats between its files: the state, and the groups of counters. */
#ifndef MERIDIAN_CAPTURE_PROBES_SYS_STATS_PRIVATE_H
#define MERIDIAN_CAPTURE_PROBES_SYS_STATS_PRIVATE_H

#include "base/vec.h"
#include "capture/probes/common/data_source.h"
#include "capture/probes/proc_text.h"
#include "wire/fields.h"
#include "wire/pb_writer.h"

#include <stdio.h>

/* SysStatsConfig.StatCounters, as bits. */
enum { STAT_CPU_TIMES = 1, STAT_IRQ_COUNTS = 2, STAT_SOFTIRQ_COUNTS = 3, STAT_FORK_COUNT = 4 };

enum poller_no {
    POLL_MEMINFO,
    POLL_VMSTAT,
    POLL_STAT,
    POLL_DEVFREQ,
    POLL_CPUFREQ,
    POLL_BUDDYINFO,
    POLL_DISKSTAT,
    POLL_PSI,
    POLL_THERMAL,
    POLL_CPUIDLE,
    POLL_GPUFREQ,
    POLL_SLAB,
    POLLERS,
};

/* A counter that the config chose: where it stands in the text is found by name. */
struct chosen_counter {
    char name[64];
    uint32_t key;
};

struct sys_stats {
    const struct probes_host *host;
    struct packet_sink sink;
    uint32_t period_ms[POLLERS]; /* 0: not wanted */
    uint32_t tick_ms;
    uint64_t ticks;
    VEC(struct chosen_counter)
    meminfo, vmstat;
    uint32_t stat_counters; /* bits */
    struct text_file files[POLLERS];
    struct text_file psi[3];
    uint64_t ns_per_tick;
    uv_timer_t *timer;
    struct pb_writer w;
};

static inline const char *path_of(const struct sys_stats *s, char *buf, size_t size, const char *path)
{
    snprintf(buf, size, "%s%s", s->host->sysroot ? s->host->sysroot : "", path);
    return buf;
}

/* Each adds its counters to the packet: of /proc in sys_stats_proc.c, of /sys in sys_stats_sysfs.c. */
void sys_stats_meminfo(struct sys_stats *s);
void sys_stats_vmstat(struct sys_stats *s);
void sys_stats_stat(struct sys_stats *s);
void sys_stats_buddyinfo(struct sys_stats *s);
void sys_stats_diskstat(struct sys_stats *s);
void sys_stats_psi(struct sys_stats *s);
void sys_stats_slab(struct sys_stats *s);
void sys_stats_devfreq(struct sys_stats *s);
void sys_stats_cpufreq(struct sys_stats *s);
void sys_stats_thermal(struct sys_stats *s);
void sys_stats_cpuidle(struct sys_stats *s);
void sys_stats_gpufreq(struct sys_stats *s);

#endif
