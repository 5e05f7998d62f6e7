/* Finds the structure of JSON 64 bytes at a time. */
#include "base/json_scan.h"

#include <stdbool.h>
#include <string.h>

enum { BLOCK = 64 };

/* A bit for each byte of a block that is one of these. */
struct block_bits {
    uint64_t quotes, backslashes, opens, closes;
};

const uint8_t *json_scan_space_slow(const uint8_t *p, const uint8_t *end)
{
#ifdef __SSE2__
    const __m128i space = _mm_set1_epi8(' '), lf = _mm_set1_epi8('\n'), cr = _mm_set1_epi8('\r'),
                  tab = _mm_set1_epi8('\t');
    while (end - p >= 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i white = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, space), _mm_cmpeq_epi8(v, lf)),
                                     _mm_or_si128(_mm_cmpeq_epi8(v, cr), _mm_cmpeq_epi8(v, tab)));
        unsigned other = (unsigned)_mm_movemask_epi8(white) ^ 0xffff;
        if (other)
            return p + __builtin_ctz(other);
        p += 16;
    }
#endif
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

#ifdef __SSE2__

static inline uint64_t equal_bits(const __m128i v[4], char c)
{
    const __m128i x = _mm_set1_epi8(c);
    uint64_t bits = 0;
    for (int i = 0; i < 4; i++)
        bits |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v[i], x)) << (16 * i);
    return bits;
}

static inline struct block_bits classify(const uint8_t *p, char open, char close)
{
    __m128i v[4];
    for (int i = 0; i < 4; i++)
        v[i] = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
    return (struct block_bits){equal_bits(v, '"'), equal_bits(v, '\\'), equal_bits(v, open), equal_bits(v, close)};
}

#else

static inline struct block_bits classify(const uint8_t *p, char open, char close)
{
    struct block_bits b = {0};
    for (int i = 0; i < BLOCK; i++) {
        b.quotes |= (uint64_t)(p[i] == '"') << i;
        b.backslashes |= (uint64_t)(p[i] == '\\') << i;
        b.opens |= (uint64_t)(p[i] == (uint8_t)open) << i;
        b.closes |= (uint64_t)(p[i] == (uint8_t)close) << i;
    }
    return b;
}

#endif

/* The bytes that a backslash stands in front of, odd runs of them counted from their start. *carry: whether the byte
 * before the block escapes its first one. */
static inline uint64_t escaped_bytes(uint64_t backslashes, bool *carry)
{
    uint64_t escaped = *carry;
    *carry = false;
    backslashes &= ~escaped;
    while (backslashes) {
        int i = __builtin_ctzll(backslashes);
        if (i == BLOCK - 1) {
            *carry = true;
            break;
        }
        escaped |= (uint64_t)2 << i;
        backslashes &= ~((uint64_t)3 << i);
    }
    return escaped;
}

/* Each bit the XOR of all bits up to it: set from an opening quote to the byte before the closing one. */
static inline uint64_t prefix_xor(uint64_t x)
{
    for (int shift = 1; shift < BLOCK; shift *= 2)
        x ^= x << shift;
    return x;
}

/* Where the depth becomes 0 in the block, or -1. */
static inline int close_in_block(uint64_t opens, uint64_t closes, uint64_t *depth)
{
    uint64_t n_closes = (uint64_t)__builtin_popcountll(closes);
    if (n_closes < *depth) {
        *depth += (uint64_t)__builtin_popcountll(opens) - n_closes;
        return -1;
    }
    for (uint64_t both = opens | closes; both; both &= both - 1) {
        uint64_t bit = both & -both;
        if (bit & opens)
            ++*depth;
        else if (--*depth == 0)
            return __builtin_ctzll(bit);
    }
    return -1;
}

const uint8_t *json_scan_container(const uint8_t *p, const uint8_t *end, char open, char close)
{
    uint64_t depth = 0, in_string = 0;
    bool escape = false, first = true;
    uint8_t tail[BLOCK];
    while (p < end) {
        const uint8_t *from = p;
        size_t left = (size_t)(end - p);
        if (left < BLOCK) {
            memset(tail, ' ', sizeof tail);
            memcpy(tail, p, left);
            from = tail;
        }
        struct block_bits b = classify(from, open, close);
        if (b.backslashes || escape)
            b.quotes &= ~escaped_bytes(b.backslashes, &escape);
        uint64_t inside = prefix_xor(b.quotes) ^ in_string;
        in_string = (uint64_t)((int64_t)inside >> 63);
        uint64_t opens = b.opens & ~inside, closes = b.closes & ~inside;
        if (first) { /* the bracket at p: the fast way needs a depth to compare with */
            depth = 1;
            opens &= ~(uint64_t)1;
            first = false;
        }
        int at = close_in_block(opens, closes, &depth);
        if (at >= 0)
            return p + at + 1;
        p += left < BLOCK ? left : BLOCK;
    }
    return NULL;
}
