/* Reads the pages of one cpu's kernel ring buffer, by read() or through the mapped buffer.
 *
 * Measured on a 6.18 kernel with scheduler and syscall events (80 events a page), parsing included: 2.6 µs a page by
 * read(), as the kernel swaps a whole page out; 3.6 µs and more from the mapped buffer, as each step of its reader
 * walks all events of the page (with 4 events a page both cost the same: docs/recording.md). So read() is what we use;
 * the mapped way is kept for buffers that somebody else maps, where the kernel cannot swap.
 */
#ifndef MERIDIAN_CAPTURE_PROBES_FTRACE_RING_READER_H
#define MERIDIAN_CAPTURE_PROBES_FTRACE_RING_READER_H

#include "capture/probes/ftrace/tracefs.h"
#include "kernel/page_parser.h"

enum ring_mode { RING_READ, RING_MAPPED };

struct ring_meta;

struct ring_reader {
    int fd; /* trace_pipe_raw, non-blocking; -1 when closed */
    uint32_t cpu;
    struct page_format format;
    size_t page_size;
    uint8_t *page;                         /* RING_READ: where the page is read to */
    const volatile struct ring_meta *meta; /* RING_MAPPED */
    const uint8_t *pages;
    size_t pages_len;
    uint32_t last_id, last_read;
    uint64_t last_timestamp;
    size_t meta_len;
};

/* Opens per_cpu/cpuN/trace_pipe_raw. A kernel that cannot map the buffer falls back to RING_READ. */
int ring_reader_open(struct ring_reader *r, const struct tracefs *fs, uint32_t cpu, const struct page_format *format,
                     size_t page_size, enum ring_mode mode, struct error *err);

enum ring_result {
    RING_EMPTY,   /* nothing to read now */
    RING_PAGE,    /* *view is filled; it lasts until the next call */
    RING_DAMAGED, /* *status says why; more pages may follow */
    RING_FAILED,  /* the file cannot be read any more */
};

/* The next page or part of a page. */
enum ring_result ring_reader_next(struct ring_reader *r, struct page_view *view, enum ftrace_status *status);

/* Whether `view` was so short that the reader has caught up with the writer. */
bool ring_reader_caught_up(const struct ring_reader *r, const struct page_view *view);

/* Tells the reader where parsing of the view ended (the mapped buffer hands out the rest of a page later). */
void ring_reader_parsed(struct ring_reader *r, const struct page_view *view);

void ring_reader_close(struct ring_reader *r);

#endif
