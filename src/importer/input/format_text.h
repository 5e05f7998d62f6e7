/* Whether a file is of one of the formats of text and profiles; `head` as for format_detect(). */
#ifndef MERIDIAN_IMPORTER_INPUT_FORMAT_TEXT_H
#define MERIDIAN_IMPORTER_INPUT_FORMAT_TEXT_H

#include "importer/input/format.h"

bool is_strace(struct slice head);
bool is_perf_text(struct slice head);
bool is_collapsed(struct slice head);
bool is_pprof(struct slice head);
bool is_logcat(struct slice head);
bool is_instruments(struct slice head);
bool is_dumpstate(struct slice head);
/* ART_METHOD, ART_METHOD_V2 or UNKNOWN. */
enum trace_format art_method_format(struct slice head);

#endif
