/* A short list of copied records. */
#include "capture/perf/perf_queue.h"

#include "base/alloc.h"

bool perf_queue_push(struct perf_queue *q, uint32_t cpu, int32_t pid, uint64_t stack_bytes, struct slice record,
                     uint64_t whole_until)
{
    if (q->list.n >= PERF_QUEUE_MAX)
        return false;
    uint8_t *copy = mem_alloc(record.len ? record.len : 1);
    if (!copy)
        return false;
    memcpy(copy, record.p, record.len);
    if (vec_push(&q->list, (struct perf_queued){cpu, pid, stack_bytes, copy, record.len, whole_until}))
        return true;
    mem_free(copy);
    return false;
}

uint64_t perf_queue_walk(struct perf_queue *q, bool (*fn)(void *ctx, const struct perf_queued *entry), void *ctx)
{
    uint64_t bytes = 0;
    size_t kept = 0;
    for (size_t i = 0; i < q->list.n; i++) {
        struct perf_queued e = q->list.p[i];
        if (!fn(ctx, &e)) {
            q->list.p[kept++] = e;
            continue;
        }
        bytes += e.stack_bytes;
        mem_free(e.bytes);
    }
    q->list.n = kept;
    return bytes;
}

void perf_queue_free(struct perf_queue *q)
{
    for (size_t i = 0; i < q->list.n; i++)
        mem_free(q->list.p[i].bytes);
    vec_free(&q->list);
}
