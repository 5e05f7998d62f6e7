/* Tells formats apart by their first bytes. */
#ifndef MERIDIAN_IMPORTER_INPUT_FORMAT_H
#define MERIDIAN_IMPORTER_INPUT_FORMAT_H

#include "base/slice.h"

/* X(id, name as in trace_file.trace_type). The order is the order of detection. */
#define TRACE_FORMATS(X)                                                                                               \
    X(SNAPSHOT, "snapshot")                                                                                            \
    X(TAR, "tar")                                                                                                      \
    X(FUCHSIA, "fuchsia")                                                                                              \
    X(PERF, "perf")                                                                                                    \
    X(TRACE_DAT, "trace_dat")                                                                                          \
    X(SIMPLEPERF, "simpleperf_proto")                                                                                  \
    X(ZIP, "zip")                                                                                                      \
    X(GZIP, "gzip")                                                                                                    \
    X(ZSTD, "zstd")                                                                                                    \
    X(ART_METHOD_V2, "art_method_v2")                                                                                  \
    X(ART_METHOD, "art_method")                                                                                        \
    X(HPROF, "art_hprof")                                                                                              \
    X(MANIFEST, "perfetto_manifest")                                                                                   \
    X(OTLP_JSON, "otlp_json")                                                                                          \
    X(GECKO, "gecko")                                                                                                  \
    X(JSON, "json")                                                                                                    \
    X(INSTRUMENTS, "instruments_xml")                                                                                  \
    X(CTRACE, "ctrace")                                                                                                \
    X(NINJA_LOG, "ninja_log")                                                                                          \
    X(LOGCAT, "android_logcat")                                                                                        \
    X(COLLAPSED, "collapsed_stack")                                                                                    \
    X(PERF_TEXT, "perf_text")                                                                                          \
    X(STRACE, "strace")                                                                                                \
    X(SYSTRACE, "systrace")                                                                                            \
    X(SYMBOLS, "symbols")                                                                                              \
    X(PPROF, "pprof")                                                                                                  \
    X(OTLP, "otlp_proto")                                                                                              \
    X(PROTO, "proto")                                                                                                  \
    X(PRIMES, "primes")                                                                                                \
    X(DUMPSTATE, "android_dumpstate")

enum trace_format {
#define X(id, name) FORMAT_##id,
    TRACE_FORMATS(X)
#undef X
        FORMAT_UNKNOWN
};

enum { FORMAT_LOOKAHEAD = 4096 /* bytes that detection may want to see */ };

/* The format of what begins with `head`, which is the first FORMAT_LOOKAHEAD bytes or all there is. */
enum trace_format format_detect(struct slice head);

/* Whether thread 0 of such a file is the idle thread: files of kernels and of Perfetto. */
bool format_has_idle_thread(enum trace_format format);

/* Where the zlib stream of a ctrace begins, 0 for what is none. */
size_t ctrace_payload(struct slice head);

/* "proto", "gzip", …; "unknown". */
const char *format_name(enum trace_format format);

#endif
