/* Events of power management: suspend, wake locks, devices. */
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

#include <stdio.h>

enum suspend_state { SUSPEND_NONE, SUSPEND_ENTERED, SUSPEND_FREEZING };

struct power {
    struct u64map wakelocks;  /* name (strid) -> how often it is held */
    struct u64map rpm_tracks; /* tracks with an open slice */
    enum suspend_state suspend;
    int64_t suspend_cookie; /* of the open suspend_enter slice */
};

static void release(void *state)
{
    struct power *p = state;
    u64map_free(&p->wakelocks);
    u64map_free(&p->rpm_tracks);
}

static struct power *power_state(const struct ftrace_event *e)
{
    return ftrace_family_state(e->f, FAMILY_POWER, sizeof(struct power), release);
}

/* --- suspend and resume ------------------------------------------------------------------------------------------ */

static uint32_t suspend_set(const struct ftrace_event *e)
{
    return ftrace_track_set(e, "suspend_resume", ftrace_text(e, "Suspend/Resume Latency"), NULL, 0);
}

static void suspend_end(const struct ftrace_event *e, int64_t cookie)
{
    ftrace_end(e, track_set_end(e->m->im->tracks, suspend_set(e), cookie), 0, 0, NULL);
}

/* device, driver, phase: 0 for steps of the kernel itself. */
static void suspend_begin(const struct ftrace_event *e, strid name, const char *event_type, strid device, strid driver,
                          strid phase)
{
    struct small_args args = {0};
    small_args_add(e, &args, "utid", ARG_UINT, event_utid(e));
    small_args_add(e, &args, "event_type", ARG_STRING, ftrace_text(e, event_type));
    small_args_add(e, &args, "cpu", ARG_UINT, e->cpu);
    small_args_add(e, &args, "device_name", ARG_STRING, device);
    small_args_add(e, &args, "driver_name", ARG_STRING, driver);
    small_args_add(e, &args, "callback_phase", ARG_STRING, phase);
    ftrace_begin(e, track_set_begin(e->m->im->tracks, suspend_set(e), name), 0, name, small_args_set(e, &args));
}

/* When preparing to suspend fails, the kernel never tells the end of suspend_enter. It shows by thaw_processes ending
 * within freeze_processes within suspend_enter; then the open slice ends there. */
static void suspend_resume(const struct ftrace_event *e)
{
    struct power *p = power_state(e);
    struct fields f;
    fields_read(e->payload, &f);
    struct slice action = field_bytes(&f, FTRACE_SUSPEND_RESUME_ACTION);
    bool enter = slice_eq_str(action, "suspend_enter");
    if (!p)
        return;
    /* The value of timekeeping_freeze is the cpu, which may change until the resume. */
    int32_t value = slice_eq_str(action, "timekeeping_freeze") ? 0 : field_i32(&f, FTRACE_SUSPEND_RESUME_VAL);
    strid name = ftrace_name(e, "%.*s(%d)", (int)action.len, (const char *)action.p, value);
    if (field_u32(&f, FTRACE_SUSPEND_RESUME_START)) {
        if (enter) {
            p->suspend = SUSPEND_ENTERED;
            p->suspend_cookie = name;
        } else if (p->suspend == SUSPEND_ENTERED && slice_eq_str(action, "freeze_processes")) {
            p->suspend = SUSPEND_FREEZING;
        }
        suspend_begin(e, name, "Main Kernel Suspend Event", 0, 0, 0);
        return;
    }
    suspend_end(e, name);
    if (enter) {
        p->suspend = SUSPEND_NONE;
    } else if (p->suspend == SUSPEND_FREEZING && slice_eq_str(action, "thaw_processes")) {
        suspend_end(e, p->suspend_cookie);
        p->suspend = SUSPEND_NONE;
    }
}

static void suspend_resume_minimal(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t track =
        ftrace_track(e, TRACK_SLICE, "suspend_resume_minimal", ftrace_text(e, "Suspend/Resume Minimal"), NULL, 0);
    if (field_u32(&f, FTRACE_SUSPEND_RESUME_MINIMAL_START))
        ftrace_begin(e, track, 0, ftrace_text(e, "Suspended"), ARGSET_NONE);
    else
        ftrace_end(e, track, 0, 0, NULL);
}

/* "suspend", "resume:noirq" …: the kernel's PM_EVENT bits, and the phase that pm_ops begins with. */
static strid callback_phase(const struct ftrace_event *e, int32_t event, struct slice pm_ops)
{
    static const struct {
        int32_t bit;
        const char *name;
    } events[] = {{0x1, "freeze"},  {0x2, "suspend"}, {0x4, "hibernate"}, {0x8, "quiesce"},
                  {0x10, "resume"}, {0x20, "thaw"},   {0x40, "restore"},  {0x80, "recover"}};
    static const char *const phases[] = {"early", "late", "noirq"};
    const char *name = "(unknown PM event)";
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (events[i].bit == event)
            name = events[i].name;
    if (!pm_ops.len && event == 0x2) /* the kernel names no phase at the first and last step */
        return ftrace_text(e, "suspend:prepare");
    if (!pm_ops.len && event == 0x10)
        return ftrace_text(e, "resume:complete");
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
        if (slice_starts(pm_ops, phases[i]))
            return ftrace_name(e, "%s:%s", name, phases[i]);
    return ftrace_text(e, name);
}

static strid device_slice_name(const struct ftrace_event *e, const struct fields *f)
{
    struct slice device = field_bytes(f, FTRACE_DEVICE_PM_CALLBACK_START_DEVICE),
                 driver = field_bytes(f, FTRACE_DEVICE_PM_CALLBACK_START_DRIVER);
    return ftrace_name(e, "%.*s %.*s", (int)device.len, (const char *)device.p, (int)driver.len,
                       (const char *)driver.p);
}

static void device_pm_callback_start(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    strid phase = callback_phase(e, field_i32(&f, FTRACE_DEVICE_PM_CALLBACK_START_EVENT),
                                 field_bytes(&f, FTRACE_DEVICE_PM_CALLBACK_START_PM_OPS));
    suspend_begin(e, device_slice_name(e, &f), "Device PM Suspend Event",
                  field_str(e, &f, FTRACE_DEVICE_PM_CALLBACK_START_DEVICE),
                  field_str(e, &f, FTRACE_DEVICE_PM_CALLBACK_START_DRIVER), phase);
}

static void device_pm_callback_end(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    suspend_end(e, device_slice_name(e, &f));
}

/* --- wake locks: one slice while a lock is held at all ------------------------------------------------------------ */

/* Names end after 31 bytes, those of longer locks without a bracket. */
static strid wakelock_name(const struct ftrace_event *e, struct slice lock)
{
    enum { MAX_NAME = 31 };
    char name[MAX_NAME + 1];
    snprintf(name, sizeof name, "Wakelock(%.*s)", (int)lock.len, (const char *)lock.p);
    return ftrace_text(e, name);
}

static uint32_t wakelock_track(const struct ftrace_event *e, struct slice lock)
{
    return FTRACE_TRACK(e, TRACK_SLICE, "wakesource_wakelock", wakelock_name(e, lock),
                        DIM_S("wakelock_event", import_slice(e->m->im, lock)));
}

static void wakeup_source_activate(const struct ftrace_event *e)
{
    struct power *p = power_state(e);
    struct fields f;
    fields_read(e->payload, &f);
    struct slice lock = field_bytes(&f, FTRACE_WAKEUP_SOURCE_ACTIVATE_NAME);
    uint64_t *held = p ? u64map_put(&p->wakelocks, import_slice(e->m->im, lock), NULL) : NULL;
    if (held && (*held)++ == 0)
        ftrace_begin(e, wakelock_track(e, lock), 0, wakelock_name(e, lock), ARGSET_NONE);
}

static void wakeup_source_deactivate(const struct ftrace_event *e)
{
    struct power *p = power_state(e);
    struct fields f;
    fields_read(e->payload, &f);
    struct slice lock = field_bytes(&f, FTRACE_WAKEUP_SOURCE_DEACTIVATE_NAME);
    uint64_t *held = p ? u64map_get(&p->wakelocks, import_slice(e->m->im, lock)) : NULL;
    if (held && *held && --*held == 0)
        ftrace_end(e, wakelock_track(e, lock), 0, 0, NULL);
}

/* --- devices ----------------------------------------------------------------------------------------------------- */

/* Slices of a device's runtime state; being suspended is not a slice. The track is declared as one of counters. */
static void rpm_status(const struct ftrace_event *e)
{
    enum { RPM_SUSPENDED = 2 };
    static const char *const names[] = {"Invalid State", "Active", "Resuming", NULL, "Suspending"}; /* from -1 on */
    struct power *p = power_state(e);
    struct fields f;
    fields_read(e->payload, &f);
    int32_t status = field_i32(&f, FTRACE_RPM_STATUS_STATUS);
    uint32_t track =
        FTRACE_TRACK(e, TRACK_COUNTER, "linux_rpm", 0, DIM_S("linux_device", field_str(e, &f, FTRACE_RPM_STATUS_NAME)));
    if (!p)
        return;
    if (u64map_del(&p->rpm_tracks, track))
        ftrace_end(e, track, 0, 0, NULL);
    if (status == RPM_SUSPENDED)
        return;
    const char *name = status >= -1 && status <= 3 ? names[status + 1] : names[0];
    ftrace_begin(e, track, 0, ftrace_text(e, name), ARGSET_NONE);
    if (!u64map_set(&p->rpm_tracks, track, 1))
        e->m->im->failed = true;
}

/* Names often have an address in front of "devfreq_". */
static void devfreq_frequency(const struct ftrace_event *e)
{
    static const char mark[] = "devfreq_";
    struct fields f;
    fields_read(e->payload, &f);
    struct slice device = field_bytes(&f, FTRACE_DEVFREQ_FREQUENCY_DEV_NAME);
    const uint8_t *at = memmem(device.p, device.len, mark, sizeof mark - 1);
    strid name = at ? ftrace_name(e, "%.*s", (int)(device.p + device.len - at), (const char *)at)
                    : ftrace_name(e, "devfreq_%.*s", (int)device.len, (const char *)device.p);
    ftrace_counter(e,
                   FTRACE_TRACK(e, TRACK_COUNTER, "linux_device_frequency", name,
                                DIM_S("linux_device", import_slice(e->m->im, device))),
                   (double)field_u64(&f, FTRACE_DEVFREQ_FREQUENCY_FREQ));
}

const struct ftrace_handler ftrace_handlers_power[] = {
    {FTRACE_EVENT_SUSPEND_RESUME, "suspend_resume", suspend_resume},
    {FTRACE_EVENT_WAKEUP_SOURCE_ACTIVATE, "wakeup_source_activate", wakeup_source_activate},
    {FTRACE_EVENT_WAKEUP_SOURCE_DEACTIVATE, "wakeup_source_deactivate", wakeup_source_deactivate},
    {FTRACE_EVENT_SUSPEND_RESUME_MINIMAL, "suspend_resume_minimal", suspend_resume_minimal},
    {FTRACE_EVENT_RPM_STATUS, "rpm_status", rpm_status},
    {FTRACE_EVENT_DEVICE_PM_CALLBACK_START, "device_pm_callback_start", device_pm_callback_start},
    {FTRACE_EVENT_DEVICE_PM_CALLBACK_END, "device_pm_callback_end", device_pm_callback_end},
    {FTRACE_EVENT_DEVFREQ_FREQUENCY, "devfreq_frequency", devfreq_frequency},
    {0, NULL, NULL},
};
