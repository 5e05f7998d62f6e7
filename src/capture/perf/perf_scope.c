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

bool perf_scope_accepts(struct perf_scope *s, const struct perf_who *who)
{
    const struct perf_scope_config *c = s->config;
    char argv0[PERF_CMDLINE_BYTES];
    bool readable = !who->kernel_thread && who->cmdline.len;
    size_t len = who->cmdline.len < sizeof argv0 ? who->cmdline.len : sizeof argv0 - 1;
    if (len)
        memcpy(argv0, who->cmdline.p, len);
    argv0[len] = 0;
    if (readable && matches(c->exclude_cmdlines.p, c->exclude_cmdlines.n, argv0))
        return false;
    if (has_pid(c->exclude_pids.p, c->exclude_pids.n, who->pid))
        return false;
    if (readable && matches(c->target_cmdlines.p, c->target_cmdlines.n, argv0))
        return true;
    if (has_pid(c->target_pids.p, c->target_pids.n, who->pid))
        return true;
    if (!c->target_cmdlines.n && !c->target_pids.n && !c->additional_cmdlines && !c->shard_count)
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

void perf_scope_look(struct perf_who *who, int32_t pid, bool kernel_thread)
{
    who->pid = pid;
    who->kernel_thread = kernel_thread;
    who->cmdline = slice_of(NULL, 0);
    if (!kernel_thread)
        who->cmdline = read_start(pid, "cmdline", who->cmdline_bytes, sizeof who->cmdline_bytes);
}
