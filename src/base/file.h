/* Files as the importer wants them: mapped whole, or read in pieces; and written; with hooks that let a test give short
 * reads and full disks. */
#ifndef MERIDIAN_BASE_FILE_H
#define MERIDIAN_BASE_FILE_H

#include "base/error.h"
#include "base/map_guard.h"
#include "base/slice.h"

#include <stdbool.h>
#include <sys/types.h>

/* Replaces read(2) for tests (short reads, errors); NULL restores the real one. Process-wide, as the allocation hook.
 */
typedef ssize_t (*file_read_fn)(int fd, void *buf, size_t len);
void file_set_read_hook(file_read_fn fn);

/* read(2) through the hook, restarted on EINTR. */
ssize_t file_read(int fd, void *buf, size_t len);

/* Replaces write(2) for tests (a full disk, short writes); NULL restores the real one. */
typedef ssize_t (*file_write_fn)(int fd, const void *buf, size_t len);
void file_set_write_hook(file_write_fn fn);

/* write(2) through the hook, restarted on EINTR. */
ssize_t file_write(int fd, const void *buf, size_t len);

/* Writes everything, restarting on EINTR and short writes. */
int file_write_all(int fd, const void *buf, size_t len, struct error *err);

/* Opens what a path leads to for reading, when it is a regular file: to open a device may do something (a watchdog, a
 * tape), and so may a FIFO. For paths that come from others. -1: errno says why; ENOTSUP: it is no regular file. */
int file_open_regular(const char *path);

/* Opens for reading what a descriptor of O_PATH is of, once it has been looked at. -1: errno says why. */
int file_open_again(int place);

struct mapped_file {
    struct slice bytes; /* p is NULL for an empty file */
    void *map;
    size_t map_len;
    struct map_guard *guard;
    bool still_written; /* somebody has it open for writing; false when that cannot be known */
};

/* Maps a regular file read-only. When the file is cut while it is mapped, what is gone reads as zeros.
 * -MRD_EUNSUPPORTED when `path` is not a regular file (a pipe, a device): then read it.
 */
int mapped_file_open(struct mapped_file *m, const char *path, struct error *err);
void mapped_file_close(struct mapped_file *m);

/* Something of it was gone when it was read. */
bool mapped_file_shrank(const struct mapped_file *m);

/* Reads the whole of `path` ("-" is standard input) up to `max` bytes into mem_alloc()ed memory, NUL-terminated. */
int file_read_all(const char *path, size_t max, char **text, size_t *len, struct error *err);

#endif
