/* Kernel events in samples, when it is their turn: what is done for each of millions is compiled into its caller. */
#ifndef MERIDIAN_IMPORTER_PERF_PERF_TRACEPOINTS_H
#define MERIDIAN_IMPORTER_PERF_PERF_TRACEPOINTS_H

#include "importer/ftrace/ftrace.h"
#include "importer/perf/perf_internal.h"
#include "importer/perf/perf_repeats.h"
#include "importer/trace_dat/dat_events.h"
#include "importer/track/process_tracker.h"
#include "kernel/encode.h"
#include "kernel/foreign.h"

/* The events of one CPU on their way: a bundle is of one CPU. */
struct perf_tracepoints {
    struct importer *im;
    struct dat_file descriptions;
    struct dat_events *events;
    struct symbol_output symbols;
    struct kernel_symbols kernel;
    struct printk_formats printk;
    struct ftrace_bundle *bundle;
    uint64_t previous_end;
    uint32_t cpu;
    bool begun;
    struct program_context context;
    struct perf_kind {
        const struct event_program *program; /* NULL: the file has no format of it */
        bool in_packets;                     /* a function's name or another time is told by packets only */
        bool described;                      /* generic: its descriptor was told; others have none */
        bool call;                           /* sys_enter: the number, then the args */
        bool no_counter;                     /* its handler adds to no counter */
        uint8_t words;                       /* perf_repeat_words() */
    } * kinds;                               /* [DAT_EVENT_IDS] */
    struct perf_repeat *repeats;             /* 1 << PERF_REPEAT_BITS, by a hash of the event */
    uint8_t *made;                           /* an event as a program writes it */
    size_t made_cap;
    uint8_t event[UINT16_MAX]; /* turned round */
};

/* An event of the other byte order, turned round; it stays until the next one. */
const uint8_t *perf_tracepoint_turned(struct perf_tracepoints *t, struct slice raw, uint16_t id);
/* Tells what the fields of a generic event are. */
void perf_tracepoint_describe(struct perf_import *p, struct perf_kind *kind);

/* The event in a sample and what is known of its kind; NULL when there is none. */
static inline struct perf_kind *perf_kind_of(struct perf_import *p, struct slice raw, const uint8_t **event)
{
    struct perf_tracepoints *t = p->tracepoints;
    enum { LEAST = 8 }; /* the fields that all events begin with */
    if (raw.len < LEAST || raw.len > sizeof t->event)
        return NULL;
    uint16_t id = perf_load16(&p->file, raw.p);
    *event = __builtin_expect(p->file.big, 0) ? perf_tracepoint_turned(t, raw, id) : raw.p;
    return t->kinds[id].program ? &t->kinds[id] : NULL;
}

/* Has the program of an event write its message: `payload` and what depends on it. `payload` is NULL when the event is
 * damaged, or when memory ran out. */
void perf_tracepoint_make(struct perf_import *p, const struct perf_kind *kind, const uint8_t *event, uint32_t size,
                          struct ftrace_now *now);
/* The same, of an event that is not at `place`, where it is kept when it comes again. */
void perf_tracepoint_make_new(struct perf_import *p, const struct perf_kind *kind, const uint8_t *event, uint32_t size,
                              struct perf_repeat *place, uint64_t hash, struct ftrace_now *now);

static inline void perf_tracepoint_made(struct perf_import *p, const struct perf_kind *kind, const uint8_t *event,
                                        uint32_t size, struct ftrace_now *now)
{
    if (!kind->words || size < kind->program->min_size) {
        perf_tracepoint_make(p, kind, event, size, now);
        return;
    }
    uint64_t hash = perf_repeat_hash(kind->program, kind->words, event);
    struct perf_repeat *r = &p->tracepoints->repeats[hash >> (64 - PERF_REPEAT_BITS)];
    if (__builtin_expect(!perf_repeat_is(r, kind->program, kind->words, event), 0)) {
        perf_tracepoint_make_new(p, kind, event, size, r, hash, now);
        return;
    }
    now->payload = r->made;
    now->len = r->len;
    now->call_args = r->call_args;
    now->args = &r->args;
}

/* A sample's kernel event into its tables, unless it went through packets. */
static inline __attribute__((always_inline)) void
perf_tracepoints_parse(struct perf_import *p, const struct perf_attr *a, const struct perf_kernel_sample *s)
{
    struct perf_tracepoints *t = p->tracepoints;
    const uint8_t *event;
    struct perf_kind *kind = t && a->type == PERF_TYPE_TRACEPOINT ? perf_kind_of(p, s->raw, &event) : NULL;
    if (!kind || kind->in_packets)
        return;
    const struct event_program *program = kind->program;
    if (__builtin_expect(!kind->described, 0))
        perf_tracepoint_describe(p, kind);
    /* No struct of its own for the message: it would be written in parts and read as one, which the processor waits
     * for. */
    struct ftrace_now now = {.ts = s->ts, .cpu = s->cpu, .utid = s->utid, .id = program->proto_id};
    perf_tracepoint_made(p, kind, event, (uint32_t)s->raw.len, &now);
    if (__builtin_expect(!now.payload, 0))
        return;
    if (!kind->no_counter)
        sample_writer_flush(p->samples);
    memcpy(&now.pid, event + program->pid_offset, sizeof now.pid);
    if ((uint32_t)now.pid != s->tid) /* of a switch: the one that went */
        now.utid = process_tracker_thread(p->m->processes, now.pid);
    ftrace_event_now(p->m, &now);
}

#endif
