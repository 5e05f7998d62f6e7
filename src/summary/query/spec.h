/* Reads trace summary specs, binary or text, into messages that are safe to walk.
 *
 * protobuf-c unpacks without a limit of depth and takes strings up to their first NUL byte; specs come from files and
 * from the network. So bytes are looked over first: SPEC_MAX_DEPTH, SPEC_MAX_MESSAGES, strings that are UTF-8 without
 * NUL bytes. */
#ifndef MERIDIAN_SUMMARY_QUERY_SPEC_H
#define MERIDIAN_SUMMARY_QUERY_SPEC_H

#include "base/error.h"
#include "base/slice.h"
#include "schema/summary.pb-c.h"

typedef Mrd__TraceSummarySpec trace_summary_spec;

enum {
    SPEC_MAX_BYTES = 16 << 20,
    SPEC_MAX_DEPTH = 300, /* of messages; a query in a query takes one or two */
    SPEC_MAX_MESSAGES = 200000,
};

enum spec_format { SPEC_BINARY, SPEC_TEXT };

/* By the ending of `path` (.pb, .textproto; NULL when there is none); else text when the first 128 bytes are all
 * printable or blank. */
enum spec_format spec_format_of(const char *path, struct slice bytes);

/* The message in `bytes`, for spec_free(). -MRD_EFORMAT (of text: "line:column: what"), -MRD_ELIMIT, -MRD_ENOMEM. */
int spec_parse(struct slice bytes, enum spec_format format, trace_summary_spec **out, struct error *err);

/* Reads a file, and puts its name before an error. */
int spec_read_file(const char *path, trace_summary_spec **out, struct error *err);

void spec_free(trace_summary_spec *spec); /* NULL is fine */

/* Is `message` (wire bytes of type `d`) within the limits above? For messages that hold specs, before unpacking. */
int spec_check_bytes(const ProtobufCMessageDescriptor *d, struct slice message, struct error *err);

#endif
