/* What /proc/PID/status and its neighbours say about one process or thread. */
#ifndef MERIDIAN_CAPTURE_PROBES_PROC_STATUS_H
#define MERIDIAN_CAPTURE_PROBES_PROC_STATUS_H

#include "wire/pb_writer.h"

#include <stdbool.h>
#include <stdint.h>

/* Memory counters, in the order of proc_memory_fields[]. */
enum proc_memory {
    PROC_VM_SIZE,
    PROC_VM_RSS,
    PROC_RSS_ANON,
    PROC_RSS_FILE,
    PROC_RSS_SHMEM,
    PROC_VM_SWAP,
    PROC_VM_LOCKED,
    PROC_VM_HWM,
    PROC_SMR_RSS, /* from here on: of smaps_rollup */
    PROC_SMR_PSS,
    PROC_SMR_PSS_ANON,
    PROC_SMR_PSS_FILE,
    PROC_SMR_PSS_SHMEM,
    PROC_SMR_SWAP_PSS,
    PROC_MEMORY_COUNT,
};

struct proc_memory_field {
    const char *key;      /* in the file */
    uint32_t proto_field; /* of ProcessStats.Process */
};
extern const struct proc_memory_field proc_memory_fields[PROC_MEMORY_COUNT];

enum { PROC_MAX_NS = 16 };

struct proc_status {
    int32_t pid, tgid, ppid;
    uint32_t uid;
    int32_t kthread; /* 1, 0, or -1 when the kernel does not say */
    uint32_t n_ns;
    int32_t ns_pid[PROC_MAX_NS];           /* NSpid: outermost first */
    char name[64];                         /* cut when it is longer */
    uint32_t memory_present;               /* bit per enum proc_memory */
    uint64_t memory_kb[PROC_MEMORY_COUNT]; /* by enum proc_memory, where memory_present has the bit */
};

/* Reads /proc/TID/status; false when the thread is gone. */
bool proc_status_read(int32_t tid, struct proc_status *s);

/* Parses the text of a status file (changed by this). */
void proc_status_parse(char *text, struct proc_status *s);

/* Adds the counters of /proc/PID/smaps_rollup. */
void proc_status_add_smaps(int32_t pid, struct proc_status *s);

/* Of /proc/PID/stat, in nanoseconds. */
struct proc_times {
    uint64_t start_from_boot_ns, user_ns, kernel_ns;
};
bool proc_times_read(int32_t pid, struct proc_times *t);
bool proc_times_parse(char *text, uint64_t ticks_per_second, struct proc_times *t);

/* Writes the arguments of a process as ProcessTree.Process.cmdline. False: /proc tells none, as of kernel threads. */
bool proc_put_cmdline(struct pb_writer *w, int32_t pid);

/* The control group of a process, of the text of /proc/PID/cgroup (changed by this): the path of the one hierarchy of
 * version 2, or where that says nothing (`/`) the path of version 1 that systemd keeps, or else the longest. "" when
 * the text names none; a view of the text. */
const char *proc_cgroup_parse(char *text);

/* /proc/PID/oom_score_adj. */
bool proc_oom_score_adj(int32_t pid, int64_t *value);

#endif
