/* Opens the files of names that processes write, as far as they are the processes' own. */
#include "capture/perf/perf_jit.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "capture/perf/perf_process.h"
#include "capture/probes/proc_text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

enum { STALE_MS = 1000 }; /* a file that was left alone so long before a process began is not its own */

/* What /proc says of the process: whose it is, and its number in its own namespace, which its files are named by. */
static bool read_status(int32_t pid, uid_t *uid, int32_t *inner_pid)
{
    char path[48], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    if (text_read_once(path, text, sizeof text) <= 0)
        return false;
    const char *uids = strstr(text, "\nUid:"), *pids = strstr(text, "\nNSpid:");
    unsigned effective;
    if (!uids || sscanf(uids + 5, "%*u %u", &effective) != 1)
        return false;
    *uid = effective;
    *inner_pid = pid;
    if (pids) {
        const char *end = strchr(pids + 1, '\n'), *last = end ? end : pids + strlen(pids);
        while (last > pids && last[-1] >= '0' && last[-1] <= '9')
            last--;
        if (atoi(last) > 0)
            *inner_pid = atoi(last);
    }
    return true;
}

/* Opens a file for reading when it is a plain one of that user; nothing else, such as a FIFO, is opened. */
static int open_plain(int at, const char *name, uid_t uid, uint64_t inode, struct stat *st)
{
    int fd = -1, path = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (path < 0)
        return -1;
    if (fstat(path, st) == 0 && S_ISREG(st->st_mode) && st->st_uid == uid && (!inode || st->st_ino == inode))
        fd = file_open_again(path);
    close(path);
    return fd;
}

/* No part of the way is a link: in a container it would lead into our own tree. */
static int open_map(int32_t pid, int32_t inner_pid, uid_t uid, struct stat *st)
{
    char name[48];
    snprintf(name, sizeof name, "/proc/%d/root", pid);
    int root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
    int tmp = root < 0 ? -1 : openat(root, "tmp", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    snprintf(name, sizeof name, "perf-%d.map", inner_pid);
    if (tmp >= 0)
        fd = open_plain(tmp, name, uid, 0, st);
    if (tmp >= 0)
        close(tmp);
    if (root >= 0)
        close(root);
    return fd;
}

static int open_dump(const struct perf_jit *j, uid_t uid, struct stat *st)
{
    char path[4224];
    if (snprintf(path, sizeof path, "/proc/%d/root%s", j->pid, j->dump_path) >= (int)sizeof path)
        return -1;
    return open_plain(AT_FDCWD, path, uid, j->dump_inode, st);
}

/* The process that was sampled still has its number, so that what was opened is its own. */
static bool is_still_there(const struct perf_jit *j)
{
    return !j->began || (j->began != UINT64_MAX && perf_process_began(j->pid) == j->began);
}

/* Nobody removes these files: a process of that number and user may have left it before this one began. */
static bool is_stale(const struct perf_jit *j, const struct stat *st)
{
    int64_t boot = clock_now_ns(CLOCK_BOOTTIME), real = clock_now_ns(CLOCK_REALTIME);
    int64_t began = (int64_t)(j->began / 1000000);
    int64_t changed = (int64_t)st->st_ctim.tv_sec * 1000 + st->st_ctim.tv_nsec / 1000000;
    return j->began && changed + STALE_MS < (real - boot) / 1000000 + began;
}

static void forget(struct perf_jit *j)
{
    vec_clear(&j->functions);
    vec_clear(&j->names);
    u64map_clear(&j->index);
    j->map.read = j->dump.read = 0;
    j->full = false;
}

/* Reads on from where the last time ended. Another file, or one that has become shorter, begins anew. */
static void read_on(struct perf_jit *j, struct perf_jit_file *f, int fd, const struct stat *st, bool dump)
{
    if (f->inode && (f->inode != st->st_ino || f->device != st->st_dev || (uint64_t)st->st_size < f->read))
        forget(j);
    f->device = st->st_dev;
    f->inode = st->st_ino;
    uint64_t end = (uint64_t)st->st_size < PERF_JIT_BYTES ? (uint64_t)st->st_size : PERF_JIT_BYTES;
    size_t room = PIECE;
    uint8_t *bytes = mem_alloc(room);
    while (bytes && f->read < end && !j->full) {
        size_t want = end - f->read < room ? (size_t)(end - f->read) : room;
        ssize_t n = pread(fd, bytes, want, (off_t)f->read);
        if (n <= 0)
            break;
        struct slice got = slice_of(bytes, (size_t)n);
        size_t used = dump ? perf_jit_parse_dump(j, got, f->read == 0) : perf_jit_parse_map(j, got);
        f->read += used;
        if (used)
            continue;
        if ((size_t)n < room || room >= PERF_JIT_BYTES)
            break; /* the end is still being written */
        mem_free(bytes);
        bytes = mem_alloc(room *= 2); /* one line or record is larger than the piece */
    }
    mem_free(bytes);
}

void perf_jit_read(struct perf_jit *j)
{
    struct stat st;
    uid_t uid;
    int32_t inner_pid;
    int fd;
    if (!read_status(j->pid, &uid, &inner_pid))
        return;
    if ((fd = open_map(j->pid, inner_pid, uid, &st)) >= 0) {
        if (is_still_there(j) && !is_stale(j, &st))
            read_on(j, &j->map, fd, &st, false);
        close(fd);
    }
    if (j->dump_path && (fd = open_dump(j, uid, &st)) >= 0) {
        if (is_still_there(j))
            read_on(j, &j->dump, fd, &st, true);
        close(fd);
    }
    perf_jit_sort(j);
}
