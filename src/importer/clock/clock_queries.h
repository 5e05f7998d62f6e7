/* What queries ask about clocks once a trace is loaded. */
#ifndef MERIDIAN_IMPORTER_CLOCK_CLOCK_QUERIES_H
#define MERIDIAN_IMPORTER_CLOCK_CLOCK_QUERIES_H

#include "importer/core/clock_id.h"

#include <stdbool.h>

struct importer;

/* The builtin clock of a name ("BOOTTIME", any case), 0 when there is none. */
uint32_t clock_by_name(const char *name);

/* The largest possible error of a trace time on a machine. False when nothing is proven, or there is no such machine.
 */
bool clock_query_error(struct importer *im, uint32_t machine, int64_t trace_ns, int64_t *error_ns);

/* What a machine's clock showed at a trace time, and back. False when they are not related. */
bool clock_query_to_machine(struct importer *im, int64_t trace_ns, uint32_t machine, uint32_t clock, int64_t *value);
bool clock_query_from_machine(struct importer *im, int64_t value, uint32_t machine, uint32_t clock, int64_t *trace_ns);

#endif
