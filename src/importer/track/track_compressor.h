/* Asynchronous slices on as few tracks as possible: a set of tracks that differ only by the dimension
 * `track_compressor_idx`, each used by one slice (or one nest of slices) at a time. */
#ifndef MERIDIAN_IMPORTER_TRACK_TRACK_COMPRESSOR_H
#define MERIDIAN_IMPORTER_TRACK_TRACK_COMPRESSOR_H

#include "importer/track/track_tracker.h"

#define TRACK_SET_NONE UINT32_MAX

/* The set of a spec (its dimensions, and its name if name_is_key); the index dimension is added to each track. Strings
 * and ids of the spec are copied, literals kept. TRACK_SET_NONE when out of memory. */
uint32_t track_set_intern(struct track_tracker *t, uint32_t machine, const struct track_spec *spec);

/* The track for a slice that begins, continues or ends; slices with one cookie share a track and nest there. UINT32_MAX
 * when out of memory. */
uint32_t track_set_begin(struct track_tracker *t, uint32_t set, int64_t cookie);
/* As begin for slices that never nest: however often it began, one end frees the track. */
uint32_t track_set_begin_once(struct track_tracker *t, uint32_t set, int64_t cookie);
uint32_t track_set_end(struct track_tracker *t, uint32_t set, int64_t cookie);
/* The track for a complete slice: the first one that is free at ts. */
uint32_t track_set_scoped(struct track_tracker *t, uint32_t set, int64_t ts, int64_t dur);

/* The first track of the set, made when there is none; not taken by this. For children and counters of the set. */
uint32_t track_set_first(struct track_tracker *t, uint32_t set);

/* Used by the track tracker alone. */
struct track_compressor *track_compressor_open(void);
void track_compressor_close(struct track_compressor *c);

#endif
