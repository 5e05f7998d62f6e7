/* Counters that mostly stay as they are: a value that repeats is not written, but the last repetition before a change
 * is, so that the change has a beginning.
 *
 * Each packet of a source means again what the source told before, and holds only what grew: the last repetition
 * follows from the source's packet before, when the counter is told next. So a packet costs what it holds, not what is
 * known. */
#ifndef MERIDIAN_IMPORTER_ANDROID_SPARSE_H
#define MERIDIAN_IMPORTER_ANDROID_SPARSE_H

#include "importer/track/track_tracker.h"

struct sparse_source {
    uint64_t packets; /* that have been read */
    int64_t last_ts;  /* of the last one */
};

struct sparse_counter {
    uint32_t track;
    bool begun;
    uint32_t source;  /* that told it last */
    uint64_t written; /* packets of the source after which `last` was written: what has come since repeated it */
    double last;
};

/* What the next packet of `source`, one of `sources`, tells of a counter; once for each packet. */
static inline void sparse_tell(struct importer *im, struct sparse_counter *s, const struct sparse_source *sources,
                               uint32_t source, int64_t ts, double value)
{
    const struct sparse_source *before = &sources[s->source];
    bool repeats = s->begun && value == s->last;
    if (s->begun && !repeats && before->packets > s->written)
        counter_push(im, before->last_ts, s->track, s->last);
    if (!repeats)
        counter_push(im, ts, s->track, value);
    s->begun = true;
    s->source = source;
    s->written = sources[source].packets + !repeats;
    s->last = value;
}

static inline void sparse_packet_read(struct sparse_source *source, int64_t ts)
{
    source->packets++;
    source->last_ts = ts;
}

#endif
