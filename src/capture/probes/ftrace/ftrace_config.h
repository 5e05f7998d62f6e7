/* FtraceConfig as the recorder uses it, read from the bytes of a DataSourceConfig. */
#ifndef MERIDIAN_CAPTURE_PROBES_FTRACE_FTRACE_CONFIG_H
#define MERIDIAN_CAPTURE_PROBES_FTRACE_FTRACE_CONFIG_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/vec.h"
#include "kernel/event_filter.h"

enum kprobe_kind {
    KPROBE_UNKNOWN,
    KPROBE_ENTRY,
    KPROBE_RETURN,
    KPROBE_BOTH
}; /* KprobeEvent.KprobeType of the config */

struct kprobe_request {
    const char *probe;
    uint32_t kind; /* enum kprobe_kind */
};

struct tracefs_option {
    const char *name;
    uint32_t state; /* 1 enabled, 2 disabled */
};

typedef VEC(const char *) string_list;

struct ftrace_config {
    string_list events;            /* "group/name", "group/<star>", "name" */
    string_list atrace_categories; /* names of predefined lists of events */
    string_list atrace_apps;       /* of Android's userspace, as are the next two: told, not done */
    string_list prefer_sdk;
    bool atrace_userspace_only;
    string_list syscalls; /* names of system calls to keep in raw_syscalls */
    VEC(struct print_rule)
    print_rules; /* the first that matches decides; text that none matches is kept */
    VEC(struct kprobe_request)
    kprobes;
    VEC(struct tracefs_option)
    options;
    VEC(uint32_t)
    tids;
    uint32_t buffer_size_kb;
    bool buffer_size_lower_bound;
    uint32_t drain_period_ms;
    uint32_t drain_buffer_percent;
    bool compact_sched; /* on unless switched off */
    bool symbolize_ksyms;
    bool retain_ksyms; /* keep the kernel's symbols in memory for the next session */
    bool function_graph;
    string_list function_filters;     /* functions, or patterns of them; empty: all */
    string_list function_graph_roots; /* only what these call */
    uint32_t function_graph_max_depth;
    bool throttle_rss_stat;
    bool disable_generic_events;
    bool legacy_generic_events; /* denser_generic_event_encoding was set to false */
    bool preserve_ftrace_buffer;
    bool use_monotonic_raw_clock;
    bool debug_ftrace_abi;
    bool frozen;                 /* linux.frozen_ftrace: read what is there and change nothing */
    bool packet_headers;         /* ours: see packet_headers.h */
    const char *instance_name;   /* "" for the top */
    const char *tracing_cpumask; /* "" for all */
    struct arena strings;
};

/* Reads FtraceConfig bytes; unknown fields are skipped, out-of-range values get their defaults. -MRD_EFORMAT,
 * -MRD_ENOMEM; free in every case. */
int ftrace_config_parse(struct ftrace_config *c, struct slice bytes, struct error *err);
/* The same from FrozenFtraceConfig bytes. */
int ftrace_config_parse_frozen(struct ftrace_config *c, struct slice bytes, struct error *err);
void ftrace_config_free(struct ftrace_config *c);

#endif
