/* Finds, writes and removes the snapshots of the cache. */
#include "cache.h"

#include "cache_dir.h"
#include "tp_snapshot.h"

#include "base/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct trace {
    char *path;
    struct stat st;
    struct checksum sum;
};

struct cache {
    struct cache_dir dir;
    VEC(struct trace) traces;
    char name[CACHE_NAME_BYTES]; /* of the entry, "" until cache_find() */
    char path[4096];
    uint64_t options;
    bool unknown; /* the sums of the traces cannot be had */
};

int cache_open(struct cache **out, const char *dir, uint64_t max_bytes, struct error *err)
{
    *out = mem_zalloc(sizeof **out);
    if (!*out)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    int rc = cache_dir_open(&(*out)->dir, dir, max_bytes ? max_bytes : CACHE_DEFAULT_BYTES, err);
    if (rc < 0) {
        mem_free(*out);
        *out = NULL;
    }
    return rc;
}

void cache_close(struct cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->traces.n; i++)
        mem_free(c->traces.p[i].path);
    vec_free(&c->traces);
    cache_dir_close(&c->dir);
    mem_free(c);
}

/* Whatever changes a file changes one of these: its length, or the times that the kernel notes. */
static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

bool cache_add_trace(struct cache *c, const char *path)
{
    struct trace t = {0};
    struct mapped_file m;
    if (stat(path, &t.st) != 0 || !S_ISREG(t.st.st_mode) || !t.st.st_size || mapped_file_open(&m, path, NULL) != 0)
        return false;
    bool writes = m.still_written;
    mapped_file_close(&m);
    t.path = writes ? NULL : mem_strdup(path);
    if (!t.path || !vec_push(&c->traces, t)) {
        mem_free(t.path);
        return false;
    }
    return true;
}

const char *cache_trace(const struct cache *c, size_t i)
{
    return i < c->traces.n ? c->traces.p[i].path : NULL;
}

/* A file that changed a moment ago can change again without its times telling: clocks of file systems are coarse. */
static bool is_settled(const struct stat *st)
{
    enum { SETTLED_S = 2 };
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec - st->st_mtim.tv_sec > SETTLED_S && now.tv_sec - st->st_ctim.tv_sec > SETTLED_S;
}

/* The sum of a trace's bytes: known from the last time when its times are the same, else computed. */
static int sum_of(struct cache *c, struct trace *t)
{
    struct cache_file_id id;
    uint64_t bytes;
    struct stat after;
    cache_file_id_of(&c->dir, &t->st, &id);
    if (is_settled(&t->st) && cache_dir_known_sum(&c->dir, &id, &t->sum))
        return 0;
    bool settled = is_settled(&t->st); /* before it is read */
    int rc = tp_file_sum(t->path, c->dir.seed, &t->sum, &bytes, NULL);
    if (rc == 0 && (stat(t->path, &after) != 0 || !same_file(&t->st, &after)))
        rc = -MRD_EIO;
    if (rc == 0 && settled)
        cache_dir_note_sum(&c->dir, &id, &t->sum);
    return rc;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Its version, and the file that it was built as: what another build imports may be something else. */
static void add_program(const struct cache *c, struct checksum *sum)
{
    uint64_t schema = snapshot_schema();
    struct stat st = {0};
    Dl_info self;
    if (!dladdr((const void *)(uintptr_t)&cache_open, &self) || !self.dli_fname || self.dli_fname[0] != '/' ||
        stat(self.dli_fname, &st) != 0)
        stat("/proc/self/exe", &st);
    const uint64_t built[] = {schema, (uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec};
    checksum_add(sum, checksum_of(built, sizeof built, c->dir.seed));
    checksum_add(sum, checksum_of(MERIDIAN_VERSION, strlen(MERIDIAN_VERSION), c->dir.seed));
}

static void choose_name(struct cache *c)
{
    struct checksum all = checksum_of(&c->options, sizeof c->options, c->dir.seed);
    add_program(c, &all);
    for (size_t i = 0; i < c->traces.n; i++) {
        const char *name = last_part(c->traces.p[i].path); /* machines are named after files */
        checksum_add(&all, c->traces.p[i].sum);
        checksum_add(&all, checksum_of(name, strlen(name), c->dir.seed));
    }
    cache_entry_name(all, c->name);
}

const char *cache_find(struct cache *c, uint64_t options)
{
    c->options = options;
    c->unknown = c->traces.n == 0;
    for (size_t i = 0; i < c->traces.n && !c->unknown; i++)
        c->unknown = sum_of(c, &c->traces.p[i]) < 0;
    if (c->unknown)
        return NULL;
    choose_name(c);
    return cache_dir_use(&c->dir, c->name, c->path, sizeof c->path) ? c->path : NULL;
}

static bool unchanged(const struct cache *c)
{
    for (size_t i = 0; i < c->traces.n; i++) {
        struct stat now;
        if (stat(c->traces.p[i].path, &now) != 0 || !same_file(&now, &c->traces.p[i].st))
            return false;
    }
    return true;
}

uint64_t cache_trace_bytes(const struct cache *c)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->traces.n; i++)
        bytes += (uint64_t)c->traces.p[i].st.st_size;
    return bytes;
}

struct sink {
    int fd;
    uint64_t written, most;
    size_t n;
    char buf[1 << 16];
};

static int flush(struct sink *s, struct error *err)
{
    int rc = file_write_all(s->fd, s->buf, s->n, err);
    s->n = 0;
    return rc;
}

static int put(void *ctx, const void *bytes, size_t len, struct error *err)
{
    struct sink *s = ctx;
    s->written += len;
    if (s->written > s->most)
        return error_set(err, -MRD_ELIMIT, "larger than the cache");
    int rc = s->n + len > sizeof s->buf ? flush(s, err) : 0;
    if (rc == 0 && len >= sizeof s->buf)
        return file_write_all(s->fd, bytes, len, err);
    memcpy(s->buf + s->n, bytes, rc ? 0 : len);
    s->n += rc ? 0 : len;
    return rc;
}

void cache_store(struct cache *c, cache_write_fn write, void *ctx)
{
    struct error err = {0};
    if (c->unknown || !c->name[0] || !unchanged(c))
        return;
    int lock = cache_dir_lock_entry(&c->dir, c->name);
    if (lock < 0) /* somebody else is at it */
        return;
    struct cache_part part;
    struct sink *s = mem_zalloc(sizeof *s);
    if (s && cache_part_open(&c->dir, &part) == 0) {
        s->fd = part.fd;
        s->most = c->dir.max_bytes;
        struct snapshot_info info = {.source_bytes = cache_trace_bytes(c), .text = slice_str(c->traces.p[0].path)};
        int rc = write(ctx, &info, &(struct snapshot_sink){put, s}, &err);
        rc = rc ? rc : flush(s, &err);
        bool good = rc == 0 && unchanged(c); /* else it may be of what is not there any more */
        if (good)
            cache_dir_make_room(&c->dir, s->written);
        cache_part_close(&c->dir, &part, good ? c->name : NULL);
    }
    mem_free(s);
    close(lock);
}

void cache_drop(struct cache *c)
{
    if (c->name[0])
        unlinkat(c->dir.fd, c->name, 0);
}
