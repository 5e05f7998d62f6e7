/* Decodes recorded packet headers. */
#include "importer/ftrace/packet_headers.h"

#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <endian.h>

enum { HEAD, DATA, NETWORK_HEADER, FIRST_WORD };
static const char *const names[PACKET_HEADER_NUMBERS] = {
    "head", "data", "network_header", "b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9"};
static const char *const event_names[2] = {[PACKET_SENT] = "packet_sent", [PACKET_RECEIVED] = "packet_received"};

enum { BYTES = PACKET_HEADER_WORDS * 8, IPV4_BYTES = 20, IPV6_BYTES = 40, TCP_TO_FLAGS = 14, PROTOCOL_TCP = 6 };

static void describe_field(struct packet_event *e, struct slice field)
{
    struct pb_field name, number;
    if (!pb_find(field, FIELD_DESCRIPTOR_PROTO_NAME, &name) || !pb_find(field, FIELD_DESCRIPTOR_PROTO_NUMBER, &number))
        return;
    for (int i = 0; i < PACKET_HEADER_NUMBERS; i++)
        if (slice_eq_str(pb_bytes(&name), names[i]))
            e->numbers[i] = pb_u32(&number);
}

void packet_headers_describe(struct packet_headers *h, uint32_t id, struct slice descriptor)
{
    struct pb_field name, f;
    struct packet_event e = {.id = id};
    if (!pb_find(descriptor, DESCRIPTOR_PROTO_NAME, &name))
        return;
    struct pb_cursor c = pb_cursor(descriptor);
    while (pb_next(&c, &f))
        if (f.id == DESCRIPTOR_PROTO_FIELD)
            describe_field(&e, pb_bytes(&f));
    for (int i = 0; i < PACKET_HEADER_NUMBERS; i++)
        if (!e.numbers[i])
            return;
    for (int i = 0; i < 2; i++)
        if (slice_eq_str(pb_bytes(&name), event_names[i]))
            h->events[i] = e;
}

bool packet_headers_know(const struct packet_headers *h, uint32_t id, enum packet_direction *direction)
{
    for (int i = 0; i < 2; i++)
        if (id && h->events[i].id == id) {
            *direction = (enum packet_direction)i;
            return true;
        }
    return false;
}

static void describe(struct packet_headers *h, struct slice descriptor)
{
    struct pb_field id, message;
    if (pb_find(descriptor, FTRACE_EVENT_BUNDLE_GENERIC_EVENT_DESCRIPTOR_FIELD_ID, &id) &&
        pb_find(descriptor, FTRACE_EVENT_BUNDLE_GENERIC_EVENT_DESCRIPTOR_EVENT_DESCRIPTOR, &message))
        packet_headers_describe(h, pb_u32(&id), pb_bytes(&message));
}

static uint16_t load16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t load32(const uint8_t *p)
{
    return (uint32_t)load16(p) << 16 | load16(p + 2);
}

bool packet_headers_tcp(const struct packet_bytes *b, struct tcp_packet *out)
{
    unsigned at = b->network_header, tcp, address, address_bytes, end;
    if (at + IPV4_BYTES > BYTES)
        return false;
    const uint8_t *ip = b->bytes + at;
    *out = (struct tcp_packet){0};
    if (ip[0] >> 4 == 4) {
        if ((ip[0] & 15) < 5 || ip[9] != PROTOCOL_TCP || load16(ip + 6) & 0x1fff)
            return false;
        tcp = at + (ip[0] & 15) * 4u;
        address = 12;
        address_bytes = 4;
        end = at + load16(ip + 2);
        out->ip_id = load16(ip + 4);
    } else {
        if (ip[0] >> 4 != 6 || ip[6] != PROTOCOL_TCP)
            return false;
        tcp = at + IPV6_BYTES;
        address = 8;
        address_bytes = 16;
        end = tcp + load16(ip + 4);
    }
    if (tcp + TCP_TO_FLAGS > BYTES)
        return false;
    const uint8_t *t = b->bytes + tcp;
    unsigned data = tcp + (t[12] >> 4) * 4u;
    out->seq = load32(t + 4);
    out->ack = load32(t + 8);
    out->flags = load16(t + 12) & 0x1ff;
    out->length = end > data ? end - data : 0;
    out->frame = end;
    out->source = slice_of(ip + address, address_bytes);
    out->destination = slice_of(ip + address + address_bytes, address_bytes);
    out->source_port = load16(t);
    out->destination_port = load16(t + 2);
    return true;
}

void packet_headers_read(const struct packet_event *e, struct slice payload, struct packet_bytes *out)
{
    uint64_t v[PACKET_HEADER_NUMBERS] = {0};
    struct pb_cursor c = pb_cursor(payload);
    struct pb_field f;
    while (pb_next(&c, &f))
        for (int i = 0; i < PACKET_HEADER_NUMBERS; i++)
            if (f.id == e->numbers[i])
                v[i] = pb_u64(&f);
    for (int i = 0; i < PACKET_HEADER_WORDS; i++) {
        uint64_t word = htole64(v[FIRST_WORD + i]); /* the recorder is a little-endian machine */
        memcpy(out->bytes + i * 8, &word, sizeof word);
    }
    out->network_header = (uint16_t)(v[HEAD] + v[NETWORK_HEADER] - v[DATA]);
}

static bool decode(const struct packet_event *e, struct slice payload, struct packet_key *key)
{
    struct packet_bytes bytes;
    struct tcp_packet p;
    packet_headers_read(e, payload, &bytes);
    if (!packet_headers_tcp(&bytes, &p))
        return false;
    *key = (struct packet_key){.family = PACKET_TCP,
                               .flow = packet_flow(p.source, p.source_port, p.destination, p.destination_port),
                               .seq = p.seq,
                               .ack = p.ack,
                               .flags = p.flags,
                               .ip_id = p.ip_id};
    return true;
}

/* What is to be added to the bundle's timestamps to get BOOTTIME; false when that cannot be told. */
static bool to_boot(struct slice bundle, int64_t *delta)
{
    struct pb_field clock, ftrace, boot;
    *delta = 0;
    if (!pb_find(bundle, FTRACE_EVENT_BUNDLE_FTRACE_CLOCK, &clock) || pb_u32(&clock) == 0)
        return true;
    if (!pb_find(bundle, FTRACE_EVENT_BUNDLE_FTRACE_TIMESTAMP, &ftrace) ||
        !pb_find(bundle, FTRACE_EVENT_BUNDLE_BOOT_TIMESTAMP, &boot))
        return false;
    return !__builtin_sub_overflow(pb_i64(&boot), pb_i64(&ftrace), delta);
}

int packet_headers_bundle(struct packet_headers *h, struct slice bundle, packet_headers_fn fn, void *ctx)
{
    struct pb_field f, g, stamp;
    struct pb_cursor c = pb_cursor(bundle);
    while (pb_next(&c, &f))
        if (f.id == FTRACE_EVENT_BUNDLE_GENERIC_EVENT_DESCRIPTORS)
            describe(h, pb_bytes(&f));
    if (!h->events[PACKET_SENT].id && !h->events[PACKET_RECEIVED].id)
        return 0;
    int64_t delta, ts;
    bool known = to_boot(bundle, &delta);
    int rc = 0;
    for (c = pb_cursor(bundle); !rc && pb_next(&c, &f);) {
        if (f.id != FTRACE_EVENT_BUNDLE_EVENT)
            continue;
        struct pb_cursor event = pb_sub(&f);
        while (!rc && pb_next(&event, &g)) {
            enum packet_direction direction;
            struct packet_key key;
            if (g.wire != PB_BYTES || !packet_headers_know(h, g.id, &direction) ||
                !decode(&h->events[direction], pb_bytes(&g), &key))
                continue;
            if (!known || !pb_find(pb_bytes(&f), FTRACE_EVENT_TIMESTAMP, &stamp) ||
                __builtin_add_overflow(pb_i64(&stamp), delta, &ts))
                h->other_clocks++;
            else
                rc = fn(ctx, direction, ts, key);
        }
    }
    return rc;
}
