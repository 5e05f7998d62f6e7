/* The producer's side of the shared memory: hands chunks to trace writers and collects what must be told to the
 * service.
 *
 * Any thread may use an arbiter through its trace writers. The bytes of a commit are made by the thread that owns the
 * connection, with shm_arbiter_next_commit(), after `wake` asked for it. An arbiter is counted: the connection holds
 * one reference and every trace writer one, so that a writer outlives a lost connection (its packets are then dropped).
 */
#ifndef MERIDIAN_CAPTURE_SHM_ARBITER_H
#define MERIDIAN_CAPTURE_SHM_ARBITER_H

#include "capture/shm/abi.h"
#include "capture/shm/region.h"
#include "wire/pb_writer.h"

/* What a writer does when no chunk is free (the values are those of BufferExhaustedPolicy). */
enum shm_policy {
    SHM_POLICY_DEFAULT = 0, /* = DROP */
    SHM_DROP = 1,
    SHM_STALL_THEN_ABORT = 2,
    SHM_STALL_THEN_DROP = 3,
};

struct shm_arbiter;

struct shm_arbiter_ops {
    /* Something waits to be committed: call shm_arbiter_next_commit() soon. `urgent`: half of the memory waits; when
     * this is the thread of the connection, do it now. Called from any thread, without the lock. */
    void (*wake)(void *ctx, bool urgent);
    /* A writer stalls because no chunk is free: commit now if this is the thread of the connection, else wake it. */
    void (*stalled)(void *ctx);
};

/* Takes the region over. `emulated`: the memory is private, chunks travel inside the commits. `layout`: what
 * fresh pages get; 0: one chunk a page, four and then fourteen when the
 * writers hold most of the pages. NULL when out of memory. */
struct shm_arbiter *shm_arbiter_new(struct shm_region *region, uint32_t page_size, bool emulated,
                                    enum shm_layout layout, const struct shm_arbiter_ops *ops, void *ctx);
struct shm_arbiter *shm_arbiter_ref(struct shm_arbiter *a);
void shm_arbiter_unref(struct shm_arbiter *a);

/* The connection is gone: no `wake` any more, no chunk is handed out, nothing is committed. */
void shm_arbiter_shut(struct shm_arbiter *a);

/* One IPC to send, in the order of the calls. */
enum shm_ipc { SHM_IPC_NONE, SHM_IPC_REGISTER_WRITER, SHM_IPC_UNREGISTER_WRITER, SHM_IPC_COMMIT };

/* Appends the arguments of the next IPC (a RegisterTraceWriterRequest, UnregisterTraceWriterRequest or
 * CommitDataRequest of at most 128 KiB - 512) to `w` and says which; SHM_IPC_NONE when all is told. */
enum shm_ipc shm_arbiter_next_commit(struct shm_arbiter *a, struct pb_writer *w);

/* The next commits end with the acknowledgement of flush `request_id` and all before it. */
void shm_arbiter_ack_flush(struct shm_arbiter *a, uint64_t request_id);

/* Chunks that writers hold: what is in them would die with this process. */
unsigned shm_arbiter_chunks_out(struct shm_arbiter *a);

/* All that was written before `boottime_ns` has been handed over: the service is told behind it, so that it knows from
 * when on something may be missing when this process or the link dies. */
void shm_arbiter_whole_until(struct shm_arbiter *a, uint64_t boottime_ns);

/* The producer ends: writers get no chunks any more. When none holds one, the service is told, behind the last chunk,
 * that it has got everything; else it takes what was being written for lost. */
void shm_arbiter_finish(struct shm_arbiter *a);

/* Emulation only: queues copies of the chunks that are being written, for a service that asked for scraping. */
void shm_arbiter_scrape(struct shm_arbiter *a);

/* ---- for trace writers ---- */

struct shm_chunk {
    uint8_t *p; /* its header; NULL: none */
    uint32_t size;
    uint32_t id;
    uint16_t page;
    uint8_t index;
    bool scarce; /* when it was handed out writers held more than a quarter of the pages */
};

/* A length field in a chunk that is already out. */
struct shm_patch {
    uint32_t chunk_id;
    uint16_t offset; /* from the start of the payload */
    uint8_t bytes[4];
    bool last_of_chunk; /* no more for this chunk after it */
};

uint16_t shm_arbiter_new_writer_id(struct shm_arbiter *a, uint16_t target_buffer); /* 0: none left */
void shm_arbiter_free_writer_id(struct shm_arbiter *a, uint16_t id);

/* A free chunk with its header filled in; false when there is none (after stalling, if the policy says so). */
bool shm_arbiter_get_chunk(struct shm_arbiter *a, uint32_t chunk_id, uint16_t writer_id, uint16_t packets,
                           enum shm_policy policy, struct shm_chunk *c);

/* The chunk is complete: its header and bytes do not change any more. `filled`: bytes of it in use, with the header. */
void shm_arbiter_return_chunk(struct shm_arbiter *a, struct shm_chunk *c, uint32_t filled, uint16_t target_buffer);

/* Length fields that have become known, of chunks returned before. */
void shm_arbiter_add_patches(struct shm_arbiter *a, uint16_t target_buffer, uint16_t writer_id,
                             const struct shm_patch *patches, size_t n);

#endif
