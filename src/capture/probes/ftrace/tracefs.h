/* Files of tracefs: where it is mounted, one instance of it, and reading and writing its small text files. */
#ifndef MERIDIAN_CAPTURE_PROBES_FTRACE_TRACEFS_H
#define MERIDIAN_CAPTURE_PROBES_FTRACE_TRACEFS_H

#include "base/error.h"
#include "base/slice.h"

#include <limits.h>

struct tracefs {
    char root[PATH_MAX]; /* the mount, no slash at the end */
    char base[PATH_MAX]; /* root, or root/instances/NAME; where relative names start */
    bool is_instance;
};

/* Finds tracefs (/sys/kernel/tracing, else /sys/kernel/debug/tracing; `root` overrides) and the instance (NULL or "" is
 * the top; one that does not exist yet is fine, see tracefs_make_instance()). The error says how to mount tracefs when
 * there is none. */
int tracefs_open(struct tracefs *fs, const char *root, const char *instance, struct error *err);

/* The same mount without the instance: some files and all probes belong to the whole kernel. */
struct tracefs tracefs_top(const struct tracefs *fs);

/* Makes the directory of an instance; it must not exist. */
int tracefs_make_instance(const struct tracefs *fs, struct error *err);

/* "base/name" into `path`; false when it does not fit. */
bool tracefs_path(const struct tracefs *fs, char path[PATH_MAX], const char *name);

bool tracefs_exists(const struct tracefs *fs, const char *name);

/* Reads a file into memory that the caller frees with mem_free(); NUL-terminated. */
int tracefs_read(const struct tracefs *fs, const char *name, char **text, size_t *len, struct error *err);

/* The first line of a small file, without the newline; -MRD_ELIMIT when it is longer than the buffer. */
int tracefs_read_line(const struct tracefs *fs, const char *name, char *line, size_t size, struct error *err);
int tracefs_read_u64(const struct tracefs *fs, const char *name, uint64_t *value, struct error *err);

/* Writes `text` in one call, as the kernel wants it; `path` is absolute. */
enum tracefs_mode { TRACEFS_WRITE, TRACEFS_TRUNCATE, TRACEFS_APPEND };
int tracefs_write_path(const char *path, enum tracefs_mode mode, const char *text, struct error *err);
int tracefs_write(const struct tracefs *fs, const char *name, enum tracefs_mode mode, const char *text,
                  struct error *err);

/* per_cpu/cpuN/stats. */
struct tracefs_cpu_stats {
    uint64_t entries, overrun, commit_overrun, bytes_read, dropped_events, read_events;
    double oldest_event_ts, now_ts;
};
int tracefs_parse_cpu_stats(struct tracefs_cpu_stats *s, struct slice text);
int tracefs_cpu_stats(const struct tracefs *fs, uint32_t cpu, struct tracefs_cpu_stats *s, struct error *err);

/* Number of per_cpu/cpuN directories (cpus that may come online included). */
uint32_t tracefs_cpu_count(const struct tracefs *fs);

#endif
