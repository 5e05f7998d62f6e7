/* A central trace buffer: one ring of 16-byte-aligned records, with an index by (producer, writer, chunk).
 *
 * Chunks come in any order and may come twice (first scraped half-written, then whole); packets go out whole, first in
 * first out within a sequence, one sequence after the other. Fragmented packets are put together again, lengths that
 * arrive late are patched in. Nothing from a chunk is trusted. All numbers of BufferStats are kept.
 *
 * Two things are done better than in Perfetto's first buffer, where they lose data without need:
 * - whether packets were lost before one is known per sequence, so that a chunk that was overwritten after it was read
 *   is not taken for a loss;
 * - at the last read of a session (trace_buffer_begin_read(final)) nothing can fill a gap or patch a chunk any more, so
 *   the reader steps over it, marks the loss and goes on. */
#ifndef MERIDIAN_CAPTURE_SERVICE_TRACE_BUFFER_H
#define MERIDIAN_CAPTURE_SERVICE_TRACE_BUFFER_H

#include "base/slice.h"
#include "base/u64map.h"
#include "base/vec.h"
#include "capture/shm/abi.h"

#include <stdint.h>

enum trace_buffer_policy { TRACE_BUFFER_RING, TRACE_BUFFER_DISCARD };

/* Why packets are missing before a packet: the bits of TracePacket.previous_packet_dropped. */
enum trace_loss {
    LOSS_PRESENT = 1,
    LOSS_READ_GAP = 2,
    LOSS_CORRUPTED = 4,
    LOSS_ORPHAN = 8,
    LOSS_REASSEMBLY_GAP = 16,
    LOSS_BROKEN_CHAIN = 32,
    LOSS_OVERWRITE = 64,
    LOSS_WRITER_ABORT = 128,
    LOSS_SMB_FULL = 256,
};

/* Writers of one buffer; chunks of more are refused, and counted. */
enum { TRACE_BUFFER_MAX_SEQUENCES = 131072 };

struct trace_buffer_stats {
    uint64_t buffer_size;
    uint64_t bytes_written, chunks_written;
    uint64_t bytes_overwritten, chunks_overwritten;
    uint64_t bytes_read, chunks_read;
    uint64_t padding_bytes_written, padding_bytes_cleared;
    uint64_t write_wrap_count;
    uint64_t patches_succeeded, patches_failed;
    uint64_t readaheads_succeeded, readaheads_failed;
    uint64_t abi_violations;
    uint64_t chunks_rewritten, chunks_committed_out_of_order, chunks_discarded;
    uint64_t trace_writer_packet_loss;
};

/* Payload bytes of the chunks read, by size: at most 8, 32, …; the last bucket takes the rest. */
#define CHUNK_HISTOGRAM_BUCKETS 11
extern const int64_t chunk_histogram_def[CHUNK_HISTOGRAM_BUCKETS - 1];

/* Who wrote a sequence; from the connection, never from the chunk. */
struct trace_writer_identity {
    uint16_t producer_id;
    uint16_t writer_id;
    uint32_t uid;
    int32_t pid; /* -1 unknown */
    uint32_t machine_id;
};

/* One (producer, writer) of a buffer, as the statistics need it. */
struct trace_sequence_stats {
    struct trace_writer_identity who;
    uint64_t histogram_counts[CHUNK_HISTOGRAM_BUCKETS];
    int64_t histogram_sums[CHUNK_HISTOGRAM_BUCKETS];
    uint64_t last_at_ns, before_last_at_ns; /* when its last two chunks came, as they say */
};

/* A chunk to be stored. */
struct trace_chunk {
    struct trace_writer_identity who;
    uint32_t chunk_id;
    uint16_t num_fragments; /* as announced by the writer */
    uint8_t flags;          /* enum shm_chunk_flags */
    bool complete;          /* false: scraped while it was being written, its last fragment is not whole */
    struct slice payload;   /* what is behind the chunk's header */
    uint64_t at_ns;         /* when it came; 0: nobody asks */
};

struct trace_packet {
    VEC(struct slice) slices; /* views into the buffer, valid until the next write */
    size_t bytes;
    struct trace_writer_identity who;
    uint32_t loss; /* bits of enum trace_loss; 0: nothing was lost before it */
};

struct trace_buffer;

/* A buffer of `size` bytes (rounded down to 16, at least 4 KiB, under 4 GiB). NULL when memory is out. */
struct trace_buffer *trace_buffer_new(size_t size, enum trace_buffer_policy policy);
void trace_buffer_free(struct trace_buffer *b);

/* Copies the chunk in. Chunks that break the rules are counted in abi_violations and dropped. */
void trace_buffer_write(struct trace_buffer *b, const struct trace_chunk *c);

/* Patches four bytes at each of the offsets (from the start of the payload). Without `has_more` the chunk becomes
 * readable. False when the chunk is not there any more or an offset is outside. */
struct trace_patch {
    uint32_t offset;
    uint8_t bytes[4];
};
bool trace_buffer_patch(struct trace_buffer *b, uint16_t producer_id, uint16_t writer_id, uint32_t chunk_id,
                        const struct trace_patch *patches, size_t n, bool has_more);

/* Is the chunk here, and waits for patches? */
bool trace_buffer_lacks_patches(struct trace_buffer *b, uint16_t producer_id, uint16_t writer_id, uint32_t chunk_id);

/* Starts a pass over all sequences. `final`: no chunk and no patch will come any more. */
void trace_buffer_begin_read(struct trace_buffer *b, bool final);

/* The next packet; false at the end of the pass. The packet's slices are views; its vector is reused. */
bool trace_buffer_read(struct trace_buffer *b, struct trace_packet *p);

/* A copy to be read, with the chunks and the read state of now; reading counters start at 0. */
struct trace_buffer *trace_buffer_clone(const struct trace_buffer *b);

const struct trace_buffer_stats *trace_buffer_get_stats(const struct trace_buffer *b);
enum trace_buffer_policy trace_buffer_get_policy(const struct trace_buffer *b);

/* The sequences in order of (producer, writer). */
size_t trace_buffer_sequence_count(const struct trace_buffer *b);
const struct trace_sequence_stats *trace_buffer_sequence(struct trace_buffer *b, size_t i);

/* Adds to each machine's number its sequences whose last packets were lost, with no packet behind them to say so: begun
 * and never finished, as far as the reader has come. False when out of memory. */
bool trace_buffer_unfinished(const struct trace_buffer *b, struct u64map *by_machine);

#endif
