/* Owns SysStats packets: counters of the whole system, polled from procfs and sysfs. */
#include "importer/system/system_internal.h"

#include "importer/system/sys_stats_names.h"

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
    if (s.v[1] >= sizeof meminfo_names / sizeof *meminfo_names || !meminfo_names[s.v[1]]) {
        stats_add(&p->m->st->stats, p->m->id, STAT_meminfo_unknown_keys, 1);
        return;
    }
    const char *name = meminfo_names[s.v[1]];
    push_keyed(p, "meminfo", name, "bytes", "meminfo_key", name, (double)(int64_t)s.v[2] * 1024.0);
}

static void vmstat(struct packet *p, struct slice bytes)
{
    struct sample s = read_sample(bytes);
    if (s.v[1] >= sizeof vmstat_names / sizeof *vmstat_names || !vmstat_names[s.v[1]]) {
        stats_add(&p->m->st->stats, p->m->id, STAT_vmstat_unknown_keys, 1);
        return;
    }
    const char *name = vmstat_names[s.v[1]];
    push_keyed(p, "vmstat", name, NULL, "vmstat_key", name, (double)(int64_t)s.v[2]);
}

static void cpu_times(struct packet *p, struct slice bytes)
{
    static const char *const names[] = {
        [2] = "user_ns",    [3] = "user_nice_ns", [4] = "system_mode_ns", [5] = "idle_ns",
        [6] = "io_wait_ns", [7] = "irq_ns",       [8] = "softirq_ns",     [9] = "steal_ns",
    };
    struct sample s = read_sample(bytes);
    if (!(s.has >> 1 & 1) || s.v[1] >= 4096) {
        stats_add(&p->m->st->stats, p->m->id, STAT_invalid_cpu_times, 1);
        return;
    }
    machine_ucpu(p->m, (uint32_t)s.v[1]);
    for (uint32_t i = 2; i < sizeof names / sizeof *names; i++) {
        char name[48];
        snprintf(name, sizeof name, "cpu.times.%s", names[i]);
        struct track_dim dims[] = {{"cpu", DIM_INT, (int64_t)s.v[1]},
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
         track_intern_int(p->m->im->tracks, p->m->id, type, TRACK_COUNTER, "irq", (int32_t)s.v[1],
                          import_str(p->m->im, type)),
         (double)s.v[2]);
}

static void devfreq(struct packet *p, struct slice bytes)
{
    struct sample s = read_sample(bytes);
    struct track_dim dim = {"clock_name", DIM_STR, import_slice(p->m->im, s.s[1])};
    strid name = strpool_printf(&p->m->st->strings, "%.*s Frequency", (int)(s.s[1].len < 255 ? s.s[1].len : 255),
                                s.s[1].len ? (const char *)s.s[1].p : "");
    push(p, system_counter_track(p->m, "clock_frequency", name, NULL, &dim, 1), (double)s.v[2]);
}

static void buddy_info(struct packet *p, struct slice bytes)
{
    struct sample s = read_sample(bytes);
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    unsigned order = 0;
    while (pb_next(&c, &f)) {
        if (f.id != 3)
            continue;
        struct pb_cursor packed = f.wire == PB_BYTES ? pb_sub(&f) : pb_cursor(slice_of(NULL, 0));
        uint64_t pages = f.u;
        while (order < 32 && (f.wire != PB_BYTES || pb_next_packed(&packed, &pages))) {
            uint64_t kib = ((uint64_t)p->m->system->page_size << order) / 1024;
            char key[160], name[192];
            snprintf(key, sizeof key, "[%.*s][%.*s][%llu kB]", (int)(s.s[1].len < 60 ? s.s[1].len : 60),
                     s.s[1].len ? (const char *)s.s[1].p : "", (int)(s.s[2].len < 60 ? s.s[2].len : 60),
                     s.s[2].len ? (const char *)s.s[2].p : "", (unsigned long long)kib);
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
        [2] = {"read_amount", 512}, [3] = {"read_time_ms", 1},     [4] = {"write_amount", 512},
        [5] = {"write_time_ms", 1}, [6] = {"discard_amount", 512}, [7] = {"discard_time_ms", 1},
        [8] = {"flush_count", 1},   [9] = {"flush_time_ms", 1},
    };
    struct sample s = read_sample(bytes);
    for (uint32_t i = 2; i < sizeof values / sizeof *values; i++) {
        if (!(s.has >> i & 1))
            continue;
        char key[160], name[192];
        snprintf(key, sizeof key, "%.*s.%s", (int)(s.s[1].len < 100 ? s.s[1].len : 100),
                 s.s[1].len ? (const char *)s.s[1].p : "", values[i].name);
        snprintf(name, sizeof name, "diskstat.%s", key);
        push_keyed(p, "diskstat", name, NULL, "diskstat_key", key, (double)s.v[i] * values[i].factor);
    }
}

static void psi(struct packet *p, struct slice bytes)
{
    static const char *const resources[] = {NULL,      "cpu.some", "cpu.full", "io.some",
                                            "io.full", "mem.some", "mem.full", "irq.full"};
    struct sample s = read_sample(bytes);
    if (!s.v[1] || s.v[1] >= sizeof resources / sizeof *resources) {
        stats_add(&p->m->st->stats, p->m->id, STAT_psi_unknown_resource, 1);
        return;
    }
    char name[32];
    snprintf(name, sizeof name, "psi.%s", resources[s.v[1]]);
    push_keyed(p, "psi", name, NULL, "psi_resource", resources[s.v[1]], (double)s.v[2]);
}

static void thermal_zone(struct packet *p, struct slice bytes)
{
    struct sample s = read_sample(bytes);
    strid type = import_slice(p->m->im, s.s[3]);
    struct track_dim dim = {"thermal_zone", DIM_STR, type};
    push(p, system_counter_track(p->m, "thermal_temperature_sys", type, "C", &dim, 1), (double)s.v[2]);
}

static void cpuidle(struct packet *p, struct slice bytes)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    uint32_t cpu = 0;
    while (pb_next(&c, &f)) {
        if (f.id == 1) {
            cpu = pb_u32(&f);
            if (cpu >= 4096)
                return;
        } else if (f.id == 2) {
            struct sample s = read_sample(pb_bytes(&f));
            struct track_dim dims[] = {{"state", DIM_STR, import_slice(p->m->im, s.s[1])}, {"cpu", DIM_INT, cpu}};
            strid name =
                strpool_printf(&p->m->st->strings, "cpuidle%u.%.*s", cpu, (int)(s.s[1].len < 100 ? s.s[1].len : 100),
                               s.s[1].len ? (const char *)s.s[1].p : "");
            push(p, system_counter_track(p->m, "cpu_idle_state", name, "us", dims, 2), (double)s.v[2]);
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
    strid key = import_slice(p->m->im, s.s[1]);
    struct track_dim dim = {"slab_name", DIM_STR, key};
    push(p, system_counter_track(p->m, "slabinfo", key, "bytes", &dim, 1),
         (double)s.v[2] * (double)s.v[3] * (double)p->m->system->page_size);
}

static void cpu_freq(struct packet *p, uint32_t cpu, uint64_t khz)
{
    if (cpu >= 4096)
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
        case 1:
            meminfo(p, pb_bytes(&f));
            break;
        case 2:
            vmstat(p, pb_bytes(&f));
            break;
        case 3:
            cpu_times(p, pb_bytes(&f));
            break;
        case 4:
            total(p, "num_forks", &f);
            break;
        case 5:
            total(p, "num_irq_total", &f);
            break;
        case 6:
            irq_count(p, "num_irq", pb_bytes(&f));
            break;
        case 7:
            total(p, "num_softirq_total", &f);
            break;
        case 8:
            irq_count(p, "num_softirq", pb_bytes(&f));
            break;
        case 10:
            devfreq(p, pb_bytes(&f));
            break;
        case 11:
            each_scalar(p, &f, &cpu, cpu_freq);
            break;
        case 12:
            buddy_info(p, pb_bytes(&f));
            break;
        case 13:
            disk_stat(p, pb_bytes(&f));
            break;
        case 14:
            psi(p, pb_bytes(&f));
            break;
        case 15:
            thermal_zone(p, pb_bytes(&f));
            break;
        case 16:
            cpuidle(p, pb_bytes(&f));
            break;
        case 17:
            each_scalar(p, &f, &gpu, gpu_freq);
            break;
        case 18:
            slab_info(p, pb_bytes(&f));
            break;
        }
    }
}
