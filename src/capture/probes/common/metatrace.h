/* The recorder's own work as spans and counters, for the data source perfetto.metatrace.
 *
 * One ring of a fixed size; when no session records, a span costs one load. What is overwritten before it is read is
 * told as has_overruns. */
#ifndef MERIDIAN_CAPTURE_PROBES_COMMON_METATRACE_H
#define MERIDIAN_CAPTURE_PROBES_COMMON_METATRACE_H

#include <stdbool.h>
#include <stdint.h>

enum { METATRACE_RING = 4096 };

struct metatrace_record {
    const char *name; /* constant */
    uint64_t begin_ns;
    uint64_t duration_ns; /* of a span */
    int32_t value;        /* of a counter */
    bool is_counter;
};

struct metatrace {
    uint32_t users; /* sessions that record */
    uint64_t next;  /* records ever written */
    struct metatrace_record ring[METATRACE_RING];
};

struct metatrace_span {
    uint64_t begin_ns; /* 0: nobody records */
};

uint64_t probes_boot_ns(void);

static inline struct metatrace_span metatrace_begin(const struct metatrace *m)
{
    return (struct metatrace_span){m && m->users ? probes_boot_ns() : 0};
}

/* `name` must be a constant. */
void metatrace_end(struct metatrace *m, struct metatrace_span span, const char *name);
void metatrace_counter(struct metatrace *m, const char *name, int32_t value);

#endif
