/* The schema of a trace: messages, their fields and enums, by number and by name.
 *
 * Rows are in trace_fields.def, the payloads of kernel events in ftrace_events.def. All lookups return NULL when there
 * is no such thing; everything handed out is constant. A message of which no field is known has none, and extensions
 * are in no message: what is not found here is still valid and has to be kept by its number. */
#ifndef MERIDIAN_WIRE_TRACE_FIELDS_H
#define MERIDIAN_WIRE_TRACE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum trace_type {
    TRACE_TYPE_NONE,
    TRACE_TYPE_DOUBLE,
    TRACE_TYPE_FLOAT,
    TRACE_TYPE_INT32,
    TRACE_TYPE_INT64,
    TRACE_TYPE_UINT32,
    TRACE_TYPE_UINT64,
    TRACE_TYPE_SINT32,
    TRACE_TYPE_SINT64,
    TRACE_TYPE_FIXED32,
    TRACE_TYPE_FIXED64,
    TRACE_TYPE_SFIXED32,
    TRACE_TYPE_SFIXED64,
    TRACE_TYPE_BOOL,
    TRACE_TYPE_STRING,
    TRACE_TYPE_BYTES,
    TRACE_TYPE_MESSAGE,
    TRACE_TYPE_ENUM,
    TRACE_N_TYPES
};

struct trace_field {
    const char *name;
    uint32_t number;
    uint16_t ref; /* of the message or enum, for trace_field_message() and trace_field_enum() */
    uint8_t type; /* enum trace_type */
    uint8_t repeated : 1;
    uint8_t packed : 1; /* repeated, and written packed */
};

struct trace_message {
    const char *name;                 /* "TraceStats.BufferStats"; NULL for the payload of a kernel event */
    const struct trace_field *fields; /* sorted by number; without the events of FtraceEvent */
    uint16_t n_fields;
};

struct trace_enum_value {
    const char *name;
    int32_t value;
};

struct trace_enum {
    const char *name;
    const struct trace_enum_value *values; /* sorted by value */
    size_t n;
};

/* By its name without a package ("TracePacket"). Payloads of kernel events have none. */
const struct trace_message *trace_message_by_name(const char *name);

/* All of them, in an order of no meaning; NULL past the last. */
const struct trace_message *trace_message_at(size_t i);

/* Binary search. */
const struct trace_field *trace_field_by_number(const struct trace_message *message, uint32_t number);
/* Goes through the fields of the message. */
const struct trace_field *trace_field_by_name(const struct trace_message *message, const char *name, size_t len);

/* The type of a TRACE_TYPE_MESSAGE field (NULL for others), and of a TRACE_TYPE_ENUM field. */
const struct trace_message *trace_field_message(const struct trace_field *field);
const struct trace_enum *trace_field_enum(const struct trace_field *field);

/* The name of the field's type: "uint64", "TraceStats.BufferStats", "SchedSwitchFtraceEvent". Returns `buf`. */
const char *trace_field_type_name(const struct trace_field *field, char *buf, size_t size);

/* How the type is on the wire (enum pb_wire). */
unsigned trace_type_wire(enum trace_type type);

const char *trace_enum_name(const struct trace_enum *e, int32_t value);
bool trace_enum_value(const struct trace_enum *e, const char *name, size_t len, int32_t *value);

#endif
