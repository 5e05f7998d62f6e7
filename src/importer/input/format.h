/* Tells formats apart by their first bytes. */
#ifndef MERIDIAN_IMPORTER_INPUT_FORMAT_H
#define MERIDIAN_IMPORTER_INPUT_FORMAT_H

#include "base/slice.h"

/* X(id, name as in trace_file.trace_type). The order is the order of detection. */
#define TRACE_FORMATS(X)                                                                                               \
    X(TAR, "tar")                                                                                                      \
    X(FUCHSIA, "fuchsia")                                                                                              \
    X(PERF, "perf")                                                                                                    \
    X(SIMPLEPERF, "simpleperf_proto")                                                                                  \
    X(ZIP, "zip")                                                                                                      \
    X(GZIP, "gzip")                                                                                                    \
    X(ZSTD, "zstd")                                                                                                    \
    X(HPROF, "art_hprof")                                                                                              \
    X(MANIFEST, "perfetto_manifest")                                                                                   \
    X(JSON, "json")                                                                                                    \
    X(CTRACE, "ctrace")                                                                                                \
    X(NINJA_LOG, "ninja_log")                                                                                          \
    X(SYSTRACE, "systrace")                                                                                            \
    X(SYMBOLS, "symbols")                                                                                              \
    X(PROTO, "proto")

enum trace_format {
#define X(id, name) FORMAT_##id,
    TRACE_FORMATS(X)
#undef X
        FORMAT_UNKNOWN
};

enum { FORMAT_LOOKAHEAD = 512 /* bytes that detection may want to see */ };

/* The format of what begins with `head`, which is the first FORMAT_LOOKAHEAD bytes or all there is. */
enum trace_format format_detect(struct slice head);

/* "proto", "gzip", …; "unknown". */
const char *format_name(enum trace_format format);

#endif
