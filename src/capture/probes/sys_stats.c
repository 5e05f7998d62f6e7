/* The data source linux.sys_stats: counters of the whole machine from /proc and /sys, polled.
 *
 * One row of `pollers` is one group of counters with a period of its own; one packet a tick holds what is due. Files
 * stay open between ticks. */
#include "base/alloc.h"
#include "capture/probes/common/metatrace.h"
#include "capture/probes/sys_stats_private.h"
#include "schema/config.pb-c.h"
#include "wire/pb_cursor.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PERIOD_MIN_MS = 10 };

static const struct {
    uint32_t period_field; /* of SysStatsConfig */
    void (*poll)(struct sys_stats *s);
} pollers[POLLERS] = {
    [POLL_MEMINFO] = {SYS_STATS_CONFIG_MEMINFO_PERIOD_MS, sys_stats_meminfo},
    [POLL_VMSTAT] = {SYS_STATS_CONFIG_VMSTAT_PERIOD_MS, sys_stats_vmstat},
    [POLL_STAT] = {SYS_STATS_CONFIG_STAT_PERIOD_MS, sys_stats_stat},
    [POLL_DEVFREQ] = {SYS_STATS_CONFIG_DEVFREQ_PERIOD_MS, sys_stats_devfreq},
    [POLL_CPUFREQ] = {SYS_STATS_CONFIG_CPUFREQ_PERIOD_MS, sys_stats_cpufreq},
    [POLL_BUDDYINFO] = {SYS_STATS_CONFIG_BUDDYINFO_PERIOD_MS, sys_stats_buddyinfo},
    [POLL_DISKSTAT] = {SYS_STATS_CONFIG_DISKSTAT_PERIOD_MS, sys_stats_diskstat},
    [POLL_PSI] = {SYS_STATS_CONFIG_PSI_PERIOD_MS, sys_stats_psi},
    [POLL_THERMAL] = {SYS_STATS_CONFIG_THERMAL_PERIOD_MS, sys_stats_thermal},
    [POLL_CPUIDLE] = {SYS_STATS_CONFIG_CPUIDLE_PERIOD_MS, sys_stats_cpuidle},
    [POLL_GPUFREQ] = {SYS_STATS_CONFIG_GPUFREQ_PERIOD_MS, sys_stats_gpufreq},
    [POLL_SLAB] = {SYS_STATS_CONFIG_SLAB_PERIOD_MS, sys_stats_slab},
};

/* ---- ticks ---- */

static void on_tick(uv_timer_t *timer)
{
    struct sys_stats *s = timer->data;
    struct metatrace_span span = metatrace_begin(s->host->metatrace);
    pb_writer_clear(&s->w);
    pb_put_varint(&s->w, TRACE_PACKET_TIMESTAMP, probes_boot_ns());
    size_t message = pb_begin(&s->w, TRACE_PACKET_SYS_STATS);
    size_t empty = s->w.n;
    for (int i = 0; i < POLLERS; i++)
        if (s->period_ms[i] && s->ticks % (s->period_ms[i] / s->tick_ms) == 0)
            pollers[i].poll(s);
    s->ticks++;
    if (s->w.n > empty) {
        pb_put_varint(&s->w, SYS_STATS_COLLECTION_END_TIMESTAMP, probes_boot_ns());
        pb_end(&s->w, message);
    }
    if (s->w.n > empty && !s->w.failed)
        packet_sink_write(&s->sink, pb_written(&s->w));
    s->w.failed = false;
    metatrace_end(s->host->metatrace, span, "sys_stats");
    probes_arm_tick(timer, on_tick, s->tick_ms);
}

/* ---- config ---- */

/* The kernel's names of meminfo lines, where they are not the enum's words joined. */
static void meminfo_name(const char *enum_name, char *out, size_t size)
{
    static const char *const special[][2] = {
        {"ACTIVE_ANON", "Active(anon)"},
        {"INACTIVE_ANON", "Inactive(anon)"},
        {"ACTIVE_FILE", "Active(file)"},
        {"INACTIVE_FILE", "Inactive(file)"},
        {"SLAB_RECLAIMABLE", "SReclaimable"},
        {"SLAB_UNRECLAIMABLE", "SUnreclaim"},
        {"COMMITED_AS", "Committed_AS"},
        {"GPU", "GpuTotal"},
        {"ZRAM", "Zram"},
        {"ION_HEAP", "ION_heap"},
        {"ION_HEAP_POOL", "ION_heap_pool"},
    };
    const char *p = enum_name + strlen("MEMINFO_");
    bool upper = true;
    size_t n = 0;
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        if (strcmp(special[i][0], p) == 0) {
            snprintf(out, size, "%s", special[i][1]);
            return;
        }
    }
    for (; *p && n + 1 < size; p++) {
        if (*p != '_')
            out[n++] = (char)(upper ? *p : tolower((unsigned char)*p));
        upper = *p == '_';
    }
    out[n] = 0;
}

static void vmstat_name(const char *enum_name, char *out, size_t size)
{
    const char *p = enum_name + strlen("VMSTAT_");
    size_t n = 0;
    for (; *p && n + 1 < size; p++)
        out[n++] = (char)tolower((unsigned char)*p);
    out[n] = 0;
}

static bool add_counter(struct sys_stats *s, bool meminfo, uint32_t key)
{
    const ProtobufCEnumDescriptor *d = meminfo ? &mrd__meminfo_counters__descriptor : &mrd__vmstat_counters__descriptor;
    const ProtobufCEnumValue *v = key ? protobuf_c_enum_descriptor_get_value(d, (int)key) : NULL;
    struct chosen_counter c = {.key = key};
    if (!v)
        return true; /* a counter of the future */
    (meminfo ? meminfo_name : vmstat_name)(v->name, c.name, sizeof c.name);
    return meminfo ? vec_push(&s->meminfo, c) : vec_push(&s->vmstat, c);
}

static bool add_all(struct sys_stats *s, bool meminfo)
{
    const ProtobufCEnumDescriptor *d = meminfo ? &mrd__meminfo_counters__descriptor : &mrd__vmstat_counters__descriptor;
    bool ok = true;
    for (unsigned i = 0; i < d->n_values && ok; i++)
        ok = add_counter(s, meminfo, (uint32_t)d->values[i].value);
    return ok;
}

static bool read_config(struct sys_stats *s, struct slice bytes)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    bool ok = true;
    while (ok && pb_next(&c, &f)) {
        for (int i = 0; i < POLLERS; i++)
            if (pollers[i].period_field == f.id)
                s->period_ms[i] = pb_u32(&f);
        if (f.id == SYS_STATS_CONFIG_MEMINFO_COUNTERS || f.id == SYS_STATS_CONFIG_VMSTAT_COUNTERS)
            ok = add_counter(s, f.id == SYS_STATS_CONFIG_MEMINFO_COUNTERS, pb_u32(&f));
        else if (f.id == SYS_STATS_CONFIG_STAT_COUNTERS && pb_u32(&f) < 32)
            s->stat_counters |= 1u << pb_u32(&f);
    }
    if (s->period_ms[POLL_MEMINFO] && !s->meminfo.n)
        ok &= add_all(s, true);
    if (s->period_ms[POLL_VMSTAT] && !s->vmstat.n)
        ok &= add_all(s, false);
    if (!s->stat_counters)
        s->stat_counters = UINT32_MAX;
    for (int i = 0; i < POLLERS; i++) {
        if (s->period_ms[i] && s->period_ms[i] < PERIOD_MIN_MS)
            s->period_ms[i] = PERIOD_MIN_MS;
        if (s->period_ms[i] && (!s->tick_ms || s->period_ms[i] < s->tick_ms))
            s->tick_ms = s->period_ms[i];
    }
    return ok;
}

/* ---- life ---- */

static void free_state(void *state)
{
    struct sys_stats *s = state;
    probes_timer_free(s->timer);
    for (int i = 0; i < POLLERS; i++)
        text_file_close(&s->files[i]);
    for (int i = 0; i < 3; i++)
        text_file_close(&s->psi[i]);
    vec_free(&s->meminfo);
    vec_free(&s->vmstat);
    pb_writer_free(&s->w);
    mem_free(s);
}

static int setup(const struct probes_host *host, const struct data_source_config *config,
                 const struct packet_sink *sink, void **state, struct error *err)
{
    struct sys_stats *s = mem_zalloc(sizeof *s);
    if (!s)
        return error_set(err, -MRD_ENOMEM, "out of memory for sys_stats");
    s->host = host;
    s->sink = *sink;
    s->ns_per_tick = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    if (!read_config(s, config->specific)) {
        free_state(s);
        return error_set(err, -MRD_ENOMEM, "out of memory for sys_stats");
    }
    *state = s;
    return 0;
}

static int start(void *state, struct error *err)
{
    struct sys_stats *s = state;
    if (!s->tick_ms)
        return 0;
    s->timer = probes_timer_new(s->host->loop, s);
    if (!s->timer)
        return error_set(err, -MRD_ENOMEM, "out of memory for sys_stats");
    on_tick(s->timer);
    return 0;
}

static void stop(void *state)
{
    struct sys_stats *s = state;
    if (s->timer)
        uv_timer_stop(s->timer);
}

const struct data_source_type sys_stats_data_source = {
    .name = "linux.sys_stats",
    .config_field = 104,
    .setup = setup,
    .start = start,
    .stop = stop,
    .free = free_state,
};
