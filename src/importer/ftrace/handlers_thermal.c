/* Events of temperature, cooling and battery protection. */
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

static void named_counter(const struct ftrace_event *e, int64_t ts, const char *type, const char *dimension,
                          struct slice what, const char *prefix, const char *suffix, double value, argset args)
{
    strid name = ftrace_name(e, "%s%.*s %s", prefix, (int)what.len, (const char *)what.p, suffix);
    uint32_t track = FTRACE_TRACK(e, TRACK_COUNTER, type, name, DIM_S(dimension, import_slice(e->m->im, what)));
    ftrace_counter_args(e, ts, track, value, args);
}

static void thermal_temperature(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    named_counter(e, e->ts, "thermal_temperature", "thermal_zone",
                  field_bytes(&f, FTRACE_THERMAL_TEMPERATURE_THERMAL_ZONE), "", "Temperature",
                  field_i32(&f, FTRACE_THERMAL_TEMPERATURE_TEMP), ARGSET_NONE);
}

static void cdev_update(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    named_counter(e, e->ts, "cooling_device_counter", "linux_device", field_bytes(&f, FTRACE_CDEV_UPDATE_TYPE), "",
                  "Cooling Device", (double)field_u64(&f, FTRACE_CDEV_UPDATE_TARGET), ARGSET_NONE);
}

/* Zones of the Exynos power management firmware, by number. */
static void acpm(const struct ftrace_event *e, int64_t ts, uint32_t zone, uint32_t temperature, uint32_t cooling)
{
    static const char *const zones[] = {"BIG", "MID", "LITTLE", "GPU", "ISP", "TPU", "AUR"};
    if (zone >= sizeof zones / sizeof *zones) {
        stats_add(&e->m->st->stats, e->m->id, STAT_ftrace_thermal_exynos_acpm_unknown_tz_id, 1);
        return;
    }
    struct slice name = slice_str(zones[zone]);
    struct small_args args = {0};
    small_args_add(e, &args, "thermal_zone_id", ARG_INT, zone);
    argset set = small_args_set(e, &args);
    named_counter(e, ts, "acpm_thermal_temperature", "thermal_zone", name, "", "Temperature", temperature, set);
    named_counter(e, ts, "acpm_cooling_device_counter", "thermal_zone", name, "Tj-", "Cooling Device", cooling, set);
}

static void thermal_exynos_acpm_bulk(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    acpm(e, field_i64(&f, FTRACE_THERMAL_EXYNOS_ACPM_BULK_TIMESTAMP),
         field_u32(&f, FTRACE_THERMAL_EXYNOS_ACPM_BULK_TZ_ID),
         field_u32(&f, FTRACE_THERMAL_EXYNOS_ACPM_BULK_CURRENT_TEMP),
         field_u32(&f, FTRACE_THERMAL_EXYNOS_ACPM_BULK_CDEV_STATE));
}

static void thermal_exynos_acpm_high_overhead(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    acpm(e, e->ts, field_u32(&f, FTRACE_THERMAL_EXYNOS_ACPM_HIGH_OVERHEAD_TZ_ID),
         field_u32(&f, FTRACE_THERMAL_EXYNOS_ACPM_HIGH_OVERHEAD_CURRENT_TEMP),
         field_u32(&f, FTRACE_THERMAL_EXYNOS_ACPM_HIGH_OVERHEAD_CDEV_STATE));
}

/* Counters of the battery current limiter; without throttling the limits read 0. */
static void bcl_irq_trigger(const struct ftrace_event *e)
{
    static const struct {
        uint8_t field;
        bool while_throttling;
        int8_t otherwise;
        const char *name;
    } counters[] = {
        {FTRACE_BCL_IRQ_TRIGGER_ID, true, -1, "bcl_irq_id"},
        {FTRACE_BCL_IRQ_TRIGGER_THROTTLE, false, 0, "bcl_irq_throttle"},
        {FTRACE_BCL_IRQ_TRIGGER_CPU0_LIMIT, true, 0, "bcl_irq_cpu0"},
        {FTRACE_BCL_IRQ_TRIGGER_CPU1_LIMIT, true, 0, "bcl_irq_cpu1"},
        {FTRACE_BCL_IRQ_TRIGGER_CPU2_LIMIT, true, 0, "bcl_irq_cpu2"},
        {FTRACE_BCL_IRQ_TRIGGER_TPU_LIMIT, true, 0, "bcl_irq_tpu"},
        {FTRACE_BCL_IRQ_TRIGGER_GPU_LIMIT, true, 0, "bcl_irq_gpu"},
        {FTRACE_BCL_IRQ_TRIGGER_VOLTAGE, false, 0, "bcl_irq_voltage"},
        {FTRACE_BCL_IRQ_TRIGGER_CAPACITY, false, 0, "bcl_irq_capacity"},
    };
    struct fields f;
    fields_read(e->payload, &f);
    bool throttling = field_i32(&f, FTRACE_BCL_IRQ_TRIGGER_THROTTLE) != 0;
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        strid name = ftrace_text(e, counters[i].name);
        bool shown = throttling || !counters[i].while_throttling;
        ftrace_counter(e, FTRACE_TRACK(e, TRACK_COUNTER, "bcl_irq", name, DIM_S("bcl_key", name)),
                       shown ? field_i32(&f, counters[i].field) : counters[i].otherwise);
    }
}

const struct ftrace_handler ftrace_handlers_thermal[] = {
    {FTRACE_EVENT_THERMAL_TEMPERATURE, "thermal_temperature", thermal_temperature},
    {FTRACE_EVENT_CDEV_UPDATE, "cdev_update", cdev_update},
    {FTRACE_EVENT_THERMAL_EXYNOS_ACPM_BULK, "thermal_exynos_acpm_bulk", thermal_exynos_acpm_bulk},
    {FTRACE_EVENT_THERMAL_EXYNOS_ACPM_HIGH_OVERHEAD, "thermal_exynos_acpm_high_overhead",
     thermal_exynos_acpm_high_overhead},
    {FTRACE_EVENT_BCL_IRQ_TRIGGER, "bcl_irq_trigger", bcl_irq_trigger},
    {0, NULL, NULL},
};
