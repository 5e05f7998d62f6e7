/* Packs and unpacks runs of sort events. */
#include "importer/sort/packed.h"

#include "base/alloc.h"
#include "base/vectorised.h"

#include <string.h>

enum { SLACK = 8 /* bytes that a 3-byte offset may be read or written beyond its end */ };

/* The smallest width that holds `range`. */
static uint8_t width_of(uint64_t range)
{
    return range == 0 ? 0 : range < 1u << 8 ? 1 : range < 1u << 16 ? 2 : range < 1u << 24 ? 3 : range >> 32 ? 8 : 4;
}

static inline uint64_t word(const struct sort_event *e, unsigned column)
{
    switch (column) {
    case PACKED_TS:
        return (uint64_t)e->ts ^ (uint64_t)1 << 63; /* ordered as unsigned */
    case PACKED_A:
        return e->a;
    case PACKED_HIGH_B:
        return e->b >> 32;
    default:
        return (uint32_t)e->b;
    }
}

#define PACK_LOOP(type)                                                                                                \
    for (uint32_t i = 0; i < n; i++)                                                                                   \
    ((type *)(void *)out)[i] = (type)(word(&events[i], column) - base)

static void pack_column(const struct sort_event *events, uint32_t n, unsigned column, uint64_t base, unsigned width,
                        uint8_t *out)
{
    switch (width) {
    case 1:
        PACK_LOOP(uint8_t);
        break;
    case 2:
        PACK_LOOP(uint16_t);
        break;
    case 3:
        for (uint32_t i = 0; i < n; i++) {
            uint32_t v = (uint32_t)(word(&events[i], column) - base);
            __builtin_memcpy(out + 3 * (size_t)i, &v, 4); /* memcpy() of glibc would check each for an overflow */
        }
        break;
    case 4:
        PACK_LOOP(uint32_t);
        break;
    case 8:
        PACK_LOOP(uint64_t);
        break;
    }
}

/* Columns start at multiples of 8, so that loops over them are aligned. */
static size_t column_bytes(uint32_t n, unsigned width)
{
    return ((size_t)n * width + 7) & ~(size_t)7;
}

/* The least and the greatest word of each column. Written out: of a loop over the columns no vectors are made, and that
 * takes 1.02 times as long for a whole import. */
VECTORISED static void find_ranges(const struct sort_event *events, uint32_t n, uint64_t *min, uint64_t *max)
{
    struct sort_event first = *events;
    int64_t ts_min = first.ts, ts_max = first.ts;
    uint64_t a_min = first.a, a_max = first.a;
    uint32_t high_min = (uint32_t)(first.b >> 32), high_max = high_min;
    uint32_t low_min = (uint32_t)first.b, low_max = low_min;
    for (uint32_t i = 1; i < n; i++) {
        struct sort_event e = events[i];
        uint32_t high = (uint32_t)(e.b >> 32), low = (uint32_t)e.b;
        ts_min = e.ts < ts_min ? e.ts : ts_min;
        ts_max = e.ts > ts_max ? e.ts : ts_max;
        a_min = e.a < a_min ? e.a : a_min;
        a_max = e.a > a_max ? e.a : a_max;
        high_min = high < high_min ? high : high_min;
        high_max = high > high_max ? high : high_max;
        low_min = low < low_min ? low : low_min;
        low_max = low > low_max ? low : low_max;
    }
    struct sort_event least = {ts_min, a_min, (uint64_t)high_min << 32 | low_min},
                      most = {ts_max, a_max, (uint64_t)high_max << 32 | low_max};
    for (unsigned c = 0; c < PACKED_COLUMNS; c++) {
        min[c] = word(&least, c);
        max[c] = word(&most, c);
    }
}

struct packed_events *packed_events_make(const struct sort_event *events, uint32_t n)
{
    uint64_t min[PACKED_COLUMNS], max[PACKED_COLUMNS];
    find_ranges(events, n, min, max);
    size_t bytes = SLACK;
    uint8_t width[PACKED_COLUMNS];
    for (unsigned c = 0; c < PACKED_COLUMNS; c++) {
        width[c] = width_of(max[c] - min[c]);
        bytes += column_bytes(n, width[c]);
    }
    struct packed_events *p = mem_alloc(sizeof *p + bytes);
    if (!p)
        return NULL;
    p->n = n;
    p->bytes = (uint32_t)bytes;
    uint8_t *out = p->data;
    for (unsigned c = 0; c < PACKED_COLUMNS; c++) {
        p->base[c] = min[c];
        p->width[c] = width[c];
        pack_column(events, n, c, min[c], width[c], out);
        out += column_bytes(n, width[c]);
    }
    return p;
}

static inline void put_word(struct sort_event *e, unsigned column, uint64_t v)
{
    switch (column) {
    case PACKED_TS:
        e->ts = (int64_t)(v ^ (uint64_t)1 << 63);
        break;
    case PACKED_A:
        e->a = v;
        break;
    case PACKED_HIGH_B:
        e->b = v << 32;
        break;
    default:
        e->b |= v;
    }
}

#define EACH_OF_TYPE(type, in, n, base, PUT)                                                                           \
    for (uint32_t i = 0; i < (n); i++)                                                                                 \
    PUT(i, (base) + ((const type *)(const void *)(in))[i])

/* PUT(index, value) of each of n values in `width` bytes. */
#define EACH_VALUE(width, in, n, base, PUT)                                                                            \
    switch (width) {                                                                                                   \
    case 0:                                                                                                            \
        for (uint32_t i = 0; i < (n); i++)                                                                             \
            PUT(i, base);                                                                                              \
        break;                                                                                                         \
    case 1:                                                                                                            \
        EACH_OF_TYPE(uint8_t, in, n, base, PUT);                                                                       \
        break;                                                                                                         \
    case 2:                                                                                                            \
        EACH_OF_TYPE(uint16_t, in, n, base, PUT);                                                                      \
        break;                                                                                                         \
    case 3:                                                                                                            \
        for (uint32_t i = 0; i < (n); i++) {                                                                           \
            uint32_t v;                                                                                                \
            memcpy(&v, (in) + 3 * (size_t)i, 4);                                                                       \
            PUT(i, (base) + (v & 0xffffff));                                                                           \
        }                                                                                                              \
        break;                                                                                                         \
    case 4:                                                                                                            \
        EACH_OF_TYPE(uint32_t, in, n, base, PUT);                                                                      \
        break;                                                                                                         \
    default:                                                                                                           \
        EACH_OF_TYPE(uint64_t, in, n, base, PUT);                                                                      \
    }

static inline __attribute__((always_inline)) void unpack_column(struct sort_event *events, uint32_t n, unsigned column,
                                                                uint64_t base, unsigned width, const uint8_t *in)
{
#define PUT_WORD(i, v) put_word(&events[i], column, (v))
    EACH_VALUE(width, in, n, base, PUT_WORD);
}

void packed_events_unpack(const struct packed_events *p, struct sort_event *events)
{
    const uint8_t *in = p->data;
    for (unsigned c = 0; c < PACKED_COLUMNS; c++) { /* b's halves in order: the high one is stored, the low one added */
        unpack_column(events, p->n, c, p->base[c], p->width[c], in);
        in += column_bytes(p->n, p->width[c]);
    }
}

void packed_events_times(const struct packed_events *p, int64_t *times)
{
#define PUT_TIME(i, v) times[i] = (int64_t)((v) ^ (uint64_t)1 << 63)
    EACH_VALUE(p->width[PACKED_TS], p->data, p->n, p->base[PACKED_TS], PUT_TIME);
}
