/* Opens files below given directories, and no others. */
#include "server/recording_files.h"

#include "base/alloc.h"
#include "base/file.h"

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

/* Where the file is, as a descriptor of O_PATH. The path has no links any more; should one have come meanwhile, it is
 * not followed. */
static int find_below(const char *root, const char *name)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int place = dir < 0 ? -1 : (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
    int why = errno;
    if (dir >= 0)
        close(dir);
    errno = why;
    return place;
}

/* Opens what is there when it is a file: to open a device may do something. The descriptor, or negative. */
static int open_place(int place, struct error *err)
{
    struct stat st;
    if (fstat(place, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(err, -MRD_EUNSUPPORTED, "not a file: directories are not asked");
    if (st.st_size == 0) /* as those of /proc are, which may have no end */
        return error_set(err, -MRD_EUNSUPPORTED, "the file is empty");
    int fd = file_open_again(place);
    return fd < 0 ? error_set_errno(err, errno, "cannot open it") : fd;
}

int recordings_open(const struct recordings *r, const char *path, char by[RECORDING_PATH_SIZE], struct error *err)
{
    char *real = path[0] == '/' ? realpath(path, NULL) : NULL;
    const char *root = NULL, *name = NULL;
    for (size_t i = 0; real && !name && i < r->n; i++)
        if ((name = below(r->roots[i], real)))
            root = r->roots[i];
    /* Whether a file elsewhere exists is nobody's business. */
    int place = name ? find_below(root, name) : -1;
    int fd = !name       ? error_set(err, -MRD_EDENIED, "no file of that name is below the directories of --traces")
             : place < 0 ? error_set_errno(err, errno, "cannot open it")
                         : open_place(place, err);
    free(real);
    if (place >= 0)
        close(place);
    if (fd >= 0)
        snprintf(by, RECORDING_PATH_SIZE, "/proc/self/fd/%d", fd);
    return fd;
}
