/* Message descriptors known by name: those built in, and those that a trace brings along. Made from bytes of a
 * FileDescriptorSet; used to turn messages into args by the names of their fields. */
#ifndef MERIDIAN_IMPORTER_TRACK_EVENT_MESSAGE_SCHEMA_H
#define MERIDIAN_IMPORTER_TRACK_EVENT_MESSAGE_SCHEMA_H

#include "base/slice.h"
#include "base/strpool.h"

/* The values of FieldDescriptorProto.Type. */
enum schema_type {
    SCHEMA_DOUBLE = 1,
    SCHEMA_FLOAT,
    SCHEMA_INT64,
    SCHEMA_UINT64,
    SCHEMA_INT32,
    SCHEMA_FIXED64,
    SCHEMA_FIXED32,
    SCHEMA_BOOL,
    SCHEMA_STRING,
    SCHEMA_GROUP,
    SCHEMA_MESSAGE,
    SCHEMA_BYTES,
    SCHEMA_UINT32,
    SCHEMA_ENUM,
    SCHEMA_SFIXED32,
    SCHEMA_SFIXED64,
    SCHEMA_SINT32,
    SCHEMA_SINT64,
};

struct schema_field {
    strid name;
    strid type_name; /* full name without a leading dot, of messages and enums */
    uint32_t number;
    uint8_t type; /* enum schema_type */
    bool repeated;
};

struct schema;

/* Sets of messages that are built in. */
enum schema_set {
    SCHEMA_TRACK_EVENT = 1, /* what is inside TrackEvent, with the extensions of Chrome, Android and GPUs */
    SCHEMA_WINSCOPE = 2,    /* Android's windows, layers, input and views */
    SCHEMA_STATSD = 4,      /* atoms of Android's statsd: the fields of statsd.Atom */
};

/* An empty one. NULL when out of memory. */
struct schema *schema_open(struct strpool *strings);
/* Adds a set unless it is there. False when out of memory. */
bool schema_load(struct schema *s, enum schema_set set);
void schema_close(struct schema *s);

/* Adds a FileDescriptorSet. What was known keeps its meaning; false when the bytes are damaged (what came before the
 * damage is in). */
bool schema_add(struct schema *s, struct slice file_descriptor_set);

/* A message's full name ("perfetto.protos.TrackEvent") and whether it is known. */
bool schema_has_message(const struct schema *s, strid message);
/* The field `number` of a message, NULL when unknown. Lasts until the next schema_add() or _load(). */
const struct schema_field *schema_field(struct schema *s, strid message, uint32_t number);
/* The name of an enum's value, 0 when unknown. */
strid schema_enum_name(struct schema *s, strid enumeration, int32_t value);

/* The name of the value that stands first in an enum, 0 when unknown. */
strid schema_enum_first(struct schema *s, strid enumeration);
/* All fields of a message that is built in, by number; *n is 0 for others. Last until the next schema_add() or _load().
 */
const struct schema_field *schema_fields(struct schema *s, strid message, uint32_t *n);

#endif
