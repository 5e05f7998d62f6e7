/* What the writing and the reading half of the trace buffer share. */
#ifndef MERIDIAN_CAPTURE_SERVICE_TRACE_BUFFER_INTERNAL_H
#define MERIDIAN_CAPTURE_SERVICE_TRACE_BUFFER_INTERNAL_H

#include "base/u64map.h"
#include "capture/service/chunk_list.h"
#include "capture/service/trace_buffer.h"

/* In the ring. A record of padding has sequence PADDING. */
struct record {
    uint32_t size; /* with this header, a multiple of 16 */
    uint32_t sequence;
    uint32_t chunk_id;
    uint32_t payload; /* bytes of payload behind the header */
};
#define RECORD_HEADER 16u
#define PADDING       UINT32_MAX
_Static_assert(sizeof(struct record) == RECORD_HEADER, "the header is part of the statistics");

struct sequence {
    struct trace_sequence_stats stats; /* first: its address is handed out */
    uint32_t index;                    /* in all[] */
    struct chunk_list chunks;
    uint32_t last_written;
    bool any_written;
    /* chunks are read from position skip_start on, round the end; this many of them are done with */
    uint32_t skip, skip_start;
    /* what the reader remembers between passes, also of chunks that are gone */
    bool any_done;
    uint32_t last_done; /* the last chunk that was read to its end */
    uint32_t last_from; /* the chunk that the last packet began in */
    bool any_gone;
    uint32_t last_gone;  /* the last chunk that was read or overwritten: what is before it will not be missed */
    uint32_t partial_id; /* a chunk read in part, and how far: it may be overwritten and come again */
    uint16_t partial_read;
    uint32_t loss; /* bits for the next packet */
};

struct trace_buffer {
    uint8_t *ring;
    size_t size;
    size_t wptr;
    size_t high; /* beyond it the ring was never written */
    enum trace_buffer_policy policy;
    bool full; /* DISCARD has refused a chunk */
    struct trace_buffer_stats stats;
    struct u64map by_key;         /* producer << 16 | writer → index in all */
    VEC(struct sequence *) all;   /* in order of arrival; records refer to these numbers; NULL: dropped */
    size_t free_from;             /* where the next NULL is looked for */
    VEC(struct sequence *) order; /* by (producer, writer), when `ordered` */
    bool ordered;
    size_t empty; /* sequences that may make room: nothing is in the buffer, and nothing is to be told */
    /* the pass of reading */
    bool final;
    size_t at_sequence; /* in order */
};

static inline uint64_t sequence_key(uint16_t producer_id, uint16_t writer_id)
{
    return (uint64_t)producer_id << 16 | writer_id;
}

static inline struct record *record_at(const struct trace_buffer *b, size_t offset)
{
    return (struct record *)(void *)(b->ring + offset);
}

/* Nobody has to wait for chunks up to this one. */
static inline void sequence_passed(struct sequence *s, uint32_t chunk_id)
{
    if (!s->any_gone || chunk_id - s->last_gone < 1u << 31)
        s->last_gone = chunk_id;
    s->any_gone = true;
}

/* Puts the sequences in order when some came out of it. */
void trace_buffer_order(struct trace_buffer *b);

#endif
