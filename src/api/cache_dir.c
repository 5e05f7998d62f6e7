/* Keeps the directory of the cache: its key, its locks, its size. */
#include "cache_dir.h"

#include "base/file.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static const char entry_suffix[] = ".mrdsnap", sum_suffix[] = ".sum", part_suffix[] = ".part";

/* ---- opening ---- */

static char *user_cache(struct error *err)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char text[4096];
    if (base && base[0] == '/')
        snprintf(text, sizeof text, "%s/meridian", base);
    else if (home && home[0] == '/')
        snprintf(text, sizeof text, "%s/.cache/meridian", home);
    else {
        error_set(err, -MRD_EINVALID, "there is no home directory for the cache: use --cache=DIR");
        return NULL;
    }
    char *slash = strrchr(text, '/');
    *slash = 0;
    mkdir(text, 0700); /* ~/.cache; what fails here fails again below */
    *slash = '/';
    return mem_strdup(text);
}

/* What is in there decides what queries answer: nobody else may put anything there. */
static int check_owner(const struct cache_dir *d, struct error *err)
{
    struct stat st;
    if (fstat(d->fd, &st) != 0)
        return error_set_errno(err, errno, "%s", d->path);
    if (st.st_uid != geteuid())
        return error_set(err, -MRD_EDENIED, "%s: the cache belongs to another user; use a directory of your own",
                         d->path);
    if (st.st_mode & 077)
        return error_set(err, -MRD_EDENIED,
                         "%s: others can reach the cache (mode %03o); use a new directory, or chmod 700", d->path,
                         (unsigned)(st.st_mode & 0777));
    return 0;
}

/* Opens a file of the cache for reading; negative with errno. Only plain files are the cache's: a pipe would hold up
 * whoever opens it, and goes, as what is damaged does. */
static int open_file(const struct cache_dir *d, const char *name)
{
    struct stat st;
    int fd = openat(d->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
        return fd;
    close(fd);
    unlinkat(d->fd, name, 0);
    errno = ENOENT;
    return -1;
}

/* The key is made once; of two processes that make it, one wins. */
static int read_key(struct cache_dir *d, struct error *err)
{
    enum { KEY_BYTES = 8, TRIES = 20 };
    for (int i = 0; i < TRIES; i++) {
        int fd = open_file(d, "key");
        if (fd >= 0) {
            ssize_t n = read(fd, &d->seed, KEY_BYTES);
            close(fd);
            if (n == KEY_BYTES)
                return 0;
            unlinkat(d->fd, "key", 0); /* its writer was killed, or the disk was full */
        } else if (errno != ENOENT) {
            break;
        }
        char name[64];
        uint64_t key;
        if (getrandom(&key, sizeof key, 0) != sizeof key)
            break;
        snprintf(name, sizeof name, "key-%ld-%d%s", (long)getpid(), i, ".new");
        fd = openat(d->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
            break;
        bool written = file_write_all(fd, &key, sizeof key, NULL) == 0;
        close(fd);
        if (written && linkat(d->fd, name, d->fd, "key", 0) != 0 && errno != EEXIST)
            written = false;
        int failure = errno;
        unlinkat(d->fd, name, 0);
        errno = failure;
        if (!written)
            break;
    }
    return error_set_errno(err, errno, "%s: the cache cannot be written to", d->path);
}

int cache_dir_open(struct cache_dir *d, const char *path, uint64_t max_bytes, struct error *err)
{
    *d = (struct cache_dir){.fd = -1, .max_bytes = max_bytes};
    d->path = path[0] ? mem_strdup(path) : user_cache(err);
    if (!d->path)
        return path[0] ? error_set(err, -MRD_ENOMEM, "out of memory") : -MRD_EINVALID;
    int rc = mkdir(d->path, 0700) == 0 || errno == EEXIST ? 0 : error_set_errno(err, errno, "%s: the cache", d->path);
    if (rc == 0) {
        d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        rc = d->fd < 0 ? error_set_errno(err, errno, "%s: the cache", d->path) : check_owner(d, err);
    }
    rc = rc ? rc : read_key(d, err);
    if (rc < 0)
        cache_dir_close(d);
    return rc;
}

void cache_dir_close(struct cache_dir *d)
{
    if (d->fd >= 0)
        close(d->fd);
    mem_free(d->path);
    *d = (struct cache_dir){.fd = -1};
}

/* ---- names ---- */

static void name_of(struct checksum sum, const char *suffix, char name[CACHE_NAME_BYTES])
{
    snprintf(name, CACHE_NAME_BYTES, "%016" PRIx64 "%016" PRIx64 "%s", sum.high, sum.low, suffix);
}

void cache_entry_name(struct checksum sum, char name[CACHE_NAME_BYTES])
{
    name_of(sum, entry_suffix, name);
}

void cache_file_id_of(const struct cache_dir *d, const struct stat *st, struct cache_file_id *id)
{
    const uint64_t words[] = {(uint64_t)st->st_dev,         (uint64_t)st->st_ino,          (uint64_t)st->st_size,
                              (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec, (uint64_t)st->st_ctim.tv_sec,
                              (uint64_t)st->st_ctim.tv_nsec};
    _Static_assert(sizeof words == sizeof id->words, "one place for each");
    memcpy(id->words, words, sizeof words);
    name_of(checksum_of(words, sizeof words, d->seed), sum_suffix, id->name);
}

/* ---- sums of files ---- */

struct sum_file {
    uint64_t words[7];
    struct checksum sum;
    uint64_t check; /* of all before it */
};

bool cache_dir_known_sum(const struct cache_dir *d, const struct cache_file_id *id, struct checksum *sum)
{
    struct sum_file f;
    int fd = open_file(d, id->name);
    if (fd < 0)
        return false;
    bool whole = read(fd, &f, sizeof f) == sizeof f && memcmp(f.words, id->words, sizeof f.words) == 0 &&
                 f.check == checksum_of(&f, offsetof(struct sum_file, check), d->seed).low;
    if (whole)
        futimens(fd, NULL);
    close(fd);
    *sum = f.sum;
    return whole;
}

void cache_dir_note_sum(const struct cache_dir *d, const struct cache_file_id *id, const struct checksum *sum)
{
    struct sum_file f = {.sum = *sum};
    struct cache_part part;
    memcpy(f.words, id->words, sizeof f.words);
    f.check = checksum_of(&f, offsetof(struct sum_file, check), d->seed).low;
    if (cache_part_open(d, &part) == 0)
        cache_part_close(d, &part, file_write_all(part.fd, &f, sizeof f, NULL) == 0 ? id->name : NULL);
}

/* ---- entries ---- */

bool cache_dir_use(const struct cache_dir *d, const char *name, char *path, size_t room)
{
    int fd = open_file(d, name);
    if (fd < 0)
        return false;
    futimens(fd, NULL);
    close(fd);
    return snprintf(path, room, "%s/%s", d->path, name) < (int)room;
}

static int open_lock(const struct cache_dir *d)
{
    return openat(d->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

int cache_dir_lock_entry(const struct cache_dir *d, const char *name)
{
    int fd = open_lock(d);
    char head[16];
    snprintf(head, sizeof head, "%.12s", name); /* 48 bits of its sum: one byte of the lock file an entry */
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)strtoull(head, NULL, 16) + 1, .l_len = 1};
    if (fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int cache_part_open(const struct cache_dir *d, struct cache_part *part)
{
    part->name[0] = 0;
    part->fd = openat(d->fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    if (part->fd >= 0)
        return 0;
    snprintf(part->name, sizeof part->name, "%ld-%lld%s", (long)getpid(), (long long)time(NULL), part_suffix);
    part->fd = openat(d->fd, part->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (part->fd >= 0)
        flock(part->fd, LOCK_EX); /* while it is held, it is no left-over */
    return part->fd < 0 ? -1 : 0;
}

void cache_part_close(const struct cache_dir *d, struct cache_part *part, const char *name)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", part->fd);
    if (part->name[0] && (!name || renameat(d->fd, part->name, d->fd, name) != 0))
        unlinkat(d->fd, part->name, 0);
    else if (!part->name[0] && name) /* one that is there already is as good: it has the same name */
        (void)!linkat(AT_FDCWD, self, d->fd, name, AT_SYMLINK_FOLLOW);
    close(part->fd);
}

/* ---- size ---- */

struct file {
    char name[CACHE_NAME_BYTES + 32];
    uint64_t bytes;
    struct timespec used;
};

static bool ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && strcmp(name + n - m, suffix) == 0;
}

static void remove_left_over(const struct cache_dir *d, const char *name)
{
    int fd = open_file(d, name);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(d->fd, name, 0);
    if (fd >= 0)
        close(fd);
}

static int by_use(const void *a, const void *b)
{
    const struct file *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    return (x->used.tv_nsec > y->used.tv_nsec) - (x->used.tv_nsec < y->used.tv_nsec);
}

void cache_dir_make_room(const struct cache_dir *d, uint64_t bytes)
{
    VEC(struct file) files = {0};
    int lock = open_lock(d), fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock >= 0)
        flock(lock, LOCK_EX);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        struct file f = {0};
        struct stat st;
        if (ends_with(e->d_name, part_suffix))
            remove_left_over(d, e->d_name);
        if ((!ends_with(e->d_name, entry_suffix) && !ends_with(e->d_name, sum_suffix)) ||
            strlen(e->d_name) >= sizeof f.name || fstatat(d->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        memcpy(f.name, e->d_name, strlen(e->d_name) + 1);
        f.bytes = (uint64_t)st.st_size;
        f.used = st.st_mtim;
        bytes += f.bytes;
        if (!vec_push(&files, f))
            break;
    }
    if (files.n)
        qsort(files.p, files.n, sizeof *files.p, by_use);
    for (size_t i = 0; i < files.n && bytes > d->max_bytes; i++)
        if (unlinkat(d->fd, files.p[i].name, 0) == 0)
            bytes -= files.p[i].bytes;
    vec_free(&files);
    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    if (lock >= 0)
        close(lock);
}
