/* The ftrace events of one machine: bundles of per-cpu events to ftrace_event rows, and to whatever each kind of event
 * means (sched slices, counters, slices …).
 *
 * Tokenizing (bundle.c, bundle_split.c, bundles_ahead.c, compact.c, retime.c) splits bundles into per-cpu queues of the
 * sorter; parsing (parse.c) sees them in time order: it adds the ftrace_event row, whose args stay bytes until a query
 * asks (event_args.c), and calls the handler of the event's kind (handlers_*.c, one table of rows a family). */
#ifndef MERIDIAN_IMPORTER_FTRACE_FTRACE_H
#define MERIDIAN_IMPORTER_FTRACE_FTRACE_H

#include "importer/core/packet.h"

/* Decoders of argument sets that are kept as payload bytes (args_set_decoder). */
enum {
    ARGS_KIND_FTRACE = 1,         /* payload of a typed event; aux: see event_args.h */
    ARGS_KIND_FTRACE_GENERIC = 2, /* payload of an event with a descriptor in the trace; aux: row of the descriptor */
    ARGS_KIND_FTRACE_SWITCH = 3,  /* a compact sched_switch, struct of event_args.h */
    ARGS_KIND_FTRACE_WAKING = 4,  /* a compact sched_waking */
    ARGS_KIND_FTRACE_SYSCALL = 5, /* args of a syscall slice: the payload of sys_enter and the return value */
};

struct ftrace_machine;

/* Made with each machine; NULL when out of memory. It is to live as long as queries do: args are decoded through it. */
struct ftrace_machine *ftrace_machine_open(struct machine_ctx *m);
/* Once no more events come (after sorter_drain(), before slice_tracker_finish()). */
void ftrace_machine_finish(struct ftrace_machine *f);
void ftrace_machine_close(struct ftrace_machine *f);

/* For readers of other formats, which have events in their hands in order of time. ftrace_event_now() is for events
 * whose kind ftrace_event_waits() says nothing of: `payload` is the field `id` of FtraceEvent, as
 * event_program_payload() writes it, of no function's name; its bytes need not stay. `utid`: the thread of the event's
 * pid. */
struct ftrace_now {
    int64_t ts;
    uint32_t cpu, utid, id;
    int32_t pid;
    const uint8_t *payload;
    uint32_t len; /* of the payload; a slice would be written in parts and read as one, which the processor waits for */
    uint32_t
        call_args; /* sys_enter: where behind the number the args begin, which go on to the end; 0: look for them */
    argset *args;  /* of a payload that comes again and again: its set, or none, which is replaced; NULL: of others */
};
void ftrace_event_now(struct machine_ctx *m, const struct ftrace_now *now);
/* Do events of a kind (a field of FtraceEvent) happen at another time than theirs? Then they are to go through packets.
 */
bool ftrace_event_waits(uint32_t id);
/* GenericEventDescriptor of a bundle: of generic events that come after it. */
void ftrace_describe_event(struct machine_ctx *m, struct slice descriptor);

/* An event of another recorder that means the same as a kind of ftrace's. */
struct ftrace_other_event {
    uint32_t id; /* field of FtraceEvent */
    uint32_t cpu;
    int64_t ts;
    uint32_t utid; /* whose event it is */
};
/* Does a kind make more than a row of ftrace_event, and no row of its own? */
bool ftrace_has_handler(uint32_t id);
/* Makes what such an event means, in order of time, out of a message of its fields. No row of ftrace_event. */
void ftrace_handle_event(struct machine_ctx *m, const struct ftrace_other_event *event, struct slice message);

/* A file's bundles may be split in a thread (bundles_ahead.h): ends it, before what they lie in is unmapped. */
void bundles_ahead_end(struct importer *im);

extern const struct packet_handler ftrace_packet_handlers[];

#endif
