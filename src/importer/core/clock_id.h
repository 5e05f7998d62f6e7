/* The names of clocks: the builtin ones, and whose clock a number stands for. */
#ifndef MERIDIAN_IMPORTER_CORE_CLOCK_ID_H
#define MERIDIAN_IMPORTER_CORE_CLOCK_ID_H

#include <stdint.h>

enum {
    CLOCK_ID_REALTIME = 1,
    CLOCK_ID_REALTIME_COARSE = 2,
    CLOCK_ID_MONOTONIC = 3,
    CLOCK_ID_MONOTONIC_COARSE = 4,
    CLOCK_ID_MONOTONIC_RAW = 5,
    CLOCK_ID_BOOTTIME = 6,
    CLOCK_ID_TSC = 9,
    CLOCK_ID_PERF = 10,
    CLOCK_ID_TRACE_FILE = 11,
    CLOCK_ID_FIRST_SEQUENCE = 64, /* 64..127 belong to one sequence */
    CLOCK_ID_LAST_SEQUENCE = 127,
};

struct clock_id {
    uint32_t id;
    uint32_t sequence; /* 0 but for sequence-scoped clocks */
    uint32_t machine;  /* machine row */
    uint32_t file;     /* trace_file tag; 0 unless the file's clocks are isolated */
};

#endif
