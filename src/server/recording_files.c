/* Opens files below given directories, and no others. */
#include "server/recording_files.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int add_root(struct recordings *r, const char *directory, struct error *err)
{
    struct stat st;
    char *real = realpath(directory, NULL);
    int rc = 0;
    if (!real || stat(real, &st) < 0)
        rc = error_set_errno(err, errno, "%s", directory);
    else if (!S_ISDIR(st.st_mode))
        rc = error_set(err, -MRD_EINVALID, "%s: not a directory", directory);
    else if (!(r->roots[r->n] = mem_strdup(real)))
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    else
        r->n++;
    free(real);
    return rc;
}

int recordings_init(struct recordings *r, const char *const *directories, size_t n, struct error *err)
{
    int rc = 0;
    *r = (struct recordings){.roots = mem_zalloc((n ? n : 1) * sizeof *r->roots)};
    if (!r->roots)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = add_root(r, directories[i], err);
    return rc;
}

void recordings_free(struct recordings *r)
{
    for (size_t i = 0; i < r->n; i++)
        mem_free(r->roots[i]);
    mem_free(r->roots);
    *r = (struct recordings){0};
}

/* What stands behind the root in the path, or NULL. */
static const char *below(const char *root, const char *path)
{
    size_t n = strlen(root);
    if (n == 1) /* "/" */
        return path + 1;
    return strncmp(path, root, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

/* The path has no links any more; should one have come meanwhile, it is not followed. */
static int open_below(const char *root, const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = dir < 0 ? -1 : (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
    int why = errno;
    if (dir >= 0)
        close(dir);
    errno = why;
    return fd;
}

int recordings_open(const struct recordings *r, const char *path, char by[RECORDING_PATH_SIZE], struct error *err)
{
    struct stat st;
    char *real = path[0] == '/' ? realpath(path, NULL) : NULL;
    const char *root = NULL, *name = NULL;
    for (size_t i = 0; real && !name && i < r->n; i++)
        if ((name = below(r->roots[i], real)))
            root = r->roots[i];
    /* Whether a file elsewhere exists is nobody's business. */
    int fd = name ? open_below(root, name) : -1;
    int rc = !name    ? error_set(err, -MRD_EDENIED, "no file of that name is below the directories of --traces")
             : fd < 0 ? error_set_errno(err, errno, "cannot open it")
                      : 0;
    free(real);
    if (rc == 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
        rc = error_set(err, -MRD_EUNSUPPORTED, "not a file: directories are not asked");
    if (rc < 0 && fd >= 0)
        close(fd);
    if (rc < 0)
        return rc;
    snprintf(by, RECORDING_PATH_SIZE, "/proc/self/fd/%d", fd);
    return fd;
}
