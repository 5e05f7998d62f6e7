/* Walks over a kernel ring-buffer page. */
#include "kernel/page_parser.h"

#include "kernel/encode.h"

enum {
    RECORD_PADDING = 29,
    RECORD_TIME_EXTEND = 30,
    RECORD_TIME_STAMP = 31,
    COMMIT_LENGTH_MASK = 0xfffff,
    DELTA_BITS = 27,
    DELTA_MASK = (1 << DELTA_BITS) - 1,
};
#define COMMIT_LOST   (1u << 31)
#define COMMIT_STORED (1u << 30)
/* An absolute timestamp has room for 59 bits; the kernel keeps the top 5 of the running one. */
#define STAMP_TOP (0x1full << 59)

static inline uint32_t u32_at(const uint8_t *p, bool swap)
{
    uint32_t v = load_u32(p);
    return swap ? __builtin_bswap32(v) : v;
}

static inline uint64_t u64_at(const uint8_t *p, bool swap)
{
    uint64_t v = load_u64(p);
    return swap ? __builtin_bswap64(v) : v;
}

/* A word of the kernel that wrote the page. */
static inline uint64_t long_at(const uint8_t *p, const struct page_format *format, bool swap)
{
    return format->commit_size == 4 ? u32_at(p, swap) : u64_at(p, swap);
}

static inline enum ftrace_status view_open(struct page_view *v, const struct page_format *format, const uint8_t *page,
                                           size_t size, bool swap, bool cut)
{
    *v = (struct page_view){.page = slice_of(page, size)};
    if (size < format->data_offset)
        return FTRACE_STATUS_ABI_INVALID_PAGE_HEADER;
    uint32_t commit = (uint32_t)long_at(page + 8, format, swap); /* the upper half of a 64-bit word is sign extension */
    uint32_t length = commit & COMMIT_LENGTH_MASK;
    v->data = page + format->data_offset;
    v->timestamp = v->page_timestamp = u64_at(page, swap);
    if (length > size - format->data_offset && !cut)
        return FTRACE_STATUS_ABI_INVALID_PAGE_HEADER;
    if (length > size - format->data_offset)
        length = (uint32_t)(size - format->data_offset);
    v->end = length;
    v->lost = (commit & COMMIT_LOST) != 0;
    if (v->lost && (commit & COMMIT_STORED) && size - format->data_offset - length >= format->commit_size)
        v->lost_count = long_at(v->data + length, format, swap);
    return FTRACE_STATUS_OK;
}

enum ftrace_status page_view_open(struct page_view *v, const struct page_format *format, const uint8_t *page,
                                  size_t size)
{
    return view_open(v, format, page, size, false, false);
}

enum ftrace_status page_view_open_cut(struct page_view *v, const struct page_format *format, const uint8_t *page,
                                      size_t size, bool swap)
{
    return view_open(v, format, page, size, swap, true);
}

enum ftrace_status page_view_open_swapped(struct page_view *v, const struct page_format *format, const uint8_t *page,
                                          size_t size)
{
    return view_open(v, format, page, size, true, false);
}

static uint64_t absolute(uint64_t stamp, uint64_t running)
{
    stamp |= running & STAMP_TOP;
    if ((running & STAMP_TOP) && stamp < running)
        stamp += 1ull << 59;
    return stamp;
}

/* Hands an event of another machine on. */
static void foreign_event(struct page_foreign *foreign, const struct event_program *program, struct ftrace_bundle *b,
                          uint16_t id, const uint8_t *event, uint32_t size, uint64_t ts)
{
    if (!program || size > sizeof foreign->event || (foreign->swap && !foreign->by_id[id]))
        return;
    if (foreign->swap) {
        memcpy(foreign->event, event, size);
        swap_program_run(foreign->by_id[id], foreign->event, size);
        event = foreign->event;
    }
    if (foreign->seen)
        foreign->seen(foreign->seen_ctx, program);
    ftrace_bundle_event(b, program, event, size, foreign->time ? foreign->time(foreign->ctx, ts) : ts);
}

/* Long: one loop over the events of a page, with a case a kind of record. `foreign` is NULL or not when this is
 * compiled: pages of this machine cost nothing for it. */
static inline __attribute__((always_inline)) uint32_t view_parse(struct page_view *v,
                                                                 const struct program_table *programs,
                                                                 struct ftrace_bundle *b, struct page_foreign *foreign)
{
    const bool swap = foreign && foreign->swap;
    const uint8_t *p = v->data + v->begin, *end = v->data + v->end;
    const struct event_program *const *by_id = programs->by_id;
    uint64_t ts = v->timestamp;
    uint32_t n = 0;
    enum ftrace_status status = FTRACE_STATUS_OK;
#define FAIL(why)                                                                                                      \
    do {                                                                                                               \
        status = FTRACE_STATUS_##why;                                                                                  \
        goto out;                                                                                                      \
    } while (0)
    while (p < end) {
        uint32_t size;
        if (end - p < 4)
            FAIL(ABI_SHORT_EVENT_HEADER);
        uint32_t head = u32_at(p, swap);
        uint32_t type = swap ? head >> DELTA_BITS : head & 31, delta = swap ? head & DELTA_MASK : head >> 5;
        p += 4;
        ts += delta;
        if (__builtin_expect(type - 1u >= 28, 0)) {
            if (type == RECORD_PADDING) {
                if (delta == 0)
                    FAIL(ABI_NULL_PADDING);
                if (end - p < 4)
                    FAIL(ABI_SHORT_PADDING_LENGTH);
                size = u32_at(p, swap);
                if (size < 4 || size > (size_t)(end - p))
                    FAIL(ABI_INVALID_PADDING_LENGTH);
                p += size;
                continue;
            }
            if (type == RECORD_TIME_EXTEND || type == RECORD_TIME_STAMP) {
                if (end - p < 4) {
                    status = type == RECORD_TIME_EXTEND ? FTRACE_STATUS_ABI_SHORT_TIME_EXTEND
                                                        : FTRACE_STATUS_ABI_SHORT_TIME_STAMP;
                    goto out;
                }
                uint64_t high = (uint64_t)u32_at(p, swap) << DELTA_BITS;
                ts = type == RECORD_TIME_EXTEND ? ts + high : absolute(high + delta, ts - delta);
                p += 4;
                continue;
            }
            /* type 0: the next word is the size, itself included */
            if (end - p < 4)
                FAIL(ABI_SHORT_DATA_LENGTH);
            size = u32_at(p, swap);
            if (size == 0)
                FAIL(ABI_ZERO_DATA_LENGTH);
            if (size < 4)
                FAIL(ABI_INVALID_DATA_LENGTH);
            size = (size - 4 + 3) & ~3u; /* records are aligned, the stored size need not be */
            p += 4;
        } else {
            size = type * 4;
        }
        if (size > (size_t)(end - p))
            FAIL(ABI_END_OVERFLOW);
        if (size < 4)
            FAIL(ABI_SHORT_EVENT_ID);
        uint16_t id;
        memcpy(&id, p, 2);
        if (swap)
            id = __builtin_bswap16(id);
        n++;
        if (foreign)
            foreign_event(foreign, id < programs->n ? by_id[id] : NULL, b, id, p, size, ts);
        else if (id < programs->n && by_id[id])
            ftrace_bundle_event(b, by_id[id], p, size, ts);
        p += size;
    }
out:
#undef FAIL
    if (status != FTRACE_STATUS_OK) {
        ftrace_bundle_error(b, v->page_timestamp, status);
        ftrace_bundle_broken_page(b, v->page);
    }
    v->begin = v->end;
    v->timestamp = ts;
    ftrace_bundle_seen(b, ts);
    return n;
}

uint32_t page_view_parse(struct page_view *v, const struct program_table *programs, struct ftrace_bundle *b)
{
    return view_parse(v, programs, b, NULL);
}

uint32_t page_view_parse_foreign(struct page_view *v, const struct program_table *programs, struct ftrace_bundle *b,
                                 struct page_foreign *foreign)
{
    return view_parse(v, programs, b, foreign);
}
