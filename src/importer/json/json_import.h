/* Traces in JSON as Chrome writes them: {"traceEvents": [{"ph": "X", "ts": 1, …}, …]} or the array alone.
 *
 * Reading (chrome_file.c, chrome_event.c) goes through the text once, in place: each event becomes a record of 20 bytes
 * or so and waits in the sorter. When times are known to be in order the records are decoded, and the table of phases
 * (chrome_phases.c) says what each becomes. Args of slices stay text until a query asks for them (chrome_args.c). */
#ifndef MERIDIAN_IMPORTER_JSON_JSON_IMPORT_H
#define MERIDIAN_IMPORTER_JSON_JSON_IMPORT_H

#include "importer/input/format_reader.h"

extern const struct format_reader chrome_json_reader;
/* Profiles of Firefox: {"meta": …} or {"libs": …}. */
extern const struct format_reader gecko_reader;

#endif
