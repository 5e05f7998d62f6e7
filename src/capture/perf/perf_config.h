/* What PerfEventConfig asks for, checked and with its defaults filled in. */
#ifndef MERIDIAN_CAPTURE_PERF_PERF_CONFIG_H
#define MERIDIAN_CAPTURE_PERF_PERF_CONFIG_H

#include "base/error.h"
#include "base/slice.h"
#include "base/vec.h"

#include <stdint.h>
#include <time.h>

enum { PERF_MAX_FOLLOWERS = 32 };

/* PerfEventConfig.UnwindMode, without UNKNOWN. (Names of the kernel's header and of wire/fields.h clash: who includes
 * one cannot include the other.) */
enum perf_user_frames {
    PERF_USER_SKIP = 1,
    PERF_USER_DWARF,
    PERF_USER_FRAME_POINTER,
    PERF_USER_KERNEL_FRAME_POINTER,
};

/* Bits of modifiers: 1 << PerfEvents.EventModifier. */
enum { PERF_COUNTS_USER = 0x2, PERF_COUNTS_KERNEL = 0x4, PERF_COUNTS_HYPERVISOR = 0x8 };
enum { PERF_COUNTS_ALL = PERF_COUNTS_USER | PERF_COUNTS_KERNEL | PERF_COUNTS_HYPERVISOR };

enum { PERF_COUNTERS = 20 }; /* of PerfEvents.Counter, from 1 on */

enum perf_event_kind { PERF_EVENT_COUNTER, PERF_EVENT_TRACEPOINT, PERF_EVENT_RAW };

/* One event. The slices point into perf_config.bytes. */
struct perf_event_spec {
    enum perf_event_kind kind;
    uint32_t counter;          /* PerfEvents.Counter */
    struct slice group, point; /* of a tracepoint: GROUP/POINT */
    struct slice tracepoint;   /* as the config spells it */
    struct slice filter;       /* of a tracepoint; empty: none */
    uint32_t type;             /* of a raw event */
    uint64_t config, config1, config2;
    struct slice pmu_name; /* of a raw event, whose type is that PMU's */
    struct slice name;     /* for the trace only */
    uint32_t modifiers;    /* PERF_COUNTS_…: what is counted; 0: everything */
};

struct perf_scope_config {
    VEC(int32_t)
    target_pids;
    VEC(int32_t)
    exclude_pids;
    VEC(struct slice)
    target_cmdlines;
    VEC(struct slice)
    exclude_cmdlines;
    VEC(struct slice)
    target_cgroups;
    VEC(struct slice)
    exclude_cgroups;
    uint32_t additional_cmdlines;
    uint32_t shard_count;
};

struct perf_config {
    uint8_t *bytes; /* the message, which the slices point into */
    struct perf_event_spec timebase;
    struct perf_event_spec followers[PERF_MAX_FOLLOWERS];
    uint32_t n_followers;
    uint64_t period, frequency; /* one of them, or polling */
    uint32_t poll_ms;           /* 0: sampling */
    clockid_t clock;            /* of timestamps */
    bool stacks;                /* callstack_sampling is there: stacks and the scope count */
    bool kernel_frames;
    uint32_t user_frames; /* enum perf_user_frames */
    struct perf_scope_config scope;
    VEC(uint32_t)
    target_cpus;
    VEC(struct slice)
    cpuids;
    bool ignore_open_failure;
    uint32_t ring_pages;
    uint32_t read_period_ms;
    uint32_t timeout_ms;    /* that a process has to become readable */
    uint32_t clear_ms;      /* between forgettings of what is known about processes */
    uint64_t max_queued_kb; /* 0: no limit */
    uint32_t max_memory_kb; /* 0: no limit */
};

/* Reads the message (perf_sampling facts, config). The error says which field is wrong, and what it may be. Free it,
 * whatever is returned. */
int perf_config_parse(struct perf_config *c, struct slice message, struct error *err);
void perf_config_free(struct perf_config *c);

/* True when user stacks are unwound in this process, from copies of the registers and the stack. */
bool perf_config_copies_stacks(const struct perf_config *c);

#endif
