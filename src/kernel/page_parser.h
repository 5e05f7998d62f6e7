/* Walks the records of a kernel ring-buffer page and hands the events that a session wants to its bundle.
 *
 * Page: u64 timestamp, commit word (its low 20 bits are the length of the data, bit 31 says that events were lost in
 * front, bit 30 that their number is stored behind the data), then records of a 32-bit head (5 bits type or length, 27
 * bits time delta) and a payload. A page is untrusted: whatever does not fit ends it with a status, nothing else. */
#ifndef MERIDIAN_KERNEL_PAGE_PARSER_H
#define MERIDIAN_KERNEL_PAGE_PARSER_H

#include "kernel/bundle.h"
#include "kernel/foreign.h"

struct page_view {
    struct slice page;       /* all of it */
    const uint8_t *data;     /* records */
    uint32_t begin, end;     /* those not parsed yet; bytes from data */
    uint64_t timestamp;      /* running: of the record in front of begin */
    uint64_t page_timestamp; /* of the header, for errors */
    uint64_t lost_count;     /* events lost in front of the page; 0 when none or unknown */
    bool lost;
};

/* Reads the header of a page of `size` bytes. FTRACE_STATUS_OK or FTRACE_STATUS_ABI_INVALID_PAGE_HEADER. */
enum ftrace_status page_view_open(struct page_view *v, const struct page_format *format, const uint8_t *page,
                                  size_t size);
/* The same for a page in the other byte order. */
enum ftrace_status page_view_open_swapped(struct page_view *v, const struct page_format *format, const uint8_t *page,
                                          size_t size);
/* The same of a page of which the end is missing: the records that are there. */
enum ftrace_status page_view_open_cut(struct page_view *v, const struct page_format *format, const uint8_t *page,
                                      size_t size, bool swap);

/* Programs by event id; NULL for what this session does not want. */
struct program_table {
    const struct event_program *const *by_id;
    uint32_t n;
};

/* Parses [begin, end) of the page; `b` gets the events and, on damage, the error. On return the view is at the end and
 * its timestamp is that of the last record. Returns the number of data records seen, wanted or not. */
uint32_t page_view_parse(struct page_view *v, const struct program_table *programs, struct ftrace_bundle *b);
/* The same for pages of another machine. */
uint32_t page_view_parse_foreign(struct page_view *v, const struct program_table *programs, struct ftrace_bundle *b,
                                 struct page_foreign *foreign);

#endif
