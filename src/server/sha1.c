/* SHA-1 of a short text (FIPS 180-4, section 6.1). */
#include "server/sha1.h"

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

static void take_block(uint32_t h[5], const uint8_t *p)
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
                     : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                     : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                              : (b ^ c ^ d) + 0xca62c1d6;
        uint32_t next = rotate(a, 5) + f + e + w[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void sha1(struct slice bytes, uint8_t digest[20])
{
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    size_t rest = bytes.len % 64, whole = bytes.len - rest;
    for (size_t i = 0; i < whole; i += 64)
        take_block(h, bytes.p + i);
    uint8_t tail[128] = {0};
    if (rest)
        memcpy(tail, bytes.p + whole, rest);
    tail[rest] = 0x80;
    size_t len = rest < 56 ? 64 : 128;
    for (int i = 0; i < 8; i++)
        tail[len - 1 - (size_t)i] = (uint8_t)((uint64_t)bytes.len * 8 >> 8 * i);
    for (size_t i = 0; i < len; i += 64)
        take_block(h, tail + i);
    for (int i = 0; i < 20; i++)
        digest[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}
