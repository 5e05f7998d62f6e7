/* Processes that `record` starts: each in a group of its own, so that Ctrl-C reaches only us, and none outlives us. */
#ifndef MERIDIAN_CAPTURE_RECORD_CHILD_H
#define MERIDIAN_CAPTURE_RECORD_CHILD_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct child {
    pid_t pid; /* 0: none */
    int in;    /* its standard input; -1: /dev/null, or closed by now */
    int out;   /* its standard output; -1: /dev/null */
};

struct child_options {
    char *const *argv;
    const char *const *env; /* "NAME=value", added to ours; NULL-terminated; may be NULL */
    const char *log;        /* standard error goes into this file; NULL: where ours goes */
    bool pipes;             /* we talk to it: in and out are pipes, non-blocking at our end */
};

int child_start(struct child *c, const struct child_options *o, struct error *err);

/* True once it has ended; *status (may be NULL) as waitpid() gives it. */
bool child_ended(struct child *c, int *status);

/* Ends it: `signum` first (0: closes its input, and waits), SIGKILL after `patience_ms`. Nothing to do when there is
 * none. */
void child_stop(struct child *c, int signum, unsigned patience_ms);

#endif
