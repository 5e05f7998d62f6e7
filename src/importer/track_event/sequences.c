/* What track events need to remember of their sequence: its thread, its running times, its defaults. */
#include "importer/track_event/track_event_internal.h"

#include "wire/fields.h"

bool track_event_says_sequence(const struct packet *p)
{
    struct pb_field f;
    return pb_find(p->bytes, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, &f);
}

struct track_event_generation *track_event_new_generation(struct track_event_machine *t, struct seq_generation *g)
{
    struct track_event_sequence *s = g->seq->track_event;
    struct track_event_generation *own = arena_zalloc(&t->arena, sizeof *own);
    if (own && (!s || s->epoch != g->seq->clears)) {
        /* After a clear the times are unknown again; the thread stays known. */
        struct track_event_sequence *next = arena_zalloc(&t->arena, sizeof *next);
        if (next) {
            next->epoch = g->seq->clears;
            next->serial = t->n_sequences++;
            if (s) {
                next->has_thread = s->has_thread;
                next->pid = s->pid;
                next->tid = s->tid;
            }
        }
        g->seq->track_event = s = next;
    }
    if (!own || !s) {
        t->m->im->failed = true;
        return NULL;
    }
    own->sequence = s;
    return g->track_event = own;
}

struct track_event_sequence *track_event_sequence(struct packet *p)
{
    struct track_event_generation *own = track_event_generation(p->m->track_event, p->gen);
    return own ? own->sequence : NULL;
}

bool track_event_times_valid(const struct track_event_sequence *s, const struct sequence *seq)
{
    return s->times_valid && s->losses == seq->losses;
}

bool track_event_advance(struct track_event_sequence *s, int64_t *ns, int64_t delta, int64_t unit)
{
    int64_t step;
    if (s->broken || __builtin_mul_overflow(delta, unit, &step) || __builtin_add_overflow(*ns, step, ns))
        s->broken = true;
    return !s->broken;
}

void track_event_set_thread_descriptor(struct packet *p, struct slice thread, bool sandboxed)
{
    struct track_event_sequence *s = track_event_sequence(p);
    if (!s)
        return;
    int64_t pid = 0, tid = 0, ts_us = 0, thread_us = 0, instructions = 0;
    struct pb_cursor c = pb_cursor(thread);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case THREAD_DESCRIPTOR_PID:
            pid = pb_i32(&f);
            break;
        case THREAD_DESCRIPTOR_TID:
            tid = pb_i64(&f);
            break;
        case THREAD_DESCRIPTOR_REFERENCE_TIMESTAMP_US:
            ts_us = pb_i64(&f);
            break;
        case THREAD_DESCRIPTOR_REFERENCE_THREAD_TIME_US:
            thread_us = pb_i64(&f);
            break;
        case THREAD_DESCRIPTOR_REFERENCE_THREAD_INSTRUCTION_COUNT:
            instructions = pb_i64(&f);
            break;
        }
    }
    s->has_thread = p->gen->seq->has_thread = true;
    s->pid = p->gen->seq->pid = pid;
    s->tid = p->gen->seq->tid = sandboxed ? track_event_sandboxed_tid(pid, tid) : tid;
    s->times_valid = true;
    s->losses = p->gen->seq->losses;
    s->broken = __builtin_mul_overflow(ts_us, 1000, &s->ts_ns);
    s->broken |= __builtin_mul_overflow(thread_us, 1000, &s->thread_ts_ns);
    s->thread_instructions = instructions;
}

int64_t track_event_monotonic(struct packet *p, int64_t ns)
{
    int64_t ts;
    return clock_graph_to_trace_time(p->m->im->clocks, packet_clock(p, CLOCK_ID_MONOTONIC), ns, &ts) == 0 ? ts : ns;
}

void track_event_add_uuids(const struct pb_field *f, uint64_t *uuids, uint32_t *n)
{
    struct pb_cursor packed = pb_sub(f);
    uint64_t v = f->u;
    while (f->wire != PB_BYTES || pb_next_packed(&packed, &v)) {
        if (*n < MAX_EXTRA_COUNTERS)
            uuids[*n] = v;
        *n += *n < UINT32_MAX;
        if (f->wire != PB_BYTES)
            break;
    }
}

const struct track_event_defaults *track_event_read_defaults(struct track_event_machine *t, struct seq_generation *g)
{
    static const struct track_event_defaults none;
    struct track_event_generation *own = g->defaults.len ? track_event_generation(t, g) : NULL;
    if (!own)
        return &none;
    if (own->defaults_read)
        return &own->defaults;
    own->defaults_read = true;
    struct track_event_defaults *d = &own->defaults;
    struct pb_cursor c = pb_cursor(g->defaults);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id != TRACE_PACKET_DEFAULTS_TRACK_EVENT_DEFAULTS) /* TracePacketDefaults.track_event_defaults */
            continue;
        struct pb_cursor e = pb_sub(&f);
        while (pb_next(&e, &f)) {
            if (f.id == TRACK_EVENT_DEFAULTS_TRACK_UUID) {
                d->track_uuid = pb_u64(&f);
                d->has_track = true;
            } else if (f.id == TRACK_EVENT_DEFAULTS_EXTRA_COUNTER_TRACK_UUIDS) {
                track_event_add_uuids(&f, d->extra, &d->n_extra);
            } else if (f.id == TRACK_EVENT_DEFAULTS_EXTRA_DOUBLE_COUNTER_TRACK_UUIDS) {
                track_event_add_uuids(&f, d->extra_double, &d->n_extra_double);
            }
        }
        break;
    }
    return d;
}
