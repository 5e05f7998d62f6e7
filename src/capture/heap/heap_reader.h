/* The daemon's side of a ring: makes it, and reads what a process has written into it, which may be anything. */
#ifndef MERIDIAN_CAPTURE_HEAP_HEAP_READER_H
#define MERIDIAN_CAPTURE_HEAP_HEAP_READER_H

#include "base/error.h"
#include "base/slice.h"
#include "capture/heap/heap_abi.h"

#include <stdbool.h>

/* A zeroed struct is closed. Of what lies in the ring's memory nothing is believed: where we are, and how large it is,
 * is kept here. */
struct heap_reader {
    struct heap_ring_header *header;
    uint8_t *data; /* twice `bytes` */
    uint64_t bytes;
    uint64_t at;        /* what was read */
    uint64_t size_here; /* of the record that heap_reader_peek() has shown */
};

enum { HEAP_RECORD_MAX = sizeof(struct heap_sample) + HEAP_STACK_MAX };

/* A record, in memory of the reader's caller. */
struct heap_entry {
    uint32_t kind; /* enum heap_kind */
    uint32_t generation;
    uint64_t address;
    uint64_t weight;
    const uint8_t *regs; /* HEAP_REGS u64 */
    struct slice stack;
};

/* Makes a ring of `bytes`, a power of two. *fd is what the process maps, to be closed by the caller; its size cannot be
 * changed. */
int heap_reader_open(struct heap_reader *r, uint64_t bytes, int *fd, struct error *err);
void heap_reader_close(struct heap_reader *r);

enum heap_peek {
    HEAP_PEEK_NONE,   /* nothing is there yet */
    HEAP_PEEK_ENTRY,  /* *entry */
    HEAP_PEEK_GAP,    /* a record that was begun by a process that has ended: to be passed over, and counted */
    HEAP_PEEK_BROKEN, /* what is there is no record: there is no way on */
};

/* The next record, copied into `scratch` (HEAP_RECORD_MAX bytes), once and then read: a process may change what it has
 * written. `ended`: nobody writes any more. */
enum heap_peek heap_reader_peek(struct heap_reader *r, bool ended, uint8_t *scratch, struct heap_entry *entry);

/* Goes on behind the record that was shown. */
void heap_reader_pass(struct heap_reader *r);

/* Bytes that wait. */
uint64_t heap_reader_waiting(const struct heap_reader *r);

#endif
