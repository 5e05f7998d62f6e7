/* The command of `record … -- COMMAND`: it runs while the recording does, in front of the terminal as if it had been
 * started alone. A supervisor process stands between: it waits for the start, runs the command and tells its end. */
#ifndef MERIDIAN_CAPTURE_RECORD_WORKLOAD_H
#define MERIDIAN_CAPTURE_RECORD_WORKLOAD_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct workload {
    pid_t supervisor; /* 0: there is no command */
    int go;           /* a 0 written to it starts the command; closing it before that cancels it */
    int end;          /* readable when the command has ended */
};

/* `env`: more for its environment, NULL-terminated. */
int workload_start(struct workload *w, char *const *argv, const char *const *env, struct error *err);

/* Waits for its end, or ends it (`stop`). False: it was not run or did not tell; else *status as a shell has it: its
 * exit status, or 128 and the signal that ended it. */
bool workload_end(struct workload *w, bool stop, int *status);

#endif
