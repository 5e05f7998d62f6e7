/* perf.data into the tables of profilers and of the scheduler: samples with call stacks, mappings, counters, threads
 * and processes; tracepoints also as kernel events, through the same handlers as ftrace.
 *
 * What Perfetto makes of a file is made here, too (sessions, samples, mappings, frames, callsites in the same numbers);
 * where it gives up (streams, the other byte order, compressed files, clocks other than its own, groups whose counters
 * fall) the file is read. docs/perf.md says what is read and what is not. */
#ifndef MERIDIAN_IMPORTER_PERF_PERF_IMPORT_H
#define MERIDIAN_IMPORTER_PERF_PERF_IMPORT_H

#include "importer/input/format_reader.h"

extern const struct format_reader perf_reader;

#endif
