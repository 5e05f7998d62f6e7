/* The clock of a file of another format than packets: one for all its events.
 *
 * The first file of an import that has a clock sets the trace time. A later file on a clock of its own
 * (CLOCK_ID_TRACE_FILE) begins at offset 0 of trace time, as does a later file when the trace time is such a clock;
 * REALTIME and MONOTONIC go through the clock snapshots of the other traces. A manifest's word comes before all this.
 */
#ifndef MERIDIAN_IMPORTER_CLOCK_FILE_CLOCK_H
#define MERIDIAN_IMPORTER_CLOCK_FILE_CLOCK_H

#include "importer/core/clock_id.h"
#include "importer/core/context.h"

struct file_clock {
    struct importer *im;
    struct clock_id clock; /* id 0: the file has none */
    bool ready;            /* it was related to trace time */
    bool chosen;           /* the user said which it is */
    bool same;             /* it is trace time */
};

/* The clock of the file that `im->input` tells of. `id`: CLOCK_ID_TRACE_FILE, CLOCK_ID_REALTIME, CLOCK_ID_MONOTONIC …;
 * 0: times of the file stand as they are. Call it when the file begins. */
void file_clock_open(struct file_clock *c, struct importer *im, uint32_t id);

/* The file says that it was `there` on a clock of the system (CLOCK_ID_REALTIME …) at its own time `ns`. What snapshots
 * of other traces say comes before that. */
void file_clock_anchor(struct file_clock *c, int64_t ns, uint32_t id, int64_t there);

/* Slow path of file_clock_to_trace_time(). */
bool file_clock_convert(struct file_clock *c, int64_t ns, int64_t byte_offset, int64_t *ts);

/* A time of the file, in ns, as trace time. False when nothing relates it: that is counted and logged, and the event is
 * to be dropped. `byte_offset`: of the event in the file, -1 when not known. A few ns an event. */
static inline bool file_clock_to_trace_time(struct file_clock *c, int64_t ns, int64_t byte_offset, int64_t *ts)
{
    *ts = ns;
    return c->same || file_clock_convert(c, ns, byte_offset, ts);
}

#endif
