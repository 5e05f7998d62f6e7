/* A made-up machine with two processors, as a recording: a web server whose threads share a lock, a database that waits
 * for its disk, a batch job, kernel threads, a governor of frequencies; loads drift. One disturbance may be added. */
#ifndef MERIDIAN_TEST_SCHED_SIMULATOR_H
#define MERIDIAN_TEST_SCHED_SIMULATOR_H

#include "wire/pb_writer.h"

#include <stdint.h>

enum disturbance {
    UNDISTURBED,
    CPU_HOG,     /* a process "hog" that never sleeps */
    FSYNC_STORM, /* a process "syncer" that syncs without end, so that the disk is slow for all */
    LOCK_CONVOY, /* who holds the web server's lock waits with it */
    FREQUENCY_LIMIT,
    DISTURBANCES
};

struct simulation {
    uint64_t seed;
    enum disturbance disturbance;
    int64_t dur_ns;
};

/* Appends the recording to `w`. */
void sched_simulate(const struct simulation *s, struct pb_writer *w);

#endif
