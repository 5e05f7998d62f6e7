/* Packs and unpacks runs of sort events. */
#include "importer/sort/packed.h"

#include "base/alloc.h"
#include "base/vectorised.h"

#include <string.h>

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

/* So many events at a time become columns of words and back: these stay in the cache. */
enum { PART = 128 };

/* Words as offsets to `base` of a type. */
#define NARROW(name, type)                                                                                             \
    VECTORISED static void name(const uint64_t *v, uint32_t n, uint64_t base, void *out)                               \
    {                                                                                                                  \
        for (uint32_t i = 0; i < n; i++)                                                                               \
            ((type *)out)[i] = (type)(v[i] - base);                                                                    \
    }
NARROW(narrow_u8, uint8_t)
NARROW(narrow_u16, uint16_t)
NARROW(narrow_u32, uint32_t)
NARROW(narrow_u64, uint64_t)

static void narrow_3(const uint64_t *v, uint32_t n, uint64_t base, uint8_t *out)
{
    UNROLLED_8
    for (uint32_t i = 0; i < n; i++) {
        uint32_t offset = (uint32_t)(v[i] - base);
        __builtin_memcpy(out + 3 * (size_t)i, &offset, 4); /* memcpy() of glibc would check each for an overflow */
    }
}

static void narrow(const uint64_t *v, uint32_t n, uint64_t base, unsigned width, uint8_t *out)
{
    switch (width) {
    case 1:
        narrow_u8(v, n, base, out);
        break;
    case 2:
        narrow_u16(v, n, base, out);
        break;
    case 3:
        narrow_3(v, n, base, out);
        break;
    case 4:
        narrow_u32(v, n, base, out);
        break;
    case 8:
        narrow_u64(v, n, base, out);
        break;
    }
}

/* Columns start at multiples of 8, so that loops over them are aligned. The last offset of 3 bytes is read and written
 * as 4. */
static size_t column_bytes(uint32_t n, unsigned width)
{
    return ((size_t)n * width + (width == 3) + 7) & ~(size_t)7;
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

static void split(const struct sort_event *events, uint32_t n, uint64_t columns[PACKED_COLUMNS][PART])
{
    UNROLLED_4
    for (uint32_t i = 0; i < n; i++)
        for (unsigned c = 0; c < PACKED_COLUMNS; c++)
            columns[c][i] = word(&events[i], c);
}

static void join(uint64_t columns[PACKED_COLUMNS][PART], uint32_t n, struct sort_event *events)
{
    UNROLLED_4
    for (uint32_t i = 0; i < n; i++)
        events[i] = (struct sort_event){(int64_t)(columns[PACKED_TS][i] ^ (uint64_t)1 << 63), columns[PACKED_A][i],
                                        columns[PACKED_HIGH_B][i] << 32 | columns[PACKED_LOW_B][i]};
}

struct packed_events *packed_events_make(const struct sort_event *events, uint32_t n)
{
    uint64_t min[PACKED_COLUMNS], max[PACKED_COLUMNS], columns[PACKED_COLUMNS][PART];
    find_ranges(events, n, min, max);
    size_t at[PACKED_COLUMNS], bytes = 0;
    uint8_t width[PACKED_COLUMNS];
    for (unsigned c = 0; c < PACKED_COLUMNS; c++) {
        width[c] = width_of(max[c] - min[c]);
        at[c] = bytes;
        bytes += column_bytes(n, width[c]);
    }
    struct packed_events *p = mem_alloc(sizeof *p + bytes);
    if (!p)
        return NULL;
    p->n = n;
    p->bytes = (uint32_t)bytes;
    memcpy(p->base, min, sizeof min);
    memcpy(p->width, width, sizeof width);
    for (uint32_t done = 0; done < n; done += PART) {
        uint32_t some = n - done < PART ? n - done : PART;
        split(events + done, some, columns);
        for (unsigned c = 0; c < PACKED_COLUMNS; c++)
            narrow(columns[c], some, min[c], width[c], p->data + at[c] + (size_t)done * width[c]);
    }
    return p;
}

/* Offsets of a type as words. */
#define WIDEN(name, type)                                                                                              \
    VECTORISED static void name(const void *in, uint32_t n, uint64_t base, uint64_t *out)                              \
    {                                                                                                                  \
        for (uint32_t i = 0; i < n; i++)                                                                               \
            out[i] = base + ((const type *)in)[i];                                                                     \
    }
WIDEN(widen_u8, uint8_t)
WIDEN(widen_u16, uint16_t)
WIDEN(widen_u32, uint32_t)
WIDEN(widen_u64, uint64_t)

static void widen_3(const uint8_t *in, uint32_t n, uint64_t base, uint64_t *out)
{
    UNROLLED_8
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v;
        __builtin_memcpy(&v, in + 3 * (size_t)i, 4);
        out[i] = base + (v & 0xffffff);
    }
}

/* The words [from, from + n) of a column, the offsets of which are at `in`. */
static void widen(const uint8_t *in, unsigned width, uint32_t from, uint32_t n, uint64_t base, uint64_t *out)
{
    in += (size_t)from * width;
    switch (width) {
    case 0:
        for (uint32_t i = 0; i < n; i++)
            out[i] = base;
        break;
    case 1:
        widen_u8(in, n, base, out);
        break;
    case 2:
        widen_u16(in, n, base, out);
        break;
    case 3:
        widen_3(in, n, base, out);
        break;
    case 4:
        widen_u32(in, n, base, out);
        break;
    default:
        widen_u64(in, n, base, out);
    }
}

void packed_events_unpack(const struct packed_events *p, struct sort_event *events)
{
    uint64_t columns[PACKED_COLUMNS][PART];
    for (uint32_t done = 0; done < p->n; done += PART) {
        uint32_t some = p->n - done < PART ? p->n - done : PART;
        const uint8_t *in = p->data;
        for (unsigned c = 0; c < PACKED_COLUMNS; c++) {
            widen(in, p->width[c], done, some, p->base[c], columns[c]);
            in += column_bytes(p->n, p->width[c]);
        }
        join(columns, some, events + done);
    }
}

void packed_events_times(const struct packed_events *p, int64_t *times)
{
    const uint64_t sign = (uint64_t)1 << 63; /* base ^ sign + offset is (base + offset) ^ sign */
    widen(p->data, p->width[PACKED_TS], 0, p->n, p->base[PACKED_TS] ^ sign, (uint64_t *)times);
}
