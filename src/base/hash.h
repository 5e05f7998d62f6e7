/* Fast non-cryptographic hashes for hash tables. Values differ between versions: never store or print them. */
#ifndef MERIDIAN_BASE_HASH_H
#define MERIDIAN_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* 128-bit product folded to 64 bits: one multiplication mixes every input bit into the whole word. */
static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
    __uint128_t m = (__uint128_t)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint64_t hash_u64(uint64_t v)
{
    return hash_fold(v ^ 0x9e3779b97f4a7c15u, 0xd1b54a32d192ed03u);
}

static inline uint64_t hash_combine(uint64_t h, uint64_t v)
{
    return hash_fold(h ^ v, 0xe7037ed1a0b428dbu ^ (h << 1));
}

uint64_t hash_bytes(const void *data, size_t len);

#endif
