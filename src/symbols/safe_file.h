/* Opens files that may be anything: pipes, links in circles, the files of other users. */
#ifndef MERIDIAN_SYMBOLS_SAFE_FILE_H
#define MERIDIAN_SYMBOLS_SAFE_FILE_H

#include <stdbool.h>

enum safe_file {
    SAFE_FILE_OPEN,
    SAFE_FILE_MISSING,
    SAFE_FILE_UNREADABLE,
    SAFE_FILE_NOT_REGULAR, /* a pipe, a device, a directory */
    SAFE_FILE_UNTRUSTED,   /* another user could have written it */
};

/* Opens a regular file for reading, without waiting for anything. `trusted`: only one that nobody but root and the user
 * of this process could have written: it, each directory on the way to it and each link there belong to one of them,
 * and nobody else may write to them (directories such as /tmp, where files stay their owners', are fine). */
enum safe_file safe_file_open(const char *path, bool trusted, int *fd);

#endif
