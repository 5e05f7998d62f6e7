/* Walks over packets and events of a CTF stream file. */
#include "importer/ctf/ctf_stream.h"
#include "storage/ucpu.h"

enum { PACKET_MAGIC = 0xC1FC1FC1 };

int64_t ctf_clock_ns(const struct ctf_clock *c, uint64_t cycles)
{
    __int128 total = (__int128)c->offset + cycles;
    __int128 ns = c->freq == 1000000000 ? total : total * 1000000000 / c->freq;
    ns += (__int128)c->offset_s * 1000000000;
    return ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}

int ctf_stream_open(struct ctf_stream *s, const struct ctf_metadata *m, struct slice file)
{
    static const struct ctf_clock plain = {.name = "", .uuid = "", .freq = 1000000000};
    *s = (struct ctf_stream){.m = m, .file = file};
    s->clock = m->clocks.n ? &m->clocks.p[0] : &plain;
    s->r.slots = mem_zalloc((size_t)(m->n_slots + 1) * sizeof *s->r.slots);
    return s->r.slots ? 0 : -MRD_ENOMEM;
}

void ctf_stream_close(struct ctf_stream *s)
{
    mem_free(s->r.slots);
    vec_free(&s->scratch);
    vec_free(&s->event.context);
    vec_free(&s->event.fields);
    *s = (struct ctf_stream){0};
}

static void give_up(struct ctf_stream *s)
{
    s->losses.bytes_damaged += s->file.len - s->packet_at;
    s->packet_at = s->file.len;
    s->in_packet = false;
}

/* How far a counter of so many bits has gone since `before`; 0 when it has begun anew. */
static uint64_t gone(const struct ctf_item *item, uint64_t before)
{
    if (item->u >= before || item->bits >= 64)
        return item->u > before ? item->u - before : 0;
    uint64_t step = (item->u - before) & ((1ull << item->bits) - 1);
    return step >> (item->bits - 1) ? 0 : step; /* by more than half of its range: back */
}

static void count_gaps(struct ctf_stream *s)
{
    const struct ctf_item *item = ctf_item_of_role(&s->scratch, CTF_ROLE_SEQUENCE);
    if (item) {
        uint64_t step = s->counters.has_seq ? gone(item, s->counters.last_seq) : 0;
        s->losses.packets_lost += step > 1 ? step - 1 : 0;
        s->counters.last_seq = item->u;
        s->counters.has_seq = true;
    }
    item = ctf_item_of_role(&s->scratch, CTF_ROLE_DISCARDED);
    if (item) { /* cumulative */
        s->losses.events_discarded += gone(item, s->counters.has_discarded ? s->counters.last_discarded : 0);
        s->counters.last_discarded = item->u;
        s->counters.has_discarded = true;
    }
}

/* The stream class of a packet by its header; the only one there is when the header has no id. */
static const struct ctf_stream_class *class_of(const struct ctf_stream *s)
{
    const struct ctf_item *id = ctf_item_of_role(&s->scratch, CTF_ROLE_STREAM_ID);
    if (!id && s->m->streams.n == 1)
        return s->m->streams.p[0];
    return ctf_stream_class(s->m, id ? id->u : 0);
}

/* Is it a packet, and of this trace? */
static bool is_ours(const struct ctf_stream *s)
{
    const struct ctf_item *magic = ctf_item_of_role(&s->scratch, CTF_ROLE_MAGIC);
    if (magic && (uint32_t)magic->u != PACKET_MAGIC)
        return false;
    for (size_t i = 0; s->m->has_uuid_bytes && i < s->scratch.n; i++) {
        const struct ctf_item *item = &s->scratch.p[i];
        if (item->role == CTF_ROLE_UUID && item->kind == CTF_ITEM_BLOB && item->text.len == sizeof s->m->uuid_bytes &&
            memcmp(item->text.p, s->m->uuid_bytes, sizeof s->m->uuid_bytes) != 0)
            return false;
    }
    return true;
}

/* Replaces the low bits of the clock; a smaller value than before means it has wrapped once. */
static void advance(struct ctf_stream *s, uint64_t stamp, unsigned bits)
{
    if (bits >= 64) {
        s->cycles = stamp;
        return;
    }
    uint64_t mask = (1ull << bits) - 1;
    uint64_t high = s->cycles & ~mask;
    if (stamp < (s->cycles & mask))
        high += mask + 1;
    s->cycles = high | stamp;
}

/* What the packet's context says of its clock, cpu and losses. */
static void begin_packet(struct ctf_stream *s)
{
    static const struct ctf_clock none = {.name = "", .uuid = "", .freq = 1000000000};
    int64_t v;
    count_gaps(s);
    s->cpu = ctf_item_int(&s->scratch, "cpu_id", &v) && v >= 0 && v < CPUS_PER_MACHINE ? (uint32_t)v : 0;
    if (s->class->no_clock)
        s->clock = &none;
    else if (s->class->clock >= 0)
        s->clock = &s->m->clocks.p[s->class->clock];
    for (size_t i = 0; i < s->scratch.n; i++)
        if (s->scratch.p[i].role == CTF_ROLE_CLOCK && s->scratch.p[i].kind == CTF_ITEM_UINT)
            advance(s, s->scratch.p[i].u, s->scratch.p[i].bits);
}

/* The value of a role in the packet's context, or what it is without one. */
static uint64_t context_value(const struct ctf_stream *s, enum ctf_role role, uint64_t otherwise)
{
    const struct ctf_item *item = ctf_item_of_role(&s->scratch, role);
    return item ? item->u : otherwise;
}

/* Reads the header and context of the packet at packet_at. False when there is none that can be read. */
static bool open_packet(struct ctf_stream *s)
{
    if (s->packet_at >= s->file.len)
        return false;
    uint64_t left = s->file.len - s->packet_at;
    s->r.packet = s->file.p + s->packet_at;
    s->r.pos = 0;
    s->r.end = left * 8;
    s->r.bad = false;
    vec_clear(&s->scratch);
    ctf_read(&s->r, s->m->packet_header, &s->scratch);
    if (s->r.bad || !is_ours(s)) {
        give_up(s);
        return false;
    }
    s->class = class_of(s);
    const struct ctf_item *instance = ctf_item_of_role(&s->scratch, CTF_ROLE_STREAM_INSTANCE);
    s->has_instance = instance != NULL;
    s->instance = instance ? instance->u : 0;
    vec_clear(&s->scratch);
    if (s->class)
        ctf_read(&s->r, s->class->packet_context, &s->scratch);
    uint64_t content_bits = context_value(s, CTF_ROLE_CONTENT_BITS, UINT64_MAX);
    uint64_t packet_bits = context_value(s, CTF_ROLE_PACKET_BITS, content_bits == UINT64_MAX ? left * 8 : content_bits);
    if (content_bits == UINT64_MAX)
        content_bits = packet_bits;
    bool sane = s->class && !s->r.bad && packet_bits % 8 == 0 && packet_bits >= s->r.pos && content_bits >= s->r.pos &&
                content_bits <= packet_bits && packet_bits > 0;
    if (!sane) {
        give_up(s);
        return false;
    }
    if (packet_bits / 8 > left) { /* cut short: what is there is still good */
        s->losses.packets_damaged++;
        packet_bits = left * 8;
        content_bits = content_bits < packet_bits ? content_bits : packet_bits;
    }
    s->packet_bytes = packet_bits / 8;
    s->r.end = content_bits;
    begin_packet(s);
    s->in_packet = true;
    return true;
}

/* `clock`: -1, the one that counted before. */
static inline void take_reading(struct ctf_stream *s, int16_t clock, uint64_t value, unsigned bits)
{
    if (clock >= 0)
        s->clock = &s->m->clocks.p[clock];
    advance(s, value, bits);
}

/* The event header: the last id counts (the extended form follows the compact one), the last integer that maps a
 * clock. This is one of integers only. */
static __attribute__((noinline)) bool read_integers(struct ctf_stream *s, uint64_t *id)
{
    struct ctf_header_said said;
    if (!ctf_header_read(&s->header, &s->r, &said))
        return false;
    *id = said.id;
    for (unsigned i = 0; i < said.n_readings; i++) {
        const struct ctf_header_step *step = said.readings[i].step;
        take_reading(s, step->clock, said.readings[i].value, step->bits);
    }
    return true;
}

/* As above, of any other. */
static __attribute__((noinline)) bool read_items(struct ctf_stream *s, uint64_t *id)
{
    vec_clear(&s->scratch);
    ctf_read(&s->r, s->class->event_header, &s->scratch);
    *id = 0;
    for (size_t i = 0; i < s->scratch.n; i++) {
        const struct ctf_item *item = &s->scratch.p[i];
        if (item->kind != CTF_ITEM_INT && item->kind != CTF_ITEM_UINT)
            continue;
        if (item->role == CTF_ROLE_EVENT_ID)
            *id = item->u;
        if (item->role == CTF_ROLE_CLOCK)
            take_reading(s, item->type->integer.clock, item->u, item->bits);
    }
    return !s->r.bad;
}

static bool read_header(struct ctf_stream *s, uint64_t *id)
{
    uint64_t time;
    if (ctf_header_read_word(&s->header.word, &s->r, &s->r.pos, id, &time)) {
        take_reading(s, s->header.word.time_step->clock, time, s->header.word.time_step->bits);
        return true;
    }
    return s->header.usable ? read_integers(s, id) : read_items(s, id);
}

/* Most clocks count nanoseconds: what they begin with is added. */
static void find_base(struct ctf_stream *s)
{
    const struct ctf_clock *c = s->clock;
    s->base_of = c;
    s->has_base = c->freq == 1000000000 && c->offset_s < INT32_MAX && c->offset_s > -INT32_MAX &&
                  !__builtin_add_overflow(c->offset, c->offset_s * 1000000000, &s->base_ns);
}

static inline int64_t event_ns(struct ctf_stream *s)
{
    int64_t ns;
    if (__builtin_expect(s->clock != s->base_of, 0))
        find_base(s);
    bool fits = s->has_base && s->cycles <= INT64_MAX && !__builtin_add_overflow(s->base_ns, (int64_t)s->cycles, &ns);
    return fits ? ns : ctf_clock_ns(s->clock, s->cycles);
}

static inline void begin_event(struct ctf_stream *s, const struct ctf_event_class *class, uint64_t contents_at)
{
    struct ctf_event *e = &s->event;
    e->class = class;
    e->stream = s->class;
    e->cpu = s->cpu;
    e->ts_ns = event_ns(s);
    vec_clear(&e->context);
    vec_clear(&e->fields);
    s->contents_at = contents_at;
}

/* Notes the reach of a class that is met for the first time. */
static void find_reach(const struct ctf_stream *s, const struct ctf_event_class *class, struct ctf_reach *reach)
{
    const struct ctf_type *parts[] = {s->class->event_context, class->context, class->fields};
    uint64_t end = 0;
    *reach = (struct ctf_reach){.class = class};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const struct ctf_type *t = parts[i];
        uint64_t bits = t ? ctf_fixed_bits(t) : 0;
        if (t && !reach->align)
            reach->align = t->align;
        if (t && (!bits || t->align > reach->align))
            return;
        if (t)
            end = ((end + t->align - 1) & ~(uint64_t)(t->align - 1)) + bits;
    }
    reach->bits = end;
}

/* Passes over an event as nearly all are: its header is one word, and what follows has one size. False for others, of
 * which nothing is read. (An event must be read before it is known where the next one is: measured, an import that goes
 * by the class's types takes 1.05 times as long.) */
static inline bool pass_event(struct ctf_stream *s)
{
    uint64_t id, time, at = s->r.pos;
    if (!s->passes || !ctf_header_read_word(&s->header.word, &s->r, &at, &id, &time))
        return false;
    const struct ctf_reach *reach = &s->reaches[id % CTF_REACHES];
    if (!reach->bits || reach->class->id != id || reach->class->stream != s->class)
        return false;
    uint64_t end = ((at + reach->align - 1) & ~(uint64_t)(reach->align - 1)) + reach->bits;
    if (end > s->r.end)
        return false;
    take_reading(s, s->header.word.time_step->clock, time, s->header.word.time_step->bits);
    begin_event(s, reach->class, at);
    s->r.pos = end;
    return true;
}

static bool read_event(struct ctf_stream *s)
{
    struct ctf_event *e = &s->event;
    uint64_t id, begin = s->r.pos;
    if (__builtin_expect(s->header.type != s->class->event_header, 0))
        ctf_header_compile(&s->header, s->class->event_header);
    if (pass_event(s))
        return true;
    if (!read_header(s, &id))
        return false;
    const struct ctf_event_class *class = ctf_event_class(s->class, id);
    if (!class)
        return false;
    begin_event(s, class, s->r.pos);
    if (s->passes && !s->reaches[id % CTF_REACHES].class)
        find_reach(s, class, &s->reaches[id % CTF_REACHES]);
    if (s->class->event_context)
        ctf_read(&s->r, s->class->event_context, s->passes ? NULL : &e->context);
    if (class->context)
        ctf_read(&s->r, class->context, s->passes ? NULL : &e->context);
    ctf_read(&s->r, class->fields, s->passes ? NULL : &e->fields);
    return !s->r.bad && s->r.pos > begin; /* an event that takes no space would never end */
}

const struct ctf_event *ctf_stream_next(struct ctf_stream *s)
{
    for (;;) {
        if (!s->in_packet && !open_packet(s))
            return NULL;
        if (s->r.pos < s->r.end) {
            if (read_event(s))
                return &s->event;
            s->losses.packets_damaged++;
        }
        s->packet_at += s->packet_bytes;
        s->in_packet = false;
    }
}
