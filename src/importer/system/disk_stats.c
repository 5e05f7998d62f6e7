/* Statistics of disks: what each has read, written, discarded and flushed since the sample before. */
#include "importer/system/system_internal.h"

#include "wire/fields.h"

#define SECTORS_PER_MB 2048.0

/* A disk as the last sample told of it; counts by field of SysStats.DiskStat. */
struct disk {
    int64_t counts[SYS_STATS_DISK_STAT_FLUSH_TIME_MS + 1];
};

/* The disk of a name, zeroed when *is_new; NULL when out of memory. */
static struct disk *disk_of(struct machine_ctx *m, strid name, bool *is_new)
{
    struct system_machine *s = m->system;
    uint64_t *disk = u64map_put(&s->disks, name, is_new);
    if (disk && *is_new)
        *disk = (uint64_t)(uintptr_t)mem_zalloc(sizeof(struct disk));
    if (disk && *disk)
        return (struct disk *)(uintptr_t)*disk;
    m->im->failed = true;
    return NULL;
}

void disk_stats_close(struct system_machine *s)
{
    size_t it = 0;
    for (struct u64map_slot *slot; (slot = u64map_next(&s->disks, &it));)
        mem_free((void *)(uintptr_t)slot->value);
    u64map_free(&s->disks);
}

static void push(struct packet *p, strid device, const char *counter, const char *unit, double value)
{
    struct strpool *strings = &p->m->st->strings;
    struct track_dim dims[] = {{"device_name", DIM_STR, device},
                               {"counter_name", DIM_STR, import_str(p->m->im, counter)}};
    strid name = strpool_printf(strings, "diskstat.[%s].%s", strpool_cstr(strings, device), counter);
    counter_push(p->m->im, p->ts, system_counter_track(p->m, "diskstat", name, unit, dims, 2), value);
}

void disk_stats_parse(struct packet *p, struct slice bytes)
{
    static const struct {
        const char *amount, *throughput;
        uint8_t sectors, time;
    } kinds[] = {
        {"read_amount", "read_throughput", SYS_STATS_DISK_STAT_READ_SECTORS, SYS_STATS_DISK_STAT_READ_TIME_MS},
        {"write_amount", "write_throughput", SYS_STATS_DISK_STAT_WRITE_SECTORS, SYS_STATS_DISK_STAT_WRITE_TIME_MS},
        {"discard_amount", "discard_throughput", SYS_STATS_DISK_STAT_DISCARD_SECTORS,
         SYS_STATS_DISK_STAT_DISCARD_TIME_MS},
    };
    struct disk now = {0}, change;
    strid device = import_str(p->m->im, "");
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == SYS_STATS_DISK_STAT_DEVICE_NAME)
            device = import_slice(p->m->im, pb_bytes(&f));
        else if (f.id <= SYS_STATS_DISK_STAT_FLUSH_TIME_MS)
            now.counts[f.id] = pb_i64(&f);
    }
    bool is_new;
    struct disk *before = disk_of(p->m, device, &is_new);
    if (!before)
        return;
    for (size_t i = 0; i < sizeof now.counts / sizeof *now.counts; i++)
        change.counts[i] = (int64_t)((uint64_t)now.counts[i] - (uint64_t)before->counts[i]);
    *before = now;
    if (is_new) /* what happened before the recording began belongs to no time of it */
        return;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        double mb = (double)change.counts[kinds[i].sectors] / SECTORS_PER_MB;
        int64_t ms = change.counts[kinds[i].time];
        push(p, device, kinds[i].amount, "MB", mb);
        push(p, device, kinds[i].throughput, "MB/s", ms ? mb * 1000.0 / (double)ms : 0);
    }
    push(p, device, "flush_amount", "count", (double)change.counts[SYS_STATS_DISK_STAT_FLUSH_COUNT]);
    push(p, device, "flush_time", "ms", (double)change.counts[SYS_STATS_DISK_STAT_FLUSH_TIME_MS]);
}
