/* Kernel events of one machine: bundles are split into events, events become rows (facts: importer section 4). */
#ifndef MERIDIAN_IMPORTER_FTRACE_FTRACE_H
#define MERIDIAN_IMPORTER_FTRACE_FTRACE_H

#include "importer/context.h"

/* State of a machine; NULL when out of memory. */
struct ftrace_machine *ftrace_machine_open(struct machine_ctx *m);
/* After the last event. */
void ftrace_machine_finish(struct ftrace_machine *f);
void ftrace_machine_close(struct ftrace_machine *f);

#endif
