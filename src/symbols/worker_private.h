/* What the worker and who starts it agree on. */
#ifndef MERIDIAN_SYMBOLS_WORKER_PRIVATE_H
#define MERIDIAN_SYMBOLS_WORKER_PRIVATE_H

#include <stdint.h>

/* Open files of the worker. */
enum { WORKER_JOB_FD = 0, WORKER_OUT_FD = 1, WORKER_FILE_FD = 3, WORKER_DEBUG_FD = 4, WORKER_ALT_FD = 5 };

/* At the beginning of WORKER_JOB_FD; the addresses follow. */
struct worker_job {
    uint64_t n, has_debug, has_alt, memory_bytes, cpu_s;
};

enum { WORKER_MAX_ADDRESSES = 16 << 20 };

/* Exit statuses. */
#define WORKER_STATUSES(X)                                                                                             \
    X(OK, 0, "")                                                                                                       \
    X(NO_PACKED, 9, "its .gnu_debugdata cannot be unpacked: exported functions alone")                                 \
    X(NO_LIBDW, 10, "libdw.so.1 is not installed (package libdw1 or elfutils-libs): functions alone, without lines")   \
    X(NO_DWARF, 11, "its debugging information cannot be read: functions alone, without lines")                        \
    X(BAD_JOB, 12, "the worker was given no job")                                                                      \
    X(BAD_FILE, 13, "failed to parse")                                                                                 \
    X(NO_MEMORY, 14, "it takes too much memory")                                                                       \
    X(NO_SANDBOX, 15, "the kernel did not let the worker give up its rights")

enum worker_status {
#define X(name, value, text) WORKER_##name = value,
    WORKER_STATUSES(X)
#undef X
};

#endif
