/* Track events and track descriptors of one machine. */
#ifndef MERIDIAN_IMPORTER_TRACK_EVENT_TRACK_EVENT_H
#define MERIDIAN_IMPORTER_TRACK_EVENT_TRACK_EVENT_H

#include "importer/core/packet.h"

/* State of a machine; NULL when out of memory. */
struct track_event_machine *track_event_machine_open(struct machine_ctx *m);
/* After the last event. */
void track_event_machine_finish(struct track_event_machine *t);
void track_event_machine_close(struct track_event_machine *t);

extern const struct packet_handler track_event_packet_handlers[];
extern const struct packet_handler track_event_early_handlers[]; /* see proto_reader_open() */

/* Descriptors of messages for the whole import, with those inside track events in it. */
struct schema *track_event_schema(const struct importer *im);

#endif
