/* The counters of linux.sys_stats that /proc has. */
#include "capture/probes/sys_stats_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static char *read_file(struct sys_stats *s, enum poller_no no, const char *path)
{
    char buf[1200];
    return text_file_read(&s->files[no], path_of(s, buf, sizeof buf, path));
}

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

void sys_stats_meminfo(struct sys_stats *s)
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

void sys_stats_vmstat(struct sys_stats *s)
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

void sys_stats_stat(struct sys_stats *s)
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
void sys_stats_buddyinfo(struct sys_stats *s)
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
void sys_stats_diskstat(struct sys_stats *s)
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

void sys_stats_psi(struct sys_stats *s)
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
void sys_stats_slab(struct sys_stats *s)
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
