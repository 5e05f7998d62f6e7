/* The table of typed ftrace events: which tracefs event becomes which field of FtraceEvent, and the fields it has.
 *
 * One row an event in ftrace_events.def; the recorder compiles its field programs from it and the importer decodes args
 * by it. All lookups return NULL when there is no such thing; everything handed out is constant. */
#ifndef MERIDIAN_WIRE_FTRACE_EVENTS_H
#define MERIDIAN_WIRE_FTRACE_EVENTS_H

#include "wire/fields.h" /* FTRACE_EVENT_SCHED_SWITCH and so on */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From this number on, fields of FtraceEvent are generic events with a descriptor in the bundle. */
#define FTRACE_EVENT_FIRST_DYNAMIC 65536

enum ftrace_field_type {
    FTRACE_FIELD_NONE, /* no such field */
    FTRACE_FIELD_INT32,
    FTRACE_FIELD_INT64,
    FTRACE_FIELD_UINT32,
    FTRACE_FIELD_UINT64,
    FTRACE_FIELD_STRING,
    FTRACE_FIELD_BYTES,
    FTRACE_FIELD_ENUM,    /* kprobe_event.type only */
    FTRACE_FIELD_MESSAGE, /* generic.field only */
};

struct ftrace_field_desc {
    const char *name;
    uint8_t number;   /* field number in the event's message; equals the index in ftrace_event_desc.fields */
    uint8_t type;     /* enum ftrace_field_type */
    uint8_t repeated; /* may occur several times (not packed) */
};

struct ftrace_event_desc {
    uint32_t id;                            /* field number in FtraceEvent */
    uint32_t field_slots;                   /* highest field number + 1 */
    const char *group;                      /* tracefs group, NULL when the kernel has no such event */
    const char *tracefs_name;               /* as in events/GROUP/NAME, NULL likewise */
    const char *name;                       /* as in traces and in the ftrace_event table */
    const struct ftrace_field_desc *fields; /* indexed by field number; gaps have type FTRACE_FIELD_NONE */
};

size_t ftrace_event_count(void);
/* Row `i` of the table, in the order of (group, tracefs_name). */
const struct ftrace_event_desc *ftrace_event_at(size_t i);

/* By field number in FtraceEvent: one array access. */
const struct ftrace_event_desc *ftrace_event_by_id(uint32_t proto_field);

/* By tracefs group and name: binary search. */
const struct ftrace_event_desc *ftrace_event_by_name(const char *group, const char *tracefs_name);

/* A field by its number in the event's message: one array access. */
static inline const struct ftrace_field_desc *ftrace_field_by_id(const struct ftrace_event_desc *event, uint32_t number)
{
    return number < event->field_slots && event->fields[number].type != FTRACE_FIELD_NONE ? &event->fields[number]
                                                                                          : NULL;
}

const struct ftrace_field_desc *ftrace_field_by_name(const struct ftrace_event_desc *event, const char *name);

#endif
