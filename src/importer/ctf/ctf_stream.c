/* Owns the walk over packets and events of a CTF stream file. */
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

static void count_gaps(struct ctf_stream *s)
{
    int64_t v;
    if (ctf_item_int(&s->scratch, "packet_seq_num", &v)) {
        uint64_t seq = (uint64_t)v;
        if (s->has_seq && seq > s->last_seq)
            s->losses.packets_lost += seq - s->last_seq - 1;
        s->last_seq = seq;
        s->has_seq = true;
    }
    if (ctf_item_int(&s->scratch, "events_discarded", &v)) {
        uint64_t discarded = (uint64_t)v; /* cumulative */
        uint64_t before = s->has_discarded ? s->last_discarded : 0;
        if (discarded > before)
            s->losses.events_discarded += discarded - before;
        s->last_discarded = discarded;
        s->has_discarded = true;
    }
}

/* The stream class of a packet by its header; the only one there is when the header has no stream_id. */
static const struct ctf_stream_class *class_of(const struct ctf_stream *s)
{
    int64_t id = 0;
    if (!ctf_item_int(&s->scratch, "stream_id", &id) && s->m->streams.n == 1)
        return s->m->streams.p[0];
    return ctf_stream_class(s->m, (uint64_t)id);
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
    int64_t v;
    if (s->r.bad || (ctf_item_int(&s->scratch, "magic", &v) && (uint32_t)v != PACKET_MAGIC)) {
        give_up(s);
        return false;
    }
    s->class = class_of(s);
    vec_clear(&s->scratch);
    if (s->class)
        ctf_read(&s->r, s->class->packet_context, &s->scratch);
    uint64_t packet_bits = left * 8;
    if (ctf_item_int(&s->scratch, "packet_size", &v))
        packet_bits = (uint64_t)v;
    uint64_t content_bits = ctf_item_int(&s->scratch, "content_size", &v) ? (uint64_t)v : packet_bits;
    bool sane = s->class && !s->r.bad && packet_bits <= UINT32_MAX && /* positions travel in 32 bits */
                packet_bits % 8 == 0 && packet_bits >= s->r.pos && content_bits >= s->r.pos &&
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
    count_gaps(s);
    s->cpu = ctf_item_int(&s->scratch, "cpu_id", &v) && v >= 0 && v < CPUS_PER_MACHINE ? (uint32_t)v : 0;
    if (ctf_item_int(&s->scratch, "timestamp_begin", &v))
        s->cycles = (uint64_t)v;
    s->in_packet = true;
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

/* The event header: the last `id` counts (the extended form follows the compact one), the last integer that maps a
 * clock. */
static bool read_header(struct ctf_stream *s, uint64_t *id)
{
    vec_clear(&s->scratch);
    ctf_read(&s->r, s->class->event_header, &s->scratch);
    *id = 0;
    for (size_t i = 0; i < s->scratch.n; i++) {
        const struct ctf_item *item = &s->scratch.p[i];
        if (item->kind != CTF_ITEM_INT && item->kind != CTF_ITEM_UINT)
            continue;
        if (item->type->integer.clock >= 0) {
            s->clock = &s->m->clocks.p[item->type->integer.clock];
            advance(s, item->u, item->type->integer.bits);
        } else if (item->name && strcmp(item->name, "timestamp") == 0) {
            advance(s, item->u, item->type->integer.bits);
        } else if (item->name && strcmp(item->name, "id") == 0) {
            *id = item->u;
        }
    }
    return !s->r.bad;
}

static bool read_event(struct ctf_stream *s)
{
    struct ctf_event *e = &s->event;
    uint64_t id, begin = s->r.pos;
    if (!read_header(s, &id))
        return false;
    e->class = ctf_event_class(s->class, id);
    if (!e->class)
        return false;
    e->stream = s->class;
    e->cpu = s->cpu;
    e->ts_ns = ctf_clock_ns(s->clock, s->cycles);
    vec_clear(&e->context);
    vec_clear(&e->fields);
    s->contents_at = s->r.pos;
    ctf_read(&s->r, s->class->event_context, &e->context);
    ctf_read(&s->r, e->class->context, &e->context);
    ctf_read(&s->r, e->class->fields, &e->fields);
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
