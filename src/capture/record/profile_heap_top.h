/* The functions that a heap profile shows most, as a table for people. */
#ifndef MERIDIAN_CAPTURE_RECORD_PROFILE_HEAP_TOP_H
#define MERIDIAN_CAPTURE_RECORD_PROFILE_HEAP_TOP_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct profile_heap_counts {
    uint64_t kept, allocated; /* bytes, as the samples stand for */
    uint64_t samples, lost;
    uint64_t interval; /* the largest */
    unsigned processes;
    unsigned left_out; /* processes that were not sampled */
};

/* Reads the trace and writes up to `rows` functions, those that keep most first. `callers`: also what each has asked
 * for with all that it calls. */
int profile_heap_top(const char *path, unsigned rows, bool callers, FILE *to, struct profile_heap_counts *counts,
                     struct error *err);

/* 1234567 as "1.2 MB": at most 9 characters. */
void profile_print_bytes(char *text, size_t size, uint64_t bytes);

#endif
