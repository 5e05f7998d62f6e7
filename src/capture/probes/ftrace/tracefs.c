/* Reads and writes the files of tracefs. */
#include "capture/probes/ftrace/tracefs.h"

#include "base/alloc.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static const char *const mounts[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

static bool usable(const char *root)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/tracing_on", root);
    return access(path, W_OK) == 0;
}

/* Whether there is a tracefs that we may not look into: its directory is for root alone by default. */
static bool is_mounted(void)
{
    struct statfs fs;
    return statfs(mounts[0], &fs) == 0 && fs.f_type == TRACEFS_MAGIC;
}

static int find_root(struct tracefs *fs, const char *root, struct error *err)
{
    if (root) {
        if (strlen(root) >= sizeof fs->root - 300 || !usable(root))
            return error_set(err, -MRD_ENOTFOUND, "%.200s is not a tracefs that can be written to", root);
        snprintf(fs->root, sizeof fs->root, "%s", root);
        return 0;
    }
    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++) {
        if (usable(mounts[i])) {
            snprintf(fs->root, sizeof fs->root, "%s", mounts[i]);
            return 0;
        }
    }
    if (is_mounted())
        return error_set(err, -MRD_EDENIED, "tracefs is mounted but cannot be written to: run as root");
    return error_set(err, -MRD_ENOTFOUND,
                     "tracefs is not mounted: run `mount -t tracefs none /sys/kernel/tracing` as root");
}

static bool plain_name(const char *s)
{
    return *s && *s != '.' && strlen(s) < 200 && !strchr(s, '/');
}

int tracefs_open(struct tracefs *fs, const char *root, const char *instance, struct error *err)
{
    memset(fs, 0, sizeof *fs);
    int rc = find_root(fs, root, err);
    if (rc)
        return rc;
    memcpy(fs->base, fs->root, sizeof fs->base);
    if (!instance || !*instance)
        return 0;
    if (!plain_name(instance))
        return error_set(err, -MRD_EINVALID, "\"%.100s\" cannot be the name of a tracefs instance", instance);
    size_t n = strlen(fs->base);
    snprintf(fs->base + n, sizeof fs->base - n, "/instances/%s", instance);
    fs->is_instance = true;
    return 0;
}

struct tracefs tracefs_top(const struct tracefs *fs)
{
    struct tracefs top = *fs;
    memcpy(top.base, top.root, sizeof top.base);
    top.is_instance = false;
    return top;
}

int tracefs_make_instance(const struct tracefs *fs, struct error *err)
{
    return mkdir(fs->base, 0750) == 0 ? 0 : error_set_errno(err, errno, "making the tracefs instance %s", fs->base);
}

bool tracefs_path(const struct tracefs *fs, char path[PATH_MAX], const char *name)
{
    size_t base = strlen(fs->base), n = strlen(name);
    if (base + n + 2 > PATH_MAX)
        return false;
    memcpy(path, fs->base, base);
    path[base] = '/';
    memcpy(path + base + 1, name, n + 1);
    return true;
}

bool tracefs_exists(const struct tracefs *fs, const char *name)
{
    char path[PATH_MAX];
    return tracefs_path(fs, path, name) && access(path, F_OK) == 0;
}

int tracefs_read(const struct tracefs *fs, const char *name, char **text, size_t *len, struct error *err)
{
    char path[PATH_MAX];
    if (!tracefs_path(fs, path, name))
        return error_set(err, -MRD_ELIMIT, "path too long");
    return file_read_all(path, 64u << 20, text, len, err);
}

int tracefs_read_line(const struct tracefs *fs, const char *name, char *line, size_t size, struct error *err)
{
    char *text;
    size_t len;
    int rc = tracefs_read(fs, name, &text, &len, err);
    if (rc)
        return rc;
    size_t n = strcspn(text, "\n");
    if (n >= size)
        rc = error_set(err, -MRD_ELIMIT, "%s: line too long", name);
    else
        memcpy(line, text, n), line[n] = 0;
    mem_free(text);
    return rc;
}

int tracefs_read_u64(const struct tracefs *fs, const char *name, uint64_t *value, struct error *err)
{
    char line[128], *end;
    int rc = tracefs_read_line(fs, name, line, sizeof line, err);
    if (rc)
        return rc;
    errno = 0;
    *value = strtoull(line, &end, 10);
    return end == line || errno ? error_set(err, -MRD_EFORMAT, "%s: \"%s\" is not a number", name, line) : 0;
}

int tracefs_write_path(const char *path, enum tracefs_mode mode, const char *text, struct error *err)
{
    int flags = O_WRONLY | O_CLOEXEC;
    flags |= mode == TRACEFS_TRUNCATE ? O_TRUNC : mode == TRACEFS_APPEND ? O_APPEND : 0;
    int fd = open(path, flags);
    if (fd < 0)
        return error_set_errno(err, errno, "%s", path);
    size_t len = strlen(text);
    int rc = 0;
    if (len && write(fd, text, len) != (ssize_t)len)
        rc = error_set_errno(err, errno, "writing \"%.*s\" to %s", (int)strcspn(text, "\n"), text, path);
    close(fd);
    return rc;
}

int tracefs_write(const struct tracefs *fs, const char *name, enum tracefs_mode mode, const char *text,
                  struct error *err)
{
    char path[PATH_MAX];
    if (!tracefs_path(fs, path, name))
        return error_set(err, -MRD_ELIMIT, "path too long");
    return tracefs_write_path(path, mode, text, err);
}

int tracefs_parse_cpu_stats(struct tracefs_cpu_stats *s, struct slice text)
{
    static const struct {
        const char *key;
        size_t at;
        bool is_double;
    } rows[] = {
        {"entries", offsetof(struct tracefs_cpu_stats, entries), false},
        {"overrun", offsetof(struct tracefs_cpu_stats, overrun), false},
        {"commit overrun", offsetof(struct tracefs_cpu_stats, commit_overrun), false},
        {"bytes", offsetof(struct tracefs_cpu_stats, bytes_read), false},
        {"oldest event ts", offsetof(struct tracefs_cpu_stats, oldest_event_ts), true},
        {"now ts", offsetof(struct tracefs_cpu_stats, now_ts), true},
        {"dropped events", offsetof(struct tracefs_cpu_stats, dropped_events), false},
        {"read events", offsetof(struct tracefs_cpu_stats, read_events), false},
    };
    char line[128];
    int found = 0;
    memset(s, 0, sizeof *s);
    while (text.len) {
        const uint8_t *nl = memchr(text.p, '\n', text.len);
        size_t len = nl ? (size_t)(nl - text.p) : text.len;
        size_t n = len < sizeof line ? len : sizeof line - 1;
        memcpy(line, text.p, n);
        line[n] = 0;
        text = slice_of(text.p + len + (nl != NULL), text.len - len - (nl != NULL));
        char *colon = strchr(line, ':');
        if (!colon)
            continue;
        *colon = 0;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            if (strcmp(line, rows[i].key) != 0)
                continue;
            char *field = (char *)s + rows[i].at;
            if (rows[i].is_double)
                *(double *)(void *)field = strtod(colon + 1, NULL);
            else
                *(uint64_t *)(void *)field = strtoull(colon + 1, NULL, 10);
            found++;
        }
    }
    return found ? 0 : -MRD_EFORMAT;
}

int tracefs_cpu_stats(const struct tracefs *fs, uint32_t cpu, struct tracefs_cpu_stats *s, struct error *err)
{
    char name[64], *text;
    size_t len;
    snprintf(name, sizeof name, "per_cpu/cpu%u/stats", cpu);
    int rc = tracefs_read(fs, name, &text, &len, err);
    if (rc)
        return rc;
    if (tracefs_parse_cpu_stats(s, slice_of(text, len)))
        rc = error_set(err, -MRD_EFORMAT, "%s cannot be read", name);
    mem_free(text);
    return rc;
}

uint32_t tracefs_cpu_count(const struct tracefs *fs)
{
    char path[PATH_MAX];
    uint32_t n = 0;
    if (!tracefs_path(fs, path, "per_cpu"))
        return 0;
    DIR *dir = opendir(path);
    if (!dir)
        return 0;
    for (struct dirent *d; (d = readdir(dir));) {
        unsigned cpu;
        if (sscanf(d->d_name, "cpu%u", &cpu) == 1 && cpu < 4096 && cpu + 1 > n)
            n = cpu + 1;
    }
    closedir(dir);
    return n;
}
