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

/* Samples that wait to be written together, column after column, each with one counter's value. Others that are added
 * to these tables or to `counter` meanwhile have to wait for sample_batch_flush(). */
enum { SAMPLE_BATCH = 64 };
struct sample_batch {
    uint32_t n;
    int64_t ts[SAMPLE_BATCH], task[SAMPLE_BATCH], execution[SAMPLE_BATCH], callsite[SAMPLE_BATCH];
    int64_t unwind_error[SAMPLE_BATCH], session[SAMPLE_BATCH], track[SAMPLE_BATCH], value[SAMPLE_BATCH];
};
void sample_batch_flush(struct profiling_machine *s, struct sample_batch *b, strid source);
/* What samples may have in common: all of them but when they were taken and what was counted. */
struct sample_place {
    int64_t task, execution, callsite, unwind_error, session, track; /* as they stand in the batch */
};
/* Adds a sample, whose source is that of all, and its counter_set none; true when the batch is full. */
static inline bool sample_batch_add(struct sample_batch *b, int64_t ts, const struct sample_place *x, double value)
{
    uint32_t i = b->n++;
    b->ts[i] = ts;
    b->task[i] = x->task;
    b->execution[i] = x->execution;
    b->callsite[i] = x->callsite;
    b->unwind_error[i] = x->unwind_error;
    b->session[i] = x->session;
    b->track[i] = x->track;
    b->value[i] = column_f64_word(value);
    return b->n == SAMPLE_BATCH;
}

/* Adds a counter sample to a set: *set is COL_NULL before the first. */
void sample_counter(struct profiling_machine *s, int64_t *set, int64_t ts, uint32_t track, double value);

#endif
