/* Write trace packets from your own program into a Meridian (or Perfetto) tracing session.
 *
 * The library connects to the tracing service from a thread of its own and reconnects when the service restarts. Your
 * threads write packets straight into memory shared with the service; nothing is copied on the way.
 *
 *     static void started(void *ctx, uint64_t instance) { ... make a writer, remember it ... }
 *     mrd_producer *p = mrd_producer_open(&(mrd_producer_options){.name = "my.app"});
 *     mrd_data_source *ds = mrd_data_source_register(p, &(mrd_data_source_options){.name = "my.source"});
 *     ...
 *     mrd_writer *w = mrd_writer_open(ds);              // NULL while nobody records
 *     if (w) {
 *         mrd_packet_begin(w);
 *         mrd_put_varint(w, 8, now);                    // field numbers of TracePacket
 *         mrd_message_begin(w, 11);
 *         ...
 *         mrd_message_end(w);
 *         mrd_packet_end(w);
 *     }
 *
 * Threads: a writer belongs to one thread at a time; every other function may be called from any thread. Callbacks run
 * on the library's thread and must not block. */
#ifndef MERIDIAN_PRODUCER_H
#define MERIDIAN_PRODUCER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mrd_producer mrd_producer;
typedef struct mrd_data_source mrd_data_source;
typedef struct mrd_writer mrd_writer;

/* What a writer does when the shared memory is full. A data source's config in the session may override it. */
enum mrd_exhausted_policy {
    MRD_DROP = 1,             /* drop the packet; the next one carries previous_packet_dropped */
    MRD_STALL_THEN_ABORT = 2, /* wait up to about 30 s, then abort() */
    MRD_STALL_THEN_DROP = 3,  /* wait up to about 30 s, then drop */
};

typedef struct mrd_producer_options {
    const char *name;         /* how the service and the `producer_name_filter` of configs know the program */
    const char *socket;       /* NULL: PERFETTO_PRODUCER_SOCK_NAME, else the default */
    uint32_t shm_size_bytes;  /* hint for the shared memory; 0: 256 KiB */
    uint32_t page_size_bytes; /* hint; 0: 4096; at most 32768 */
} mrd_producer_options;

typedef struct mrd_data_source_options {
    const char *name;
    int policy; /* enum mrd_exhausted_policy; 0: MRD_DROP */
    void *ctx;
    /* A session began (ended) to record this data source; may be NULL. The serialized DataSourceConfig is a view. */
    void (*started)(void *ctx, uint64_t instance, const void *config, size_t config_len);
    void (*stopped)(void *ctx, uint64_t instance);
    /* Strings and other state that was sent once must be sent again before it is referred to; may be NULL. */
    void (*clear_incremental_state)(void *ctx, uint64_t instance);
} mrd_data_source_options;

/* NULL when the address is bad or memory is out. Connecting goes on in the background. */
mrd_producer *mrd_producer_open(const mrd_producer_options *options);

/* Hands over what was written, ends the connection and the thread, frees all. Close your writers first. */
void mrd_producer_close(mrd_producer *p);

/* True while the service knows us. mrd_producer_wait_connected() waits up to `timeout_ms` for that. */
bool mrd_producer_connected(const mrd_producer *p);
bool mrd_producer_wait_connected(mrd_producer *p, unsigned timeout_ms);

/* Waits until the service has processed all that was handed over so far; false after `timeout_ms`. */
bool mrd_producer_sync(mrd_producer *p, unsigned timeout_ms);

/* Fires triggers of sessions that wait for them. */
void mrd_producer_activate_trigger(mrd_producer *p, const char *name);

/* NULL when the name is taken or memory is out. Lives as long as the producer. */
mrd_data_source *mrd_data_source_register(mrd_producer *p, const mrd_data_source_options *options);

/* How many sessions record it; mrd_data_source_wait_started() waits up to `timeout_ms` for one. */
unsigned mrd_data_source_instances(const mrd_data_source *ds);
bool mrd_data_source_wait_started(mrd_data_source *ds, unsigned timeout_ms);

/* A new sequence of packets into the buffer of the newest recording session; NULL when there is none. */
mrd_writer *mrd_writer_open(mrd_data_source *ds);

/* Hands over what is left. The writer may be closed after its session, its producer's connection or both have ended. */
void mrd_writer_close(mrd_writer *w);

/* False when the session this writer writes to has ended: close it. */
bool mrd_writer_active(const mrd_writer *w);

void mrd_packet_begin(mrd_writer *w);
void mrd_packet_end(mrd_writer *w);

/* Hands the packets written so far over to the service, without waiting for a full chunk. The service's own flushes
 * reach whatever is handed over: call this from time to time if packets are rare. */
void mrd_writer_flush(mrd_writer *w);

/* Fields of the open packet or message. */
void mrd_put_varint(mrd_writer *w, uint32_t field, uint64_t value);
void mrd_put_fixed64(mrd_writer *w, uint32_t field, uint64_t value);
void mrd_put_fixed32(mrd_writer *w, uint32_t field, uint32_t value);
void mrd_put_double(mrd_writer *w, uint32_t field, double value);
void mrd_put_bytes(mrd_writer *w, uint32_t field, const void *bytes, size_t len);
void mrd_put_string(mrd_writer *w, uint32_t field, const char *text);
void mrd_message_begin(mrd_writer *w, uint32_t field);
void mrd_message_end(mrd_writer *w);

typedef struct mrd_writer_stats {
    uint64_t packets;    /* begun */
    uint64_t dropped;    /* of these, lost because the shared memory was full or the connection gone */
    uint64_t chunks;     /* handed over */
    uint64_t loss_marks; /* rows of lost packets that the service was told of: traced_buf_trace_writer_packet_loss */
} mrd_writer_stats;
mrd_writer_stats mrd_writer_get_stats(const mrd_writer *w);

#ifdef __cplusplus
}
#endif

#endif
