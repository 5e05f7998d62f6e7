/* Looks for files of code by their names, and makes sure that they are the recorded ones. */
#include "shell/trace_code.h"

#include "symbols/safe_file.h"
#include "symbols/symbol_finder.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool has_build_id(int fd, const struct tp_code_file *file)
{
    struct elf_image e;
    struct error err = {0};
    bool same = elf_image_open(&e, fd, &err) == 0 && e.build_id_len == file->build_id_len &&
                memcmp(e.build_id, file->build_id, e.build_id_len) == 0;
    elf_image_close(&e);
    return same;
}

static bool is_inode(int fd, const struct tp_code_file *file)
{
    struct stat st;
    return file->inode && fstat(fd, &st) == 0 && st.st_ino == file->inode && major(st.st_dev) == file->major &&
           minor(st.st_dev) == file->minor;
}

static int open_if_same(const char *path, bool this_machine, const struct tp_code_file *file)
{
    int fd;
    if (safe_file_open(path, this_machine, &fd) != SAFE_FILE_OPEN)
        return -1;
    if (file->build_id_len ? has_build_id(fd, file) : this_machine && is_inode(fd, file))
        return fd;
    close(fd);
    return -1;
}

/* The places below a directory: by path, by name, by build id. */
static int open_below(const char *dir, const struct tp_code_file *file)
{
    char path[PATH_MAX];
    const char *name = strrchr(file->path, '/');
    int n = snprintf(path, sizeof path, "%s%s", dir, file->path),
        fd = n < (int)sizeof path ? open_if_same(path, false, file) : -1;
    if (fd < 0 && name && snprintf(path, sizeof path, "%s%s", dir, name) < (int)sizeof path)
        fd = open_if_same(path, false, file);
    n = fd < 0 && file->build_id_len > 1 ? snprintf(path, sizeof path, "%s/.build-id/%02x/", dir, file->build_id[0])
                                         : -1;
    for (size_t i = 1; n > 0 && i < file->build_id_len && n < (int)sizeof path; i++)
        n += snprintf(path + n, sizeof path - (size_t)n, "%02x", file->build_id[i]);
    return n > 0 && n < (int)sizeof path ? open_if_same(path, false, file) : fd;
}

int trace_code_open(void *ctx, const struct tp_code_file *file)
{
    const struct symbol_sources *sources = ctx;
    int fd = sources->this_machine ? open_if_same(file->path, true, file) : -1;
    for (size_t i = 0; fd < 0 && i < sources->n_paths; i++) {
        struct stat st;
        bool is_file = stat(sources->paths[i], &st) == 0 && S_ISREG(st.st_mode);
        fd = is_file ? open_if_same(sources->paths[i], false, file) : open_below(sources->paths[i], file);
    }
    return fd;
}
