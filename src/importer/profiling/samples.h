/* Samples of every profiler: what was running, where, and with which call stack. Their sessions are rows of
 * profiler_session, which the caller inserts. */
#ifndef MERIDIAN_IMPORTER_PROFILING_SAMPLES_H
#define MERIDIAN_IMPORTER_PROFILING_SAMPLES_H

#include "importer/core/context.h"

struct profiling_machine;

struct sample {
    int64_t ts;
    strid source;
    uint32_t upid, utid;   /* UPID_NONE, UTID_NONE: not known */
    int64_t async_context; /* row of profiler_async_context, COL_NULL: none */
    int64_t cpu;           /* COL_NULL: not known */
    strid mode;            /* 0: not known */
    uint32_t callsite;     /* CALLSITE_NONE: none */
    strid unwind_error;
    int64_t session;
    int64_t counter_set; /* COL_NULL: none */
};
/* The name of a Profiling.StackUnwindError. */
strid sample_unwind_error(struct importer *im, uint64_t code);
/* Where a sample was taken: the row of profiler_execution_context for a CPU (COL_NULL: not known) and a mode (0: not
 * known), COL_NULL when neither is known, or when out of memory. */
int64_t sample_execution(struct profiling_machine *s, int64_t cpu, strid mode);
/* Adds the sample with the contexts it stands in; its row, UINT32_MAX when out of memory. */
uint32_t sample_insert(struct profiling_machine *s, const struct sample *sample);
/* The same where it is known where it was taken. */
uint32_t sample_insert_at(struct profiling_machine *s, const struct sample *sample, int64_t execution);
/* The row of profiler_task_context of who ran, COL_NULL when that is not known, or when out of memory. */
int64_t sample_task(struct profiling_machine *s, const struct sample *sample);

/* Adds a counter sample to a set: *set is COL_NULL before the first. */
void sample_counter(struct profiling_machine *s, int64_t *set, int64_t ts, uint32_t track, double value);

#endif
