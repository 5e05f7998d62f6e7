/* The table of typed ftrace events and its lookups. */
#include "wire/ftrace_events.h"

#include "base/bisect.h"

#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Pass 1: the fields of each event, in an array indexed by field number. Slot 0 is always there and never a field. */
#define NONE
#define F(n, text, kind) [n] = {.name = (text), .number = (n), .type = FTRACE_FIELD_##kind},
#define R(n, text, kind) [n] = {.name = (text), .number = (n), .type = FTRACE_FIELD_##kind, .repeated = 1},
#define EVENT(id, in_group, in_name, out_name, rows)                                                                   \
    static const struct ftrace_field_desc fields_##id[] = {[0] = {.name = NULL}, rows};
#include "wire/ftrace_events.def"
#undef EVENT
#undef F
#undef R
#undef NONE

/* Pass 2: the events, in the order of the file. */
static const struct ftrace_event_desc events[] = {
#define EVENT(id, in_group, in_name, out_name, rows)                                                                   \
    {(id), COUNT(fields_##id), (in_group), (in_name), (out_name), fields_##id},
#include "wire/ftrace_events.def"
#undef EVENT
};

/* Pass 3: row number + 1 by field number, through an enum that counts the rows. */
enum {
#define EVENT(id, in_group, in_name, out_name, rows) ROW_##id,
#include "wire/ftrace_events.def"
#undef EVENT
};

static const uint16_t row_by_id[] = {
#define EVENT(id, in_group, in_name, out_name, rows) [id] = ROW_##id + 1,
#include "wire/ftrace_events.def"
#undef EVENT
};

size_t ftrace_event_count(void)
{
    return COUNT(events);
}

const struct ftrace_event_desc *ftrace_event_at(size_t i)
{
    return i < COUNT(events) ? &events[i] : NULL;
}

const struct ftrace_event_desc *ftrace_event_by_id(uint32_t proto_field)
{
    if (proto_field >= COUNT(row_by_id) || !row_by_id[proto_field])
        return NULL;
    return &events[row_by_id[proto_field] - 1];
}

static int compare(const struct ftrace_event_desc *e, const char *group, const char *name)
{
    int c = strcmp(e->group ? e->group : "", group);
    return c ? c : strcmp(e->tracefs_name ? e->tracefs_name : "", name);
}

const struct ftrace_event_desc *ftrace_event_by_name(const char *group, const char *tracefs_name)
{
    size_t at = COUNT(events);
    if (!*group)
        return NULL; /* the rows without a kernel event */
    BISECT(at, i, compare(&events[i], group, tracefs_name) < 0);
    return at < COUNT(events) && compare(&events[at], group, tracefs_name) == 0 ? &events[at] : NULL;
}

const struct ftrace_field_desc *ftrace_field_by_name(const struct ftrace_event_desc *event, const char *name)
{
    for (uint32_t i = 1; i < event->field_slots; i++)
        if (event->fields[i].type != FTRACE_FIELD_NONE && strcmp(event->fields[i].name, name) == 0)
            return &event->fields[i];
    return NULL;
}
