/* Opens files and looks at who could have written them. */
#include "symbols/safe_file.h"

#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool only_ours(const struct stat *st)
{
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return false;
    if (S_ISLNK(st->st_mode))
        return true; /* its mode says nothing */
    bool others_write = st->st_mode & (S_IWGRP | S_IWOTH);
    return !others_write || (S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX));
}

/* Each part of an absolute path, which is cut and mended again. */
static bool parts_are_ours(char *path)
{
    struct stat st;
    for (char *slash = path; slash; slash = strchr(slash + 1, '/')) {
        char after = slash[1];
        slash[slash == path] = 0; /* "/" itself is the first part */
        bool ours = lstat(path, &st) == 0 && only_ours(&st);
        slash[slash == path] = slash == path ? after : '/';
        if (!ours)
            return false;
    }
    return lstat(path, &st) == 0 && only_ours(&st);
}

/* Whether `fd`, opened by `path`, is what only we could have put there. Links on the way are followed by hand: who may
 * change a link chooses what it leads to. */
static bool is_ours(const char *path, int fd)
{
    char here[PATH_MAX], real[PATH_MAX];
    struct stat opened, there;
    if (path[0] == '/') {
        if (strlen(path) >= sizeof here)
            return false;
        strcpy(here, path);
    } else {
        if (!getcwd(here, sizeof here) || strlen(here) + strlen(path) + 2 > sizeof here)
            return false;
        strcat(strcat(here, "/"), path);
    }
    return realpath(here, real) && parts_are_ours(here) && parts_are_ours(real) && fstat(fd, &opened) == 0 &&
           only_ours(&opened) && stat(real, &there) == 0 && opened.st_dev == there.st_dev &&
           opened.st_ino == there.st_ino;
}

/* Names come out of recordings and of other files. */
enum safe_file safe_file_open(const char *path, bool trusted, int *fd)
{
    *fd = file_open_regular(path);
    if (*fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG ? SAFE_FILE_MISSING
               : errno == ENOTSUP                                           ? SAFE_FILE_NOT_REGULAR
                                                                            : SAFE_FILE_UNREADABLE;
    if (!trusted || is_ours(path, *fd))
        return SAFE_FILE_OPEN;
    close(*fd);
    *fd = -1;
    return SAFE_FILE_UNTRUSTED;
}
