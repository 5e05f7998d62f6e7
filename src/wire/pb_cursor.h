/* Reads protobuf bytes in place, without copying and without trusting them.
 *
 * A cursor walks the fields of one message. pb_next() checks every bound; when the bytes are damaged it returns false
 * and latches `bad`, so that a caller may read a whole message and test once at the end:
 *
 *     struct pb_cursor c = pb_cursor(bytes);
 *     struct pb_field f;
 *     while (pb_next(&c, &f)) {
 *         switch (f.id) {
 *         case TRACE_PACKET_TIMESTAMP: ts = f.u; break;
 *         case TRACE_PACKET_TRACE_UUID: uuid = pb_bytes(&f); break;
 *         }
 *     }
 *     if (c.bad) ...
 *
 * A field of an unexpected wire type yields 0 or an empty slice from the typed getters, never undefined behaviour.
 * Wire format: varint (0), 64-bit (1), length-delimited (2), 32-bit (5); groups (3, 4) and 6, 7 are damage. */
#ifndef MERIDIAN_WIRE_PB_CURSOR_H
#define MERIDIAN_WIRE_PB_CURSOR_H

#include "base/slice.h"

enum pb_wire { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

struct pb_cursor {
    const uint8_t *p;
    const uint8_t *end;
    bool bad; /* the bytes were damaged at p */
};

struct pb_field {
    uint32_t id;      /* field number, never 0 */
    uint8_t wire;     /* enum pb_wire */
    uint64_t u;       /* varint or fixed value; the length for PB_BYTES */
    const uint8_t *p; /* first byte of a PB_BYTES payload, else NULL */
};

static inline struct pb_cursor pb_cursor(struct slice s)
{
    return (struct pb_cursor){s.p, s.len ? s.p + s.len : s.p, false};
}

/* Reads one varint of up to 10 bytes at *p; false when it runs over `end` or is too long. Bits past 64 are dropped. */
static inline bool pb_varint(const uint8_t **p, const uint8_t *end, uint64_t *value)
{
    const uint8_t *q = *p;
    if (__builtin_expect(q < end && *q < 0x80, 1)) {
        *value = *q;
        *p = q + 1;
        return true;
    }
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70 && q < end; shift += 7) {
        uint8_t b = *q++;
        if (shift < 64)
            v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) {
            *value = v;
            *p = q;
            return true;
        }
    }
    return false;
}

/* Passes over one that pb_varint() would read. */
static inline bool pb_skip_varint(const uint8_t **p, const uint8_t *end)
{
    uint64_t word, v;
    if (end - *p >= 8) {
        memcpy(&word, *p, 8);
        word = ~word & 0x8080808080808080;
        if (__builtin_expect(word != 0, 1)) {
            *p += (__builtin_ctzll(word) >> 3) + 1;
            return true;
        }
    }
    return pb_varint(p, end, &v);
}

/* The next field, or false at the end and on damage (then c->bad is set and c->p stays at the damaged field). */
static inline bool pb_next(struct pb_cursor *c, struct pb_field *f)
{
    const uint8_t *p = c->p;
    uint64_t tag;
    if (p >= c->end)
        return false;
    if (__builtin_expect(*p < 0x80, 1)) {
        tag = *p++;
        if (tag >> 3 == 0)
            goto damaged;
    } else if (!pb_varint(&p, c->end, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff) {
        goto damaged;
    }
    f->id = (uint32_t)(tag >> 3);
    f->wire = tag & 7;
    f->p = NULL;
    switch (f->wire) {
    case PB_VARINT:
        if (!pb_varint(&p, c->end, &f->u))
            goto damaged;
        break;
    case PB_BYTES:
        if (!pb_varint(&p, c->end, &f->u) || f->u > (uint64_t)(c->end - p))
            goto damaged;
        f->p = p;
        p += f->u;
        break;
    case PB_FIXED64:
        if (c->end - p < 8)
            goto damaged;
        memcpy(&f->u, p, 8);
        p += 8;
        break;
    case PB_FIXED32: {
        uint32_t v;
        if (c->end - p < 4)
            goto damaged;
        memcpy(&v, p, 4);
        f->u = v;
        p += 4;
        break;
    }
    default:
        goto damaged;
    }
    c->p = p;
    return true;
damaged:
    c->bad = true;
    return false;
}

/* --- fields whose order is known ----------------------------------------------------------------------------------
 *
 * Messages of some kinds nearly always have their fields in one order. These read a field only when it is the next one:
 * who wants another order reads the message by pb_next() from the beginning. */

/* The bytes from p on as a word, the first one lowest; 0 for those from `end` on. At least 8 bytes before `end` must be
 * readable. */
static inline uint64_t pb_word(const uint8_t *p, const uint8_t *end)
{
    uint64_t word;
    size_t left = (size_t)(end - p);
    if (__builtin_expect(left >= 8, 1)) {
        memcpy(&word, p, 8);
        return word;
    }
    memcpy(&word, end - 8, 8);
    return left ? word >> (64 - 8 * left) : 0;
}

/* The field at the beginning of a word: its bytes, when it has this number (1 to 15) and is a varint of up to 4 bytes;
 * else 0. Where the word ends before 8 bytes, the caller compares: a field that runs over the end is longer. */
static inline unsigned pb_word_varint(uint64_t word, uint32_t id, uint64_t *value)
{
    uint64_t last = ~(word >> 8) & 0x80808080;
    if ((uint8_t)word != (id << 3 | PB_VARINT) || !last)
        return 0;
    uint64_t v = word >> 8 & (last ^ (last - 1));
    v = (v & 0x7f007f) | (v & 0x7f007f00) >> 1;
    *value = (v & 0x3fff) | (v & 0x3fff0000) >> 2;
    return 2 + (unsigned)__builtin_ctzll(last) / 8;
}

/* The varint of up to 8 bytes at the beginning of a word: its bytes, else 0. */
static inline unsigned pb_word_value(uint64_t word, uint64_t *value)
{
    uint64_t last = ~word & 0x8080808080808080, v = word & (last ^ (last - 1));
    if (__builtin_expect(!last, 0))
        return 0;
    v = (v & 0x007f007f007f007f) | (v & 0x7f007f007f007f00) >> 1;
    v = (v & 0x00003fff00003fff) | (v & 0x3fff00003fff0000) >> 2;
    *value = (v & 0x0fffffff) | (v & 0x0fffffff00000000) >> 4;
    return 1 + (unsigned)__builtin_ctzll(last) / 8;
}

static inline struct slice pb_bytes(const struct pb_field *f)
{
    return f->wire == PB_BYTES ? slice_of(f->p, (size_t)f->u) : slice_of(NULL, 0);
}

static inline struct pb_cursor pb_sub(const struct pb_field *f)
{
    return pb_cursor(pb_bytes(f));
}

static inline uint64_t pb_u64(const struct pb_field *f)
{
    return f->wire == PB_BYTES ? 0 : f->u;
}

static inline uint32_t pb_u32(const struct pb_field *f)
{
    return (uint32_t)pb_u64(f);
}

static inline int64_t pb_i64(const struct pb_field *f)
{
    return (int64_t)pb_u64(f);
}

static inline int32_t pb_i32(const struct pb_field *f)
{
    return (int32_t)pb_u64(f);
}

static inline bool pb_bool(const struct pb_field *f)
{
    return pb_u64(f) != 0;
}

static inline int64_t pb_s64(const struct pb_field *f) /* sint64 */
{
    uint64_t u = pb_u64(f);
    return (int64_t)(u >> 1 ^ (0 - (u & 1)));
}

static inline double pb_double(const struct pb_field *f)
{
    double d = 0;
    if (f->wire == PB_FIXED64)
        memcpy(&d, &f->u, 8);
    return d;
}

static inline float pb_float(const struct pb_field *f)
{
    float d = 0;
    uint32_t u = (uint32_t)f->u;
    if (f->wire == PB_FIXED32)
        memcpy(&d, &u, 4);
    return d;
}

/* The next varint of a packed repeated field: use a cursor over its payload (pb_sub()). False at the end and on damage.
 */
static inline bool pb_next_packed(struct pb_cursor *c, uint64_t *value)
{
    if (c->p >= c->end)
        return false;
    if (pb_varint(&c->p, c->end, value))
        return true;
    c->bad = true;
    return false;
}

/* Walks the values of a repeated number of a message, be they packed, one a field, or both. Damage latches
 * message.bad. */
struct pb_numbers {
    struct pb_cursor message, packed;
    uint32_t id;
};
static inline struct pb_numbers pb_numbers(struct slice message, uint32_t id)
{
    return (struct pb_numbers){pb_cursor(message), {NULL, NULL, false}, id};
}
static inline bool pb_next_number(struct pb_numbers *n, uint64_t *value)
{
    struct pb_field f;
    while (!pb_next_packed(&n->packed, value)) {
        n->message.bad |= n->packed.bad;
        do {
            if (n->message.bad || !pb_next(&n->message, &f))
                return false;
        } while (f.id != n->id);
        if (f.wire != PB_BYTES) {
            *value = f.u;
            return true;
        }
        n->packed = pb_sub(&f);
    }
    return true;
}

/* The first field number `id` of a message; false when it is not there. For the last one of a repeated scalar (the
 * protobuf rule) walk the message instead. */
static inline bool pb_find(struct slice message, uint32_t id, struct pb_field *f)
{
    struct pb_cursor c = pb_cursor(message);
    while (pb_next(&c, f))
        if (f->id == id)
            return true;
    return false;
}

#endif
