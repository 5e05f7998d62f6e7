/* Parquet's encodings of values. */
#ifndef MERIDIAN_EXPORT_PARQUET_ENCODE_H
#define MERIDIAN_EXPORT_PARQUET_ENCODE_H

#include "base/vec.h"

#include <stdint.h>

struct parquet_bytes {
    VEC(uint8_t) out;
    bool failed; /* out of memory */
};

void parquet_put(struct parquet_bytes *b, const void *bytes, size_t n);
void parquet_put_varint(struct parquet_bytes *b, uint64_t v);

/* Runs of equal values, and groups of 8 values bit by bit, each `width` bits (0 to 32). */
void parquet_put_hybrid(struct parquet_bytes *b, const uint32_t *values, size_t n, unsigned width);

/* DELTA_BINARY_PACKED: the first value, then blocks of 128 differences. */
void parquet_put_deltas(struct parquet_bytes *b, const int64_t *values, size_t n);

/* Bits that `max` needs. */
unsigned parquet_width(uint64_t max);

#endif
