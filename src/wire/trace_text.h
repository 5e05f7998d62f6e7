/* Protobuf text format of trace messages, by the table of trace_fields.h.
 *
 * Nothing is lost: fields that the table does not know, and values that do not fit their type, are written by number
 * ("77: 5" a varint, "77: 0x00000005" four bytes, "77: 0x0000000000000005" eight, "77: \"\\001\"" bytes), and a message
 * whose bytes are damaged as a string in the place of the message. Parsing what was printed gives the same fields in
 * the same order; what was packed is packed again when the table says that the field is. */
#ifndef MERIDIAN_WIRE_TRACE_TEXT_H
#define MERIDIAN_WIRE_TRACE_TEXT_H

#include "base/error.h"
#include "wire/pb_writer.h"
#include "wire/trace_fields.h"

enum { TRACE_TEXT_SKIP_UNKNOWN = 1 /* names that the table does not know are left out instead of being an error */ };

/* Appends the text of a message, two spaces a level, one field a line. False when its own bytes are damaged: what
 * stands before is printed. */
bool trace_text_print(const struct trace_message *m, struct slice message, unsigned indent, struct pb_writer *out);

/* Parses a text of messages of type `m`. `flush` (may be NULL) is called after each field of the outermost message and
 * may take what `out` holds; what it returns other than 0 ends the parsing. -MRD_EFORMAT: "line:column: what". */
int trace_text_parse(const struct trace_message *m, struct slice text, unsigned flags, struct pb_writer *out,
                     int (*flush)(void *ctx, struct pb_writer *out), void *ctx, struct error *err);

#endif
