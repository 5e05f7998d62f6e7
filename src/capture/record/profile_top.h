/* The functions that a recording of linux.perf shows most, as a table for people. */
#ifndef MERIDIAN_CAPTURE_RECORD_PROFILE_TOP_H
#define MERIDIAN_CAPTURE_RECORD_PROFILE_TOP_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct profile_counts {
    uint64_t samples; /* of threads, not of idle cpus */
    uint64_t idle;
    uint64_t skipped; /* their stacks could not be taken */
    uint64_t lost;    /* by the kernel */
    uint64_t events;  /* tracepoints that were sampled, of each machine */
};

/* Reads the trace and writes up to `rows` functions, those with the most samples first. `callers`: also how many
 * samples have the function anywhere on their stack. Functions of programs have names when the files are on this
 * machine. */
int profile_top(const char *path, unsigned rows, bool callers, FILE *to, struct profile_counts *counts,
                struct error *err);

#endif
