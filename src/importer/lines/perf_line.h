/* Lines of perf script: samples, and frames of their call stacks. */
#ifndef MERIDIAN_IMPORTER_LINES_PERF_LINE_H
#define MERIDIAN_IMPORTER_LINES_PERF_LINE_H

#include "base/slice.h"

enum { PERF_COMM_WORDS = 16 };

struct perf_sample_line {
    struct slice comm[PERF_COMM_WORDS]; /* words; to be joined by single spaces */
    size_t n_comm;
    bool has_pid;
    int64_t pid, tid;
    int64_t ts; /* ns */
};

struct perf_frame_line {
    struct slice symbol, mapping;
};

bool perf_sample_line_parse(struct slice line, struct perf_sample_line *out);
bool perf_frame_line_parse(struct slice line, struct perf_frame_line *out);

#endif
