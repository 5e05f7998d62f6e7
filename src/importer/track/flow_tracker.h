/* Flows: arrows from one slice to another, joined by a flow id (facts: importer section 6). */
#ifndef MERIDIAN_IMPORTER_TRACK_FLOW_TRACKER_H
#define MERIDIAN_IMPORTER_TRACK_FLOW_TRACKER_H

#include "importer/context.h"

struct flow_tracker *flow_tracker_open(struct importer *im);
void flow_tracker_finish(struct flow_tracker *t);
void flow_tracker_close(struct flow_tracker *t);

#endif
