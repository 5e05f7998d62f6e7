/* What a process has allocated and not freed, by call stack. */
#ifndef MERIDIAN_CAPTURE_HEAP_HEAP_BOOK_H
#define MERIDIAN_CAPTURE_HEAP_HEAP_BOOK_H

#include "base/u64map.h"
#include "base/vec.h"

#include <stdint.h>

/* One call stack. Bytes are what samples stand for; counts are of samples. */
struct heap_site {
    uint64_t callstack; /* its number in the trace */
    uint64_t allocated, freed, allocations, frees;
    uint64_t changed;            /* by which change of the book; 0: none yet */
    uint64_t at_most, n_at_most; /* what was kept when the process kept most, unless nothing has changed since */
    bool told;                   /* it is in the trace as it is */
};

enum { HEAP_LIVE_MAX = 1 << 20, HEAP_SITES_MAX = 1 << 18 };

struct heap_book {
    struct u64map site_of; /* callstack → place in `sites` */
    VEC(struct heap_site)
    sites;
    struct u64map live; /* address → site and weight */
    uint64_t kept;      /* bytes, of all sites */
    uint64_t most;      /* … when that was most */
    uint64_t most_at;   /* the change after which it was */
    uint64_t changes;
};

/* False: there is no room. An address that is known was freed unseen. */
bool heap_book_allocated(struct heap_book *b, uint64_t callstack, uint64_t address, uint64_t weight);
void heap_book_freed(struct heap_book *b, uint64_t address);

/* The memory of the process is gone, with all that was in it. */
void heap_book_free_all(struct heap_book *b);

/* The next dump tells of all sites again. */
void heap_book_tell_anew(struct heap_book *b);

/* What a site kept when the process kept most: bytes, and *n samples. */
uint64_t heap_book_at_most(const struct heap_book *b, const struct heap_site *s, uint64_t *n);

void heap_book_close(struct heap_book *b);

#endif
