/* A producer: the connection to the tracing service, its data sources, the shared memory behind its trace writers.
 *
 * Everything runs on one libuv loop, and all functions here belong to the loop's thread (trace writers do not, see
 * trace_writer.h). Used by traced_probes directly and by include/meridian/producer.h through a thread of its own.
 *
 *     static const struct producer_ops ops = {.setup = ..., .start = ..., .stop = ..., .flush = ...};
 *     producer_open(&p, loop, &(struct producer_options){.name = "perfetto.traced_probes"}, &ops, ctx, &err);
 *     producer_register(p, &(struct producer_data_source){.name = "linux.ftrace", .will_notify_on_start = true, ...});
 *     // start():  w = producer_new_writer(p, config->target_buffer, config->buffer_exhausted_policy);
 *     //           producer_notify_started(p, instance_id);
 *     // flush():  trace_writer_flush(w); producer_flush_done(p, request_id);   (now or later)
 *     // stop():   trace_writer_free(w); producer_notify_stopped(p, instance_id);
 *
 * Registered data sources are kept and registered again after a reconnect. When the connection is lost, `disconnected`
 * comes and all instances are void: free their writers, without notifying. Reconnecting starts after 100 ms and backs
 * off to 30 s (or to `retry_max_ms`), or happens as soon as the service's socket file appears; a failed connect is
 * retried for ever unless `no_retry`. */
#ifndef MERIDIAN_CAPTURE_SHM_PRODUCER_LINK_H
#define MERIDIAN_CAPTURE_SHM_PRODUCER_LINK_H

#include "capture/shm/trace_writer.h"
#include "schema/service.pb-c.h"

#include <uv.h>

struct producer;

struct producer_options {
    const char *name;   /* producer_name; copied */
    const char *socket; /* NULL: the environment's, see ipc_producer_socket() */
    bool check_service; /* on a local socket the service must be root's, ours, or `service_uid`'s */
    uint32_t service_uid;
    uint32_t shm_size_hint;  /* bytes; 0: the service's default of 256 KiB */
    uint32_t page_size_hint; /* bytes; 0: 4096 */
    bool scraping_enabled;   /* let the service read chunks that were never committed */
    enum shm_layout layout;  /* chunks a page; 0: as many as it takes, see shm_arbiter_new() */
    const struct slice
        *identity;         /* a SetPeerIdentity frame to send first, for TCP without a relay; copied; may be NULL */
    bool reads_more;       /* it holds what is not in the shared memory: when it is killed, that is lost */
    bool no_retry;         /* `disconnected` is final */
    uint32_t retry_max_ms; /* 0: 30000 */
};

/* All may be NULL. Configs are views, valid during the call. */
struct producer_ops {
    void (*connected)(void *ctx); /* the service accepted us; registered data sources are being announced */
    void (*disconnected)(void *ctx, const char *why);
    /* The first attempt since the last connection has failed; it goes on trying. Not called with no_retry. */
    void (*unreachable)(void *ctx, const char *socket, const char *why);
    /* A data source is in a session's config; nothing is written yet. */
    void (*setup)(void *ctx, uint64_t instance_id, const Mrd__DataSourceConfig *config);
    /* Begin to write. With will_notify_on_start, call producer_notify_started() when it has begun. */
    void (*start)(void *ctx, uint64_t instance_id, const Mrd__DataSourceConfig *config);
    /* Stop writing. With will_notify_on_stop, call producer_notify_stopped() when all is written and flushed. */
    void (*stop)(void *ctx, uint64_t instance_id);
    /* Hand everything over (trace_writer_flush()) for these instances, then producer_flush_done(). NULL: acknowledged
     * at once. `flags`: FLUSH_… of ports.h. */
    void (*flush)(void *ctx, uint64_t request_id, const uint64_t *instance_ids, size_t n, uint64_t flags);
    void (*clear_incremental_state)(void *ctx, const uint64_t *instance_ids, size_t n);
    /* Over a network, PRODUCER_HAND_OVER_MS after something was written at the latest: flush all writers that are
     * between packets. There is no memory that outlives this process or the link, so a crash costs what was not handed
     * over. Returns the BOOTTIME before which everything that happened has been handed over. 0: not yet, a writer is in
     * the middle of a packet; flush it as soon as it is not, and call producer_handed_over(). */
    uint64_t (*hand_over)(void *ctx);
};

enum { PRODUCER_HAND_OVER_MS = 100 };

struct producer_data_source {
    const char *name; /* copied */
    bool will_notify_on_start, will_notify_on_stop, handles_incremental_state_clear, no_flush;
    struct slice extra; /* more fields of DataSourceDescriptor, serialized (ftrace_descriptor …); copied */
};

/* Begins to connect. Fails for a bad address or without memory. */
int producer_open(struct producer **out, uv_loop_t *loop, const struct producer_options *o,
                  const struct producer_ops *ops, void *ctx, struct error *err);

/* Hands over what has been flushed, as long as the other side takes it, ends the connection, and frees the producer
 * (after the loop has run on). Writers must be freed by their owner, before or after: what those hold that are not
 * flushed is lost, and the trace says so. NULL is fine. */
void producer_close(struct producer *p);

/* Announces a data source, now and after every reconnect. -MRD_EEXISTS for a name that is there. */
int producer_register(struct producer *p, const struct producer_data_source *ds, struct error *err);

/* A trace writer for an instance's target buffer. NULL when there is no shared memory (yet), no memory or no id. */
struct trace_writer *producer_new_writer(struct producer *p, uint16_t target_buffer, enum shm_policy policy);

/* The shared memory's arbiter, to make writers on other threads with trace_writer_new(); NULL before the first setup.
 * Take a reference to keep it. */
struct shm_arbiter *producer_arbiter(struct producer *p);

void producer_notify_started(struct producer *p, uint64_t instance_id);
/* The same with fields NOTIFY_STARTED_… (wire/recording_problem.h): what could not start, or only in part. */
void producer_report_started(struct producer *p, uint64_t instance_id, struct slice report);
void producer_notify_stopped(struct producer *p, uint64_t instance_id);

/* What was flushed before this call counts as handed over for flush `request_id` and all before it. */
void producer_flush_done(struct producer *p, uint64_t request_id);

/* The writers that hand_over() could not flush have been flushed: what happened before that time is handed over. */
void producer_handed_over(struct producer *p, uint64_t whole_until_ns);

/* Asks for a reply that comes after everything sent so far was processed; `fn` is not called when the connection ends
 * first. False when not connected. */
bool producer_sync(struct producer *p, void (*fn)(void *ctx), void *ctx);

void producer_activate_triggers(struct producer *p, const char *const *names, size_t n);

bool producer_is_connected(const struct producer *p); /* InitializeConnection was answered */

/* Sends what waits, from the loop's thread; normally the loop does it. */
void producer_commit_now(struct producer *p);

#endif
