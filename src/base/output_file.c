/* Writes output that replaces a file in one step. */
#include "base/output_file.h"

#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 1 << 16, TRIES = 100 };

static void forget(struct output_file *o)
{
    mem_free(o->path);
    mem_free(o->part);
    mem_free(o->buf);
    *o = (struct output_file){.fd = -1};
}

/* A new file beside `path`, with owner and permissions of the one that it replaces: never more, or others could open it
 * before it has them; never its set-uid bits, which were granted to what was in there. */
static int open_part(struct output_file *o, const struct stat *old)
{
    size_t room = strlen(o->path) + 64;
    o->part = mem_alloc(room);
    int fd = -1;
    errno = o->part ? EEXIST : ENOMEM;
    for (int i = 0; i < TRIES && fd < 0 && errno == EEXIST; i++) {
        snprintf(o->part, room, "%s.part-%ld-%d", o->path, (long)getpid(), i);
        fd = open(o->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, old ? 0600 : 0666);
    }
    if (fd >= 0 && old) {
        if (old->st_uid != geteuid() || old->st_gid != getegid())
            (void)!fchown(fd, old->st_uid, old->st_gid);
        (void)!fchmod(fd, old->st_mode & 0777);
    }
    return fd;
}

static char *follow(const char *path)
{
    char *real = realpath(path, NULL);
    char *copy = mem_strdup(real ? real : path);
    free(real);
    return copy;
}

/* /dev/stdout, redirected to a file: others write there too, before and after us. */
static bool is_standard_output(const struct stat *st)
{
    struct stat out;
    return fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == st->st_dev && out.st_ino == st->st_ino;
}

/* A link to what is not there yet: made through it, as open() does. */
static bool is_dangling(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* The file itself: what cannot, or must not be replaced. */
static int open_in_place(struct output_file *o, bool standard_output)
{
    mem_free(o->part);
    o->part = mem_strdup(o->path);
    if (!o->part)
        return -1;
    if (standard_output)
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    return open(o->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

int output_file_open(struct output_file *o, const char *path, struct error *err)
{
    struct stat st;
    *o = (struct output_file){.fd = -1, .path = follow(path), .buf = mem_alloc(BUFFER)};
    if (!o->path || !o->buf) {
        forget(o);
        return error_set(err, -MRD_ENOMEM, "%s: out of memory", path);
    }
    bool there = stat(path, &st) == 0, standard_output = there && is_standard_output(&st);
    bool in_place = standard_output || (there ? !S_ISREG(st.st_mode) : is_dangling(path));
    errno = 0;
    if (!in_place && (!there || faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0)) { /* what may not be written stays */
        o->fd = open_part(o, there ? &st : NULL);
        in_place = o->fd < 0 && there && (errno == EACCES || errno == EPERM || errno == EROFS); /* no new file there */
    }
    if (in_place)
        o->fd = open_in_place(o, standard_output);
    if (o->fd >= 0)
        return 0;
    int rc = error_set_errno(err, errno, "%s", path);
    forget(o);
    return rc;
}

int output_file_flush(struct output_file *o, struct error *err)
{
    int rc = file_write_all(o->fd, o->buf, o->n, err);
    o->n = 0;
    return rc < 0 ? error_prefix(err, "%s", o->path) : 0;
}

int output_file_write(struct output_file *o, const void *p, size_t len, struct error *err)
{
    const char *from = p;
    while (len) {
        size_t take = len < BUFFER - o->n ? len : BUFFER - o->n;
        memcpy(o->buf + o->n, from, take);
        o->n += take;
        from += take;
        len -= take;
        int rc = o->n == BUFFER ? output_file_flush(o, err) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

int output_file_close(struct output_file *o, int rc, struct error *err)
{
    if (!o->path)
        return rc;
    bool beside = strcmp(o->part, o->path) != 0;
    if (rc == 0)
        rc = output_file_flush(o, err);
    if (close(o->fd) != 0 && rc == 0)
        rc = error_set_errno(err, errno, "%s", o->path);
    if (rc == 0 && beside && rename(o->part, o->path) != 0)
        rc = error_set_errno(err, errno, "%s", o->path);
    if (rc != 0 && beside)
        unlink(o->part);
    forget(o);
    return rc;
}
