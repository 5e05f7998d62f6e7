/* Write trace packets from your own program into a Meridian (or Perfetto) tracing session.
 *
 * The library connects to the tracing service from a thread of its own and reconnects when the service restarts. Your
 * threads write packets straight into memory shared with the service; nothing is copied on the way.
 *
 *     static void started(void *ctx, uint64_t instance) { ... make a writer, remember it ... }
 *     struct mrd_producer *p = mrd_producer_open(&(struct mrd_producer_options){.name = "my.app"});
 *     struct mrd_data_source *ds = mrd_data_source_register(p, &(struct mrd_data_source_options){.name = "my.source"});
 *     ...
 *     struct mrd_writer *w = mrd_writer_open(ds);              // NULL while nobody records
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

struct mrd_producer;    /* a program's connection to the service */
struct mrd_data_source; /* what sessions ask for by its name */
struct mrd_writer;      /* a sequence of packets */

/* What a writer does when the shared memory is full. A data source's config in the session may override it. */
enum mrd_exhausted_policy {
    MRD_DROP = 1,             /* drop the packet; the next one carries previous_packet_dropped */
    MRD_STALL_THEN_ABORT = 2, /* wait up to about 30 s, then abort() */
    MRD_STALL_THEN_DROP = 3,  /* wait up to about 30 s, then drop */
};

struct mrd_producer_options {
    const char *name;         /* how the service and the `producer_name_filter` of configs know the program */
    const char *socket;       /* NULL: PERFETTO_PRODUCER_SOCK_NAME, else the default */
    uint32_t shm_size_bytes;  /* hint for the shared memory; 0: 256 KiB */
    uint32_t page_size_bytes; /* hint; 0: 4096; at most 32768 */
};

struct mrd_data_source_options {
    const char *name;
    int policy; /* enum mrd_exhausted_policy; 0: MRD_DROP */
    void *ctx;
    /* A session began (ended) to record this data source; may be NULL. The serialized DataSourceConfig is a view. */
    void (*started)(void *ctx, uint64_t instance, const void *config, size_t config_len);
    void (*stopped)(void *ctx, uint64_t instance);
    /* Strings and other state that was sent once must be sent again before it is referred to; may be NULL. */
    void (*clear_incremental_state)(void *ctx, uint64_t instance);
};

/* NULL when the address is bad or memory is out. Connecting goes on in the background. */
struct mrd_producer *mrd_producer_open(const struct mrd_producer_options *options);

/* Hands over what was written, ends the connection and the thread, frees all. Close your writers first. */
void mrd_producer_close(struct mrd_producer *p);

/* True while the service knows us. mrd_producer_wait_connected() waits up to `timeout_ms` for that. */
bool mrd_producer_connected(const struct mrd_producer *p);
bool mrd_producer_wait_connected(struct mrd_producer *p, unsigned timeout_ms);

/* Waits until the service has processed all that was handed over so far; false after `timeout_ms`. */
bool mrd_producer_sync(struct mrd_producer *p, unsigned timeout_ms);

/* Fires triggers of sessions that wait for them. */
void mrd_producer_activate_trigger(struct mrd_producer *p, const char *name);

/* NULL when the name is taken or memory is out. Lives as long as the producer. */
struct mrd_data_source *mrd_data_source_register(struct mrd_producer *p, const struct mrd_data_source_options *options);

/* How many sessions record it; mrd_data_source_wait_started() waits up to `timeout_ms` for one. */
unsigned mrd_data_source_instances(const struct mrd_data_source *ds);
bool mrd_data_source_wait_started(struct mrd_data_source *ds, unsigned timeout_ms);

/* A new sequence of packets into the buffer of the newest recording session; NULL when there is none. */
struct mrd_writer *mrd_writer_open(struct mrd_data_source *ds);

/* Hands over what is left. The writer may be closed after its session, its producer's connection or both have ended. */
void mrd_writer_close(struct mrd_writer *w);

/* False when the session this writer writes to has ended: close it. */
bool mrd_writer_active(const struct mrd_writer *w);

void mrd_packet_begin(struct mrd_writer *w);
void mrd_packet_end(struct mrd_writer *w);

/* Hands the packets written so far over to the service, without waiting for a full chunk. The service's own flushes
 * reach whatever is handed over: call this from time to time if packets are rare. */
void mrd_writer_flush(struct mrd_writer *w);

/* Fields of the open packet or message. */
void mrd_put_varint(struct mrd_writer *w, uint32_t field, uint64_t value);
void mrd_put_fixed64(struct mrd_writer *w, uint32_t field, uint64_t value);
void mrd_put_fixed32(struct mrd_writer *w, uint32_t field, uint32_t value);
void mrd_put_double(struct mrd_writer *w, uint32_t field, double value);
void mrd_put_bytes(struct mrd_writer *w, uint32_t field, const void *bytes, size_t len);
void mrd_put_string(struct mrd_writer *w, uint32_t field, const char *text);
void mrd_message_begin(struct mrd_writer *w, uint32_t field);
void mrd_message_end(struct mrd_writer *w);

struct mrd_writer_stats {
    uint64_t packets;    /* begun */
    uint64_t dropped;    /* of these, lost because the shared memory was full or the connection gone */
    uint64_t chunks;     /* handed over */
    uint64_t loss_marks; /* rows of lost packets that the service was told of: traced_buf_trace_writer_packet_loss */
};
struct mrd_writer_stats mrd_writer_get_stats(const struct mrd_writer *w);

/* The types under names without "struct", as C++ has them: for programs written against the first version. */
#ifndef __cplusplus
typedef struct mrd_producer mrd_producer;
typedef struct mrd_data_source mrd_data_source;
typedef struct mrd_writer mrd_writer;
typedef struct mrd_producer_options mrd_producer_options;
typedef struct mrd_data_source_options mrd_data_source_options;
typedef struct mrd_writer_stats mrd_writer_stats;
#endif

#ifdef __cplusplus
}
#endif

#endif
