/* Tells on a terminal how far the loading of a trace is. */
#ifndef MERIDIAN_SHELL_PROGRESS_H
#define MERIDIAN_SHELL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    int64_t every_ns; /* between two lines */
    int64_t told_ns;  /* when the last one was shown */
    const char *step; /* what is being done; NULL before the first */
    int64_t step_ns;  /* since when */
    bool shown;
};

/* Begins; a line is shown every `every_ms` milliseconds, and none before that (a negative number: all of them). */
void progress_begin(struct progress *p, int64_t every_ms);

/* tp_config.progress_step: `ctx` is the struct progress. */
void progress_step(void *ctx, const char *step, uint64_t done, uint64_t total);

/* Clears the line. */
void progress_end(struct progress *p);

#endif
