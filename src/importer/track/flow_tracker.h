/* Flows: arrows from slice to slice, known by a number that producers choose. */
#ifndef MERIDIAN_IMPORTER_TRACK_FLOW_TRACKER_H
#define MERIDIAN_IMPORTER_TRACK_FLOW_TRACKER_H

#include "importer/core/context.h"

struct flow_tracker *flow_tracker_open(struct importer *im);
void flow_tracker_finish(struct flow_tracker *t);
void flow_tracker_close(struct flow_tracker *t);

/* The innermost open slice of the track starts, continues or ends flow `id`. What cannot be is counted (flow_*). */
void flow_begin(struct flow_tracker *t, uint32_t machine, uint32_t track, uint64_t id);
void flow_step(struct flow_tracker *t, uint32_t machine, uint32_t track, uint64_t id);
/* `enclosing`: ends at the innermost open slice, else at the next slice of the track. `close`: the id is free again. */
void flow_end(struct flow_tracker *t, uint32_t machine, uint32_t track, uint64_t id, bool enclosing, bool close);
/* The same for a slice at hand. */
void flow_begin_at(struct flow_tracker *t, uint32_t machine, uint32_t slice, uint64_t id);
void flow_step_at(struct flow_tracker *t, uint32_t machine, uint32_t slice, uint64_t id);
void flow_end_at(struct flow_tracker *t, uint32_t machine, uint32_t slice, uint64_t id, bool close);
bool flow_active(const struct flow_tracker *t, uint64_t id);

/* An arrow between two slices at hand, without a number. */
void flow_between(struct flow_tracker *t, uint32_t out, uint32_t in);
/* As above, with args. */
void flow_between_named(struct flow_tracker *t, uint32_t out, uint32_t in, argset args);

/* The flow of a legacy event: known by its id, category and name (args of the flow's rows). */
uint64_t flow_legacy_id(struct flow_tracker *t, uint64_t source_id, strid category, strid name);

/* Called by the slice tracker for every slice: ends the flows that waited for the track's next slice. */
void flow_tracker_slice_begun(struct flow_tracker *t, uint32_t machine, uint32_t track, uint32_t slice);

#endif
