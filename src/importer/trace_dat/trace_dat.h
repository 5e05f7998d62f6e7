/* Recordings of trace-cmd (trace.dat) into the same tables as ftrace of a Perfetto trace.
 *
 * The sub-buffers in the file are the kernel's own pages: the probes' page reader (src/kernel) makes them into
 * FtraceEventBundles, which go on as packets do. A file is a machine: the first one the host's row, unless a manifest
 * says otherwise. Files of a host and its guests find each other by the ids that trace-cmd gave them (TRACEID, GUEST,
 * TIME_SHIFT): the guests' times become the host's, and `guest_vcpu` tells which host thread runs which virtual CPU.
 * What is read of the file and what is not stands in docs/formats.md. */
#ifndef MERIDIAN_IMPORTER_TRACE_DAT_TRACE_DAT_H
#define MERIDIAN_IMPORTER_TRACE_DAT_TRACE_DAT_H

#include "importer/input/format_reader.h"

extern const struct format_reader trace_dat_reader;

/* What the files of a load know of each other. NULL when out of memory. */
struct trace_dat_files *trace_dat_open(void);
void trace_dat_close(struct trace_dat_files *files);

#endif
