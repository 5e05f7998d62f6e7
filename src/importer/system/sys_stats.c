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
         track_intern_int(
             p->m->im->tracks, p->m->id, type, TRACK_COUNTER, "irq", (int32_t)s.v[SYS_STATS_INTERRUPT_COUNT_IRQ],
             strpool_printf(&p->m->st->strings, "%s (id: %u)", type, (unsigned)s.v[SYS_STATS_INTERRUPT_COUNT_IRQ])),
         (double)s.v[SYS_STATS_INTERRUPT_COUNT_COUNT]);
}

static void num_irq(struct packet *p, struct slice bytes)
{
    irq_count(p, "num_irq", bytes);
}

static void num_softirq(struct packet *p, struct slice bytes)
{
    irq_count(p, "num_softirq", bytes);
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
    struct strpool *strings = &p->m->st->strings;
    strid node = import_slice(p->m->im, s.s[SYS_STATS_BUDDY_INFO_NODE]);
    strid zone = import_slice(p->m->im, s.s[SYS_STATS_BUDDY_INFO_ZONE]);
    while (pb_next(&c, &f)) {
        if (f.id != SYS_STATS_BUDDY_INFO_ORDER_PAGES)
            continue;
        struct pb_cursor packed = f.wire == PB_BYTES ? pb_sub(&f) : pb_cursor(slice_of(NULL, 0));
        uint64_t pages = f.u;
        while (order < 32 && (f.wire != PB_BYTES || pb_next_packed(&packed, &pages))) {
            uint64_t kib = ((uint64_t)p->m->system->page_size << order) / 1024;
            struct track_dim dims[] = {{"buddyinfo_node", DIM_STR, node},
                                       {"buddyinfo_zone", DIM_STR, zone},
                                       {"buddyinfo_chunk_size_kb", DIM_INT, (int64_t)kib}};
            strid name = strpool_printf(strings, "mem.buddyinfo[%s][%s][%llu kB]", strpool_cstr(strings, node),
                                        strpool_cstr(strings, zone), (unsigned long long)kib);
            push(p, system_counter_track(p->m, "buddyinfo", name, NULL, dims, 3), (double)pages);
            order++;
            if (f.wire != PB_BYTES)
                break;
        }
    }
}

static void psi(struct packet *p, struct slice bytes)
{
    static const char *const resources[] = {
        "resource.unspecified", "cpu.some", "cpu.full", "io.some", "io.full", "mem.some", "mem.full", "irq.full"};
    struct sample s = read_sample(bytes);
    if (s.v[SYS_STATS_PSI_SAMPLE_RESOURCE] >= sizeof resources / sizeof *resources) {
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
            if (!machine_has_cpu(p->m, cpu))
                return;
        } else if (f.id == SYS_STATS_CPU_IDLE_STATE_CPUIDLE_STATE_ENTRY) {
            struct sample s = read_sample(pb_bytes(&f));
            struct track_dim dims[] = {
                {"cpu", DIM_INT, cpu},
                {"state", DIM_STR, import_slice(p->m->im, s.s[SYS_STATS_CPU_IDLE_STATE_ENTRY_STATE])}};
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
    uint64_t pages = s.v[SYS_STATS_SLAB_INFO_PAGES_PER_SLAB], slabs = s.v[SYS_STATS_SLAB_INFO_NUM_SLABS];
    struct slice key = s.s[SYS_STATS_SLAB_INFO_NAME];
    struct track_dim dim = {"slab_name", DIM_STR, import_slice(p->m->im, key)};
    strid name = strpool_printf(&p->m->st->strings, "mem.slab.%.*s", (int)(key.len < 100 ? key.len : 100),
                                key.len ? (const char *)key.p : "");
    struct args *a = &p->m->st->args;
    struct arg_list list = {0};
    arg_list_uint(a, &list, "pages_per_slab", pages);
    arg_list_uint(a, &list, "num_slabs", slabs);
    counter_insert(p->m->st,
                   &(struct counter_row){.ts = p->ts,
                                         .track_id = system_counter_track(p->m, "slabinfo", name, "bytes", &dim, 1),
                                         .value = (double)pages * (double)slabs * (double)p->m->system->page_size,
                                         .arg_set_id = args_intern(a, list.p, list.n)});
    arg_list_free(&list);
}

static void cpu_freq(struct packet *p, uint32_t cpu, uint64_t khz)
{
    if (!machine_has_cpu(p->m, cpu))
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

/* The parts of a packet, in the order in which their values become rows, wherever they stand in it. */
static const struct part {
    uint32_t field;
    void (*message)(struct packet *p, struct slice bytes);
    void (*scalar)(struct packet *p, uint32_t index, uint64_t value);
    const char *total; /* the track of a single number */
} parts[] = {
    {SYS_STATS_MEMINFO, .message = meminfo},
    {SYS_STATS_DEVFREQ, .message = devfreq},
    {SYS_STATS_CPUFREQ_KHZ, .scalar = cpu_freq},
    {SYS_STATS_VMSTAT, .message = vmstat},
    {SYS_STATS_CPU_STAT, .message = cpu_times},
    {SYS_STATS_NUM_IRQ, .message = num_irq},
    {SYS_STATS_NUM_SOFTIRQ, .message = num_softirq},
    {SYS_STATS_NUM_FORKS, .total = "num_forks"},
    {SYS_STATS_NUM_IRQ_TOTAL, .total = "num_irq_total"},
    {SYS_STATS_NUM_SOFTIRQ_TOTAL, .total = "num_softirq_total"},
    {SYS_STATS_BUDDY_INFO, .message = buddy_info},
    {SYS_STATS_DISK_STAT, .message = disk_stats_parse},
    {SYS_STATS_PSI, .message = psi},
    {SYS_STATS_THERMAL_ZONE, .message = thermal_zone},
    {SYS_STATS_CPUIDLE_STATE, .message = cpuidle},
    {SYS_STATS_GPUFREQ_MHZ, .scalar = gpu_freq},
    {SYS_STATS_SLAB_INFO, .message = slab_info},
};

static void parse_part(struct packet *p, const struct part *part)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    uint32_t index = 0;
    while (pb_next(&c, &f)) {
        if (f.id != part->field)
            continue;
        if (part->message)
            part->message(p, pb_bytes(&f));
        else if (part->scalar)
            each_scalar(p, &f, &index, part->scalar);
        else
            total(p, part->total, &f);
    }
}

void sys_stats_parse(struct packet *p)
{
    uint64_t present = 0; /* by field number: most packets have values of one kind */
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id < 64)
            present |= UINT64_C(1) << f.id;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (present >> parts[i].field & 1)
            parse_part(p, &parts[i]);
}
