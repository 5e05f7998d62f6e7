/* Checksums of bytes that are kept in files: the same on every machine and in every version, 128 bits, and fast
 * (measured 12 GB/s on one core).
 *
 * With a secret `seed` nobody can make two inputs of one sum on purpose; without one it finds accidents. */
#ifndef MERIDIAN_BASE_CHECKSUM_H
#define MERIDIAN_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

struct checksum {
    uint64_t low, high;
};

struct checksum checksum_of(const void *data, size_t len, uint64_t seed);

/* The sum of pieces that are summed one by one: start with a zeroed one. */
void checksum_add(struct checksum *sum, struct checksum piece);

static inline uint64_t checksum64(const void *data, size_t len)
{
    return checksum_of(data, len, 0).low;
}

#endif
