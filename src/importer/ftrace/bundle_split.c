/* Splits a bundle by its bytes alone. */
#include "importer/ftrace/bundle_split.h"

#include "importer/ftrace/ftrace.h"

/* --- its head ----------------------------------------------------------------------------------------------------- */

/* The next field, when it is an event: nearly all that a bundle holds. What is wrong with it, pb_next() says. */
static inline bool next_event(struct pb_cursor *c, struct slice *event)
{
    uint64_t len;
    if (c->p == c->end || *c->p != (FTRACE_EVENT_BUNDLE_EVENT << 3 | PB_BYTES))
        return false;
    const uint8_t *p = c->p + 1;
    if (!pb_varint(&p, c->end, &len) || len > (uint64_t)(c->end - p))
        return false;
    *event = slice_of(p, (size_t)len);
    c->p = p + len;
    return true;
}

static inline void pass_events(struct pb_cursor *c)
{
    struct slice event;
    while (next_event(c, &event))
        ;
}

static void head_field(struct bundle_head *h, const struct pb_field *f)
{
    switch (f->id) {
    case FTRACE_EVENT_BUNDLE_CPU:
        h->has_cpu = true;
        h->cpu = pb_u32(f);
        break;
    case FTRACE_EVENT_BUNDLE_LOST_EVENTS:
        h->lost = pb_bool(f);
        break;
    case FTRACE_EVENT_BUNDLE_COMPACT_SCHED:
        h->compact = pb_bytes(f);
        break;
    case FTRACE_EVENT_BUNDLE_FTRACE_CLOCK:
        h->has_clock = true;
        h->clock = pb_u32(f);
        break;
    case FTRACE_EVENT_BUNDLE_FTRACE_TIMESTAMP:
        h->has_ftrace_ts = true;
        h->ftrace_ts = pb_i64(f);
        break;
    case FTRACE_EVENT_BUNDLE_BOOT_TIMESTAMP:
        h->has_boot_ts = true;
        h->boot_ts = pb_i64(f);
        break;
    case FTRACE_EVENT_BUNDLE_LAST_READ_EVENT_TIMESTAMP:
        if (!h->has_previous_end)
            h->start = pb_i64(f);
        h->has_start = true;
        break;
    case FTRACE_EVENT_BUNDLE_PREVIOUS_BUNDLE_END_TIMESTAMP:
        h->start = pb_i64(f);
        h->has_start = h->has_previous_end = true;
        break;
    case FTRACE_EVENT_BUNDLE_GENERIC_EVENT_DESCRIPTORS:
        h->has_descriptors = true;
        break;
    }
}

void bundle_head_read(struct slice bundle, struct bundle_head *h)
{
    struct pb_cursor c = pb_cursor(bundle);
    struct pb_field f;
    *h = (struct bundle_head){0};
    while (pass_events(&c), pb_next(&c, &f))
        head_field(h, &f);
}

/* --- its events --------------------------------------------------------------------------------------------------- */

void ftrace_gather_flush(struct ftrace_gather *g)
{
    struct sort_block b;
    if (g->sorter) {
        sorter_push_run(g->sorter, g->queue, g->events, g->n);
    } else if (g->n && !g->failed) {
        bool made = sort_block_make(&b, g->events, g->n);
        g->failed = !made || !vec_push(g->blocks, b);
        if (g->failed && made)
            sort_block_free(&b);
    }
    g->n = 0;
}

/* The number of the event's own field: the first that is length-delimited; 0 when there is none. */
static uint32_t event_id(struct slice event)
{
    struct pb_cursor c = pb_cursor(event);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.wire == PB_BYTES)
            return f.id;
    return 0;
}

/* Nearly all events are timestamp, pid, event, in this order. What is behind the timestamp; else NULL. */
static inline const uint8_t *start_in_order(struct slice event, uint64_t *raw, uint32_t *id)
{
    const uint8_t *p = event.p, *end = event.p + event.len;
    uint64_t word, pid;
    if (event.len < 1 + sizeof word || *p++ != (FTRACE_EVENT_TIMESTAMP << 3 | PB_VARINT))
        return NULL;
    memcpy(&word, p, sizeof word);
    unsigned n = pb_word_value(word, raw);
    p += n;
    word = pb_word(p, end);
    unsigned m = n ? pb_word_varint(word, FTRACE_EVENT_PID, &pid) : 0; /* at most 5 */
    word >>= 8 * m;
    unsigned two = word >> 7 & 1; /* bytes of the tag, less one */
    uint32_t tag = two ? (uint32_t)((word & 0x7f) | (word >> 1 & 0x7f << 7)) : (uint32_t)word & 0x7f;
    *id = tag >> 3;
    return m && (tag & 7) == PB_BYTES && !(two & word >> 15) && m + 1 + two <= (size_t)(end - p) ? p : NULL;
}

static __attribute__((noinline)) enum event_start start_of_any(struct slice event, struct sort_event *e, uint32_t *id)
{
    const uint8_t *q = event.p, *end = event.p + event.len;
    uint64_t raw = 0, pid, tag;
    uint32_t flags = EVENT_FROM_START;
    *id = 0;
    if (event.len > 2 && *q == (FTRACE_EVENT_TIMESTAMP << 3 | PB_VARINT) && (++q, pb_varint(&q, end, &raw))) {
        const uint8_t *after_ts = q;
        if (q < end && *q == (FTRACE_EVENT_PID << 3 | PB_VARINT) && (++q, pb_varint(&q, end, &pid)) &&
            pb_varint(&q, end, &tag) && (tag & 7) == PB_BYTES && tag >> 3 <= UINT32_MAX) {
            *id = (uint32_t)(tag >> 3);
            flags = 0;
            q = after_ts;
        }
    } else {
        struct pb_field f;
        if (!pb_find(event, FTRACE_EVENT_TIMESTAMP, &f))
            return EVENT_WITHOUT_TIME;
        raw = pb_u64(&f);
    }
    if (*id == 0 && (*id = event_id(event)) == 0)
        return EVENT_WITHOUT_ID;
    if (flags)
        q = event.p;
    *e = (struct sort_event){.ts = (int64_t)raw, .a = (uintptr_t)q, .b = (uint64_t)(end - q) << 32 | flags};
    return EVENT_READ;
}

static inline enum event_start event_start(struct slice event, struct sort_event *e, uint32_t *id)
{
    uint64_t raw;
    const uint8_t *p = start_in_order(event, &raw, id);
    if (!p || !*id)
        return start_of_any(event, e, id);
    *e = (struct sort_event){.ts = (int64_t)raw, .a = (uintptr_t)p, .b = (uint64_t)(event.p + event.len - p) << 32};
    return EVENT_READ;
}

enum event_start ftrace_event_start(struct slice event, struct sort_event *e, uint32_t *id)
{
    return event_start(event, e, id);
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static void begin_part(struct ftrace_gather *g, struct bundle_split *s, enum bundle_part part)
{
    ftrace_gather_begin(g, NULL, 0);
    g->blocks = &s->blocks[part];
}

/* False when it is damaged, or has to wait. The event is written where it stays: a copy is read by words of 16 bytes,
 * and of words that were written by halves just before the processor waits for both. */
static inline bool split_event(struct slice event, struct ftrace_gather *g)
{
    uint32_t id;
    if (event_start(event, ftrace_gather_next(g), &id) != EVENT_READ ||
        (id >= FIRST_EVENT_THAT_WAITS && ftrace_event_waits(id)))
        return false;
    g->n++;
    return true;
}

static bool split_events(struct bundle_split *s, struct ftrace_gather *g)
{
    struct pb_cursor c = pb_cursor(s->bytes);
    struct pb_field f;
    struct slice event;
    begin_part(g, s, PART_EVENTS);
    for (;;) {
        if (next_event(&c, &event)) {
            if (!split_event(event, g))
                return false;
        } else if (pb_next(&c, &f)) {
            head_field(&s->head, &f);
        } else {
            break;
        }
    }
    ftrace_gather_flush(g);
    return !c.bad;
}

static bool split_compact(struct bundle_split *s, struct ftrace_gather *g)
{
    static const struct compact_time as_recorded = {0};
    struct compact c;
    if (!compact_read(s->head.compact, &c))
        return false;
    begin_part(g, s, PART_SWITCHES);
    if (!compact_switches(&c, 0, &as_recorded, g))
        return false;
    begin_part(g, s, PART_WAKINGS);
    return compact_wakings(&c, 0, &as_recorded, g);
}

void bundle_split(struct bundle_split *s)
{
    struct ftrace_gather g;
    g.failed = false;
    s->head = (struct bundle_head){0};
    s->usable = split_events(s, &g) && (!s->head.compact.len || split_compact(s, &g)) && !g.failed;
}

void bundle_split_clear(struct bundle_split *s)
{
    for (unsigned part = 0; part < BUNDLE_PARTS; part++) {
        for (size_t i = 0; i < s->blocks[part].n; i++)
            sort_block_free(&s->blocks[part].p[i]);
        vec_clear(&s->blocks[part]);
    }
}

void bundle_split_free(struct bundle_split *s)
{
    bundle_split_clear(s);
    for (unsigned part = 0; part < BUNDLE_PARTS; part++)
        vec_free(&s->blocks[part]);
}
