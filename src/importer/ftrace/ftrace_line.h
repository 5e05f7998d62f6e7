/* Kernel events as text: EVENT and ARGS of a line of ftrace, and what they fill. */
#ifndef MERIDIAN_IMPORTER_FTRACE_FTRACE_LINE_H
#define MERIDIAN_IMPORTER_FTRACE_FTRACE_LINE_H

#include "importer/core/context.h"

struct ftrace_line {
    int64_t ts; /* trace time */
    uint32_t cpu;
    int32_t pid;
    uint32_t utid; /* of pid */
    uint32_t common_flags;
    uint32_t file; /* serial of the file: those behind the first have tracks of their own; 0: the first */
    uint32_t kind; /* ftrace_line_kind() of EVENT */
    struct slice args;
};

/* The kind of events of a name: any name has one. UINT32_MAX when out of memory. */
uint32_t ftrace_line_kind(struct machine_ctx *m, struct slice event);

/* One event, in order of time. By default the events do something that do so in the public tool;
 * import_options.all_text_events makes rows of ftrace_event and what binary events of the same kind make. */
void ftrace_line_parse(struct machine_ctx *m, const struct ftrace_line *line);

#endif
