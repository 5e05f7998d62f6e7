/* What all data sources share: the list of them, and time. */
#include "capture/probes/common/data_source.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "capture/probes/common/metatrace.h"

#include <time.h>

const struct data_source_type *const data_source_types[] = {
    &ftrace_data_source,        &frozen_ftrace_data_source,
    &process_stats_data_source, &sys_stats_data_source,
    &system_info_data_source,   &inode_file_map_data_source,
    &sysfs_power_data_source,   &journald_data_source,
    &metatrace_data_source,     NULL,
};

static uint64_t now_ns(clockid_t clock)
{
    return (uint64_t)clock_now_ns(clock);
}

uint64_t probes_boot_ns(void)
{
    return now_ns(CLOCK_BOOTTIME);
}

uint64_t probes_until_tick(uint32_t period_ms)
{
    uint64_t now_ms = now_ns(CLOCK_REALTIME) / 1000000;
    uint64_t left = period_ms - now_ms % period_ms;
    /* a timer that fires a moment early must not tick twice */
    return left * 4 < period_ms ? left + period_ms : left;
}

uv_timer_t *probes_timer_new(uv_loop_t *loop, void *data)
{
    uv_timer_t *timer = mem_zalloc(sizeof *timer);
    if (!timer)
        return NULL;
    uv_timer_init(loop, timer);
    timer->data = data;
    return timer;
}

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

void probes_timer_free(uv_timer_t *timer)
{
    if (timer)
        uv_close((uv_handle_t *)timer, free_handle);
}

void probes_arm_tick(uv_timer_t *timer, uv_timer_cb fn, uint32_t period_ms)
{
    uv_update_time(timer->loop);
    uv_timer_start(timer, fn, probes_until_tick(period_ms), 0);
}
