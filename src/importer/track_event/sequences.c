/* Owns what track events need to remember of their sequence: its thread, its running times, its defaults. */
#include "importer/track_event/te_internal.h"

struct te_sequence *te_sequence(struct packet *p)
{
    struct sequence *seq = p->gen->seq;
    if (!seq->track_event) {
        seq->track_event = arena_zalloc(&p->m->track_event->arena, sizeof(struct te_sequence));
        if (!seq->track_event) {
            p->m->im->failed = true;
            return NULL;
        }
    }
    return seq->track_event;
}

bool te_times_valid(const struct te_sequence *s, const struct sequence *seq)
{
    return s->times_valid && s->clears == seq->clears && s->losses == seq->losses;
}

bool te_advance(struct te_sequence *s, int64_t *ns, int64_t delta, int64_t unit)
{
    int64_t step;
    if (s->broken || __builtin_mul_overflow(delta, unit, &step) || __builtin_add_overflow(*ns, step, ns))
        s->broken = true;
    return !s->broken;
}

void te_set_thread_descriptor(struct packet *p, struct slice thread)
{
    struct te_sequence *s = te_sequence(p);
    if (!s)
        return;
    int64_t pid = 0, tid = 0, ts_us = 0, thread_us = 0, instructions = 0;
    struct pb_cursor c = pb_cursor(thread);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case 1:
            pid = pb_i32(&f);
            break;
        case 2:
            tid = pb_i64(&f);
            break;
        case 6:
            ts_us = pb_i64(&f);
            break;
        case 7:
            thread_us = pb_i64(&f);
            break;
        case 8:
            instructions = pb_i64(&f);
            break;
        }
    }
    s->has_thread = true;
    s->pid = pid;
    s->tid = tid;
    s->times_valid = true;
    s->clears = p->gen->seq->clears;
    s->losses = p->gen->seq->losses;
    s->broken =
        __builtin_mul_overflow(ts_us, 1000, &s->ts_ns) | __builtin_mul_overflow(thread_us, 1000, &s->thread_ts_ns);
    s->thread_instructions = instructions;
}

int64_t te_monotonic(struct packet *p, int64_t ns)
{
    int64_t ts;
    return clock_graph_to_trace_time(p->m->im->clocks, packet_clock(p, CLOCK_ID_MONOTONIC), ns, &ts) == 0 ? ts : ns;
}

static void add_uuids(const struct pb_field *f, uint64_t *uuids, uint32_t *n)
{
    struct pb_cursor packed = pb_sub(f);
    uint64_t v = f->u;
    while (f->wire != PB_BYTES || pb_next_packed(&packed, &v)) {
        if (*n < MAX_EXTRA_COUNTERS)
            uuids[(*n)++] = v;
        if (f->wire != PB_BYTES)
            break;
    }
}

const struct te_defaults *te_defaults(struct track_event_machine *t, struct seq_generation *g)
{
    static const struct te_defaults none;
    if (!g->defaults.len)
        return &none;
    if (g->track_event)
        return g->track_event;
    struct te_defaults *d = arena_zalloc(&t->arena, sizeof *d);
    if (!d) {
        t->m->im->failed = true;
        return &none;
    }
    struct pb_cursor c = pb_cursor(g->defaults);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id != 11) /* TracePacketDefaults.track_event_defaults */
            continue;
        struct pb_cursor e = pb_sub(&f);
        while (pb_next(&e, &f)) {
            if (f.id == 11) {
                d->track_uuid = pb_u64(&f);
                d->has_track = true;
            } else if (f.id == 31) {
                add_uuids(&f, d->extra, &d->n_extra);
            } else if (f.id == 45) {
                add_uuids(&f, d->extra_double, &d->n_extra_double);
            }
        }
        break;
    }
    return g->track_event = d;
}
