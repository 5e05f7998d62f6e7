/* Packs and unpacks blocks of bits. */
#include "storage/column_blocks.h"

#include "base/vectorised.h"

static unsigned bits_of(uint64_t v)
{
    return v ? 64 - (unsigned)__builtin_clzll(v) : 0;
}

/* Words as codes of the block; NULL is all ones. */
static void pack_codes(const int64_t *v, int64_t least, int64_t null, unsigned bits, uint8_t *out)
{
    uint64_t mask = (1ull << bits) - 1, held = 0;
    unsigned n = 0;
    for (uint32_t i = 0; i < COL_BLOCK_ROWS; i++) {
        uint64_t code = v[i] == null ? mask : (uint64_t)v[i] - (uint64_t)least;
        held |= code << n;
        n += bits;
        for (; n >= 8; n -= 8, held >>= 8)
            *out++ = (uint8_t)held;
    }
}

size_t col_blocks_pack(const int64_t *v, int64_t base, int64_t null, uint8_t *out)
{
    struct col_block *blocks = (struct col_block *)out;
    uint8_t *codes = out + COL_BLOCKS * sizeof *blocks;
    size_t units = 0;
    for (uint32_t b = 0; b < COL_BLOCKS; b++, v += COL_BLOCK_ROWS) {
        int64_t least = INT64_MAX, most = INT64_MIN;
        bool nulls = false;
        for (uint32_t i = 0; i < COL_BLOCK_ROWS; i++) {
            nulls |= v[i] == null;
            least = v[i] != null && v[i] < least ? v[i] : least;
            most = v[i] != null && v[i] > most ? v[i] : most;
        }
        bool empty = least > most;
        uint64_t range = empty ? 0 : (uint64_t)most - (uint64_t)least;
        unsigned bits = empty ? 0 : bits_of(range + nulls);
        blocks[b] = (struct col_block){empty ? 0 : (uint32_t)((uint64_t)least - (uint64_t)base), (uint16_t)units,
                                       (uint8_t)bits, nulls};
        if (bits)
            pack_codes(v, least, null, bits, codes + units * COL_BLOCK_UNIT);
        units += bits;
    }
    return COL_BLOCKS * sizeof *blocks + units * COL_BLOCK_UNIT;
}

VECTORISED static void unpack_u8(const uint8_t *v, uint32_t n, int64_t base, int64_t *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = base + v[i];
}

/* Two codes a turn: both lie in the 8 bytes from the first one's on when a code has at most 28 bits. */
static void unpack_bits(const uint8_t *p, unsigned bits, uint32_t at, uint32_t n, int64_t base, int64_t *out)
{
    uint64_t mask = (1ull << bits) - 1, v;
    uint32_t bit = at * bits, i = 0;
    for (; bits <= 28 && i + 2 <= n; i += 2, bit += 2 * bits) {
        memcpy(&v, p + (bit >> 3), 8);
        v >>= bit & 7;
        out[i] = base + (int64_t)(v & mask);
        out[i + 1] = base + (int64_t)(v >> bits & mask);
    }
    for (; i < n; i++, bit += bits) {
        memcpy(&v, p + (bit >> 3), 8);
        out[i] = base + (int64_t)(v >> (bit & 7) & mask);
    }
}

VECTORISED static void put_nulls(int64_t *out, uint32_t n, int64_t is, int64_t null)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = out[i] == is ? null : out[i];
}

void col_blocks_unpack(const void *codes, int64_t base, int64_t null, uint32_t at, uint32_t n, int64_t *out)
{
    while (n) {
        const struct col_block *b = (const struct col_block *)codes + (at >> COL_BLOCK_SHIFT);
        const uint8_t *p = (const uint8_t *)codes + COL_BLOCKS * sizeof *b + (size_t)b->at * COL_BLOCK_UNIT;
        uint32_t first = at & (COL_BLOCK_ROWS - 1), take = COL_BLOCK_ROWS - first < n ? COL_BLOCK_ROWS - first : n;
        int64_t from = base + (int64_t)b->base;
        if (b->bits == 8)
            unpack_u8(p + first, take, from, out);
        else
            unpack_bits(p, b->bits, first, take, from, out);
        if (b->nulls)
            put_nulls(out, take, from + (int64_t)((1ull << b->bits) - 1), null);
        at += take;
        out += take;
        n -= take;
    }
}

bool col_blocks_check(const void *codes, size_t len, uint32_t n_rows, uint64_t span, bool *nulls)
{
    const struct col_block *blocks = codes;
    size_t head = COL_BLOCKS * sizeof *blocks;
    *nulls = false;
    if (len < head || (len - head) % COL_BLOCK_UNIT)
        return false;
    for (uint32_t b = 0; b < COL_BLOCKS; b++) {
        if (blocks[b].bits > COL_BLOCK_BITS_MAX || blocks[b].nulls > 1 ||
            ((size_t)blocks[b].at + blocks[b].bits) * COL_BLOCK_UNIT > len - head)
            return false;
        *nulls |= blocks[b].nulls;
        if (b * COL_BLOCK_ROWS >= n_rows)
            continue;
        int64_t v[COL_BLOCK_ROWS];
        col_blocks_unpack(codes, 0, -1, b * COL_BLOCK_ROWS, COL_BLOCK_ROWS, v);
        for (uint32_t i = 0; i < COL_BLOCK_ROWS; i++)
            if (v[i] > 0 && (uint64_t)v[i] > span)
                return false;
    }
    return true;
}
