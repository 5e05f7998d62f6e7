/* Writes packets into shared memory without copying them: one trace writer is one sequence of packets.
 *
 *     trace_writer_begin_packet(w);
 *     trace_writer_varint(w, 8, timestamp);
 *     trace_writer_begin(w, 11);                       // nested message
 *     trace_writer_str(w, 23, "name");
 *     trace_writer_end(w);
 *     trace_writer_end_packet(w);
 *
 * A packet may be larger than a chunk, or than the shared memory: it is continued. Full chunks are kept until it ends,
 * so that a packet that is finished is whole in the memory, whatever becomes of this process; only when the packet is
 * long (TRACE_WRITER_MAX_KEPT chunks) or chunks are scarce they go out before, and the lengths of messages that were
 * still open are sent behind as patches. Until they are sent they stand at the end of the packet's last chunk, too
 * (struct shm_late_length). When no chunk is free the writer drops (into a scratch area), stalls or
 * aborts, as its policy says; a mark is left in the memory for every row of lost packets, which the service counts as
 * trace_writer_packet_loss, and the next packet that gets through carries previous_packet_dropped.
 *
 * For events written by the million, take bytes directly:
 *
 *     uint8_t *p = trace_writer_reserve(w, MAX);       // MAX <= TRACE_WRITER_RESERVE_MAX contiguous bytes
 *     ... encode fields at p, up to q ...
 *     trace_writer_commit(w, q);
 *
 * A writer is used by one thread at a time; different writers by different threads. Its memory outlives the connection:
 * packets written after that are dropped. */
#ifndef MERIDIAN_CAPTURE_SHM_TRACE_WRITER_H
#define MERIDIAN_CAPTURE_SHM_TRACE_WRITER_H

#include "base/slice.h"
#include "capture/shm/arbiter.h"
#include "wire/pb_writer.h"

#define TRACE_WRITER_MAX_DEPTH   16
#define TRACE_WRITER_RESERVE_MAX 4096u
#define TRACE_WRITER_MAX_KEPT    16

struct trace_writer_stats {
    uint64_t packets;    /* begun */
    uint64_t dropped;    /* of these: lost because no chunk was free */
    uint64_t chunks;     /* handed over */
    uint64_t loss_marks; /* rows of lost packets, as the service counts them: trace_writer_packet_loss */
};

struct trace_writer_nest {
    uint8_t *size_field;  /* four bytes in the current chunk or one that is kept; NULL when that chunk is out */
    uint64_t start_bytes; /* bytes of the packet before the first of the message */
    size_t patch;         /* index in `patches` when size_field is NULL; SIZE_MAX: nowhere, the packet is dropped */
};

/* A full chunk of the packet that is being written. */
struct trace_writer_kept {
    struct shm_chunk chunk;
    uint32_t filled;
};

/* The fields are private; they are here so that the hot paths can be inline. */
struct trace_writer {
    uint8_t *cur, *end;    /* where the next byte goes */
    uint8_t *frag;         /* first byte of this packet in this chunk */
    uint8_t *frag_size;    /* its four-byte length; NULL between packets and while dropping */
    uint64_t bytes_before; /* of this packet in older chunks */
    struct trace_writer_nest nest[TRACE_WRITER_MAX_DEPTH];
    unsigned depth;
    unsigned too_deep; /* messages opened beyond the depth: their content is not written */
    bool in_packet, dropping, fragmented;
    bool need_loss_flag; /* previous_packet_dropped for the next packet */
    bool owes_mark;      /* packets are lost, and there was no chunk to leave a mark in */
    bool first_packet;
    uint32_t next_chunk_id;
    uint16_t writer_id, target_buffer;
    enum shm_policy policy;
    struct shm_arbiter *arbiter;
    struct shm_chunk chunk; /* p NULL: none */
    struct trace_writer_kept kept[TRACE_WRITER_MAX_KEPT];
    unsigned n_kept;
    struct shm_patch *patches;
    size_t n_patches, cap_patches;
    struct trace_writer_stats stats;
    uint8_t *reserved_to;  /* end of the area handed out by reserve: the scratch, or NULL for the chunk itself */
    uint8_t garbage[1024]; /* what is written while dropping */
    uint8_t scratch[TRACE_WRITER_RESERVE_MAX];
};

/* A writer into `target_buffer` (the global id from the data source's config). NULL when memory or writer ids are out.
 */
struct trace_writer *trace_writer_new(struct shm_arbiter *a, uint16_t target_buffer, enum shm_policy policy);

/* Hands over what is left and frees the writer; ends an open packet. NULL is fine. */
void trace_writer_free(struct trace_writer *w);

/* A packet already open is ended first. */
void trace_writer_begin_packet(struct trace_writer *w);
void trace_writer_end_packet(struct trace_writer *w);

/* Hands over the current chunk, full or not. The bytes reach the service's buffer before any later acknowledgement of a
 * flush. Between packets only (inside one it does nothing). */
void trace_writer_flush(struct trace_writer *w);

void trace_writer_varint(struct trace_writer *w, uint32_t id, uint64_t v);
void trace_writer_fixed64(struct trace_writer *w, uint32_t id, uint64_t v);
void trace_writer_fixed32(struct trace_writer *w, uint32_t id, uint32_t v);
void trace_writer_double(struct trace_writer *w, uint32_t id, double v);
void trace_writer_bytes(struct trace_writer *w, uint32_t id, const void *p, size_t len);
static inline void trace_writer_str(struct trace_writer *w, uint32_t id, const char *s)
{
    trace_writer_bytes(w, id, s, strlen(s));
}

/* Bytes that are protobuf already. */
void trace_writer_raw(struct trace_writer *w, const void *p, size_t len);

/* A nested message (or packed field). */
void trace_writer_begin(struct trace_writer *w, uint32_t id);
void trace_writer_end(struct trace_writer *w);

/* Slow halves of the inline functions. */
uint8_t *trace_writer_reserve_slow(struct trace_writer *w, size_t n);
void trace_writer_commit_slow(struct trace_writer *w, const uint8_t *to);

/* `n` contiguous bytes to encode into, up to TRACE_WRITER_RESERVE_MAX; followed by trace_writer_commit() and nothing in
 * between. Only inside a packet. */
static inline uint8_t *trace_writer_reserve(struct trace_writer *w, size_t n)
{
    if (__builtin_expect((size_t)(w->end - w->cur) >= n, 1)) {
        w->reserved_to = NULL;
        return w->cur;
    }
    return trace_writer_reserve_slow(w, n);
}

/* The bytes from the reserved pointer up to `to` are part of the packet. */
static inline void trace_writer_commit(struct trace_writer *w, uint8_t *to)
{
    if (__builtin_expect(w->reserved_to == NULL, 1))
        w->cur = to;
    else
        trace_writer_commit_slow(w, to);
}

/* Bytes of the current packet so far. */
static inline uint64_t trace_writer_packet_bytes(const struct trace_writer *w)
{
    return w->bytes_before + (uint64_t)(w->cur - w->frag);
}

static inline const struct trace_writer_stats *trace_writer_get_stats(const struct trace_writer *w)
{
    return &w->stats;
}

#endif
