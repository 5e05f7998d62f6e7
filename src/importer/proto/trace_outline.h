/* What a look through a file of packets tells before it is read. */
#ifndef MERIDIAN_IMPORTER_PROTO_TRACE_OUTLINE_H
#define MERIDIAN_IMPORTER_PROTO_TRACE_OUTLINE_H

#include "importer/core/context.h"

struct trace_outline {
    bool has_snapshots;     /* it brings ClockSnapshots */
    bool has_host;          /* packets without a machine id */
    bool several_machines;  /* packets of more than one machine */
    uint32_t first_machine; /* a machine id, 0: none */
};

struct trace_outline proto_outline(struct slice file);

/* Finds the clock rounds of remote machines. */
void clock_rounds_note(struct importer *im, struct slice file);

#endif
