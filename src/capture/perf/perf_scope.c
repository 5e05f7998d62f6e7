/* The rules of a scope, in their order: exclusions, targets, shards, and the first few command lines. */
#include "capture/perf/perf_scope.h"

#include "base/alloc.h"
#include "base/file.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <unistd.h>

static bool has_pid(const int32_t *pids, size_t n, int32_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

/* A pattern that begins with '/' is for the whole argv[0], others for what is behind its last '/'. */
static bool matches(const struct slice *patterns, size_t n, const char *argv0)
{
    const char *slash = strrchr(argv0, '/'), *name = slash ? slash + 1 : argv0;
    char pattern[PERF_CMDLINE_BYTES];
    for (size_t i = 0; i < n; i++) {
        if (!patterns[i].len || patterns[i].len >= sizeof pattern)
            continue;
        memcpy(pattern, patterns[i].p, patterns[i].len);
        pattern[patterns[i].len] = 0;
        if (fnmatch(pattern, pattern[0] == '/' ? argv0 : name, FNM_NOESCAPE) == 0)
            return true;
    }
    return false;
}

/* One of the first command lines that were seen, with their arguments. */
static bool additional(struct perf_scope *s, struct slice cmdline)
{
    for (size_t i = 0; i < s->seen.n; i++)
        if (slice_eq(s->seen.p[i], cmdline))
            return true;
    if (s->seen.n >= s->config->additional_cmdlines)
        return false;
    uint8_t *copy = mem_alloc(cmdline.len);
    if (!copy)
        return false;
    memcpy(copy, cmdline.p, cmdline.len);
    if (vec_push(&s->seen, slice_of(copy, cmdline.len)))
        return true;
    mem_free(copy);
    return false;
}

/* A path of a cgroup. A pattern that begins with '/' is for it or for a group above it, others for one name in it. */
static bool matches_cgroup(char *pattern, char *path)
{
    if (pattern[0] == '/')
        return fnmatch(pattern, path, FNM_NOESCAPE | FNM_PATHNAME | FNM_LEADING_DIR) == 0;
    for (char *rest = path, *name; (name = strsep(&rest, "/")) != NULL;)
        if (*name && fnmatch(pattern, name, FNM_NOESCAPE) == 0)
            return true;
    return false;
}

/* One line of /proc/PID/cgroup: HIERARCHY:CONTROLLERS:PATH. */
static bool line_matches(const struct slice *patterns, size_t n, struct slice line)
{
    char path[PERF_CGROUP_BYTES], pattern[PERF_CMDLINE_BYTES];
    for (int colons = 0; colons < 2; colons++) {
        const uint8_t *colon = line.len ? memchr(line.p, ':', line.len) : NULL;
        if (!colon)
            return false;
        line = slice_of(colon + 1, line.len - (size_t)(colon + 1 - line.p));
    }
    for (size_t i = 0; i < n && line.len < sizeof path; i++) {
        size_t len = patterns[i].len;
        if (!len || len >= sizeof pattern)
            continue;
        memcpy(pattern, patterns[i].p, len);
        while (len > 1 && pattern[len - 1] == '/')
            len--;
        pattern[len] = 0;
        memcpy(path, line.p, line.len);
        path[line.len] = 0;
        if (matches_cgroup(pattern, path))
            return true;
    }
    return false;
}

static bool in_cgroup(const struct slice *patterns, size_t n, struct slice lines)
{
    while (n && lines.len) {
        const uint8_t *end = memchr(lines.p, '\n', lines.len);
        if (!end) /* cut */
            return false;
        struct slice line = slice_of(lines.p, (size_t)(end - lines.p));
        if (line_matches(patterns, n, line))
            return true;
        lines = slice_of(end + 1, lines.len - line.len - 1);
    }
    return false;
}

static bool excluded(const struct perf_scope_config *c, const struct perf_who *who, const char *argv0)
{
    return (argv0 && matches(c->exclude_cmdlines.p, c->exclude_cmdlines.n, argv0)) ||
           has_pid(c->exclude_pids.p, c->exclude_pids.n, who->pid) ||
           in_cgroup(c->exclude_cgroups.p, c->exclude_cgroups.n, who->cgroups);
}

static bool targeted(const struct perf_scope_config *c, const struct perf_who *who, const char *argv0)
{
    return (argv0 && matches(c->target_cmdlines.p, c->target_cmdlines.n, argv0)) ||
           has_pid(c->target_pids.p, c->target_pids.n, who->pid) ||
           in_cgroup(c->target_cgroups.p, c->target_cgroups.n, who->cgroups);
}

bool perf_scope_accepts(struct perf_scope *s, const struct perf_who *who)
{
    const struct perf_scope_config *c = s->config;
    char argv0[PERF_CMDLINE_BYTES];
    bool readable = !who->kernel_thread && who->cmdline.len;
    size_t len = who->cmdline.len < sizeof argv0 ? who->cmdline.len : sizeof argv0 - 1;
    if (len)
        memcpy(argv0, who->cmdline.p, len);
    argv0[len] = 0;
    if (excluded(c, who, readable ? argv0 : NULL))
        return false;
    if (targeted(c, who, readable ? argv0 : NULL))
        return true;
    if (!c->target_cmdlines.n && !c->target_pids.n && !c->target_cgroups.n && !c->additional_cmdlines &&
        !c->shard_count)
        return true;
    if (c->shard_count)
        return (uint32_t)who->pid % c->shard_count == s->shard;
    return c->additional_cmdlines && readable && additional(s, who->cmdline);
}

void perf_scope_free(struct perf_scope *s)
{
    for (size_t i = 0; i < s->seen.n; i++)
        mem_free((void *)(uintptr_t)s->seen.p[i].p);
    vec_free(&s->seen);
}

static struct slice read_start(int32_t pid, const char *name, char *text, size_t size)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : file_read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    return slice_of(text, n > 0 ? (size_t)n : 0);
}

void perf_scope_look(const struct perf_scope *s, struct perf_who *who, int32_t pid, int32_t parent, bool kernel_thread)
{
    who->pid = pid;
    who->kernel_thread = kernel_thread;
    who->cmdline = who->cgroups = slice_of(NULL, 0);
    if (!kernel_thread)
        who->cmdline = read_start(pid, "cmdline", who->cmdline_bytes, sizeof who->cmdline_bytes);
    if (s->config->target_cgroups.n || s->config->exclude_cgroups.n) {
        who->cgroups = read_start(pid, "cgroup", who->cgroup_bytes, sizeof who->cgroup_bytes);
        if (!who->cgroups.len && parent > 0)
            who->cgroups = read_start(parent, "cgroup", who->cgroup_bytes, sizeof who->cgroup_bytes);
    }
}
