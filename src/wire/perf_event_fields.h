/* The numbers of the fields that Timebase and FollowerEvent of linux.perf have in common: they differ. */
#ifndef MERIDIAN_WIRE_PERF_EVENT_FIELDS_H
#define MERIDIAN_WIRE_PERF_EVENT_FIELDS_H

#include "wire/fields.h"

struct perf_event_fields {
    uint8_t counter, tracepoint, raw, name, modifiers;
};

static const struct perf_event_fields perf_timebase_fields = {
    PERF_EVENTS_TIMEBASE_COUNTER, PERF_EVENTS_TIMEBASE_TRACEPOINT, PERF_EVENTS_TIMEBASE_RAW_EVENT,
    PERF_EVENTS_TIMEBASE_NAME, PERF_EVENTS_TIMEBASE_MODIFIERS};
static const struct perf_event_fields perf_follower_fields = {FOLLOWER_EVENT_COUNTER, FOLLOWER_EVENT_TRACEPOINT,
                                                              FOLLOWER_EVENT_RAW_EVENT, FOLLOWER_EVENT_NAME,
                                                              FOLLOWER_EVENT_MODIFIERS};

#endif
