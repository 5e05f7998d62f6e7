/* From the time stamps of a trace.dat to nanoseconds of its clock: guests to their host's clock, ticks to time.
 *
 * In this order: the samples of option TIME_SHIFT (piece by piece, a CPU at a time), TSC2NSEC, OFFSET, of a guest also
 * that of its host. DATE is not a part of it: it relates the clock to the wall clock. */
#ifndef MERIDIAN_IMPORTER_TRACE_DAT_DAT_CLOCK_H
#define MERIDIAN_IMPORTER_TRACE_DAT_DAT_CLOCK_H

#include "importer/trace_dat/dat_file.h"

/* A guest's clock against its host's. */
struct dat_shift {
    uint64_t time; /* of the guest, raw */
    int64_t offset;
    int64_t scaling;
    uint64_t fraction; /* bits behind the point of `scaling` */
};

struct dat_shifts {
    VEC(struct dat_shift)
    list; /* by time, no time twice */
};

struct dat_clock {
    const struct dat_file *file;
    uint64_t peer; /* trace id of the host's file; 0: the file is not a guest's */
    bool interpolate;
    bool scales;            /* some scaling is not 1 */
    int64_t host_offset_ns; /* what the host's file adds to its times */
    VEC(struct dat_shifts)
    cpus;
    const struct dat_shifts *now; /* of the CPU that is read; NULL: no shift */
};

/* -MRD_ENOMEM. A TIME_SHIFT that breaks off gives no correction to the CPUs that it lacks, and sets *bad. */
int dat_clock_open(struct dat_clock *c, const struct dat_file *f, bool *bad);
void dat_clock_close(struct dat_clock *c);

/* The CPU that the next times are of. */
void dat_clock_cpu(struct dat_clock *c, uint32_t cpu);

/* `clock` is a struct dat_clock: as struct page_foreign wants it. */
uint64_t dat_clock_time(void *clock, uint64_t raw);

#endif
