/* The data source linux.sys_stats: counters of the whole machine from /proc and /sys, polled.
 *
 * One row of `pollers` is one group of counters with a period of its own; one packet a tick holds what is due. Files
 * stay open between ticks. */
#include "base/alloc.h"
#include "base/vec.h"
#include "capture/probes/common/data_source.h"
#include "capture/probes/common/metatrace.h"
#include "capture/probes/proc_text.h"
#include "schema/config.pb-c.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PERIOD_MIN_MS = 10, MAX_DIRECTORIES = 256, MAX_CPUS = 4096 };

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

static const char *path_of(const struct sys_stats *s, char *buf, size_t size, const char *path)
{
    snprintf(buf, size, "%s%s", s->host->sysroot ? s->host->sysroot : "", path);
    return buf;
}

static char *read_file(struct sys_stats *s, enum poller_no no, const char *path)
{
    char buf[1200];
    return text_file_read(&s->files[no], path_of(s, buf, sizeof buf, path));
}

/* ---- /proc ---- */

static const struct chosen_counter *find_counter(const struct chosen_counter *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

static void put_key_value(struct sys_stats *s, uint32_t field, uint32_t key, uint64_t value)
{
    size_t message = pb_begin(&s->w, field);
    pb_put_varint(&s->w, SYS_STATS_MEMINFO_VALUE_KEY, key);
    pb_put_varint(&s->w, SYS_STATS_MEMINFO_VALUE_VALUE, value);
    pb_end(&s->w, message);
}

static void poll_meminfo(struct sys_stats *s)
{
    char *text = read_file(s, POLL_MEMINFO, "/proc/meminfo");
    for (char *line; text && (line = text_line(&text));) {
        uint64_t v;
        char *value = strchr(line, ':');
        if (!value)
            continue;
        *value++ = 0;
        const struct chosen_counter *c = find_counter(s->meminfo.p, s->meminfo.n, line);
        if (c && text_u64(&value, &v))
            put_key_value(s, SYS_STATS_MEMINFO, c->key, v);
    }
}

static void poll_vmstat(struct sys_stats *s)
{
    char *text = read_file(s, POLL_VMSTAT, "/proc/vmstat");
    for (char *line; text && (line = text_line(&text));) {
        uint64_t v;
        char *value = strchr(line, ' ');
        if (!value)
            continue;
        *value++ = 0;
        const struct chosen_counter *c = find_counter(s->vmstat.p, s->vmstat.n, line);
        if (c && text_u64(&value, &v))
            put_key_value(s, SYS_STATS_VMSTAT, c->key, v);
    }
}

static void put_cpu_times(struct sys_stats *s, uint64_t cpu, char *p)
{
    size_t message = pb_begin(&s->w, SYS_STATS_CPU_STAT);
    uint64_t ticks;
    pb_put_varint(&s->w, SYS_STATS_CPU_TIMES_CPU_ID, cpu);
    for (uint32_t field = 2; field <= 9 && text_u64(&p, &ticks); field++)
        pb_put_varint(&s->w, field, ticks * s->ns_per_tick);
    pb_end(&s->w, message);
}

/* "intr TOTAL n0 n1 …" and "softirq TOTAL …"; interrupts that never came are left out. */
static void put_interrupts(struct sys_stats *s, char *p, uint32_t total_field, uint32_t field)
{
    uint64_t v;
    if (!text_u64(&p, &v))
        return;
    pb_put_varint(&s->w, total_field, v);
    for (uint32_t i = 0; text_u64(&p, &v); i++)
        if (v)
            put_key_value(s, field, i, v);
}

static void poll_stat(struct sys_stats *s)
{
    char *text = read_file(s, POLL_STAT, "/proc/stat");
    for (char *line; text && (line = text_line(&text));) {
        uint64_t v;
        char *p = line;
        char *key = text_word(&p);
        if (!key)
            continue;
        if (strncmp(key, "cpu", 3) == 0 && isdigit((unsigned char)key[3])) {
            if (s->stat_counters & 1u << STAT_CPU_TIMES)
                put_cpu_times(s, strtoull(key + 3, NULL, 10), p);
        } else if (strcmp(key, "intr") == 0 && s->stat_counters & 1u << STAT_IRQ_COUNTS) {
            put_interrupts(s, p, 5, 6);
        } else if (strcmp(key, "softirq") == 0 && s->stat_counters & 1u << STAT_SOFTIRQ_COUNTS) {
            put_interrupts(s, p, 7, 8);
        } else if (strcmp(key, "processes") == 0 && s->stat_counters & 1u << STAT_FORK_COUNT && text_u64(&p, &v)) {
            pb_put_varint(&s->w, SYS_STATS_NUM_FORKS, v);
        }
    }
}

/* "Node 0, zone   Normal   3932   1857 …" */
static void poll_buddyinfo(struct sys_stats *s)
{
    char *text = read_file(s, POLL_BUDDYINFO, "/proc/buddyinfo");
    for (char *line; text && (line = text_line(&text));) {
        uint64_t v;
        char *p = line;
        char *word = text_word(&p), *node = word ? text_word(&p) : NULL, *zone = node ? text_word(&p) : NULL;
        zone = zone ? text_word(&p) : NULL;
        if (!zone || strcmp(word, "Node") != 0)
            continue;
        node[strcspn(node, ",")] = 0;
        size_t message = pb_begin(&s->w, SYS_STATS_BUDDY_INFO);
        pb_put_str(&s->w, SYS_STATS_BUDDY_INFO_NODE, node);
        pb_put_str(&s->w, SYS_STATS_BUDDY_INFO_ZONE, zone);
        while (text_u64(&p, &v))
            pb_put_varint(&s->w, SYS_STATS_BUDDY_INFO_ORDER_PAGES, v);
        pb_end(&s->w, message);
    }
}

/* Numbers behind the device name, counted from 0 (kernel: Documentation/admin-guide/iostats), and their fields. */
static void poll_diskstat(struct sys_stats *s)
{
    static const struct {
        uint8_t column, field;
    } rows[] = {{2, 2}, {3, 3}, {6, 4}, {7, 5}, {13, 6}, {14, 7}, {15, 8}, {16, 9}};
    enum { COLUMNS = 17 };
    char *text = read_file(s, POLL_DISKSTAT, "/proc/diskstats");
    for (char *line; text && (line = text_line(&text));) {
        uint64_t v[COLUMNS] = {0}, major, minor;
        unsigned n = 0;
        bool used = false;
        char *p = line;
        if (!text_u64(&p, &major) || !text_u64(&p, &minor))
            continue;
        char *name = text_word(&p);
        while (name && n < COLUMNS && text_u64(&p, &v[n]))
            used |= v[n++] != 0;
        if (!name || !used)
            continue;
        size_t message = pb_begin(&s->w, SYS_STATS_DISK_STAT);
        pb_put_str(&s->w, SYS_STATS_DISK_STAT_DEVICE_NAME, name);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (rows[i].column < n)
                pb_put_varint(&s->w, rows[i].field, v[rows[i].column]);
        pb_end(&s->w, message);
    }
}

static void poll_psi(struct sys_stats *s)
{
    static const char *const paths[] = {"/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory"};
    char buf[1200];
    for (uint32_t i = 0; i < 3; i++) {
        char *text = text_file_read(&s->psi[i], path_of(s, buf, sizeof buf, paths[i]));
        for (char *line; text && (line = text_line(&text));) {
            char *total = strstr(line, "total=");
            if (!total)
                continue;
            bool full = strncmp(line, "full", 4) == 0;
            put_key_value(s, 14, 1 + 2 * i + full, strtoull(total + 6, NULL, 10) * 1000); /* µs */
        }
    }
}

/* "name active num size per_slab pages_per_slab : tunables a b c : slabdata active_slabs num_slabs shared" */
static void poll_slab(struct sys_stats *s)
{
    char *text = read_file(s, POLL_SLAB, "/proc/slabinfo");
    for (char *line; text && (line = text_line(&text));) {
        uint64_t v, pages = 0, slabs = 0;
        char *data = strstr(line, ": slabdata");
        char *p = line;
        char *name = text_word(&p);
        if (!name || !data || name[0] == '#')
            continue;
        for (int i = 0; i < 5 && text_u64(&p, &v); i++)
            pages = v;
        data += strlen(": slabdata");
        if (!text_u64(&data, &v) || !text_u64(&data, &slabs))
            continue;
        size_t message = pb_begin(&s->w, SYS_STATS_SLAB_INFO);
        pb_put_str(&s->w, SYS_STATS_SLAB_INFO_NAME, name);
        pb_put_varint(&s->w, SYS_STATS_SLAB_INFO_PAGES_PER_SLAB, pages);
        pb_put_varint(&s->w, SYS_STATS_SLAB_INFO_NUM_SLABS, slabs);
        pb_end(&s->w, message);
    }
}

/* ---- /sys ---- */

/* The first number in a small file. */
static bool read_number(const struct sys_stats *s, const char *path, uint64_t *value)
{
    char buf[1200], text[64], *p = text;
    return text_read_once(path_of(s, buf, sizeof buf, path), text, sizeof text) > 0 && text_u64(&p, value);
}

static int by_version(const struct dirent **a, const struct dirent **b)
{
    return strverscmp((*a)->d_name, (*b)->d_name);
}

static int visible(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

/* Calls `fn` for each entry of a directory whose name begins with `prefix`, in natural order. */
static void each_entry(struct sys_stats *s, const char *path, const char *prefix,
                       void (*fn)(struct sys_stats *s, const char *path, const char *name))
{
    char buf[1200], entry[512];
    struct dirent **list;
    int n = scandir(path_of(s, buf, sizeof buf, path), &list, visible, by_version);
    for (int i = 0; i < n; i++) {
        if (i < MAX_DIRECTORIES && strncmp(list[i]->d_name, prefix, strlen(prefix)) == 0 &&
            snprintf(entry, sizeof entry, "%s/%s", path, list[i]->d_name) < (int)sizeof entry)
            fn(s, entry, list[i]->d_name);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
}

static void put_devfreq(struct sys_stats *s, const char *path, const char *name)
{
    char file[600];
    uint64_t v;
    snprintf(file, sizeof file, "%s/cur_freq", path);
    if (!read_number(s, file, &v))
        return;
    size_t message = pb_begin(&s->w, SYS_STATS_DEVFREQ);
    pb_put_str(&s->w, SYS_STATS_DEVFREQ_VALUE_KEY, name);
    pb_put_varint(&s->w, SYS_STATS_DEVFREQ_VALUE_VALUE, v);
    pb_end(&s->w, message);
}

static void poll_devfreq(struct sys_stats *s)
{
    each_entry(s, "/sys/class/devfreq", "", put_devfreq);
}

static bool is_cpu(const char *name)
{
    return strncmp(name, "cpu", 3) == 0 && isdigit((unsigned char)name[3]);
}

static void put_cpufreq(struct sys_stats *s, const char *path, const char *name)
{
    char file[600];
    uint64_t v = 0;
    if (!is_cpu(name))
        return;
    snprintf(file, sizeof file, "%s/cpufreq/scaling_cur_freq", path);
    (void)read_number(s, file, &v);
    pb_put_varint(&s->w, SYS_STATS_CPUFREQ_KHZ, v); /* the n-th value is cpu n: 0 where it is not known */
}

static void poll_cpufreq(struct sys_stats *s)
{
    each_entry(s, "/sys/devices/system/cpu", "cpu", put_cpufreq);
}

static void put_thermal(struct sys_stats *s, const char *path, const char *name)
{
    char file[600], buf[1200], type[128];
    uint64_t v;
    snprintf(file, sizeof file, "%s/temp", path);
    if (!read_number(s, file, &v))
        return;
    snprintf(file, sizeof file, "%s/type", path);
    size_t message = pb_begin(&s->w, SYS_STATS_THERMAL_ZONE);
    pb_put_str(&s->w, SYS_STATS_THERMAL_ZONE_NAME, name);
    pb_put_varint(&s->w, SYS_STATS_THERMAL_ZONE_TEMP, v / 1000);
    if (text_read_once(path_of(s, buf, sizeof buf, file), type, sizeof type) > 0)
        pb_put_str(&s->w, SYS_STATS_THERMAL_ZONE_TYPE, text_trim(type));
    pb_end(&s->w, message);
}

static void poll_thermal(struct sys_stats *s)
{
    each_entry(s, "/sys/class/thermal", "thermal_zone", put_thermal);
}

static void put_idle_state(struct sys_stats *s, const char *path, const char *name)
{
    char file[600], buf[1200], text[128];
    uint64_t v;
    (void)name;
    snprintf(file, sizeof file, "%s/time", path);
    if (!read_number(s, file, &v))
        return;
    snprintf(file, sizeof file, "%s/name", path);
    size_t message = pb_begin(&s->w, SYS_STATS_CPU_IDLE_STATE_CPUIDLE_STATE_ENTRY);
    if (text_read_once(path_of(s, buf, sizeof buf, file), text, sizeof text) > 0)
        pb_put_str(&s->w, SYS_STATS_CPU_IDLE_STATE_ENTRY_STATE, text_trim(text));
    pb_put_varint(&s->w, SYS_STATS_CPU_IDLE_STATE_ENTRY_DURATION_US, v);
    pb_end(&s->w, message);
}

static void put_cpuidle(struct sys_stats *s, const char *path, const char *name)
{
    char directory[600];
    if (!is_cpu(name))
        return;
    snprintf(directory, sizeof directory, "%s/cpuidle", path);
    size_t start = s->w.n;
    size_t message = pb_begin(&s->w, SYS_STATS_CPUIDLE_STATE);
    pb_put_varint(&s->w, SYS_STATS_CPU_IDLE_STATE_CPU_ID, strtoull(name + 3, NULL, 10));
    size_t empty = s->w.n;
    each_entry(s, directory, "state", put_idle_state);
    if (s->w.n == empty)
        s->w.n = start;
    else
        pb_end(&s->w, message);
}

static void poll_cpuidle(struct sys_stats *s)
{
    each_entry(s, "/sys/devices/system/cpu", "cpu", put_cpuidle);
}

/* Intel: gt_act_freq_mhz of the card. AMD: the line of pp_dpm_sclk with the star, "1: 700Mhz *". */
static void put_gpufreq(struct sys_stats *s, const char *path, const char *name)
{
    char file[600], buf[1200], text[1024], *p = text;
    uint64_t v;
    if (strchr(name, '-')) /* card0-HDMI-A-1 is a plug */
        return;
    snprintf(file, sizeof file, "%s/gt_act_freq_mhz", path);
    if (read_number(s, file, &v)) {
        pb_put_varint(&s->w, SYS_STATS_GPUFREQ_MHZ, v);
        return;
    }
    snprintf(file, sizeof file, "%s/device/pp_dpm_sclk", path);
    if (text_read_once(path_of(s, buf, sizeof buf, file), text, sizeof text) <= 0)
        return;
    for (char *line; (line = text_line(&p));) {
        char *value = strchr(line, ':');
        if (value++ && strchr(value, '*') && text_u64(&value, &v))
            pb_put_varint(&s->w, SYS_STATS_GPUFREQ_MHZ, v);
    }
}

static void poll_gpufreq(struct sys_stats *s)
{
    each_entry(s, "/sys/class/drm", "card", put_gpufreq);
}

static const struct {
    uint32_t period_field; /* of SysStatsConfig */
    void (*poll)(struct sys_stats *s);
} pollers[POLLERS] = {
    [POLL_MEMINFO] = {SYS_STATS_CONFIG_MEMINFO_PERIOD_MS, poll_meminfo},
    [POLL_VMSTAT] = {SYS_STATS_CONFIG_VMSTAT_PERIOD_MS, poll_vmstat},
    [POLL_STAT] = {SYS_STATS_CONFIG_STAT_PERIOD_MS, poll_stat},
    [POLL_DEVFREQ] = {SYS_STATS_CONFIG_DEVFREQ_PERIOD_MS, poll_devfreq},
    [POLL_CPUFREQ] = {SYS_STATS_CONFIG_CPUFREQ_PERIOD_MS, poll_cpufreq},
    [POLL_BUDDYINFO] = {SYS_STATS_CONFIG_BUDDYINFO_PERIOD_MS, poll_buddyinfo},
    [POLL_DISKSTAT] = {SYS_STATS_CONFIG_DISKSTAT_PERIOD_MS, poll_diskstat},
    [POLL_PSI] = {SYS_STATS_CONFIG_PSI_PERIOD_MS, poll_psi},
    [POLL_THERMAL] = {SYS_STATS_CONFIG_THERMAL_PERIOD_MS, poll_thermal},
    [POLL_CPUIDLE] = {SYS_STATS_CONFIG_CPUIDLE_PERIOD_MS, poll_cpuidle},
    [POLL_GPUFREQ] = {SYS_STATS_CONFIG_GPUFREQ_PERIOD_MS, poll_gpufreq},
    [POLL_SLAB] = {SYS_STATS_CONFIG_SLAB_PERIOD_MS, poll_slab},
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
