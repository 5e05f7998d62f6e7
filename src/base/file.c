/* Whole-file input: mapping, reading, writing, and the hooks for tests. */
#include "base/file.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static file_read_fn read_hook;
static file_write_fn write_hook;

void file_set_read_hook(file_read_fn fn)
{
    read_hook = fn;
}

ssize_t file_read(int fd, void *buf, size_t len)
{
    ssize_t n;
    do {
        n = read_hook ? read_hook(fd, buf, len) : read(fd, buf, len);
    } while (n < 0 && errno == EINTR);
    return n;
}

void file_set_write_hook(file_write_fn fn)
{
    write_hook = fn;
}

ssize_t file_write(int fd, const void *buf, size_t len)
{
    ssize_t n;
    do {
        n = write_hook ? write_hook(fd, buf, len) : write(fd, buf, len);
    } while (n < 0 && errno == EINTR);
    return n;
}

int file_write_all(int fd, const void *buf, size_t len, struct error *err)
{
    const char *p = buf;
    while (len) {
        ssize_t n = file_write(fd, p, len);
        if (n < 0)
            return error_set_errno(err, errno, "write");
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

/* The kernel grants a read lease only on a file that nobody has open for writing; to others than the owner it grants
 * none. The lease is given back at once; until then SIGURG, which is ignored, would tell of a writer that comes. */
static bool has_writer(int fd)
{
    fcntl(fd, F_SETSIG, SIGURG);
    if (fcntl(fd, F_SETLEASE, F_RDLCK) != 0)
        return errno == EAGAIN;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
}

int file_open_again(int place)
{
    char again[40];
    snprintf(again, sizeof again, "/proc/self/fd/%d", place);
    return open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* What stands there is looked at first, and only that is opened. */
int file_open_regular(const char *path)
{
    struct stat st;
    int fd = -1, place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0)
        return -1;
    if (fstat(place, &st) == 0) {
        errno = ENOTSUP;
        if (S_ISREG(st.st_mode))
            fd = file_open_again(place);
    }
    int why = errno;
    close(place);
    errno = why;
    return fd;
}

int mapped_file_open(struct mapped_file *m, const char *path, struct error *err)
{
    *m = (struct mapped_file){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "%s", path);
    struct stat st;
    int rc = 0;
    if (fstat(fd, &st) != 0) {
        rc = error_set_errno(err, errno, "%s", path);
    } else if (S_ISDIR(st.st_mode)) {
        rc = error_set(err, -MRD_EINVALID, "%s: is a directory", path);
    } else if (!S_ISREG(st.st_mode)) {
        rc = error_set(err, -MRD_EUNSUPPORTED, "%s: not a regular file", path);
    } else if (st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) {
            rc = error_set_errno(err, errno, "%s: mmap", path);
        } else {
            m->map = p;
            m->map_len = (size_t)st.st_size;
            m->still_written = has_writer(fd);
            m->guard = map_guard_add(p, m->map_len);
            m->bytes = slice_of(p, m->map_len);
        }
    }
    close(fd);
    return rc;
}

bool mapped_file_shrank(const struct mapped_file *m)
{
    return map_guard_hit(m->guard);
}

void mapped_file_close(struct mapped_file *m)
{
    map_guard_remove(m->guard);
    if (m->map)
        munmap(m->map, m->map_len);
    *m = (struct mapped_file){0};
}

int file_read_all(const char *path, size_t max, char **text, size_t *len, struct error *err)
{
    bool from_stdin = strcmp(path, "-") == 0;
    int fd = from_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "%s", path);
    size_t n = 0, cap = 0;
    char *buf = NULL;
    int rc = 0;
    for (;;) {
        if (n + 1 >= cap) {
            cap = cap ? cap * 2 : 65536;
            char *grown = mem_realloc(buf, cap);
            if (!grown) {
                rc = error_set(err, -MRD_ENOMEM, "%s: out of memory", path);
                break;
            }
            buf = grown;
        }
        ssize_t got = file_read(fd, buf + n, cap - 1 - n);
        if (got < 0) {
            rc = error_set_errno(err, errno, "%s", path);
            break;
        }
        if (got == 0)
            break;
        n += (size_t)got;
        if (n > max) {
            rc = error_set(err, -MRD_ELIMIT, "%s: larger than %zu bytes", path, max);
            break;
        }
    }
    if (!from_stdin)
        close(fd);
    if (rc) {
        mem_free(buf);
        return rc;
    }
    buf[n] = 0;
    *text = buf;
    *len = n;
    return 0;
}
