/* Writes samples that have one counter's value each: many at once, and by a thread of its own where there may be one.
 *
 * Who adds rows to profiler_sample, profiler_counter_set or counter by another way calls sample_writer_flush() before,
 * and so does who reads or changes them. */
#ifndef MERIDIAN_IMPORTER_PROFILING_SAMPLE_WRITER_H
#define MERIDIAN_IMPORTER_PROFILING_SAMPLE_WRITER_H

#include "importer/core/context.h"

enum { SAMPLE_BATCH = 1024 };

/* What samples may have in common: all of them but when they were taken and what was counted. COL_NULL: not known. */
struct sample_place {
    int64_t task, execution, callsite, unwind_error, session, track;
};

/* A place, and where it stands in the batch that was filled when a sample was added there last. */
struct sample_known_place {
    struct sample_place place;
    uint32_t batch; /* its number; 0: none yet */
    uint16_t at;
};

/* Samples that are written together. A place stands there once: few bytes go from one processor to another. */
struct sample_batch {
    uint32_t number; /* from 1 */
    uint32_t n, n_places;
    int64_t ts[SAMPLE_BATCH], value[SAMPLE_BATCH];
    uint16_t place[SAMPLE_BATCH];
    struct sample_place places[SAMPLE_BATCH];
};

struct sample_thread;

struct sample_writer {
    struct storage *st;
    strid source;               /* of all */
    struct sample_batch *batch; /* that is being filled */
    uint32_t number;            /* of the last batch that was begun */
    bool may_use_thread;
    struct sample_thread *thread; /* NULL: none was begun */
    uint32_t given, row;          /* samples that the thread has got since the last flush, and the first one's row */
};

/* NULL when out of memory. */
struct sample_writer *sample_writer_open(struct storage *st, strid source, bool may_use_thread);
void sample_writer_close(struct sample_writer *w); /* what waits is not written */

void sample_writer_hand_on(struct sample_writer *w); /* a batch that is full */

/* Adds a sample, whose counter_set is of one value. */
static inline void sample_writer_add(struct sample_writer *w, int64_t ts, struct sample_known_place *x, double value)
{
    struct sample_batch *b = w->batch;
    if (__builtin_expect(x->batch != b->number, 0)) {
        x->batch = b->number;
        x->at = (uint16_t)b->n_places;
        b->places[b->n_places++] = x->place;
    }
    uint32_t i = b->n++;
    b->ts[i] = ts;
    b->value[i] = column_f64_word(value);
    b->place[i] = x->at;
    if (__builtin_expect(b->n == SAMPLE_BATCH, 0))
        sample_writer_hand_on(w);
}

/* The row of profiler_sample that the next sample becomes. */
uint32_t sample_writer_row(const struct sample_writer *w);

void sample_writer_flush_all(struct sample_writer *w);

/* Writes what waits, and waits for the thread. */
static inline void sample_writer_flush(struct sample_writer *w)
{
    if (w->batch->n || w->given)
        sample_writer_flush_all(w);
}

#endif
