/* One line of strace -f -ttt: [PID ]SECONDS[.MICROSECONDS] NAME(ARGS) = RESULT. */
#ifndef MERIDIAN_IMPORTER_LINES_STRACE_LINE_H
#define MERIDIAN_IMPORTER_LINES_STRACE_LINE_H

#include "base/slice.h"

enum strace_kind { STRACE_COMPLETE, STRACE_UNFINISHED, STRACE_RESUMED, STRACE_RESUMED_UNFINISHED };
enum strace_result { STRACE_OK, STRACE_BAD, STRACE_BAD_TIME };

struct strace_line {
    enum strace_kind kind;
    bool has_pid;
    int64_t pid;
    int64_t ts; /* ns */
    struct slice name, args, ret;
};

enum strace_result strace_line_parse(struct slice line, struct strace_line *out);

#endif
