/* Which processes a data source samples: judged at a process's first sample, by its pid and command line. */
#ifndef MERIDIAN_CAPTURE_PERF_PERF_SCOPE_H
#define MERIDIAN_CAPTURE_PERF_PERF_SCOPE_H

#include "capture/perf/perf_config.h"

struct perf_scope {
    const struct perf_scope_config *config;
    uint32_t shard;   /* of config->shard_count, chosen for the session */
    VEC(char *) seen; /* command lines that additional_cmdlines has let in */
};

enum { PERF_CMDLINE_BYTES = 512 };

/* `cmdline`: argv, each with a NUL, as /proc has it; empty: it could not be read, or a thread of the kernel. */
bool perf_scope_accepts(struct perf_scope *s, int32_t pid, struct slice cmdline, bool kernel_thread);
void perf_scope_free(struct perf_scope *s);

/* Reads the start of /proc/PID/cmdline. */
struct slice perf_read_cmdline(int32_t pid, char text[PERF_CMDLINE_BYTES]);

#endif
