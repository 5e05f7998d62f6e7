/* The byte-string hash: eight bytes at a time, folded multiplications. */
#include "base/hash.h"

#include <sys/auxv.h>

static uint64_t load64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static uint64_t load32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

uint64_t hash_bytes_seeded(const void *data, size_t len, uint64_t seed)
{
    const uint8_t *p = data;
    uint64_t h = hash_fold(len ^ 0x8bb84b93962eacc9u, 0x2d358dccaa6c78a5u) ^ seed;
    size_t n = len;
    for (; n > 16; n -= 16, p += 16)
        h = hash_fold(load64(p) ^ h, load64(p + 8) ^ 0xa0761d6478bd642fu ^ seed);
    uint64_t a = 0, b = 0; /* the last 0..16 bytes, overlapping where short */
    if (n >= 8) {
        a = load64(p);
        b = load64(p + n - 8);
    } else if (n >= 4) {
        a = load32(p);
        b = load32(p + n - 4);
    } else if (n > 0) {
        a = p[0] | (uint64_t)p[n / 2] << 8 | (uint64_t)p[n - 1] << 16;
    }
    return hash_fold(a ^ h, b ^ 0xe7037ed1a0b428dbu ^ seed);
}

/* From the bytes that the kernel gives each program at its start: no system call, which a sandbox may refuse. */
uint64_t hash_secret(void)
{
    uint64_t words[2] = {0x9e3779b97f4a7c15u, 0};
    const void *random = (const void *)(uintptr_t)getauxval(AT_RANDOM); /* 16 bytes */
    if (random)
        memcpy(words, random, sizeof words);
    return hash_combine(hash_u64(words[0]), words[1]) | 1;
}
