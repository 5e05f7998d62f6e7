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

/* Least and greatest code of a block that is not NULL; least > most: all are NULL. */
struct code_span {
    uint32_t least, most;
    bool nulls;
};

/* NULL is the highest code, which one more makes 0. */
#define SPANS(name, type)                                                                                              \
    VECTORISED static void name(const type *v, bool nullable, struct code_span *out)                                   \
    {                                                                                                                  \
        type more = nullable;                                                                                          \
        for (uint32_t b = 0; b < COL_BLOCKS; b++, v += COL_BLOCK_ROWS) {                                               \
            type least = (type)-1, most = 0, highest = 0;                                                              \
            for (uint32_t i = 0; i < COL_BLOCK_ROWS; i++) {                                                            \
                type next = (type)(v[i] + more);                                                                       \
                least = v[i] < least ? v[i] : least;                                                                   \
                most = next > most ? next : most;                                                                      \
                highest = v[i] > highest ? v[i] : highest;                                                             \
            }                                                                                                          \
            bool empty = nullable && most == 0;                                                                        \
            out[b] = (struct code_span){empty ? 1 : least, empty ? 0 : (uint32_t)most - more,                          \
                                        nullable && highest == (type)-1};                                              \
        }                                                                                                              \
    }
SPANS(spans_u8, uint8_t)
SPANS(spans_u16, uint16_t)
SPANS(spans_u32, uint32_t)

/* Codes of a chunk as codes of a block: counted from its least, NULL as `null`. */
#define MOVE_CODES(name, type)                                                                                         \
    VECTORISED static void name(const type *v, type least, bool nullable, type null, type *out)                        \
    {                                                                                                                  \
        for (uint32_t i = 0; i < COL_BLOCK_ROWS; i++)                                                                  \
            out[i] = nullable && v[i] == (type)-1 ? null : (type)(v[i] - least);                                       \
    }
MOVE_CODES(move_u8, uint8_t)
MOVE_CODES(move_u16, uint16_t)
MOVE_CODES(move_u32, uint32_t)

/* Every other lane of a word of 8, or 4, codes. */
#define LANES_8  0x00ff00ff00ff00ffull
#define LANES_16 0x0000ffff0000ffffull

/* Codes in bytes, 8 a turn: neighbours move together, then pairs, then fours. Writes up to 8 bytes too many, as do the
 * next two. */
static void pack_bytes(const uint8_t *c, unsigned bits, uint8_t *out)
{
    for (uint32_t i = 0; i < COL_BLOCK_ROWS; i += 8, out += bits) {
        uint64_t x;
        memcpy(&x, c + i, 8);
        x = (x & LANES_8) | (x >> 8 & LANES_8) << bits;
        x = (x & LANES_16) | (x >> 16 & LANES_16) << 2 * bits;
        x = (x & UINT32_MAX) | x >> 32 << 4 * bits;
        memcpy(out, &x, 8);
    }
}

static uint64_t join_4(const uint16_t *c, unsigned bits)
{
    uint64_t x;
    memcpy(&x, c, 8);
    x = (x & LANES_16) | (x >> 16 & LANES_16) << bits;
    return (x & UINT32_MAX) | x >> 32 << 2 * bits;
}

static void pack_halves(const uint16_t *c, unsigned bits, uint8_t *out)
{
    unsigned shift = 4 * bits; /* 4 .. 64 */
    for (uint32_t i = 0; i < COL_BLOCK_ROWS; i += 8, out += bits) {
        uint64_t low = join_4(c + i, bits), high = join_4(c + i + 4, bits);
        uint64_t words[2] = {shift < 64 ? low | high << shift : low, high >> (64 - shift)};
        memcpy(out, words, 16);
    }
}

/* Codes of more than 28 bits, one a turn: with up to 7 bits that are held they fit in a word. */
static void pack_wide(const uint32_t *c, unsigned bits, uint8_t *out)
{
    uint64_t held = 0;
    unsigned n = 0;
    for (uint32_t i = 0; i < COL_BLOCK_ROWS; i++) {
        held |= (uint64_t)c[i] << n;
        memcpy(out, &held, 8);
        n += bits;
        out += n >> 3;
        held >>= n & ~7u;
        n &= 7;
    }
}

/* 17 to 28 bits, 8 codes a turn: two are a pair, four a word and a half or more, whose last bits go before the next
 * four's when they are half a byte. */
static void pack_words(const uint32_t *c, unsigned bits, uint8_t *out)
{
    const unsigned pair = 2 * bits, at = 4 * bits / 8, odd = 4 * bits % 8;
    for (uint32_t i = 0; i < COL_BLOCK_ROWS; i += 8, out += bits) {
        uint64_t p[4];
        for (uint32_t k = 0; k < 4; k++)
            p[k] = c[i + 2 * k] | (uint64_t)c[i + 2 * k + 1] << bits;
        uint64_t low[2] = {p[0] | p[1] << pair, p[1] >> (64 - pair)};
        uint64_t next = p[2] | p[3] << pair;
        uint64_t high[2] = {next << odd | low[1] >> (8 * at - 64),
                            p[3] >> (64 - pair) << odd | next >> 1 >> (63 - odd)};
        memcpy(out, low, 16);
        memcpy(out + at, high, 16);
    }
}

union block_codes {
    uint8_t bytes[COL_BLOCK_ROWS];
    uint16_t halves[COL_BLOCK_ROWS];
    uint32_t words[COL_BLOCK_ROWS];
};
enum { BYTE_BITS = 8, HALF_BITS = 16, PAIR_BITS = 28 };

static void pack_wide_or_words(const uint32_t *c, unsigned bits, uint8_t *out)
{
    if (bits <= HALF_BITS || bits > PAIR_BITS)
        pack_wide(c, bits, out);
    else
        pack_words(c, bits, out);
}

static void pack_block_codes(const void *codes, unsigned width, uint32_t at, const struct code_span *s, unsigned bits,
                             uint8_t *out)
{
    uint32_t null = (uint32_t)((1ull << bits) - 1);
    union block_codes moved;
    uint32_t least = s->least > s->most ? 0 : s->least;
    switch (width) {
    case sizeof(uint8_t):
        move_u8((const uint8_t *)codes + at, (uint8_t)least, s->nulls, (uint8_t)null, moved.bytes);
        pack_bytes(moved.bytes, bits, out);
        break;
    case sizeof(uint16_t):
        move_u16((const uint16_t *)codes + at, (uint16_t)least, s->nulls, (uint16_t)null, moved.halves);
        pack_halves(moved.halves, bits, out);
        break;
    default:
        move_u32((const uint32_t *)codes + at, least, s->nulls, null, moved.words);
        pack_wide_or_words(moved.words, bits, out);
    }
}

size_t col_blocks_pack_codes(const void *codes, unsigned width, bool nullable, size_t limit, uint8_t *out)
{
    struct code_span spans[COL_BLOCKS];
    struct col_block *blocks = (struct col_block *)out;
    uint8_t *at = out + COL_BLOCKS * sizeof *blocks;
    size_t units = 0;
    if (width == 1)
        spans_u8(codes, nullable, spans);
    else if (width == 2)
        spans_u16(codes, nullable, spans);
    else
        spans_u32(codes, nullable, spans);
    for (uint32_t b = 0; b < COL_BLOCKS; b++) {
        const struct code_span *s = &spans[b];
        bool empty = s->least > s->most;
        unsigned bits = empty ? 0 : bits_of((uint64_t)s->most - s->least + s->nulls);
        blocks[b] = (struct col_block){empty ? 0 : s->least, (uint16_t)units, (uint8_t)bits, s->nulls};
        units += bits;
    }
    size_t bytes = COL_BLOCKS * sizeof *blocks + units * COL_BLOCK_UNIT;
    if (bytes > limit)
        return 0;
    for (uint32_t b = 0; b < COL_BLOCKS; b++)
        if (blocks[b].bits)
            pack_block_codes(codes, width, b * COL_BLOCK_ROWS, &spans[b], blocks[b].bits,
                             at + (size_t)blocks[b].at * COL_BLOCK_UNIT);
    return bytes;
}

struct word_span {
    int64_t least, most;
};

/* By block; how often a word is less than the one before. */
VECTORISED static uint64_t spans_words(const int64_t *v, struct word_span *out)
{
    uint64_t falls = 0;
    for (uint32_t b = 0; b < COL_BLOCKS; b++, v += COL_BLOCK_ROWS) {
        int64_t least = v[0], most = v[0];
        falls += b && v[0] < v[-1];
        UNROLLED_4
        for (uint32_t i = 1; i < COL_BLOCK_ROWS; i++) {
            least = v[i] < least ? v[i] : least;
            most = v[i] > most ? v[i] : most;
            falls += v[i] < v[i - 1];
        }
        out[b] = (struct word_span){least, most};
    }
    return falls;
}

#define NARROW(name, type)                                                                                             \
    VECTORISED static void name(const int64_t *v, int64_t least, type *out)                                            \
    {                                                                                                                  \
        for (uint32_t i = 0; i < COL_BLOCK_ROWS; i++)                                                                  \
            out[i] = (type)((uint64_t)v[i] - (uint64_t)least);                                                         \
    }
NARROW(narrow_8, uint8_t)
NARROW(narrow_16, uint16_t)
NARROW(narrow_32, uint32_t)

static void pack_block_words(const int64_t *v, int64_t least, unsigned bits, uint8_t *out)
{
    union block_codes codes;
    if (bits <= BYTE_BITS) {
        narrow_8(v, least, codes.bytes);
        pack_bytes(codes.bytes, bits, out);
    } else if (bits <= HALF_BITS) {
        narrow_16(v, least, codes.halves);
        pack_halves(codes.halves, bits, out);
    } else {
        narrow_32(v, least, codes.words);
        pack_wide_or_words(codes.words, bits, out);
    }
}

size_t col_blocks_pack_words(const int64_t *v, int64_t null, struct col_words *w, uint8_t *out)
{
    struct word_span spans[COL_BLOCKS];
    struct col_block *blocks = (struct col_block *)out;
    uint8_t *at = out + COL_BLOCKS * sizeof *blocks;
    size_t units = 0;
    *w = (struct col_words){.least = INT64_MAX, .most = INT64_MIN, .sorted = !spans_words(v, spans)};
    for (uint32_t b = 0; b < COL_BLOCKS; b++) {
        w->least = spans[b].least < w->least ? spans[b].least : w->least;
        w->most = spans[b].most > w->most ? spans[b].most : w->most;
    }
    uint64_t range = (uint64_t)w->most - (uint64_t)w->least;
    if (w->least <= null || range >= UINT32_MAX)
        return 0;
    for (uint32_t b = 0; b < COL_BLOCKS; b++) {
        unsigned bits = bits_of((uint64_t)spans[b].most - (uint64_t)spans[b].least);
        blocks[b] = (struct col_block){(uint32_t)((uint64_t)spans[b].least - (uint64_t)w->least), (uint16_t)units,
                                       (uint8_t)bits, 0};
        units += bits;
    }
    size_t bytes = COL_BLOCKS * sizeof *blocks + units * COL_BLOCK_UNIT;
    size_t plain = (range > UINT16_MAX ? 4 : range > UINT8_MAX ? 2 : 1) * (size_t)COL_BLOCKS * COL_BLOCK_ROWS;
    if (bytes > COL_BLOCKS_WORTH(plain))
        return 0;
    for (uint32_t b = 0; b < COL_BLOCKS; b++)
        if (blocks[b].bits)
            pack_block_words(v + b * COL_BLOCK_ROWS, spans[b].least, blocks[b].bits,
                             at + (size_t)blocks[b].at * COL_BLOCK_UNIT);
    return bytes;
}

VECTORISED static void unpack_u8(const uint8_t *v, uint32_t n, int64_t base, int64_t *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = base + v[i];
}

/* As pack_bytes(), the other way: n codes (a multiple of 8) of up to 8 bits. */
static void spread_bytes(const uint8_t *p, unsigned bits, uint32_t n, uint8_t *out)
{
    uint64_t four = (1ull << 4 * bits) - 1;
    uint64_t two = ((1ull << 2 * bits) - 1) * 0x0000000100000001ull;
    uint64_t one = ((1ull << bits) - 1) * 0x0001000100010001ull;
    for (uint32_t i = 0; i < n; i += 8, p += bits) {
        uint64_t x;
        memcpy(&x, p, 8);
        x = (x & four) | (x >> 4 * bits & four) << 32;
        x = (x & two) | (x >> 2 * bits & two) << 16;
        x = (x & one) | (x >> bits & one) << 8;
        memcpy(out + i, &x, 8);
    }
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

/* n codes of a block from code `at` on. */
static void unpack_block(const uint8_t *p, unsigned bits, uint32_t at, uint32_t n, int64_t base, int64_t *out)
{
    uint8_t codes[COL_BLOCK_ROWS];
    uint32_t whole = at & 7 || bits > 8 ? 0 : n & ~7u; /* codes that come in eights */
    if (bits == 8) {
        unpack_u8(p + at, n, base, out);
        return;
    }
    if (whole) {
        spread_bytes(p + (size_t)(at >> 3) * bits, bits, whole, codes);
        unpack_u8(codes, whole, base, out);
    }
    if (whole < n)
        unpack_bits(p, bits, at + whole, n - whole, base, out + whole);
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
        unpack_block(p, b->bits, first, take, from, out);
        if (b->nulls)
            put_nulls(out, take, from + (int64_t)((1ull << b->bits) - 1), null);
        at += take;
        out += take;
        n -= take;
    }
}

VECTORISED static void keep_u8(const uint8_t *v, uint32_t n, uint8_t lo, uint8_t span, uint8_t *mask)
{
    for (uint32_t i = 0; i < n; i++)
        mask[i] &= (uint8_t)((uint8_t)(v[i] - lo) <= span);
}

VECTORISED static void keep_words(const int64_t *v, uint32_t n, int64_t lo, int64_t hi, uint8_t *mask)
{
    for (uint32_t i = 0; i < n; i++)
        mask[i] &= (uint8_t)((v[i] >= lo) & (v[i] <= hi));
}

/* The codes of n rows of a block from `at` on, of which some may be in [lo, hi]. */
static void keep_codes(const uint8_t *p, unsigned bits, uint32_t at, uint32_t n, uint64_t lo, uint64_t hi,
                       uint8_t *mask)
{
    uint8_t codes[COL_BLOCK_ROWS];
    int64_t words[COL_BLOCK_ROWS];
    if (bits == 8) {
        keep_u8(p + at, n, (uint8_t)lo, (uint8_t)(hi - lo), mask);
    } else if (bits < 8 && !(at & 7)) {
        spread_bytes(p + (size_t)(at >> 3) * bits, bits, (n + 7) & ~7u, codes);
        keep_u8(codes, n, (uint8_t)lo, (uint8_t)(hi - lo), mask);
    } else {
        unpack_bits(p, bits, at, n, 0, words);
        keep_words(words, n, (int64_t)lo, (int64_t)hi, mask);
    }
}

void col_blocks_range(const void *codes, uint64_t lo, uint64_t hi, uint32_t at, uint32_t n, uint8_t *mask)
{
    while (n) {
        const struct col_block *b = (const struct col_block *)codes + (at >> COL_BLOCK_SHIFT);
        const uint8_t *p = (const uint8_t *)codes + COL_BLOCKS * sizeof *b + (size_t)b->at * COL_BLOCK_UNIT;
        uint32_t first = at & (COL_BLOCK_ROWS - 1), take = COL_BLOCK_ROWS - first < n ? COL_BLOCK_ROWS - first : n;
        uint64_t highest = (1ull << b->bits) - 1; /* code that is no NULL */
        bool empty = b->nulls && !highest;
        highest -= b->nulls && highest;
        if (empty || lo > hi || hi < b->base || lo > b->base + highest) {
            memset(mask, 0, take);
        } else if (b->nulls || lo > b->base || hi < b->base + highest) {
            uint64_t from = lo > b->base ? lo - b->base : 0, to = hi - b->base < highest ? hi - b->base : highest;
            keep_codes(p, b->bits, first, take, from, to, mask);
        }
        at += take;
        mask += take;
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
