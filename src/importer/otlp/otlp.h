/* Traces of OpenTelemetry: OTLP in JSON (lines, or one document) and in protobuf (bare, or with a length before each
 * message).
 *
 * Reading (otlp_json.c, otlp_proto.c) goes through the bytes once, in place: each span becomes a record. When all files
 * have been read, otlp_place() finds the machine, the clock and the track of each and hands them to the sorter; the
 * slices are made in order of time. otlp_finish() draws the flows, once every span has its slice. Attributes stay bytes
 * until a query asks for them (otlp_args.c). */
#ifndef MERIDIAN_IMPORTER_OTLP_OTLP_H
#define MERIDIAN_IMPORTER_OTLP_OTLP_H

#include "importer/input/format_reader.h"

extern const struct format_reader otlp_json_reader;
extern const struct format_reader otlp_proto_reader;

/* Once all files are read, before the sorter is drained. */
void otlp_place(struct importer *im);
/* Once everything is parsed: flows, and the tables of spans. */
void otlp_finish(struct importer *im);
void otlp_close(struct importer *im);

#endif
