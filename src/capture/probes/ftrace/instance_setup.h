/* Setting a tracefs instance up: what its first session decides, and what no second one may ask for. Part of
 * ftrace_instance. */
#ifndef MERIDIAN_CAPTURE_PROBES_FTRACE_INSTANCE_SETUP_H
#define MERIDIAN_CAPTURE_PROBES_FTRACE_INSTANCE_SETUP_H

#include "capture/probes/ftrace/ftrace_instance.h"

/* Writes a file of the instance; what it held is noted for taking back. */
int instance_change(struct ftrace_instance *in, const char *name, const char *text, struct error *err);

/* Clock, size, options, no events: for the first session. -MRD_EEXISTS when somebody else's tracer is running. */
int instance_set_up(struct ftrace_instance *in, const struct ftrace_config *config, struct error *err);

/* Whether another session may come in: -MRD_EEXISTS when it or one that is there has set something for the whole
 * instance (tids_to_trace, tracefs_options, tracing_cpumask). */
int instance_join(struct ftrace_instance *in, const struct ftrace_config *config, struct error *err);

/* enable_function_graph: sets the tracer up and adds its events. Failures are noted in `sel`. */
void instance_add_function_graph(struct ftrace_instance *in, const struct ftrace_config *config,
                                 struct event_selection *sel, bool first);

/* kprobe_events and packet_headers: makes the probes and adds their events. Failures are noted in `sel`. */
void probe_events_add(struct ftrace_instance *in, const struct ftrace_config *config, struct event_selection *sel);

#endif
