/* Names of the threads that were born or renamed while their ring was read. Where no ftrace records it, nothing else
 * names a program that starts and ends within the recording. */
#ifndef MERIDIAN_CAPTURE_PERF_PERF_NAMES_H
#define MERIDIAN_CAPTURE_PERF_PERF_NAMES_H

#include "base/u64map.h"
#include "base/vec.h"
#include "capture/perf/perf_record.h"

enum { PERF_COMM_BYTES = 16 }; /* TASK_COMM_LEN, with its NUL */

struct perf_name {
    char text[PERF_COMM_BYTES]; /* "": not known */
    bool told;
};

struct perf_names {
    struct u64map index; /* tid → place in `list` */
    VEC(struct perf_name)
    list;
};

/* Takes in a record of a fork, which hands on the parent's name, or of a new name. */
void perf_names_record(struct perf_names *names, const struct perf_record *r);

/* The name of a thread that is to be told, once; it is asked of /proc when no record had it. NULL: there is nothing to
 * tell. It lasts until the next record. */
const char *perf_names_tell(struct perf_names *names, int32_t pid, int32_t tid);

void perf_names_free(struct perf_names *names);

#endif
