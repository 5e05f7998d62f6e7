/* Which processes a data source samples: judged at a process's first sample, by its pid, command line and cgroups. */
#ifndef MERIDIAN_CAPTURE_PERF_PERF_SCOPE_H
#define MERIDIAN_CAPTURE_PERF_PERF_SCOPE_H

#include "capture/perf/perf_config.h"

struct perf_scope {
    const struct perf_scope_config *config;
    uint32_t shard; /* of config->shard_count, chosen for the session */
    VEC(struct slice)
    seen; /* command lines that additional_cmdlines has let in; owned */
};

enum { PERF_CMDLINE_BYTES = 512, PERF_CGROUP_BYTES = 8192 };

/* A process as the scope sees it. */
struct perf_who {
    int32_t pid;
    bool kernel_thread;
    struct slice cmdline; /* the start of /proc/PID/cmdline: argv, each with a NUL; empty: it could not be read */
    char cmdline_bytes[PERF_CMDLINE_BYTES];
    struct slice cgroups; /* the start of /proc/PID/cgroup: a line for each hierarchy; empty: it was not looked at */
    char cgroup_bytes[PERF_CGROUP_BYTES];
};

bool perf_scope_accepts(struct perf_scope *s, const struct perf_who *who);
void perf_scope_free(struct perf_scope *s);

/* Looks into /proc for what a scope needs to know. A process that has ended already was in the cgroups of its parent,
 * if that is known (else 0). */
void perf_scope_look(const struct perf_scope *s, struct perf_who *who, int32_t pid, int32_t parent, bool kernel_thread);

#endif
