/* Track events and track descriptors of one machine (facts: importer section 6). */
#ifndef MERIDIAN_IMPORTER_TRACK_EVENT_TRACK_EVENT_H
#define MERIDIAN_IMPORTER_TRACK_EVENT_TRACK_EVENT_H

#include "importer/core/context.h"

/* State of a machine; NULL when out of memory. */
struct track_event_machine *track_event_machine_open(struct machine_ctx *m);
/* After the last event. */
void track_event_machine_finish(struct track_event_machine *t);
void track_event_machine_close(struct track_event_machine *t);

/* The thread that a sequence's ThreadDescriptor or TrackDescriptor says it is written by; false when none has come. */
struct seq_generation;
bool track_event_sequence_thread(const struct seq_generation *g, int64_t *pid, int64_t *tid);

#endif
