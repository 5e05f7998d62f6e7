/* One line of ftrace's text: TASK-PID (TGID) [CPU] FLAGS TIME: EVENT: ARGS. */
#ifndef MERIDIAN_IMPORTER_LINES_SYSTRACE_LINE_H
#define MERIDIAN_IMPORTER_LINES_SYSTRACE_LINE_H

#include "base/slice.h"

struct systrace_line {
    struct slice task;
    struct slice event, args;
    int64_t ts;        /* ns; INT64_MIN when it does not fit */
    int32_t pid, tgid; /* wrap at 32 bits */
    uint32_t cpu;
    uint32_t flags; /* common_flags, as the kernel numbers them */
    bool has_tgid;
};

/* False when the line is none. */
bool systrace_line_parse(struct slice line, struct systrace_line *out);

#endif
