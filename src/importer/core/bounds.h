/* The bounds of the trace. */
#ifndef MERIDIAN_IMPORTER_CORE_BOUNDS_H
#define MERIDIAN_IMPORTER_CORE_BOUNDS_H

#include "storage/storage.h"

/* Sets trace_start_ns and trace_end_ns from the rows of all tables of events; 0 and 0 when there are none. */
void trace_bounds_compute(struct storage *st);

#endif
