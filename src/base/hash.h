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

/* With another seed the hashes of all texts are others, and which of them are equal is, too. */
uint64_t hash_bytes_seeded(const void *data, size_t len, uint64_t seed);

static inline uint64_t hash_bytes(const void *data, size_t len)
{
    return hash_bytes_seeded(data, len, 0);
}

/* A table whose keys a stranger chooses can be made slow: a file may hold nothing but keys that belong into one place.
 * A walk of so many slots does not happen by chance (of 100 million keys at three quarters the longest is about 500),
 * so such a table takes a seed and places its keys anew. Until then places are the same in each run. */
enum { HASH_WALK_MAX = 1024 };

/* A number that nobody knows beforehand, another one for each process; never 0. */
uint64_t hash_secret(void);

/* Of two numbers, with such a secret: for a map where the hash stands for both. Without one a number that is the hash
 * of what stands before it makes the product zero, and whoever writes a file chooses which pairs are taken for equal.
 */
static inline uint64_t hash_keyed(uint64_t secret, uint64_t a, uint64_t b)
{
    return hash_combine(hash_u64(a ^ secret), b);
}

#endif
