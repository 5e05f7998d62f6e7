/* Imports SysStats packets: counters of the whole system, polled from procfs and sysfs. */
#include "importer/system/system_internal.h"

#include "importer/system/sys_stats_names.h"
#include "wire/fields.h"

#include <stdio.h>

struct sample { /* one entry of a repeated field: scalars by field number, and the first two strings */
    uint64_t v[12];
    uint32_t has;
    struct slice s[16];
};

static struct sample read_sample(struct slice bytes)
{
    struct sample s = {0};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id >= 12)
            continue;
        s.has |= 1u << f.id;
        if (f.wire == PB_BYTES)
            s.s[f.id] = pb_bytes(&f);
        else
            s.v[f.id] = f.u;
    }
    return s;
}

static void push(struct packet *p, uint32_t track, double value)
{
    counter_push(p->m->im, p->ts, track, value);
}

static void push_keyed(struct packet *p, const char *type, const char *name, const char *unit, const char *dim_key,
                       const char *key, double value)
{
    push(p, system_keyed_track(p->m, type, name, unit, dim_key, key), value);
}

static void meminfo(struct packet *p, struct slice bytes)
{
    struct sample s = read_sample(bytes);
    if (s.v[SYS_STATS_MEMINFO_VALUE_KEY] >= sizeof meminfo_names / sizeof *meminfo_names ||
        !meminfo_names[s.v[SYS_STATS_MEMINFO_VALUE_KEY]]) {
        stats_add(&p->m->st->stats, p->m->id, STAT_meminfo_unknown_keys, 1);
        return;
    }
    const char *name = meminfo_names[s.v[SYS_STATS_MEMINFO_VALUE_KEY]];
    push_keyed(p, "meminfo", name, "bytes", "meminfo_key", name,
               (double)(int64_t)s.v[SYS_STATS_MEMINFO_VALUE_VALUE] * 1024.0);
}

static void vmstat(struct packet *p, struct slice bytes)
{
    struct sample s = read_sample(bytes);
    if (s.v[SYS_STATS_VMSTAT_VALUE_KEY] >= sizeof vmstat_names / sizeof *vmstat_names ||
        !vmstat_names[s.v[SYS_STATS_VMSTAT_VALUE_KEY]]) {
        stats_add(&p->m->st->stats, p->m->id, STAT_vmstat_unknown_keys, 1);
        return;
    }
    const char *name = vmstat_names[s.v[SYS_STATS_VMSTAT_VALUE_KEY]];
    push_keyed(p, "vmstat", name, NULL, "vmstat_key", name, (double)(int64_t)s.v[SYS_STATS_VMSTAT_VALUE_VALUE]);
}

static void cpu_times(struct packet *p, struct slice bytes)
{
    static const char *const names[] = {
        [SYS_STATS_CPU_TIMES_USER_NS] = "user_ns",
        [SYS_STATS_CPU_TIMES_USER_NICE_NS] = "user_nice_ns",
        [SYS_STATS_CPU_TIMES_SYSTEM_MODE_NS] = "system_mode_ns",
        [SYS_STATS_CPU_TIMES_IDLE_NS] = "idle_ns",
        [SYS_STATS_CPU_TIMES_IO_WAIT_NS] = "io_wait_ns",
        [SYS_STATS_CPU_TIMES_IRQ_NS] = "irq_ns",
        [SYS_STATS_CPU_TIMES_SOFTIRQ_NS] = "softirq_ns",
        [SYS_STATS_CPU_TIMES_STEAL_NS] = "steal_ns",
    };
    struct sample s = read_sample(bytes);
    if (!(s.has >> 1 & 1) || s.v[SYS_STATS_CPU_TIMES_CPU_ID] >= CPUS_PER_MACHINE) {
        stats_add(&p->m->st->stats, p->m->id, STAT_invalid_cpu_times, 1);
        return;
    }
    machine_ucpu(p->m, (uint32_t)s.v[SYS_STATS_CPU_TIMES_CPU_ID]);
    for (uint32_t i = 2; i < sizeof names / sizeof *names; i++) {
        char name[48];
        snprintf(name, sizeof name, "cpu.times.%s", names[i]);
        struct track_dim dims[] = {{"cpu", DIM_INT, (int64_t)s.v[SYS_STATS_CPU_TIMES_CPU_ID]},
                                   {"cpustat_key", DIM_STR, import_str(p->m->im, names[i])}};
        push(p, system_counter_track(p->m, "cpustat", import_str(p->m->im, name), NULL, dims, 2),
             (double)(int64_t)s.v[i]);
    }
}

static void total(struct packet *p, const char *type, const struct pb_field *f)
{
    push(p, system_counter_track(p->m, type, import_str(p->m->im, type), NULL, NULL, 0), (double)pb_u64(f));
}

static void irq_count(struct packet *p, const char *type, struct slice bytes)
{
    struct sample s = read_sample(bytes);
    push(p,
         track_intern_int(p->m->im->tracks, p->m->id, type, TRACK_COUNTER, "irq",
                          (int32_t)s.v[SYS_STATS_INTERRUPT_COUNT_IRQ], import_str(p->m->im, type)),
         (double)s.v[SYS_STATS_INTERRUPT_COUNT_COUNT]);
}

static void devfreq(struct packet *p, struct slice bytes)
{
    struct sample s = read_sample(bytes);
    struct track_dim dim = {"clock_name", DIM_STR, import_slice(p->m->im, s.s[SYS_STATS_DEVFREQ_VALUE_KEY])};
    strid name =
        strpool_printf(&p->m->st->strings, "%.*s Frequency",
                       (int)(s.s[SYS_STATS_DEVFREQ_VALUE_KEY].len < 255 ? s.s[SYS_STATS_DEVFREQ_VALUE_KEY].len : 255),
                       s.s[SYS_STATS_DEVFREQ_VALUE_KEY].len ? (const char *)s.s[SYS_STATS_DEVFREQ_VALUE_KEY].p : "");
    push(p, system_counter_track(p->m, "clock_frequency", name, NULL, &dim, 1),
         (double)s.v[SYS_STATS_DEVFREQ_VALUE_VALUE]);
}

static void buddy_info(struct packet *p, struct slice bytes)
{
    struct sample s = read_sample(bytes);
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    unsigned order = 0;
    while (pb_next(&c, &f)) {
        if (f.id != SYS_STATS_BUDDY_INFO_ORDER_PAGES)
            continue;
        struct pb_cursor packed = f.wire == PB_BYTES ? pb_sub(&f) : pb_cursor(slice_of(NULL, 0));
        uint64_t pages = f.u;
        while (order < 32 && (f.wire != PB_BYTES || pb_next_packed(&packed, &pages))) {
            uint64_t kib = ((uint64_t)p->m->system->page_size << order) / 1024;
            char key[160], name[192];
            snprintf(key, sizeof key, "[%.*s][%.*s][%llu kB]",
                     (int)(s.s[SYS_STATS_BUDDY_INFO_NODE].len < 60 ? s.s[SYS_STATS_BUDDY_INFO_NODE].len : 60),
                     s.s[SYS_STATS_BUDDY_INFO_NODE].len ? (const char *)s.s[SYS_STATS_BUDDY_INFO_NODE].p : "",
                     (int)(s.s[SYS_STATS_BUDDY_INFO_ZONE].len < 60 ? s.s[SYS_STATS_BUDDY_INFO_ZONE].len : 60),
                     s.s[SYS_STATS_BUDDY_INFO_ZONE].len ? (const char *)s.s[SYS_STATS_BUDDY_INFO_ZONE].p : "",
                     (unsigned long long)kib);
            snprintf(name, sizeof name, "mem.buddyinfo%s", key);
            push_keyed(p, "buddyinfo", name, NULL, "buddyinfo_key", key, (double)pages);
            order++;
            if (f.wire != PB_BYTES)
                break;
        }
    }
}

static void disk_stat(struct packet *p, struct slice bytes)
{
    static const struct {
        const char *name;
        double factor; /* sectors are of 512 bytes */
    } values[] = {
        [SYS_STATS_DISK_STAT_READ_SECTORS] = {"read_amount", 512},
        [SYS_STATS_DISK_STAT_READ_TIME_MS] = {"read_time_ms", 1},
        [SYS_STATS_DISK_STAT_WRITE_SECTORS] = {"write_amount", 512},
        [SYS_STATS_DISK_STAT_WRITE_TIME_MS] = {"write_time_ms", 1},
        [SYS_STATS_DISK_STAT_DISCARD_SECTORS] = {"discard_amount", 512},
        [SYS_STATS_DISK_STAT_DISCARD_TIME_MS] = {"discard_time_ms", 1},
        [SYS_STATS_DISK_STAT_FLUSH_COUNT] = {"flush_count", 1},
        [SYS_STATS_DISK_STAT_FLUSH_TIME_MS] = {"flush_time_ms", 1},
    };
    struct sample s = read_sample(bytes);
    for (uint32_t i = 2; i < sizeof values / sizeof *values; i++) {
        if (!(s.has >> i & 1))
            continue;
        char key[160], name[192];
        snprintf(key, sizeof key, "%.*s.%s",
                 (int)(s.s[SYS_STATS_DISK_STAT_DEVICE_NAME].len < 100 ? s.s[SYS_STATS_DISK_STAT_DEVICE_NAME].len : 100),
                 s.s[SYS_STATS_DISK_STAT_DEVICE_NAME].len ? (const char *)s.s[SYS_STATS_DISK_STAT_DEVICE_NAME].p : "",
                 values[i].name);
        snprintf(name, sizeof name, "diskstat.%s", key);
        push_keyed(p, "diskstat", name, NULL, "diskstat_key", key, (double)s.v[i] * values[i].factor);
    }
}

static void psi(struct packet *p, struct slice bytes)
{
    static const char *const resources[] = {NULL,      "cpu.some", "cpu.full", "io.some",
                                            "io.full", "mem.some", "mem.full", "irq.full"};
    struct sample s = read_sample(bytes);
    if (!s.v[SYS_STATS_PSI_SAMPLE_RESOURCE] ||
        s.v[SYS_STATS_PSI_SAMPLE_RESOURCE] >= sizeof resources / sizeof *resources) {
        stats_add(&p->m->st->stats, p->m->id, STAT_psi_unknown_resource, 1);
        return;
    }
    char name[32];
    snprintf(name, sizeof name, "psi.%s", resources[s.v[SYS_STATS_PSI_SAMPLE_RESOURCE]]);
    push_keyed(p, "psi", name, NULL, "psi_resource", resources[s.v[SYS_STATS_PSI_SAMPLE_RESOURCE]],
               (double)s.v[SYS_STATS_PSI_SAMPLE_TOTAL_NS]);
}

static void thermal_zone(struct packet *p, struct slice bytes)
{
    struct sample s = read_sample(bytes);
    strid type = import_slice(p->m->im, s.s[SYS_STATS_THERMAL_ZONE_TYPE]);
    struct track_dim dim = {"thermal_zone", DIM_STR, type};
    push(p, system_counter_track(p->m, "thermal_temperature_sys", type, "C", &dim, 1),
         (double)s.v[SYS_STATS_THERMAL_ZONE_TEMP]);
}

static void cpuidle(struct packet *p, struct slice bytes)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    uint32_t cpu = 0;
    while (pb_next(&c, &f)) {
        if (f.id == SYS_STATS_CPU_IDLE_STATE_CPU_ID) {
            cpu = pb_u32(&f);
            if (cpu >= CPUS_PER_MACHINE)
                return;
        } else if (f.id == SYS_STATS_CPU_IDLE_STATE_CPUIDLE_STATE_ENTRY) {
            struct sample s = read_sample(pb_bytes(&f));
            struct track_dim dims[] = {
                {"state", DIM_STR, import_slice(p->m->im, s.s[SYS_STATS_CPU_IDLE_STATE_ENTRY_STATE])},
                {"cpu", DIM_INT, cpu}};
            strid name = strpool_printf(&p->m->st->strings, "cpuidle%u.%.*s", cpu,
                                        (int)(s.s[SYS_STATS_CPU_IDLE_STATE_ENTRY_STATE].len < 100
                                                  ? s.s[SYS_STATS_CPU_IDLE_STATE_ENTRY_STATE].len
                                                  : 100),
                                        s.s[SYS_STATS_CPU_IDLE_STATE_ENTRY_STATE].len
                                            ? (const char *)s.s[SYS_STATS_CPU_IDLE_STATE_ENTRY_STATE].p
                                            : "");
            push(p, system_counter_track(p->m, "cpu_idle_state", name, "us", dims, 2),
                 (double)s.v[SYS_STATS_CPU_IDLE_STATE_ENTRY_DURATION_US]);
        }
    }
}

static void gpu_freq(struct packet *p, uint32_t gpu, uint64_t mhz)
{
    struct track_dim dims[] = {{"ugpu", DIM_INT, system_gpu(p->m, gpu)}, {"gpu", DIM_INT, gpu}};
    push(p, system_counter_track(p->m, "gpu_frequency", import_str(p->m->im, "gpufreq"), "kHz", dims, 2), (double)mhz);
}

static void slab_info(struct packet *p, struct slice bytes)
{
    struct sample s = read_sample(bytes);
    strid key = import_slice(p->m->im, s.s[SYS_STATS_SLAB_INFO_NAME]);
    struct track_dim dim = {"slab_name", DIM_STR, key};
    push(p, system_counter_track(p->m, "slabinfo", key, "bytes", &dim, 1),
         (double)s.v[SYS_STATS_SLAB_INFO_PAGES_PER_SLAB] * (double)s.v[SYS_STATS_SLAB_INFO_NUM_SLABS] *
             (double)p->m->system->page_size);
}

static void cpu_freq(struct packet *p, uint32_t cpu, uint64_t khz)
{
    if (cpu >= CPUS_PER_MACHINE)
        return;
    machine_ucpu(p->m, cpu);
    push(p,
         track_intern_int(p->m->im->tracks, p->m->id, "cpu_frequency", TRACK_COUNTER, "cpu", cpu,
                          import_str(p->m->im, "cpufreq")),
         (double)khz);
}

/* Calls `one` for each value of a repeated scalar, packed or not; *index counts on. */
static void each_scalar(struct packet *p, const struct pb_field *f, uint32_t *index,
                        void (*one)(struct packet *, uint32_t, uint64_t))
{
    if (f->wire != PB_BYTES) {
        one(p, (*index)++, f->u);
        return;
    }
    struct pb_cursor c = pb_sub(f);
    uint64_t v;
    while (pb_next_packed(&c, &v))
        one(p, (*index)++, v);
}

void sys_stats_parse(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    uint32_t cpu = 0, gpu = 0;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case SYS_STATS_MEMINFO:
            meminfo(p, pb_bytes(&f));
            break;
        case SYS_STATS_VMSTAT:
            vmstat(p, pb_bytes(&f));
            break;
        case SYS_STATS_CPU_STAT:
            cpu_times(p, pb_bytes(&f));
            break;
        case SYS_STATS_NUM_FORKS:
            total(p, "num_forks", &f);
            break;
        case SYS_STATS_NUM_IRQ_TOTAL:
            total(p, "num_irq_total", &f);
            break;
        case SYS_STATS_NUM_IRQ:
            irq_count(p, "num_irq", pb_bytes(&f));
            break;
        case SYS_STATS_NUM_SOFTIRQ_TOTAL:
            total(p, "num_softirq_total", &f);
            break;
        case SYS_STATS_NUM_SOFTIRQ:
            irq_count(p, "num_softirq", pb_bytes(&f));
            break;
        case SYS_STATS_DEVFREQ:
            devfreq(p, pb_bytes(&f));
            break;
        case SYS_STATS_CPUFREQ_KHZ:
            each_scalar(p, &f, &cpu, cpu_freq);
            break;
        case SYS_STATS_BUDDY_INFO:
            buddy_info(p, pb_bytes(&f));
            break;
        case SYS_STATS_DISK_STAT:
            disk_stat(p, pb_bytes(&f));
            break;
        case SYS_STATS_PSI:
            psi(p, pb_bytes(&f));
            break;
        case SYS_STATS_THERMAL_ZONE:
            thermal_zone(p, pb_bytes(&f));
            break;
        case SYS_STATS_CPUIDLE_STATE:
            cpuidle(p, pb_bytes(&f));
            break;
        case SYS_STATS_GPUFREQ_MHZ:
            each_scalar(p, &f, &gpu, gpu_freq);
            break;
        case SYS_STATS_SLAB_INFO:
            slab_info(p, pb_bytes(&f));
            break;
        }
    }
}
