/* A track event while it is parsed: used by event.c and legacy.c alone. */
#ifndef MERIDIAN_IMPORTER_TRACK_EVENT_EVENT_H
#define MERIDIAN_IMPORTER_TRACK_EVENT_EVENT_H

#include "importer/track_event/track_event_internal.h"

struct legacy_event {
    uint32_t has; /* bits of its fields */
    int32_t phase;
    uint64_t name_iid;
    /* From here on nothing is written while an event that has no legacy_event is parsed. */
    uint8_t id_field; /* 6 unscoped, 10 local, 11 global; 0: none */
    bool use_async_tts, bind_to_enclosing;
    uint64_t id, bind_id;
    int64_t duration_us, thread_duration_us, instruction_delta;
    struct slice id_scope;
    uint32_t flow_direction, instant_scope;
    int32_t pid_override, tid_override;
};

struct event {
    /* Cleared for each event, up to the first members of `legacy`. */
    uint32_t type;
    uint32_t n_categories;
    strid category, name;
    bool has_legacy, has_type, has_track, has_real, has_args, has_flows, has_name_text, has_callstack, has_gpu,
        has_mojo, has_process, lists_processes;
    bool quiet;    /* what is wrong with it is not counted: it is read once more than it is parsed */
    bool is_async; /* a legacy asynchronous event */
    uint64_t name_iid;
    struct slice log_message;
    int64_t counter;
    struct track_event_track *track; /* where it goes: a described track, else `row`, or `set` with `cookie` */
    int64_t cookie;
    struct track_event_marks marks;
    struct legacy_event legacy;

    /* Set for each event. */
    struct track_event_machine *t;
    struct machine_ctx *m;
    struct seq_generation *g;
    const struct track_event_sequence *sequence;
    int64_t ts;
    struct slice bytes;
    const struct track_event_extra *extra;
    uint32_t row, set;
    uint32_t utid; /* UTID_NONE when it has none */
    uint32_t upid; /* UPID_NONE likewise, and for an event of a described thread that has no legacy_event */
    int64_t thread_ts, thread_instructions;

    /* Set with has_track, has_real, has_name_text. */
    uint64_t track_uuid;
    double counter_real;
    struct slice name_text;
};

#define LEGACY_HAS(e, field) ((e)->legacy.has >> (field)&1)

strid event_category(struct event *e, uint64_t iid);
strid event_joined_categories(struct event *e, struct slice bytes);
uint32_t event_track_row(struct event *e, enum track_event_moment moment);
void event_begin(struct event *e);
void event_end(struct event *e);
void event_instant(struct event *e);
void event_complete(struct event *e);
void event_error(const struct event *e);

/* event_flows.c: the flows that the event of a slice begins, goes on with or ends; the stages of a GPU's work that the
 * slice submitted or waited for. */
void event_flows(struct event *e, uint32_t slice);
void event_gpu_flows(struct event *e, uint32_t slice);
/* callstacks.c: the stack that the event of a slice brings. */
void event_callstack(struct event *e, uint32_t slice, enum track_event_moment moment);

/* Phases of the older format may imply another track. False when the event cannot be placed. */
bool legacy_associate(struct event *e);
bool legacy_ends(const struct event *e);
void legacy_event(struct event *e);

#endif
