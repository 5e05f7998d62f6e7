/* Counters that mostly stay as they are: a value that repeats is not written, but the last repetition before a change
 * is, so that the change has a beginning. */
#ifndef MERIDIAN_IMPORTER_ANDROID_SPARSE_H
#define MERIDIAN_IMPORTER_ANDROID_SPARSE_H

#include "importer/track/track_tracker.h"

struct sparse_counter {
    uint32_t track;
    bool begun, repeated;
    int64_t last_ts;
    double last;
};

static inline void sparse_push(struct importer *im, struct sparse_counter *s, int64_t ts, double value)
{
    if (s->begun && value == s->last) {
        s->repeated = true;
        s->last_ts = ts;
        return;
    }
    if (s->repeated)
        counter_push(im, s->last_ts, s->track, s->last);
    counter_push(im, ts, s->track, value);
    s->begun = true;
    s->repeated = false;
    s->last = value;
}

#endif
