/* Protobuf text format, by reflection on the descriptors that protobuf-c generates.
 *
 * Parsing yields wire bytes (unpack them, or send them as they are); printing walks wire bytes. So neither needs to
 * know how a message lies in memory. A field whose name is taken in C (protobuf-c's `base`) has a '_' behind it in the
 * schema and none in text. */
#ifndef MERIDIAN_WIRE_TEXT_FORMAT_H
#define MERIDIAN_WIRE_TEXT_FORMAT_H

#include "base/error.h"
#include "wire/pb_writer.h"

#include <protobuf-c/protobuf-c.h>

enum { TEXT_SKIP_UNKNOWN = 1 /* fields that the schema does not know are left out instead of being an error */ };

/* Appends the message of type `d` written in `text`. On failure (-MRD_EFORMAT, -MRD_ENOMEM) the error says
 * "line:column: what". Comments start with '#'; fields may be separated by ',' or ';'; lists "[a, b]", nested messages
 * with or without ':', in {} or <>; strings may be in pieces. A singular field given
 * twice is an error, as are two of a oneof. */
int text_parse(const ProtobufCMessageDescriptor *d, struct slice text, unsigned flags, struct pb_writer *out,
               struct error *err);

/* Appends the text of a message of type `d`, two spaces a level, one field a line. Fields the schema does not know are
 * written by number. `indent`: the level to start at. False when the bytes are damaged: what is before is printed. */
bool text_print(const ProtobufCMessageDescriptor *d, struct slice message, unsigned indent, struct pb_writer *out);

#endif
