/* The events that an atrace category stands for. */
#include "capture/probes/ftrace/event_set.h"

enum { MAX_EVENTS = 12 };

const char *const *atrace_category_events(const char *category)
{
    static const struct {
        const char *name;
        const char *events[MAX_EVENTS + 1]; /* NULL behind the last */
    } rows[] = {
        {"sched",
         {"sched/sched_switch", "sched/sched_waking", "sched/sched_blocked_reason", "sched/sched_cpu_hotplug",
          "sched/sched_pi_setprio", "sched/sched_process_exit", "cgroup/*", "oom/oom_score_adj_update",
          "task/task_rename", "task/task_newtask"}},
        {"freq",
         {"power/cpu_frequency", "power/gpu_frequency", "power/clock_enable", "power/clock_disable",
          "power/clock_set_rate", "power/cpu_frequency_limits", "power/suspend_resume", "clk/clk_enable",
          "clk/clk_disable", "clk/clk_set_rate"}},
        {"idle", {"power/cpu_idle"}},
        {"irq", {"irq/*", "ipi/*"}},
        {"irqoff", {"preemptirq/irq_enable", "preemptirq/irq_disable"}},
        {"preemptoff", {"preemptirq/preempt_enable", "preemptirq/preempt_disable"}},
        {"disk",
         {"block/block_rq_issue", "block/block_rq_complete", "ext4/ext4_da_write_begin", "ext4/ext4_da_write_end",
          "ext4/ext4_sync_file_enter", "ext4/ext4_sync_file_exit", "f2fs/f2fs_sync_file_enter",
          "f2fs/f2fs_sync_file_exit", "f2fs/f2fs_write_begin", "f2fs/f2fs_write_end"}},
        {"sync", {"dma_fence/*", "sync/sync_timeline", "sync/sync_wait", "sync/sync_pt"}},
        {"workq", {"workqueue/*"}},
        {"memreclaim",
         {"vmscan/mm_vmscan_direct_reclaim_begin", "vmscan/mm_vmscan_direct_reclaim_end",
          "vmscan/mm_vmscan_kswapd_wake", "vmscan/mm_vmscan_kswapd_sleep"}},
        {"memory",
         {"kmem/rss_stat", "kmem/ion_heap_grow", "kmem/ion_heap_shrink", "ion/ion_stat", "dmabuf_heap/dma_heap_stat"}},
        {"binder_driver",
         {"binder/binder_transaction", "binder/binder_transaction_received", "binder/binder_transaction_alloc_buf",
          "binder/binder_set_priority"}},
        {"binder_lock", {"binder/binder_lock", "binder/binder_locked", "binder/binder_unlock"}},
        {"pagecache", {"filemap/*"}},
        {"thermal", {"thermal/thermal_temperature", "thermal/cdev_update"}},
        {"i2c", {"i2c/*", "smbus/*"}},
        {"regulators", {"regulator/*"}},
        {"mmc", {"mmc/*"}},
        {"load", {"cpufreq_interactive/*"}},
        /* ours alone: why threads wait */
        {"waits", {"sched/sched_blocked_reason", "syscalls/sys_enter_futex", "lock/contention_begin"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, category) == 0)
            return rows[i].events;
    return NULL;
}
