/* The events of one tracefs instance that somebody has asked for: format read, program compiled, switched on in the
 * kernel as long as a session uses it. */
#ifndef MERIDIAN_CAPTURE_PROBES_FTRACE_EVENT_SET_H
#define MERIDIAN_CAPTURE_PROBES_FTRACE_EVENT_SET_H

#include "base/vec.h"
#include "capture/probes/ftrace/ftrace_config.h"
#include "capture/probes/ftrace/tracefs.h"
#include "kernel/event_filter.h"
#include "kernel/event_program.h"

struct kernel_event {
    const char *group, *name;
    uint16_t id;
    uint32_t users;                 /* sessions that want it; > 0: enabled in the kernel */
    bool typed;                     /* has a row in wire/ftrace_events.def */
    bool can_compact;               /* sched_switch or sched_waking of the known shape */
    struct event_program program;   /* typed or generic with a descriptor, or a kprobe */
    struct event_program legacy;    /* generic events: GenericFtraceEvent */
    struct event_program throttled; /* of kmem/rss_stat */
    struct event_program compact;   /* of sched_switch and sched_waking */
};

struct event_set {
    const struct tracefs *fs;
    struct arena memory;
    VEC(struct kernel_event *)
    events;
    struct kernel_event **by_id; /* [65536], made on first use */
    struct compact_offsets compact;
    uint32_t *next_dynamic_id; /* shared by all instances of the process: the ids must not meet in one trace */
};

void event_set_init(struct event_set *s, const struct tracefs *fs, uint32_t *next_dynamic_id);
void event_set_free(struct event_set *s);

/* The event events/GROUP/NAME, read and compiled on first use. -MRD_ENOTFOUND when the kernel does not have it,
 * -MRD_EFORMAT when its format file is not to be believed. */
int event_set_get(struct event_set *s, const char *group, const char *name, struct kernel_event **event,
                  struct error *err);

/* A kprobe: like event_set_get(), but the event is written as kprobe_event {probe, type}. */
int event_set_get_kprobe(struct event_set *s, const char *group, const char *name, const char *probe, unsigned type,
                         struct kernel_event **event, struct error *err);

/* Counts a user and enables the event with the first; the opposite. `ftrace` events (print) need no enabling. */
int event_set_enable(struct event_set *s, struct kernel_event *event, struct error *err);
void event_set_disable(struct event_set *s, struct kernel_event *event);

/* What one session has chosen. */
struct event_selection {
    VEC(struct kernel_event *)
    events;
    const struct event_program **by_id; /* [n]; what to run for an event id */
    uint32_t n;
    string_list unknown; /* names that match nothing; memory of `strings` */
    string_list failed;  /* "group/name: why" */
    char *atrace_errors; /* what was asked of atrace and cannot be had; NULL: nothing */
    bool some_calls;     /* only `calls` of the raw_syscalls events are wanted */
    struct call_set calls;
    struct arena strings;
};

/* Resolves the names of a config (events, atrace categories, system calls): "group/name", "group/<star>", "name", also
 * with a colon. What cannot be had goes to `unknown` or `failed`; only running out of memory is an error. */
int event_selection_resolve(struct event_selection *sel, struct event_set *set, const struct ftrace_config *config,
                            struct error *err);

/* Adds one event, if it is not there yet. */
bool event_selection_add(struct event_selection *sel, struct kernel_event *event);
void event_selection_unknown(struct event_selection *sel, const char *name);
void event_selection_failed(struct event_selection *sel, const char *group, const char *name, const char *why);

/* Builds `by_id` once everything is added. The config must outlast the selection. */
int event_selection_build(struct event_selection *sel, const struct ftrace_config *config, struct error *err);
void event_selection_free(struct event_selection *sel);

/* The events that an atrace category stands for, NULL-terminated "group/name" list; NULL when the kernel has no part in
 * it. */
const char *const *atrace_category_events(const char *category);

#endif
