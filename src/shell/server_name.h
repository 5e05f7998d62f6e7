/* Where the servers on Unix sockets are: the paths that a session's name stands for, and their pid files. */
#ifndef MERIDIAN_SHELL_SERVER_NAME_H
#define MERIDIAN_SHELL_SERVER_NAME_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct server_name {
    char session[64];
    char socket_path[128]; /* the kernel takes 103 bytes */
    char pid_path[144];
};

/* The paths of a session by name (NULL: "default"), or of the socket at `path` (NULL: by name). `make_dir` makes the
 * directory, which only its owner may enter. */
int server_name_resolve(struct server_name *n, const char *name, const char *path, bool make_dir, struct error *err);

/* Writes and removes the pid file. */
int server_name_write_pid(const struct server_name *n, struct error *err);
void server_name_remove(const struct server_name *n);

/* Ends the server of the name and waits until it is gone. */
int server_name_kill(const struct server_name *n, struct error *err);

#endif
