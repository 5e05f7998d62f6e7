/* The readers of text and profiles of other tools; importer.c has them in its table. */
#ifndef MERIDIAN_IMPORTER_TEXT_TEXT_FORMATS_H
#define MERIDIAN_IMPORTER_TEXT_TEXT_FORMATS_H

#include "importer/input/format_reader.h"

extern const struct format_reader strace_format_reader, perf_text_format_reader, collapsed_format_reader,
    ninja_format_reader, pprof_format_reader, simpleperf_format_reader, primes_format_reader, art_method_format_reader,
    art_method_v2_format_reader, logcat_format_reader, instruments_format_reader, dumpstate_format_reader;

#endif
