/* FtraceStats: what the kernel counted per cpu, and what could not be set up, at the start and at each flush. */
#ifndef MERIDIAN_CAPTURE_PROBES_FTRACE_FTRACE_STATS_H
#define MERIDIAN_CAPTURE_PROBES_FTRACE_FTRACE_STATS_H

#include "capture/probes/ftrace/ftrace_instance.h"
#include "wire/fields.h"
#include "wire/pb_writer.h"

struct ftrace_stats_input {
    struct ftrace_instance *instance;
    const struct event_selection *selection;
    const struct ftrace_config *config;
    const struct ftrace_bundle_counts *counts; /* parse errors */
    uint32_t symbols;                          /* kernel symbols known */
    uint32_t symbols_kb;
};

/* Appends TracePacket.ftrace_stats to `w`, reading the kernel's counters now. What failed to be set up goes into the
 * START packet, what failed to parse into the END packet. */
void ftrace_stats_put(struct pb_writer *w, enum ftrace_stats_phase phase, const struct ftrace_stats_input *in);

/* The same for a session that could not be set up: nothing but the reason. `exclusive`: other sessions are in the way.
 */
void ftrace_stats_put_refusal(struct pb_writer *w, const char *source, const char *why, bool exclusive);

#endif
