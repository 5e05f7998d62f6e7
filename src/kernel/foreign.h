/* Pages of another machine's kernel: in the other byte order, with words of four bytes, with times that are to be
 * converted.
 *
 * An event in the other byte order is copied, and its integers are turned round in the copy; programs (event_program.h)
 * then read it as one of this machine. Which bytes are integers the format file says. */
#ifndef MERIDIAN_KERNEL_FOREIGN_H
#define MERIDIAN_KERNEL_FOREIGN_H

#include "base/arena.h"
#include "base/error.h"
#include "kernel/event_program.h"

/* `count` integers of `size` bytes (2, 4 or 8) in a row. */
struct swap_run {
    uint16_t offset, count;
    uint8_t size;
};

struct swap_program {
    uint16_t n;
    struct swap_run *runs; /* by offset */
};

/* What has to be turned round in events of this format; memory from `a`. -MRD_ENOMEM. */
int swap_program_compile(struct swap_program *s, const struct format_file *f, struct arena *a, struct error *err);

/* Turns an event of `size` bytes round where it lies; runs that reach beyond it are left alone. */
void swap_program_run(const struct swap_program *s, uint8_t *event, uint32_t size);

struct page_foreign {
    bool swap;                                 /* the other byte order */
    const struct swap_program *const *by_id;   /* as program_table.by_id; needed when `swap` */
    uint64_t (*time)(void *ctx, uint64_t raw); /* of an event, by the time stamp in the page; NULL: as it stands */
    void *ctx;
    void (*seen)(void *ctx, const struct event_program *program); /* of each event; NULL: nobody asks */
    void *seen_ctx;
    uint8_t event[64 << 10]; /* the copy; longer events are passed over: a bundle has no room for them */
};

#endif
