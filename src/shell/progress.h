/* Tells on a terminal how far the loading of a trace is. */
#ifndef MERIDIAN_SHELL_PROGRESS_H
#define MERIDIAN_SHELL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool all;         /* every line is shown */
    int64_t told_ns;  /* when the last one was shown */
    const char *step; /* what is being done; NULL before the first */
    int64_t step_ns;  /* since when */
    bool shown;
};

/* Begins; a line is shown every tenth of a second, and none before that; or every line, when `all`. */
void progress_begin(struct progress *p, bool all);

/* tp_config.progress_step: `ctx` is the struct progress. */
void progress_step(void *ctx, const char *step, uint64_t done, uint64_t total);

/* Clears the line. */
void progress_end(struct progress *p);

#endif
