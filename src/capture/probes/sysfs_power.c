/* The data source linux.sysfs_power: charge, current and voltage of the machine's batteries.
 *
 * Batteries are the directories of /sys/class/power_supply whose type is "Battery"; each tick writes one packet for
 * each. The kernel has the numbers in millionths: uAh, uWh, uA, uV. */
#include "base/alloc.h"
#include "base/vec.h"
#include "capture/probes/common/data_source.h"
#include "capture/probes/common/metatrace.h"
#include "capture/probes/proc_text.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POLL_DEFAULT_MS = 1000, POLL_MIN_MS = 250, ANDROID_FIELDS = 3 /* of the config, from this one on */ };

struct battery {
    char name[NAME_MAX + 1];
};

struct sysfs_power {
    const struct probes_host *host;
    struct packet_sink sink;
    uint32_t poll_ms;
    uint32_t counters; /* bits of enum AndroidPowerConfig.BatteryCounters */
    bool android;      /* something that only Android has was asked for */
    VEC(struct battery)
    batteries;
    uv_timer_t *timer;
    struct pb_writer w;
};

/* Files of a battery: counter of the config that wants it, field of BatteryCounters. */
enum { COUNTER_CHARGE = 1, COUNTER_CAPACITY, COUNTER_CURRENT, COUNTER_CURRENT_AVG, COUNTER_VOLTAGE };
enum { FIELD_PERCENT = 2, FIELD_NAME = 5 };

static const struct {
    const char *file;
    uint8_t counter, field;
} rows[] = {
    {"charge_now", COUNTER_CHARGE, 1},   {"capacity", COUNTER_CAPACITY, FIELD_PERCENT},
    {"current_now", COUNTER_CURRENT, 3}, {"current_avg", COUNTER_CURRENT_AVG, 4},
    {"energy_now", COUNTER_CHARGE, 6}, /* batteries tell their charge one way or the other */
    {"voltage_now", COUNTER_VOLTAGE, 7},
};

/* Reads a file of a battery into `text`; false when it is not there. */
static bool read_file(const struct sysfs_power *s, const char *battery, const char *file, char *text, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/sys/class/power_supply/%s/%s", s->host->sysroot ? s->host->sysroot : "", battery,
             file);
    return text_read_once(path, text, size) > 0;
}

static void find_batteries(struct sysfs_power *s)
{
    char path[PATH_MAX], type[32];
    snprintf(path, sizeof path, "%s/sys/class/power_supply", s->host->sysroot ? s->host->sysroot : "");
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (struct dirent *d; (d = readdir(dir));) {
        struct battery b;
        if (d->d_name[0] == '.' || !read_file(s, d->d_name, "type", type, sizeof type) ||
            strcmp(text_trim(type), "Battery") != 0)
            continue;
        snprintf(b.name, sizeof b.name, "%s", d->d_name);
        (void)!vec_push(&s->batteries, b);
    }
    closedir(dir);
}

static void put_battery(struct sysfs_power *s, const struct battery *b)
{
    char text[32], *end;
    pb_writer_clear(&s->w);
    s->w.failed = false;
    pb_put_varint(&s->w, TRACE_PACKET_TIMESTAMP, probes_boot_ns());
    size_t message = pb_begin(&s->w, TRACE_PACKET_BATTERY), empty = s->w.n;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!(s->counters >> rows[i].counter & 1) || !read_file(s, b->name, rows[i].file, text, sizeof text))
            continue;
        int64_t value = strtoll(text, &end, 10);
        if (end == text)
            continue;
        if (rows[i].field == FIELD_PERCENT) { /* the one that is a float */
            float percent = (float)value;
            uint32_t bits;
            memcpy(&bits, &percent, sizeof bits);
            pb_put_fixed32(&s->w, FIELD_PERCENT, bits);
        } else {
            pb_put_i64(&s->w, rows[i].field, value);
        }
    }
    bool any = s->w.n > empty;
    if (s->batteries.n > 1)
        pb_put_str(&s->w, FIELD_NAME, b->name);
    pb_end(&s->w, message);
    if (any && !s->w.failed)
        packet_sink_write(&s->sink, pb_written(&s->w));
}

static void on_tick(uv_timer_t *timer)
{
    struct sysfs_power *s = timer->data;
    struct metatrace_span span = metatrace_begin(s->host->metatrace);
    for (size_t i = 0; i < s->batteries.n; i++)
        put_battery(s, &s->batteries.p[i]);
    metatrace_end(s->host->metatrace, span, "sysfs_power");
    probes_arm_tick(timer, on_tick, s->poll_ms);
}

/* ---- life ---- */

static int setup(const struct probes_host *host, const struct data_source_config *config,
                 const struct packet_sink *sink, void **state, struct error *err)
{
    struct pb_cursor c = pb_cursor(config->specific);
    struct pb_field f;
    struct sysfs_power *s = mem_zalloc(sizeof *s);
    if (!s)
        return error_set(err, -MRD_ENOMEM, "out of memory for sysfs_power");
    s->host = host;
    s->sink = *sink;
    while (pb_next(&c, &f)) {
        if (f.id == ANDROID_POWER_CONFIG_BATTERY_POLL_MS)
            s->poll_ms = pb_u32(&f);
        else if (f.id == ANDROID_POWER_CONFIG_BATTERY_COUNTERS && pb_u32(&f) <= COUNTER_VOLTAGE)
            s->counters |= 1u << pb_u32(&f);
        else if (f.id >= ANDROID_FIELDS)
            s->android |= pb_bool(&f);
    }
    if (!s->counters)
        s->counters = UINT32_MAX;
    if (!s->poll_ms)
        s->poll_ms = POLL_DEFAULT_MS;
    if (s->poll_ms < POLL_MIN_MS)
        s->poll_ms = POLL_MIN_MS;
    *state = s;
    return 0;
}

static int start(void *state, struct error *err)
{
    struct sysfs_power *s = state;
    if (s->android)
        s->host->log(s->host->ctx,
                     "linux.sysfs_power: power rails, energy estimates and residencies come from Android's "
                     "power service: left out");
    find_batteries(s);
    if (!s->batteries.n)
        return error_set(err, -MRD_ENOTFOUND, "this machine has no battery in /sys/class/power_supply");
    s->timer = probes_timer_new(s->host->loop, s);
    if (!s->timer)
        return error_set(err, -MRD_ENOMEM, "out of memory for sysfs_power");
    on_tick(s->timer);
    return 0;
}

static void stop(void *state)
{
    struct sysfs_power *s = state;
    if (s->timer)
        uv_timer_stop(s->timer);
}

static void free_state(void *state)
{
    struct sysfs_power *s = state;
    probes_timer_free(s->timer);
    vec_free(&s->batteries);
    pb_writer_free(&s->w);
    mem_free(s);
}

const struct data_source_type sysfs_power_data_source = {
    .name = "linux.sysfs_power",
    .config_field = 106,
    .setup = setup,
    .start = start,
    .stop = stop,
    .free = free_state,
};
