/* Makes the attributes of events out of the config. */
#include "capture/perf/perf_attr.h"

#include "capture/probes/ftrace/tracefs.h"
#include "capture/probes/proc_text.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__x86_64__)
/* AX … R15 without DS, ES, FS and GS: enum perf_event_x86_regs. */
const struct perf_arch_regs perf_arch_regs = {.mask = 0xff0fff, .fp = 6, .sp = 7, .pc = 8};
#elif defined(__aarch64__)
/* x0 … x30, sp, pc. */
const struct perf_arch_regs perf_arch_regs = {.mask = (UINT64_C(1) << 33) - 1, .fp = 29, .sp = 31, .pc = 32};
#else
const struct perf_arch_regs perf_arch_regs = {0};
#endif

/* PerfEvents.Counter, in its order from 1. */
static const struct {
    uint32_t type;
    uint64_t config;
} counters[] = {
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY},
};
_Static_assert(sizeof counters / sizeof *counters == PERF_COUNTERS, "one row for each counter");

static int find_tracepoint(struct perf_event_spec *e, struct error *err)
{
    struct tracefs fs;
    char name[512];
    uint64_t id = 0;
    int rc = tracefs_open(&fs, NULL, NULL, err);
    if (rc)
        return rc;
    snprintf(name, sizeof name, "events/%.*s/%.*s/id", (int)e->group.len, (const char *)e->group.p, (int)e->point.len,
             (const char *)e->point.p);
    if (tracefs_read_u64(&fs, name, &id, NULL) || !id)
        return error_set(
            err, -MRD_ENOTFOUND, "this kernel has no tracepoint %.*s/%.*s (or %s/%s cannot be read: that needs root)",
            (int)e->group.len, (const char *)e->group.p, (int)e->point.len, (const char *)e->point.p, fs.root, name);
    e->config = id;
    return 0;
}

static int find_pmu(struct perf_event_spec *e, struct error *err)
{
    char path[300], text[32], *end;
    snprintf(path, sizeof path, "/sys/bus/event_source/devices/%.*s/type", (int)e->pmu_name.len,
             (const char *)e->pmu_name.p);
    if (text_read_once(path, text, sizeof text) <= 0)
        return error_set(err, -MRD_ENOTFOUND, "this machine has no PMU '%.*s' in /sys/bus/event_source/devices",
                         (int)e->pmu_name.len, (const char *)e->pmu_name.p);
    e->type = (uint32_t)strtoul(text, &end, 10);
    return 0;
}

static int set_event(struct perf_event_attr *a, struct perf_event_spec *e, struct error *err)
{
    int rc = 0;
    if (e->kind == PERF_EVENT_COUNTER) {
        a->type = counters[e->counter - 1].type;
        a->config = counters[e->counter - 1].config;
    } else if (e->kind == PERF_EVENT_TRACEPOINT) {
        rc = find_tracepoint(e, err);
        a->type = PERF_TYPE_TRACEPOINT;
        a->config = e->config;
    } else {
        rc = e->pmu_name.len ? find_pmu(e, err) : 0;
        a->type = e->type;
        a->config = e->config;
        a->config1 = e->config1;
        a->config2 = e->config2;
    }
    return rc;
}

/* What a sample says beside who and when. Maps, forks and names are recorded as well, so that the stacks of processes
 * that have ended by the time the ring is read still have their files, and their threads a name. */
static void set_stacks(struct perf_event_attr *a, const struct perf_config *c)
{
    bool chain = c->user_frames == PERF_USER_KERNEL_FRAME_POINTER;
    if (perf_config_copies_stacks(c) && perf_arch_regs.mask) {
        a->sample_type |= PERF_SAMPLE_STACK_USER | PERF_SAMPLE_REGS_USER;
        a->sample_stack_user = PERF_STACK_BYTES;
        a->sample_regs_user = perf_arch_regs.mask;
    }
    if (chain || c->kernel_frames) {
        a->sample_type |= PERF_SAMPLE_CALLCHAIN;
        a->exclude_callchain_kernel = !c->kernel_frames;
        a->exclude_callchain_user = !chain;
    }
    if (c->user_frames != PERF_USER_SKIP)
        a->mmap = a->mmap2 = a->task = a->comm = 1;
}

int perf_attr_make(struct perf_event_attr *a, const struct perf_config *c, struct perf_event_spec *e, bool leader,
                   struct error *err)
{
    *a = (struct perf_event_attr){.size = sizeof *a, .disabled = leader};
    a->sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_READ;
    a->use_clockid = 1;
    a->clockid = c->clock;
    if (e->modifiers) {
        a->exclude_user = !(e->modifiers & PERF_COUNTS_USER);
        a->exclude_kernel = !(e->modifiers & PERF_COUNTS_KERNEL);
        a->exclude_hv = !(e->modifiers & PERF_COUNTS_HYPERVISOR);
    }
    if (leader && (c->n_followers || c->poll_ms))
        a->read_format = PERF_FORMAT_GROUP;
    if (leader && !c->poll_ms) {
        a->freq = c->frequency != 0;
        if (a->freq)
            a->sample_freq = c->frequency;
        else
            a->sample_period = c->period;
        a->read_format |= PERF_FORMAT_LOST;
        if (c->stacks)
            set_stacks(a, c);
    }
    return set_event(a, e, err);
}

struct perf_layout perf_attr_layout(const struct perf_event_attr *a)
{
    return (struct perf_layout){.group = a->read_format & PERF_FORMAT_GROUP,
                                .lost = a->read_format & PERF_FORMAT_LOST,
                                .callchain = a->sample_type & PERF_SAMPLE_CALLCHAIN,
                                .stack = a->sample_type & PERF_SAMPLE_STACK_USER,
                                .regs_mask = a->sample_regs_user};
}
