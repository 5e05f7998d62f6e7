/* Makes the first pass over a track event, in file order: its timestamp, running times, and counter values that depend
 * on those before; then it goes to the sorter. */
#include "base/hash.h"
#include "importer/profiling/stack_profile.h"
#include "importer/track_event/track_event_internal.h"
#include "wire/fields.h"
#include "wire/pb_short.h"

enum { TYPE_COUNTER = 4, TYPE_STATE = 5, EXTRA = UINT32_MAX };

struct first_look {
    uint64_t type;
    uint32_t n_extra_uuids, n_extra_real_uuids;
    uint32_t has; /* bits of fields below 32 */
    bool has_real, has_extra, has_extra_real, has_extra_real_uuids;
    /* From here on only what is said to be there is written. */
    int64_t delta_us, absolute_us, thread_delta_us, thread_absolute_us, instructions_delta, instructions_absolute;
    int64_t counter;
    double counter_real;
    uint64_t track_uuid;
    uint64_t extra_uuids[MAX_EXTRA_COUNTERS], extra_real_uuids[MAX_EXTRA_COUNTERS]; /* of so many as n_… says */
};

/* Fields that say something before events are sorted; none beyond 63 does. */
#define BIT(field) (UINT64_C(1) << (field))
static const uint64_t looked_at = BIT(TRACK_EVENT_TIMESTAMP_DELTA_US) | BIT(TRACK_EVENT_THREAD_TIME_DELTA_US) |
                                  BIT(TRACK_EVENT_THREAD_INSTRUCTION_COUNT_DELTA) | BIT(TRACK_EVENT_TYPE) |
                                  BIT(TRACK_EVENT_TRACK_UUID) | BIT(TRACK_EVENT_EXTRA_COUNTER_VALUES) |
                                  BIT(TRACK_EVENT_TIMESTAMP_ABSOLUTE_US) | BIT(TRACK_EVENT_THREAD_TIME_ABSOLUTE_US) |
                                  BIT(TRACK_EVENT_THREAD_INSTRUCTION_COUNT_ABSOLUTE) | BIT(TRACK_EVENT_COUNTER_VALUE) |
                                  BIT(TRACK_EVENT_EXTRA_COUNTER_TRACK_UUIDS) | BIT(TRACK_EVENT_DOUBLE_COUNTER_VALUE) |
                                  BIT(TRACK_EVENT_EXTRA_DOUBLE_COUNTER_TRACK_UUIDS) |
                                  BIT(TRACK_EVENT_EXTRA_DOUBLE_COUNTER_VALUES);

/* Passes over the fields that most events begin with. */
static inline void look_at_usual(struct pb_cursor *c, struct first_look *l)
{
    uint32_t value;
    for (unsigned n; (n = pb_short_field(c, &value)) != 0; c->p += n)
        switch (*c->p) {
        case PB_SHORT_TAG(TRACK_EVENT_TYPE, PB_VARINT):
            l->has |= 1u << TRACK_EVENT_TYPE;
            l->type = value;
            break;
        case PB_SHORT_TAG(TRACK_EVENT_CATEGORY_IIDS, PB_VARINT):
        case PB_SHORT_TAG(TRACK_EVENT_NAME_IID, PB_VARINT):
            break;
        case PB_SHORT_TAG(TRACK_EVENT_TRACK_UUID, PB_VARINT):
            l->has |= 1u << TRACK_EVENT_TRACK_UUID;
            l->track_uuid = value;
            break;
        case PB_SHORT_TAG(TRACK_EVENT_DEBUG_ANNOTATIONS, PB_BYTES):
            if (value > (size_t)(c->end - c->p) - n)
                return;
            n += value;
            break;
        default:
            return;
        }
}

static bool look(struct slice bytes, struct first_look *l)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    memset(l, 0, offsetof(struct first_look, delta_us));
    for (look_at_usual(&c, l); pb_next(&c, &f); look_at_usual(&c, l)) {
        if (f.id > 63 || !(looked_at >> f.id & 1))
            continue;
        if (f.id < TRACK_EVENT_CHROME_FRAME_REPORTER)
            l->has |= 1u << f.id;
        switch (f.id) {
        case TRACK_EVENT_TIMESTAMP_DELTA_US:
            l->delta_us = pb_i64(&f);
            break;
        case TRACK_EVENT_THREAD_TIME_DELTA_US:
            l->thread_delta_us = pb_i64(&f);
            break;
        case TRACK_EVENT_THREAD_INSTRUCTION_COUNT_DELTA:
            l->instructions_delta = pb_i64(&f);
            break;
        case TRACK_EVENT_TYPE:
            l->type = pb_u64(&f);
            break;
        case TRACK_EVENT_TRACK_UUID:
            l->track_uuid = pb_u64(&f);
            break;
        case TRACK_EVENT_EXTRA_COUNTER_VALUES:
            l->has_extra = true;
            break;
        case TRACK_EVENT_TIMESTAMP_ABSOLUTE_US:
            l->absolute_us = pb_i64(&f);
            break;
        case TRACK_EVENT_THREAD_TIME_ABSOLUTE_US:
            l->thread_absolute_us = pb_i64(&f);
            break;
        case TRACK_EVENT_THREAD_INSTRUCTION_COUNT_ABSOLUTE:
            l->instructions_absolute = pb_i64(&f);
            break;
        case TRACK_EVENT_COUNTER_VALUE:
            l->counter = pb_i64(&f);
            break;
        case TRACK_EVENT_EXTRA_COUNTER_TRACK_UUIDS:
            track_event_add_uuids(&f, l->extra_uuids, &l->n_extra_uuids);
            break;
        case TRACK_EVENT_DOUBLE_COUNTER_VALUE:
            l->counter_real = pb_double(&f);
            l->has_real = true;
            break;
        case TRACK_EVENT_EXTRA_DOUBLE_COUNTER_TRACK_UUIDS:
            l->has_extra_real_uuids = true;
            track_event_add_uuids(&f, l->extra_real_uuids, &l->n_extra_real_uuids);
            break;
        case TRACK_EVENT_EXTRA_DOUBLE_COUNTER_VALUES:
            l->has_extra_real = true;
            break;
        }
    }
    return !c.bad;
}

#define HAS(l, field) ((l)->has >> (field)&1)

/* The timestamp of an event; false (counted) when it has none that is valid. */
static bool timestamp(struct packet *p, const struct first_look *l, int64_t *ts)
{
    struct track_event_sequence *s;
    if (HAS(l, TRACK_EVENT_TIMESTAMP_DELTA_US)) {
        s = track_event_sequence(p);
        if (!s || !track_event_times_valid(s, p->gen->seq)) {
            packet_log_sequence(p, STAT_track_event_skipped_timestamp_delta_without_valid_state);
            return false;
        }
        if (!track_event_advance(s, &s->ts_ns, l->delta_us, 1000)) {
            packet_log(p, STAT_track_event_invalid_timestamp, NULL, 0);
            return false;
        }
        *ts = track_event_monotonic(p, s->ts_ns);
        return true;
    }
    if (HAS(l, TRACK_EVENT_TIMESTAMP_ABSOLUTE_US) && l->absolute_us) {
        int64_t ns;
        if (__builtin_mul_overflow(l->absolute_us, 1000, &ns)) {
            packet_log(p, STAT_track_event_invalid_timestamp, NULL, 0);
            return false;
        }
        *ts = track_event_monotonic(p, ns);
        return true;
    }
    if (!p->has_ts) {
        packet_log(p, STAT_track_event_missing_timestamp, NULL, 0);
        return false;
    }
    *ts = p->ts;
    return true;
}

/* Thread time and instruction count of the older fields. */
static bool thread_values(struct packet *p, const struct first_look *l, struct track_event_extra *e)
{
    struct track_event_sequence *s = track_event_sequence(p);
    bool valid = s && track_event_times_valid(s, p->gen->seq);
    if (HAS(l, TRACK_EVENT_THREAD_TIME_DELTA_US)) {
        if (!valid || !track_event_advance(s, &s->thread_ts_ns, l->thread_delta_us, 1000)) {
            packet_log_sequence(p, STAT_track_event_skipped_thread_time_delta_without_valid_state);
            return false;
        }
        e->thread_ts = s->thread_ts_ns;
    } else if (HAS(l, TRACK_EVENT_THREAD_TIME_ABSOLUTE_US) &&
               __builtin_mul_overflow(l->thread_absolute_us, 1000, &e->thread_ts)) {
        e->thread_ts = COL_NULL;
    }
    if (HAS(l, TRACK_EVENT_THREAD_INSTRUCTION_COUNT_DELTA)) {
        if (!valid || !track_event_advance(s, &s->thread_instructions, l->instructions_delta, 1)) {
            packet_log_sequence(p, STAT_track_event_skipped_thread_instruction_delta_without_valid_state);
            return false;
        }
        e->thread_instructions = s->thread_instructions;
    } else if (HAS(l, TRACK_EVENT_THREAD_INSTRUCTION_COUNT_ABSOLUTE)) {
        e->thread_instructions = l->instructions_absolute;
    }
    return true;
}

/* The value a counter has after being told `value`. False when it cannot be known. */
static bool absolute_value(struct packet *p, struct track_event_track *k, double value, double *out)
{
    if (!k || k->use != USE_COUNTER)
        return false;
    if (k->multiplier > 0)
        value *= (double)k->multiplier;
    if (k->incremental) {
        /* Each sequence has a sum of its own, which begins anew when its state is cleared. */
        struct track_event_machine *t = p->m->track_event;
        struct track_event_sequence *s = track_event_sequence(p);
        uint64_t *bits = s ? u64map_put(&t->running, hash_keyed(t->secret, s->serial, k->uuid), NULL) : NULL;
        double sum;
        if (!bits) {
            t->m->im->failed = true;
            return false;
        }
        memcpy(&sum, bits, sizeof sum);
        value += sum;
        memcpy(bits, &value, sizeof value);
    }
    *out = value;
    return true;
}

/* One of the values of an event's further counters. Each that was added had an index: this one's is below
 * MAX_EXTRA_COUNTERS where the event has room. */
static bool add_extra(struct packet *p, struct track_event_extra *e, const uint64_t *uuids, uint32_t n_uuids,
                      uint32_t index, double value)
{
    if (index >= n_uuids) {
        packet_log_sequence(p, STAT_track_event_extra_counter_track_uuid_mismatch);
        return false;
    }
    if (e->n_counters >= MAX_EXTRA_COUNTERS) {
        packet_log_sequence(p, STAT_track_event_extra_counter_exceeds_max);
        return false;
    }
    struct track_event_track *k = track_event_track_find(p->m->track_event, uuids[index]);
    double absolute;
    if (!absolute_value(p, k, value, &absolute)) {
        packet_log(p, STAT_track_event_extra_counter_invalid_track, "track_uuid", uuids[index]);
        return false;
    }
    e->counters[e->n_counters++] = (struct track_event_counter_value){k, absolute};
    return true;
}

static bool extra_counters(struct packet *p, const struct first_look *l, struct track_event_extra *e)
{
    const struct track_event_defaults *d = track_event_defaults(p->m->track_event, p->gen);
    const uint64_t *uuids = HAS(l, TRACK_EVENT_EXTRA_COUNTER_TRACK_UUIDS) ? l->extra_uuids : d->extra;
    const uint64_t *real_uuids = l->has_extra_real_uuids ? l->extra_real_uuids : d->extra_double;
    uint32_t n = HAS(l, TRACK_EVENT_EXTRA_COUNTER_TRACK_UUIDS) ? l->n_extra_uuids : d->n_extra;
    uint32_t n_real = l->has_extra_real_uuids ? l->n_extra_real_uuids : d->n_extra_double;
    if ((l->has_extra && !n) || (l->has_extra_real && !n_real)) {
        packet_log_sequence(p, STAT_track_event_extra_counter_missing_track_uuids);
        return false;
    }
    uint32_t i = 0, i_real = 0;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id != TRACK_EVENT_EXTRA_COUNTER_VALUES && f.id != TRACK_EVENT_EXTRA_DOUBLE_COUNTER_VALUES)
            continue;
        struct pb_cursor packed = pb_sub(&f);
        if (f.id == TRACK_EVENT_EXTRA_COUNTER_VALUES) {
            uint64_t v = f.u;
            while (f.wire != PB_BYTES || pb_next_packed(&packed, &v)) {
                if (!add_extra(p, e, uuids, n, i++, (double)(int64_t)v))
                    return false;
                if (f.wire != PB_BYTES)
                    break;
            }
        } else if (f.wire == PB_FIXED64) {
            if (!add_extra(p, e, real_uuids, n_real, i_real++, pb_double(&f)))
                return false;
        } else {
            for (double v; packed.end - packed.p >= 8; packed.p += 8) {
                memcpy(&v, packed.p, 8);
                if (!add_extra(p, e, real_uuids, n_real, i_real++, v))
                    return false;
            }
        }
    }
    return true;
}

static struct track_event_extra *take_extra(struct track_event_machine *t)
{
    struct track_event_extra *e = t->free_extras;
    if (e)
        t->free_extras = e->next_free;
    else
        e = arena_alloc(&t->arena, sizeof *e);
    if (!e) {
        t->m->im->failed = true;
        return NULL;
    }
    e->thread_ts = e->thread_instructions = COL_NULL;
    e->counter_value = 0;
    e->n_counters = 0;
    return e;
}

static void give_back(struct track_event_machine *t, struct track_event_extra *e)
{
    e->next_free = t->free_extras;
    t->free_extras = e;
}

/* Works out what the event's place in the file decides. False (counted) when the event is to be dropped. *out stays
 * NULL for events that need nothing of the kind. */
static bool extra_of(struct packet *p, const struct first_look *l, struct track_event_extra **out)
{
    struct track_event_machine *t = p->m->track_event;
    double counter_value = 0;
    bool keep_value = false;
    if (l->type == TYPE_COUNTER || l->type == TYPE_STATE) {
        const struct track_event_defaults *d = track_event_defaults(t, p->gen);
        if (!HAS(l, TRACK_EVENT_TRACK_UUID) && !d->has_track) {
            packet_log(p,
                       l->type == TYPE_COUNTER ? STAT_track_event_counter_missing_track_uuid
                                               : STAT_track_event_state_missing_track_uuid,
                       NULL, 0);
            return false;
        }
        if (l->type == TYPE_COUNTER) {
            uint64_t uuid = HAS(l, TRACK_EVENT_TRACK_UUID) ? l->track_uuid : d->track_uuid;
            if (!HAS(l, TRACK_EVENT_COUNTER_VALUE) && !l->has_real) {
                packet_log(p, STAT_track_event_counter_missing_value, "track_uuid", uuid);
                return false;
            }
            struct track_event_track *k = track_event_track_find(t, uuid);
            if (!absolute_value(p, k, l->has_real ? l->counter_real : (double)l->counter, &counter_value)) {
                packet_log(p, STAT_track_event_counter_invalid_track_uuid, "track_uuid", uuid);
                return false;
            }
            keep_value = k->incremental;
        }
    }
    enum { THREAD_FIELDS = 1 << 2 | 1 << 8 | 1 << 17 | 1 << 20 };
    if (!keep_value && !l->has_extra && !l->has_extra_real && !(l->has & THREAD_FIELDS))
        return true;
    struct track_event_extra *e = take_extra(t);
    if (!e)
        return false;
    e->counter_value = counter_value;
    if (((l->has & THREAD_FIELDS) && !thread_values(p, l, e)) ||
        ((l->has_extra || l->has_extra_real) && !extra_counters(p, l, e))) {
        give_back(t, e);
        return false;
    }
    *out = e;
    return true;
}

enum tokenize_result track_event_tokenize_event(struct packet *p)
{
    struct track_event_machine *t = p->m->track_event;
    struct first_look l;
    int64_t ts;
    if (!track_event_has_sequence(p)) {
        packet_log(p, STAT_track_event_missing_sequence_id, NULL, 0);
        return TOKENIZE_DONE;
    }
    if (!track_event_generation(t, p->gen))
        return TOKENIZE_DONE;
    if (!look(p->field, &l) || p->field.len >= EXTRA) {
        stats_add(&p->m->st->stats, p->m->id, STAT_track_event_tokenizer_errors, 1);
        return TOKENIZE_DONE;
    }
    if (!timestamp(p, &l, &ts))
        return TOKENIZE_DONE;
    struct track_event_extra *e = NULL;
    if (!extra_of(p, &l, &e))
        return TOKENIZE_DONE;
    if (p->m->im->opt.analyze_proto_content)
        track_event_analyze(p);
    if (t->queue == UINT32_MAX)
        t->queue = sorter_add_queue(p->m->im->sorter, track_event_parse_events, t);
    if (t->queue == UINT32_MAX) {
        p->m->im->failed = true;
        return TOKENIZE_DONE;
    }
    uint64_t at = (uint64_t)(uintptr_t)p->field.p, len = p->field.len;
    uint32_t generation = p->gen->index;
    if (e) {
        e->bytes = p->field.p;
        e->len = (uint32_t)len;
        e->generation = generation;
        at = (uint64_t)(uintptr_t)e;
        len = EXTRA;
        generation = 0;
    }
    sorter_push(p->m->im->sorter, t->queue, (struct sort_event){ts, at, len << 32 | generation});
    return TOKENIZE_DONE;
}

/* Lets the sequence's time go on; false: beyond what there is. */
static bool streaming_profile_advance(struct packet *p, struct track_event_sequence *s, uint64_t delta)
{
    if (track_event_advance(s, &s->ts_ns, (int64_t)delta, 1000))
        return true;
    packet_log(p, STAT_streaming_profile_invalid_timestamp, NULL, 0);
    return false;
}

/* Its samples are as far apart as their deltas say, the first from the sequence's last event. Deltas behind the last
 * stack are time as well. */
enum tokenize_result track_event_tokenize_streaming_profile(struct packet *p)
{
    struct track_event_sequence *s = track_event_sequence(p);
    struct pb_numbers stacks = pb_numbers(p->field, STREAMING_PROFILE_PACKET_CALLSTACK_IID),
                      deltas = pb_numbers(p->field, STREAMING_PROFILE_PACKET_TIMESTAMP_DELTA_US);
    struct pb_field f;
    int32_t priority = pb_find(p->field, STREAMING_PROFILE_PACKET_PROCESS_PRIORITY, &f) ? pb_i32(&f) : 0;
    uint64_t stack, delta;
    while (s && pb_next_number(&stacks, &stack)) {
        if (!pb_next_number(&deltas, &delta)) {
            packet_log(p, STAT_stackprofile_parser_error, NULL, 0);
            return TOKENIZE_DONE;
        }
        if (!streaming_profile_advance(p, s, delta))
            return TOKENIZE_DONE;
        streaming_profile_add(p, track_event_monotonic(p, s->ts_ns), stack, priority);
    }
    while (s && pb_next_number(&deltas, &delta) && streaming_profile_advance(p, s, delta))
        continue;
    return TOKENIZE_DONE;
}
