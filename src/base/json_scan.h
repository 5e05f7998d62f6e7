/* The parts of JSON that are found 16 or 64 bytes at a time: ends of strings, white space, ends of containers. */
#ifndef MERIDIAN_BASE_JSON_SCAN_H
#define MERIDIAN_BASE_JSON_SCAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The first quote or backslash at or behind p, `end` when there is none. */
static inline const uint8_t *json_scan_string(const uint8_t *p, const uint8_t *end)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
    while (end - p >= 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        int found = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, backslash)));
        if (found)
            return p + __builtin_ctz((unsigned)found);
        p += 16;
    }
#endif
    while (p < end && *p != '"' && *p != '\\')
        p++;
    return p;
}

const uint8_t *json_scan_space_slow(const uint8_t *p, const uint8_t *end);

/* The first byte at or behind p that is not a space, tab, CR or LF. */
static inline const uint8_t *json_scan_space(const uint8_t *p, const uint8_t *end)
{
    if (p<end && * p> ' ')
        return p;
    if (end - p >= 2 && p[0] == ' ' && p[1] > ' ')
        return p + 1;
    return json_scan_space_slow(p, end);
}

/* Just behind the bracket that closes the container whose `open` is at p; NULL when the bytes end before. */
const uint8_t *json_scan_container(const uint8_t *p, const uint8_t *end, char open, char close);

#endif
