/* The schema of a trace and its lookups. */
#include "wire/trace_fields.h"

#include "base/bisect.h"

#include "wire/pb_cursor.h"

#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define NONE

/* Pass 1: numbers for messages and enums. Messages with a name come first. */
enum message_number {
#define MESSAGE(token, text, rows) MESSAGE_##token,
#include "wire/trace_fields.def"
#undef MESSAGE
    N_NAMED_MESSAGES,
    BEFORE_EVENTS = N_NAMED_MESSAGES - 1,
#define EVENT(id, in_group, in_name, out_name, rows) MESSAGE_EVENT_##id,
#include "wire/ftrace_events.def"
#undef EVENT
    N_MESSAGES
};

enum enum_number {
#define ENUM(token, text, rows) ENUM_##token,
#include "wire/trace_fields.def"
#undef ENUM
    N_ENUMS
};

/* Pass 2: the fields of each message. FtraceEvent's are the events, indexed by their number. */
#define ROW(n, text, kind, to, ...)                                                                                    \
    {.name = (text), .number = (n), .ref = (to), .type = TRACE_TYPE_##kind, __VA_ARGS__},
#define F(n, text, kind) ROW(n, text, kind, 0, .repeated = 0)
#define R(n, text, kind) ROW(n, text, kind, 0, .repeated = 1)
#define P(n, text, kind) ROW(n, text, kind, 0, .repeated = 1, .packed = 1)
#define M(n, text, to)   ROW(n, text, MESSAGE, MESSAGE_##to, .repeated = 0)
#define RM(n, text, to)  ROW(n, text, MESSAGE, MESSAGE_##to, .repeated = 1)
#define E(n, text, to)   ROW(n, text, ENUM, ENUM_##to, .repeated = 0)
#define RE(n, text, to)  ROW(n, text, ENUM, ENUM_##to, .repeated = 1)
#define PE(n, text, to)  ROW(n, text, ENUM, ENUM_##to, .repeated = 1, .packed = 1)
/* The empty row at the end is not counted: a message may have no fields. */
#define MESSAGE(token, text, rows) static const struct trace_field fields_##token[] = {rows{.name = NULL}};
#include "wire/trace_fields.def"
#undef MESSAGE
#undef F
#undef R

/* Kinds that stand for one type only (enum ftrace_field_type). */
#define REF_INT32   0
#define REF_INT64   0
#define REF_UINT32  0
#define REF_UINT64  0
#define REF_STRING  0
#define REF_BYTES   0
#define REF_ENUM    ENUM_KprobeEvent_KprobeType
#define REF_MESSAGE MESSAGE_GenericFtraceEvent_Field

#define F(n, text, kind) ROW(n, text, kind, REF_##kind, .repeated = 0)
#define R(n, text, kind) ROW(n, text, kind, REF_##kind, .repeated = 1)
#define EVENT(id, in_group, in_name, out_name, rows)                                                                   \
    static const struct trace_field fields_EVENT_##id[] = {rows{.name = NULL}};
#include "wire/ftrace_events.def"
#undef EVENT
#undef F
#undef R

/* The events of FtraceEvent, indexed by their number; its other fields are in its MESSAGE row. */
static const struct trace_field kernel_events[] = {
#define EVENT(id, in_group, in_name, out_name, rows)                                                                   \
    [id] = {.name = (out_name), .number = (id), .ref = MESSAGE_EVENT_##id, .type = TRACE_TYPE_MESSAGE},
#include "wire/ftrace_events.def"
#undef EVENT
};

static const struct trace_message messages[] = {
#define MESSAGE(token, text, rows)                                                                                     \
    {.name = (text), .fields = fields_##token, .n_fields = (uint16_t)(COUNT(fields_##token) - 1)},
#include "wire/trace_fields.def"
#undef MESSAGE
#define EVENT(id, in_group, in_name, out_name, rows)                                                                   \
    {.fields = fields_EVENT_##id, .n_fields = (uint16_t)(COUNT(fields_EVENT_##id) - 1)},
#include "wire/ftrace_events.def"
#undef EVENT
};
_Static_assert(COUNT(messages) == N_MESSAGES && N_MESSAGES <= UINT16_MAX, "a row for each number, which fits a ref");

/* Pass 3: enums. */
#define V(number, text)         {.name = (text), .value = (number)},
#define ENUM(token, text, rows) static const struct trace_enum_value values_##token[] = {rows};
#include "wire/trace_fields.def"
#undef ENUM
static const struct trace_enum enums[] = {
#define ENUM(token, text, rows) {.name = (text), .values = values_##token, .n = COUNT(values_##token)},
#include "wire/trace_fields.def"
#undef ENUM
};
_Static_assert(COUNT(enums) == N_ENUMS, "a row for each number");

static const struct {
    const char *name;
    uint8_t wire;
} types[TRACE_N_TYPES] = {
    [TRACE_TYPE_DOUBLE] = {"double", PB_FIXED64},
    [TRACE_TYPE_FLOAT] = {"float", PB_FIXED32},
    [TRACE_TYPE_INT32] = {"int32", PB_VARINT},
    [TRACE_TYPE_INT64] = {"int64", PB_VARINT},
    [TRACE_TYPE_UINT32] = {"uint32", PB_VARINT},
    [TRACE_TYPE_UINT64] = {"uint64", PB_VARINT},
    [TRACE_TYPE_SINT32] = {"sint32", PB_VARINT},
    [TRACE_TYPE_SINT64] = {"sint64", PB_VARINT},
    [TRACE_TYPE_FIXED32] = {"fixed32", PB_FIXED32},
    [TRACE_TYPE_FIXED64] = {"fixed64", PB_FIXED64},
    [TRACE_TYPE_SFIXED32] = {"sfixed32", PB_FIXED32},
    [TRACE_TYPE_SFIXED64] = {"sfixed64", PB_FIXED64},
    [TRACE_TYPE_BOOL] = {"bool", PB_VARINT},
    [TRACE_TYPE_STRING] = {"string", PB_BYTES},
    [TRACE_TYPE_BYTES] = {"bytes", PB_BYTES},
    [TRACE_TYPE_MESSAGE] = {"", PB_BYTES},
    [TRACE_TYPE_ENUM] = {"", PB_VARINT},
};

const struct trace_message *trace_message_by_name(const char *name)
{
    size_t at = N_NAMED_MESSAGES;
    BISECT(at, i, strcmp(messages[i].name, name) < 0);
    return at < N_NAMED_MESSAGES && strcmp(messages[at].name, name) == 0 ? &messages[at] : NULL;
}

const struct trace_message *trace_message_at(size_t i)
{
    return i < COUNT(messages) ? &messages[i] : NULL;
}

const struct trace_field *trace_field_by_number(const struct trace_message *m, uint32_t number)
{
    size_t at = m->n_fields;
    BISECT(at, i, m->fields[i].number < number);
    if (at < m->n_fields && m->fields[at].number == number)
        return &m->fields[at];
    if (m == &messages[MESSAGE_FtraceEvent] && number < COUNT(kernel_events) && kernel_events[number].name)
        return &kernel_events[number];
    return NULL;
}

static const struct trace_field *named(const struct trace_field *fields, size_t n, const char *name, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (fields[i].name && strncmp(fields[i].name, name, len) == 0 && fields[i].name[len] == '\0')
            return &fields[i];
    return NULL;
}

const struct trace_field *trace_field_by_name(const struct trace_message *m, const char *name, size_t len)
{
    const struct trace_field *f = named(m->fields, m->n_fields, name, len);
    if (!f && m == &messages[MESSAGE_FtraceEvent])
        f = named(kernel_events, COUNT(kernel_events), name, len);
    return f;
}

const struct trace_message *trace_field_message(const struct trace_field *f)
{
    return f->type == TRACE_TYPE_MESSAGE ? &messages[f->ref] : NULL;
}

const struct trace_enum *trace_field_enum(const struct trace_field *f)
{
    return f->type == TRACE_TYPE_ENUM ? &enums[f->ref] : NULL;
}

/* The payload of event sched_switch is a SchedSwitchFtraceEvent; one is called otherwise. */
static void put_event_type(const struct trace_field *f, char *buf, size_t size)
{
    size_t n = 0;
    bool capital = true;
    for (const char *p = f->name; *p && n + 1 < size; p++) {
        if (*p != '_')
            buf[n++] = (char)(capital && *p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
        capital = *p == '_';
    }
    snprintf(buf + n, size - n, "%s", f->ref == MESSAGE_EVENT_542 ? "" : "FtraceEvent");
}

const char *trace_field_type_name(const struct trace_field *f, char *buf, size_t size)
{
    if (size == 0)
        return buf;
    if (f->type == TRACE_TYPE_MESSAGE && !messages[f->ref].name)
        put_event_type(f, buf, size);
    else
        snprintf(buf, size, "%s",
                 f->type == TRACE_TYPE_MESSAGE ? messages[f->ref].name
                 : f->type == TRACE_TYPE_ENUM  ? enums[f->ref].name
                                               : types[f->type].name);
    return buf;
}

unsigned trace_type_wire(enum trace_type type)
{
    return types[type].wire;
}

const char *trace_enum_name(const struct trace_enum *e, int32_t value)
{
    size_t at = e->n;
    BISECT(at, mid, e->values[mid].value < value);
    return at < e->n && e->values[at].value == value ? e->values[at].name : NULL;
}

bool trace_enum_value(const struct trace_enum *e, const char *name, size_t len, int32_t *value)
{
    for (size_t i = 0; i < e->n; i++) {
        if (strncmp(e->values[i].name, name, len) == 0 && e->values[i].name[len] == '\0') {
            *value = e->values[i].value;
            return true;
        }
    }
    return false;
}
