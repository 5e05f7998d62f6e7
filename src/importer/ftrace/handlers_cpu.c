/* Events of cpus: frequency, idle states, limits, load, hotplug; and clocks. */
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

static void cpu_counter(const struct ftrace_event *e, const char *type, uint32_t cpu, strid name, double value)
{
    uint32_t track = track_intern_int(e->m->im->tracks, e->m->id, type, TRACK_COUNTER, "cpu", cpu, name);
    ftrace_counter(e, track, value);
}

static void cpu_frequency(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    cpu_counter(e, "cpu_frequency", field_u32(&f, FTRACE_CPU_FREQUENCY_CPU_ID), ftrace_text(e, "cpufreq"),
                field_u32(&f, FTRACE_CPU_FREQUENCY_STATE));
}

/* The number 4294967295 says that the cpu has left its idle state. */
static void cpu_idle(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    cpu_counter(e, "cpu_idle", field_u32(&f, FTRACE_CPU_IDLE_CPU_ID), ftrace_text(e, "cpuidle"),
                field_u32(&f, FTRACE_CPU_IDLE_STATE));
}

static void dcvsh_freq(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    cpu_counter(e, "cpu_frequency_throttle", field_u32(&f, FTRACE_DCVSH_FREQ_CPU), ftrace_text(e, "cpufreq_throttle"),
                (double)field_u64(&f, FTRACE_DCVSH_FREQ_FREQ));
}

static void cpu_frequency_limits(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t cpu = field_u32(&f, FTRACE_CPU_FREQUENCY_LIMITS_CPU_ID);
    cpu_counter(e, "cpu_max_frequency_limit", cpu, ftrace_name(e, "Cpu %u Max Freq Limit", cpu),
                field_u32(&f, FTRACE_CPU_FREQUENCY_LIMITS_MAX_FREQ));
    cpu_counter(e, "cpu_min_frequency_limit", cpu, ftrace_name(e, "Cpu %u Min Freq Limit", cpu),
                field_u32(&f, FTRACE_CPU_FREQUENCY_LIMITS_MIN_FREQ));
}

static void sched_cpu_util_cfs(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t cpu = field_u32(&f, FTRACE_SCHED_CPU_UTIL_CFS_CPU);
    cpu_counter(e, "cpu_utilization", cpu, ftrace_name(e, "Cpu %u Util", cpu),
                (double)field_u64(&f, FTRACE_SCHED_CPU_UTIL_CFS_CPU_UTIL));
    cpu_counter(e, "cpu_capacity", cpu, ftrace_name(e, "Cpu %u Cap", cpu),
                (double)field_u64(&f, FTRACE_SCHED_CPU_UTIL_CFS_CAPACITY));
    cpu_counter(e, "cpu_nr_running", cpu, ftrace_name(e, "Cpu %u Nr Running", cpu),
                field_u32(&f, FTRACE_SCHED_CPU_UTIL_CFS_NR_RUNNING));
}

/* On the track of the cpu that comes or goes; action_cpu is the one that does the work. */
static uint32_t hotplug_track(const struct ftrace_event *e, uint32_t cpu)
{
    return track_intern_int(e->m->im->tracks, e->m->id, "cpu_hotplug", TRACK_SLICE, "cpu", cpu,
                            ftrace_name(e, "CPU Hotplug %u", cpu));
}

static void cpuhp_enter(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    int32_t idx = field_i32(&f, FTRACE_CPUHP_MULTI_ENTER_IDX);
    small_args_add(e, &args, "action_cpu", ARG_UINT, e->cpu);
    small_args_add(e, &args, "cpuhp_idx", ARG_INT, idx);
    ftrace_begin(e, hotplug_track(e, field_u32(&f, FTRACE_CPUHP_MULTI_ENTER_CPU)), ftrace_text(e, "cpu"),
                 ftrace_name(e, "cpuhp(%d)", idx), small_args_set(e, &args));
}

static void cpuhp_exit(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    ftrace_end(e, hotplug_track(e, field_u32(&f, FTRACE_CPUHP_EXIT_CPU)), 0, 0, NULL);
}

static void clock_counter(const struct ftrace_event *e, const char *type, const char *suffix)
{
    struct fields f;
    fields_read(e->payload, &f);
    struct slice clock = field_bytes(&f, FTRACE_CLOCK_SET_RATE_NAME);
    strid name = ftrace_name(e, "%.*s %s", (int)clock.len, (const char *)clock.p, suffix);
    ftrace_counter(e, FTRACE_TRACK(e, TRACK_COUNTER, type, name, DIM_S("linux_device", import_slice(e->m->im, clock))),
                   (double)field_u64(&f, FTRACE_CLOCK_SET_RATE_STATE));
}

static void clock_set_rate(const struct ftrace_event *e)
{
    clock_counter(e, "clock_frequency", "Frequency");
}

static void clock_state(const struct ftrace_event *e)
{
    clock_counter(e, "clock_state", "State");
}

const struct ftrace_handler ftrace_handlers_cpu[] = {
    {FTRACE_EVENT_CPU_FREQUENCY, "cpu_frequency", cpu_frequency},
    {FTRACE_EVENT_CPU_FREQUENCY_LIMITS, "cpu_frequency_limits", cpu_frequency_limits},
    {FTRACE_EVENT_CPU_IDLE, "cpu_idle", cpu_idle},
    {FTRACE_EVENT_CLOCK_ENABLE, "clock_enable", clock_state},
    {FTRACE_EVENT_CLOCK_DISABLE, "clock_disable", clock_state},
    {FTRACE_EVENT_CLOCK_SET_RATE, "clock_set_rate", clock_set_rate},
    {FTRACE_EVENT_CPUHP_EXIT, "cpuhp_exit", cpuhp_exit},
    {FTRACE_EVENT_CPUHP_MULTI_ENTER, "cpuhp_multi_enter", cpuhp_enter},
    {FTRACE_EVENT_CPUHP_ENTER, "cpuhp_enter", cpuhp_enter},
    {FTRACE_EVENT_SCHED_CPU_UTIL_CFS, "sched_cpu_util_cfs", sched_cpu_util_cfs},
    {FTRACE_EVENT_DCVSH_FREQ, "dcvsh_freq", dcvsh_freq},
    {0, NULL, NULL},
};
