/* Samples that wait until the maps of their process can be read: copies of their records, in the order they came in. */
#ifndef MERIDIAN_CAPTURE_PERF_PERF_QUEUE_H
#define MERIDIAN_CAPTURE_PERF_PERF_QUEUE_H

#include "base/slice.h"
#include "base/vec.h"

enum { PERF_QUEUE_MAX = 1024 };

struct perf_queued {
    uint32_t cpu;
    int32_t pid;
    uint64_t stack_bytes;
    uint8_t *bytes; /* the record */
    size_t len;
    uint64_t whole_until; /* BOOTTIME: what was written before came in before it */
};

struct perf_queue {
    VEC(struct perf_queued)
    list;
};

/* False: it is full, or there is no memory. */
bool perf_queue_push(struct perf_queue *q, uint32_t cpu, int32_t pid, uint64_t stack_bytes, struct slice record,
                     uint64_t whole_until);

/* Calls `fn` with each; those for which it returns true are taken out. Returns the stack bytes that went with them. */
uint64_t perf_queue_walk(struct perf_queue *q, bool (*fn)(void *ctx, const struct perf_queued *entry), void *ctx);
void perf_queue_free(struct perf_queue *q);

#endif
