/* Owns the walk over a kernel ring-buffer page. */
#include "kernel/page_parser.h"

#include "kernel/encode.h"

enum {
    RECORD_PADDING = 29,
    RECORD_TIME_EXTEND = 30,
    RECORD_TIME_STAMP = 31,
    COMMIT_LENGTH_MASK = 0xfffff,
    DELTA_BITS = 27,
};
#define COMMIT_LOST   (1u << 31)
#define COMMIT_STORED (1u << 30)
/* An absolute timestamp has room for 59 bits; the kernel keeps the top 5 of the running one. */
#define STAMP_TOP (0x1full << 59)

enum ftrace_status page_view_open(struct page_view *v, const struct page_format *format, const uint8_t *page,
                                  size_t size)
{
    *v = (struct page_view){.page = slice_of(page, size)};
    if (size < format->data_offset)
        return FTRACE_STATUS_ABI_INVALID_PAGE_HEADER;
    uint32_t commit = load_u32(page + 8); /* the upper half of a 64-bit word is sign extension */
    uint32_t length = commit & COMMIT_LENGTH_MASK;
    v->data = page + format->data_offset;
    v->timestamp = v->page_timestamp = load_u64(page);
    if (length > size - format->data_offset)
        return FTRACE_STATUS_ABI_INVALID_PAGE_HEADER;
    v->end = length;
    v->lost = (commit & COMMIT_LOST) != 0;
    if (v->lost && (commit & COMMIT_STORED) && size - format->data_offset - length >= 8)
        v->lost_count = load_u64(v->data + length);
    return FTRACE_STATUS_OK;
}

static uint64_t absolute(uint64_t stamp, uint64_t running)
{
    stamp |= running & STAMP_TOP;
    if ((running & STAMP_TOP) && stamp < running)
        stamp += 1ull << 59;
    return stamp;
}

/* Long: one loop over the events of a page, with a case a kind of record. */
uint32_t page_view_parse(struct page_view *v, const struct program_table *programs, struct ftrace_bundle *b)
{
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
        uint32_t head = load_u32(p);
        uint32_t type = head & 31, delta = head >> 5;
        p += 4;
        ts += delta;
        if (__builtin_expect(type - 1u >= 28, 0)) {
            if (type == RECORD_PADDING) {
                if (delta == 0)
                    FAIL(ABI_NULL_PADDING);
                if (end - p < 4)
                    FAIL(ABI_SHORT_PADDING_LENGTH);
                size = load_u32(p);
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
                uint64_t high = (uint64_t)load_u32(p) << DELTA_BITS;
                ts = type == RECORD_TIME_EXTEND ? ts + high : absolute(high + delta, ts - delta);
                p += 4;
                continue;
            }
            /* type 0: the next word is the size, itself included */
            if (end - p < 4)
                FAIL(ABI_SHORT_DATA_LENGTH);
            size = load_u32(p);
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
        n++;
        if (id < programs->n && by_id[id])
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
