/* Tells the trace time of packets: which clock they are given in, and how it is related. */
#include "cut/cut_internal.h"

#include "importer/clock/clock_graph.h"
#include "importer/core/sequence.h"
#include "wire/fields.h"

struct cut_sequence *cut_sequence_of(struct cut *c, const struct cut_head *h)
{
    bool added;
    uint64_t *index = u64map_put(&c->by_id, (uint64_t)h->machine_id << 32 | h->sequence_id, &added);
    if (!index)
        return NULL;
    if (added) {
        *index = c->sequences.n;
        if (!vec_add(&c->sequences))
            return NULL;
        c->sequences.p[*index].number = (uint32_t)*index;
    }
    return &c->sequences.p[*index];
}

static bool is_sequence_clock(uint32_t id)
{
    return id >= CLOCK_ID_FIRST_SEQUENCE && id <= CLOCK_ID_LAST_SEQUENCE;
}

static struct cut_clock *find_clock(struct cut_sequence *s, uint32_t id)
{
    for (size_t i = 0; i < s->clocks.n; i++)
        if (s->clocks.p[i].id == id)
            return &s->clocks.p[i];
    return NULL;
}

static struct cut_clock read_clock(struct slice message, int64_t *value)
{
    struct cut_clock k = {.multiplier = 1};
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    *value = 0;
    while (pb_next(&c, &f)) {
        if (f.id == CLOCK_SNAPSHOT_CLOCK_CLOCK_ID)
            k.id = pb_u32(&f);
        else if (f.id == CLOCK_SNAPSHOT_CLOCK_TIMESTAMP)
            *value = pb_i64(&f);
        else if (f.id == CLOCK_SNAPSHOT_CLOCK_IS_INCREMENTAL)
            k.incremental = pb_bool(&f);
        else if (f.id == CLOCK_SNAPSHOT_CLOCK_UNIT_MULTIPLIER_NS)
            k.multiplier = pb_i64(&f) ? pb_i64(&f) : 1;
    }
    return k;
}

/* Clocks of the sequence are related by a clock of the machine that was read with them: the boot clock, or the first.
 */
static bool note_snapshot(struct cut_sequence *s, struct slice snapshot)
{
    struct pb_cursor c = pb_cursor(snapshot);
    struct pb_field f;
    uint32_t ref = 0;
    int64_t ref_value = 0, value;
    bool any = false;
    while (pb_next(&c, &f)) {
        if (f.id != CLOCK_SNAPSHOT_CLOCKS)
            continue;
        struct cut_clock k = read_clock(pb_bytes(&f), &value);
        any |= is_sequence_clock(k.id);
        if (k.id && k.id <= CLOCK_ID_PERF && k.multiplier == 1 && (!ref || k.id == CLOCK_ID_BOOTTIME)) {
            ref = k.id;
            ref_value = value;
        }
    }
    if (!any)
        return true;
    c = pb_cursor(snapshot);
    while (pb_next(&c, &f)) {
        struct cut_clock k = f.id == CLOCK_SNAPSHOT_CLOCKS ? read_clock(pb_bytes(&f), &value) : (struct cut_clock){0};
        if (!is_sequence_clock(k.id))
            continue;
        k.ref = ref;
        if (__builtin_mul_overflow(value, k.multiplier, &k.now) || __builtin_sub_overflow(ref_value, k.now, &k.delta))
            k.ref = 0;
        struct cut_clock *old = find_clock(s, k.id);
        if (old)
            *old = k;
        else if (!vec_push(&s->clocks, k))
            return false;
    }
    return true;
}

bool cut_sequence_update(struct cut *c, struct cut_sequence *s, const struct cut_head *h)
{
    enum { FLAG_CLEARED = 1 };
    struct pb_field f;
    (void)c;
    if (h->cleared || h->flags & FLAG_CLEARED) {
        s->default_clock = 0;
        s->generation++;
    }
    if (h->defaults.p && h->sequence_id)
        s->default_clock = pb_find(h->defaults, TRACE_PACKET_DEFAULTS_TIMESTAMP_CLOCK_ID, &f) ? pb_u32(&f) : 0;
    return !h->snapshot.p || note_snapshot(s, h->snapshot);
}

bool cut_machine(const struct cut *c, uint32_t machine_id, uint32_t *row)
{
    size_t found = 0;
    for (size_t i = 0; i < c->im->machines.n; i++)
        if (c->im->machines.p[i] && c->im->machines.p[i]->raw_id == machine_id) {
            *row = (uint32_t)i;
            found++;
        }
    return found == 1;
}

bool cut_machine_time(const struct cut *c, uint32_t row, uint32_t clock, int64_t value, int64_t *ts)
{
    struct clock_id id = {.id = clock, .machine = row, .file = c->im->machines.p[row]->clock_file};
    return clock_graph_to_trace_time(c->im->clocks, id, value, ts) == 0;
}

/* The reading of a sequence's clock in ns. */
static bool advance(struct cut_clock *k, uint64_t timestamp, int64_t *ns)
{
    if (__builtin_mul_overflow((int64_t)timestamp, k->multiplier, ns))
        return false;
    if (!k->incremental)
        return true;
    if (__builtin_add_overflow(*ns, k->now, ns))
        return false;
    k->now = *ns;
    return true;
}

bool cut_packet_time(struct cut *c, struct cut_sequence *s, const struct cut_head *h, int64_t *ts,
                     struct cut_clock **steps)
{
    uint32_t row = 0, clock = h->clock_id ? h->clock_id : s->default_clock;
    int64_t ns;
    *steps = NULL;
    if (!h->has_timestamp || !cut_machine(c, h->machine_id, &row))
        return false;
    const struct machine_ctx *m = c->im->machines.p[row];
    if (!clock && m->sequences)
        clock = m->sequences->default_clock;
    *ts = (int64_t)h->timestamp;
    if (!clock)
        return true;
    if (!is_sequence_clock(clock))
        return clock != CLOCK_ID_TRACE_FILE && cut_machine_time(c, row, clock, *ts, ts);
    struct cut_clock *k = find_clock(s, clock);
    if (!k || !advance(k, h->timestamp, &ns))
        return false;
    *steps = k->incremental ? k : NULL;
    return k->ref && !__builtin_add_overflow(ns, k->delta, &ns) && cut_machine_time(c, row, k->ref, ns, ts);
}
