/* Nested slices: a stack of open slices per track. */
#ifndef MERIDIAN_IMPORTER_TRACK_SLICE_TRACKER_H
#define MERIDIAN_IMPORTER_TRACK_SLICE_TRACKER_H

#include "importer/core/context.h"

#define SLICE_NONE UINT32_MAX

struct slice_tracker *slice_tracker_open(struct importer *im);
void slice_tracker_close(struct slice_tracker *t);
/* Slices whose name is a key of `names` get what it stands for; the map may grow, and outlives the last slice. */
void slice_tracker_translate(struct slice_tracker *t, const struct u64map *names);
/* Leaves unfinished slices with dur = -1. */
void slice_tracker_finish(struct slice_tracker *t);

/* Opens a slice at ts. category, name: 0 for NULL. args: the set's id, 0 for none. Returns the slice's row, SLICE_NONE
 * when it was dropped (depth limit; counted). `machine` is where stats go. */
uint32_t slice_begin(struct slice_tracker *t, uint32_t machine, int64_t ts, uint32_t track, strid category, strid name,
                     argset args);
/* A complete slice. */
uint32_t slice_scoped(struct slice_tracker *t, uint32_t machine, int64_t ts, uint32_t track, strid category, strid name,
                      int64_t dur, argset args);
/* As the two above with every column of the row the caller's (thread_ts …); depth and parent_id are set here. dur -1
 * means that an end will come. */
uint32_t slice_push(struct slice_tracker *t, uint32_t machine, struct slice_row *row);
/* As slice_push(), but a slice that would outlast a complete one around it is only told: *conflict is that one, else
 * SLICE_NONE. */
uint32_t slice_push_fitting(struct slice_tracker *t, uint32_t machine, struct slice_row *row, uint32_t *conflict);
/* Closes the innermost open slice that matches (0 matches anything). `add` (may be NULL): more args to append to its
 * set. Returns its row or SLICE_NONE. */
uint32_t slice_end(struct slice_tracker *t, uint32_t machine, int64_t ts, uint32_t track, strid category, strid name,
                   const struct arg_list *add);
/* The innermost open slice of a track at its last event, or SLICE_NONE. */
uint32_t slice_top(struct slice_tracker *t, uint32_t track);
/* Appends args to a list; one with a key that was there before replaces it. False when out of memory. */
bool arg_list_merge(struct arg_list *all, const struct arg_list *add);
/* Appends args to the set of a slice (which may have none yet). */
void slice_add_args(struct slice_tracker *t, uint32_t slice, const struct arg_list *add);

#endif
