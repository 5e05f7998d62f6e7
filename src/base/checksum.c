/* Checksums for files: four lanes of folded 64-bit products, 64 bytes at a time. */
#include "base/checksum.h"

#include "base/hash.h"

enum { LANES = 4, STEP = LANES * 16 };

static const uint64_t keys[LANES][2] = {
    {0x9ae16a3b2f90404fu, 0xc949c7defebe6f9du},
    {0xb492b66fbe98f273u, 0x8cb92ba72f3d8dd7u},
    {0xc3a5c85c97cb3127u, 0xd6e8feb86659fd93u},
    {0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu},
};

/* Little-endian, as the file is. */
static inline uint64_t load64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

static inline void step(uint64_t lane[LANES], const uint8_t *p)
{
    for (int i = 0; i < LANES; i++)
        lane[i] = hash_fold(load64(p + 16 * i) ^ lane[i], load64(p + 16 * i + 8) ^ keys[i][1]) + lane[i];
}

struct checksum checksum_of(const void *data, size_t len, uint64_t seed)
{
    const uint8_t *p = data;
    uint64_t lane[LANES];
    size_t n = len;
    for (int i = 0; i < LANES; i++)
        lane[i] = keys[i][0] ^ hash_fold(seed + (uint64_t)i, keys[i][1]);
    for (; n >= STEP; n -= STEP, p += STEP)
        step(lane, p);
    if (n) {
        uint8_t last[STEP] = {0};
        memcpy(last, p, n);
        step(lane, last);
    }
    uint64_t a = hash_fold(lane[0] ^ len, lane[1] ^ keys[2][0]), b = hash_fold(lane[2] ^ len, lane[3] ^ keys[3][0]);
    return (struct checksum){hash_fold(a ^ keys[0][1], b ^ seed), hash_fold(b ^ keys[1][1], a + keys[0][0])};
}

void checksum_add(struct checksum *sum, struct checksum piece)
{
    uint64_t low = hash_fold(sum->low ^ piece.low, keys[0][0] ^ piece.high);
    sum->high = hash_fold(sum->high ^ piece.high ^ keys[1][0], keys[1][1] + piece.low) + low;
    sum->low = low + keys[2][0];
}
