/* Chunks packed more tightly than by whole bytes: blocks of 128 rows, each with its own least value and number of bits.
 *
 * A trace's times rise and its numbers repeat, so that what lies close together differs little. Snapshots keep chunks
 * so, and the import those that it hardly changes any more (column_settle()): measured 1.5 times smaller than codes of
 * whole bytes; reading one row costs a shift and a mask more. The codes of a chunk are COL_BLOCKS headers, then the
 * bits of the blocks. Nothing changes such a chunk in place. */
#ifndef MERIDIAN_STORAGE_COLUMN_BLOCKS_H
#define MERIDIAN_STORAGE_COLUMN_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    COL_BLOCK_SHIFT = 7,
    COL_BLOCK_ROWS = 1 << COL_BLOCK_SHIFT,
    COL_BLOCKS = 32, /* in a chunk */
    COL_BLOCK_BITS_MAX = 32,
    COL_BLOCK_UNIT = COL_BLOCK_ROWS / 8, /* bytes for each bit of a code */
    COL_BLOCKS_MAX_BYTES = COL_BLOCKS * (8 + COL_BLOCK_BITS_MAX * COL_BLOCK_UNIT),
    COL_BLOCKS_SLACK = 8, /* bytes behind the last code that may be read */
};

struct col_block {
    uint32_t base; /* least value of the block, from the chunk's base */
    uint16_t at;   /* where its codes are, in units behind the headers */
    uint8_t bits;  /* of a code; 0: all are one */
    uint8_t nulls; /* 1: the highest code (with 0 bits: the only one) is NULL */
};

/* The word of row i, where NULL is `null`. */
static inline int64_t col_block_get(const void *codes, int64_t base, uint32_t i, int64_t null)
{
    const struct col_block *b = (const struct col_block *)codes + (i >> COL_BLOCK_SHIFT);
    const uint8_t *p = (const uint8_t *)codes + COL_BLOCKS * sizeof *b + (size_t)b->at * COL_BLOCK_UNIT;
    uint32_t bit = (i & (COL_BLOCK_ROWS - 1)) * b->bits;
    uint64_t v, mask = (1ull << b->bits) - 1;
    memcpy(&v, p + (bit >> 3), 8);
    v = v >> (bit & 7) & mask;
    return b->nulls && v == mask ? null : base + (int64_t)b->base + (int64_t)v;
}

/* Packs a chunk's words, the least of which that is not `null` is `base`; all lie within 2^32 - 1 of it. `out` has room
 * for COL_BLOCKS_MAX_BYTES. The bytes used. */
size_t col_blocks_pack(const int64_t *v, int64_t base, int64_t null, uint8_t *out);

/* Packs COL_CHUNK_ROWS codes of 1, 2 or 4 bytes; nullable: the highest one is NULL. 0 when that takes more than `limit`
 * bytes, else the bytes used. `out` has room for COL_BLOCKS_MAX_BYTES and COL_BLOCKS_SLACK more. What comes of it is
 * what col_blocks_pack() makes of the values, when the least of them has code 0. */
size_t col_blocks_pack_codes(const void *codes, unsigned width, bool nullable, size_t limit, uint8_t *out);

/* What is worth reading bits for, of so many bytes in codes of whole bytes: a quarter less. */
#define COL_BLOCKS_WORTH(plain) ((plain) / 4 * 3)

struct col_words {
    int64_t least, most;
    bool sorted;
};
/* The same of COL_CHUNK_ROWS words as they come. 0 when one is not above `null`, when they do not lie within 2^32 - 1
 * of each other, or when codes of whole bytes take little more. */
size_t col_blocks_pack_words(const int64_t *v, int64_t null, struct col_words *w, uint8_t *out);

/* Rows [at, at + n) of a chunk. */
void col_blocks_unpack(const void *codes, int64_t base, int64_t null, uint32_t at, uint32_t n, int64_t *out);

/* Clears the mask of those rows of [at, at + n) whose value, counted from the chunk's base, is not in [lo, hi], or
 * NULL. A block whose least value and number of bits decide is not read. */
void col_blocks_range(const void *codes, uint64_t lo, uint64_t hi, uint32_t at, uint32_t n, uint8_t *mask);

/* Whether codes of `len` bytes name no places outside of them and no value above base + span; *nulls: some are NULL. */
bool col_blocks_check(const void *codes, size_t len, uint32_t n_rows, uint64_t span, bool *nulls);

#endif
