/* The counters of linux.sys_stats that /sys has. */
#include "capture/probes/sys_stats_private.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIRECTORIES = 256, MAX_CPUS = 4096 };

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

void sys_stats_devfreq(struct sys_stats *s)
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

void sys_stats_cpufreq(struct sys_stats *s)
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

void sys_stats_thermal(struct sys_stats *s)
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

void sys_stats_cpuidle(struct sys_stats *s)
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

void sys_stats_gpufreq(struct sys_stats *s)
{
    each_entry(s, "/sys/class/drm", "card", put_gpufreq);
}
