/* Puts pieces of memory into a mapped file. */
#include "base/spill.h"

#include "base/alloc.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    SEGMENT_BYTES = 16 << 20,
    ALIGN = 64,
    TMPFS_KIND = 0x01021994,
    RAMFS_KIND = (int)0x858458f6,
};

struct segment {
    char *map;
    size_t len;
};

struct spill {
    pthread_mutex_t lock;
    uint64_t budget;
    uint64_t held; /* ordinary memory */
    int fd;        /* -1 until there is a file */
    uint64_t file_bytes;
    VEC(struct segment) segments; /* the last one is being filled */
    size_t used;                  /* of it */
};

struct spill *spill_open(uint64_t budget_bytes)
{
    struct spill *s = mem_zalloc(sizeof *s);
    if (s) {
        s->budget = budget_bytes;
        s->fd = -1;
        pthread_mutex_init(&s->lock, NULL);
    }
    return s;
}

/* A file without a name in a directory that is on a disk; -1 when that is none. */
static int open_in(const char *dir)
{
    struct statfs fs;
    char name[4096];
    if (!dir || !dir[0] || statfs(dir, &fs) != 0 || (int)fs.f_type == TMPFS_KIND || (int)fs.f_type == RAMFS_KIND)
        return -1;
    int fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC | O_EXCL, 0600);
    if (fd >= 0 || snprintf(name, sizeof name, "%s/meridian-XXXXXX", dir) >= (int)sizeof name)
        return fd;
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        unlink(name);
    return fd;
}

int spill_file_open(void)
{
    const char *dirs[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
    int fd = -1;
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs && fd < 0; i++)
        fd = open_in(dirs[i]);
    return fd;
}

void *spill_file_map(int fd, uint64_t at, size_t len)
{
    if (posix_fallocate(fd, (off_t)at, (off_t)len) != 0)
        return NULL;
    void *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);
    return map == MAP_FAILED ? NULL : map;
}

/* Segments before the last are complete: they are on their way to the disk, and count as the process's no more. The one
 * before that is waited for, so that pages that wait to be written are few. */
static void release(struct spill *s)
{
    size_t n = s->segments.n;
    uint64_t at = s->file_bytes;
    if (n >= 1) {
        struct segment *last = &s->segments.p[n - 1];
        at -= last->len;
        sync_file_range(s->fd, (off_t)at, (off_t)last->len, SYNC_FILE_RANGE_WRITE);
        madvise(last->map, last->len, MADV_DONTNEED); /* shared and of a file: nothing is lost */
    }
    if (n >= 2)
        sync_file_range(s->fd, (off_t)(at - s->segments.p[n - 2].len), (off_t)s->segments.p[n - 2].len,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}

static bool add_segment(struct spill *s, size_t size)
{
    size_t len = size > SEGMENT_BYTES ? (size + 4095) & ~(size_t)4095 : SEGMENT_BYTES;
    if ((s->fd < 0 && (s->fd = spill_file_open()) < 0) || !vec_reserve(&s->segments, s->segments.n + 1))
        return false;
    release(s);
    char *map = spill_file_map(s->fd, s->file_bytes, len);
    if (!map)
        return false;
    s->segments.p[s->segments.n++] = (struct segment){map, len};
    s->file_bytes += len;
    s->used = 0;
    return true;
}

static void *alloc(struct spill *s, size_t size)
{
    size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (s->held + size <= s->budget) {
        void *p = mem_alloc(size);
        s->held += p ? size : 0;
        if (p)
            return p;
    }
    if (!alloc_allowed(size))
        return NULL;
    if ((!s->segments.n || vec_last(&s->segments)->len - s->used < size) && !add_segment(s, size))
        return NULL;
    void *p = vec_last(&s->segments)->map + s->used;
    s->used += size;
    return p;
}

void *spill_alloc(struct spill *s, size_t size)
{
    pthread_mutex_lock(&s->lock);
    void *p = alloc(s, size);
    pthread_mutex_unlock(&s->lock);
    return p;
}

static bool is_in_file(const struct spill *s, const void *p)
{
    for (size_t i = 0; i < s->segments.n; i++)
        if ((uintptr_t)p - (uintptr_t)s->segments.p[i].map < s->segments.p[i].len)
            return true;
    return false;
}

/* Its whole pages: they are not used again, and take no room on the disk any more. */
static void give_back(void *p, size_t size)
{
    uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1, from = ((uintptr_t)p + mask) & ~mask,
              to = ((uintptr_t)p + size) & ~mask;
    if (from < to)
        madvise((void *)from, to - from, MADV_REMOVE);
}

void spill_free(struct spill *s, void *p, size_t size)
{
    size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    pthread_mutex_lock(&s->lock);
    bool in_file = is_in_file(s, p);
    if (p && !in_file)
        s->held -= size < s->held ? size : s->held;
    pthread_mutex_unlock(&s->lock);
    if (in_file)
        give_back(p, size);
    else
        mem_free(p);
}

void spill_close(struct spill *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->segments.n; i++)
        munmap(s->segments.p[i].map, s->segments.p[i].len);
    vec_free(&s->segments);
    if (s->fd >= 0)
        close(s->fd);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}
