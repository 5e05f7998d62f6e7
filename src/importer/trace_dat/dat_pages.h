/* The sub-buffers of one CPU, one after the other; chunks are decompressed one at a time. */
#ifndef MERIDIAN_IMPORTER_TRACE_DAT_DAT_PAGES_H
#define MERIDIAN_IMPORTER_TRACE_DAT_DAT_PAGES_H

#include "importer/trace_dat/dat_file.h"
#include "wire/inflate.h"

struct dat_pages {
    const struct dat_file *file;
    uint32_t page_size;
    struct slice rest; /* of the data, or of the chunk */
    struct dat_cursor chunks;
    uint32_t n_chunks; /* still to come */
    struct inflater *inflater;
    uint8_t *chunk;
    size_t chunk_cap;
    uint64_t *total; /* bytes of the data of all CPUs so far */
    bool truncated;  /* the data break off, or are damaged */
    bool failed;     /* out of memory */
};

/* `total` counts over all CPUs, and is 0 before the first: tables that lead to the same bytes again and again end. */
void dat_pages_open(struct dat_pages *p, const struct dat_file *f, const struct dat_buffer *b,
                    const struct dat_cpu *cpu, uint64_t *total);
/* The next page, valid until the next call; false at the end. One that is shorter than page_size is cut. */
bool dat_pages_next(struct dat_pages *p, struct slice *page);
void dat_pages_close(struct dat_pages *p);

#endif
