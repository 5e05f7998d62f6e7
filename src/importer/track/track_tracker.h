/* Tracks: where slices, counters and states live. A track is known by its type, its name where that matters, its
 * machine and its dimensions (cpu, utid, upid, irq …); asking for it again gives the same row. */
#ifndef MERIDIAN_IMPORTER_TRACK_TRACK_TRACKER_H
#define MERIDIAN_IMPORTER_TRACK_TRACK_TRACKER_H

#include "importer/core/context.h"

enum track_dim_kind { DIM_INT, DIM_STR };

struct track_dim {
    const char *key; /* "cpu", "utid", … a literal */
    enum track_dim_kind kind;
    int64_t value; /* integer or strid */
};

enum track_kind { TRACK_SLICE, TRACK_COUNTER, TRACK_STATE };

/* How a track comes to be. Dimensions become args of dimension_arg_set_id (and the utid/upid columns). */
struct track_spec {
    const char *type; /* track.type, a literal: "cpu_frequency" */
    enum track_kind event_type;
    strid name;      /* 0: NULL */
    strid unit;      /* counter_unit, 0: NULL */
    uint32_t parent; /* track row, UINT32_MAX: none */
    argset source_args;
    const char *description; /* a literal or NULL; becomes source_args where there are none */
    const struct track_dim *dims;
    uint32_t n_dims;
    uint32_t group;   /* + 1: the set that it is one of (track_group_id); 0: none */
    bool name_is_key; /* two tracks that differ only by name are two tracks */
};

struct track_tracker *track_tracker_open(struct importer *im);
void track_tracker_close(struct track_tracker *t);

/* The track of a spec on a machine, made when new. UINT32_MAX when out of memory. */
uint32_t track_intern(struct track_tracker *t, uint32_t machine, const struct track_spec *spec);

/* A new track of a spec, whether there is one like it or not; UINT32_MAX when out of memory. */
uint32_t track_insert_row(struct track_tracker *t, uint32_t machine, const struct track_spec *spec);

/* For the track compressor: its state; the number given to a spec as the key of a set (`next` when it is new,
 * UINT32_MAX when out of memory); what to return when memory runs out (latches it). */
struct track_compressor *track_tracker_compressor(struct track_tracker *t);
uint32_t track_tracker_key(struct track_tracker *t, uint32_t machine, const struct track_spec *spec, uint32_t next);
uint32_t track_tracker_no_memory(struct track_tracker *t);

/* Hot paths: the track of a type with one integer dimension, found by (type pointer, machine, value) with one hash
 * probe. */
uint32_t track_intern_int(struct track_tracker *t, uint32_t machine, const char *type, enum track_kind event_type,
                          const char *dim_key, int64_t dim_value, strid name);

/* Adds a sample. A counter row has no state: this is an insert with the track's id. */
static inline void counter_push(struct importer *im, int64_t ts, uint32_t track, double value)
{
    counter_insert(im->st, &(struct counter_row){.ts = ts, .track_id = track, .value = value});
}

#endif
