/* Counters that mostly stay as they are: a value that repeats is not written, but the last repetition before a change
 * is, so that the change has a beginning.
 *
 * Each packet of a source means again what the source told before, and holds only what grew: the last repetition
 * follows from the source's packet before, when the counter is told next. So a packet costs what it holds, not what is
 * known. */
#ifndef MERIDIAN_IMPORTER_ANDROID_SPARSE_H
#define MERIDIAN_IMPORTER_ANDROID_SPARSE_H

#include "base/u64map.h"
#include "base/vec.h"
#include "importer/track/track_tracker.h"

struct sparse_source {
    uint64_t packets; /* that have been read */
    int64_t last_ts;  /* of the last one */
};

struct sparse_sources {
    struct u64map of; /* key, as that of an incremental state -> index of list */
    VEC(struct sparse_source)
    list;
};

struct sparse_counter {
    uint32_t track;
    bool begun;
    uint32_t source;  /* that told it last, index */
    uint64_t written; /* packets of the source after which `last` was written: what has come since repeated it */
    double last;
};

/* The index of the source of a key, made when new; UINT32_MAX when out of memory. */
static inline uint32_t sparse_source_of(struct importer *im, struct sparse_sources *sources, uint64_t key)
{
    bool added = false;
    uint64_t *at = u64map_put(&sources->of, key, &added);
    if (at && added) {
        *at = sources->list.n;
        if (!vec_push(&sources->list, ((struct sparse_source){0})))
            at = NULL;
    }
    if (at && *at < sources->list.n)
        return (uint32_t)*at;
    im->failed = true;
    return UINT32_MAX;
}

static inline void sparse_sources_free(struct sparse_sources *sources)
{
    u64map_free(&sources->of);
    vec_free(&sources->list);
}

/* The number of the packet of a source that is read now, from 1. */
static inline uint64_t sparse_packet(const struct sparse_sources *sources, uint32_t source)
{
    return sources->list.p[source].packets + 1;
}

/* What that packet tells of a counter; once for each packet. */
static inline void sparse_tell(struct importer *im, struct sparse_counter *s, const struct sparse_sources *sources,
                               uint32_t source, int64_t ts, double value)
{
    const struct sparse_source *before = &sources->list.p[s->source];
    bool repeats = s->begun && value == s->last;
    if (s->begun && !repeats && before->packets > s->written)
        counter_push(im, before->last_ts, s->track, s->last);
    if (!repeats)
        counter_push(im, ts, s->track, value);
    s->begun = true;
    s->source = source;
    s->written = sources->list.p[source].packets + !repeats;
    s->last = value;
}

static inline void sparse_packet_read(struct sparse_sources *sources, uint32_t source, int64_t ts)
{
    sources->list.p[source].packets++;
    sources->list.p[source].last_ts = ts;
}

#endif
