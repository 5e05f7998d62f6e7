/* What HeapprofdConfig asks for, checked and with its defaults filled in. */
#ifndef MERIDIAN_CAPTURE_HEAP_HEAP_CONFIG_H
#define MERIDIAN_CAPTURE_HEAP_HEAP_CONFIG_H

#include "capture/perf/perf_config.h"

#define HEAP_NAME "libc.malloc"

struct heap_config {
    uint8_t *bytes;                 /* the message, which the slices point into */
    struct perf_scope_config scope; /* pids and command lines */
    bool all;                       /* every process */
    bool no_startup, no_running;
    uint64_t interval;
    uint64_t ring_bytes;
    bool block;
    uint64_t block_us;
    bool at_max;                        /* what was kept when that was most, instead of what is kept now */
    uint32_t dump_phase_ms, dump_ms;    /* dump_ms 0: at the end alone */
    uint64_t raise_above, interval_max; /* raise_above 0: the interval stays */
    uint32_t max_memory_kb;             /* 0: no limit */
    uint64_t max_cpu_s;                 /* 0: no limit */
};

/* The error says which field is wrong, and what it may be. Free it, whatever is returned. */
int heap_config_parse(struct heap_config *c, struct slice message, struct error *err);
void heap_config_free(struct heap_config *c);

#endif
