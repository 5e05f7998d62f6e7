/* Producers: what they have registered, their shared memory, and what they hand over. */
#ifndef MERIDIAN_CAPTURE_SERVICE_PRODUCERS_H
#define MERIDIAN_CAPTURE_SERVICE_PRODUCERS_H

#include "base/u64map.h"
#include "base/vec.h"
#include "capture/ipc/host.h"
#include "capture/shm/region.h"
#include "schema/service.pb-c.h"

struct service;
struct session;

struct registered_source {
    uint64_t id; /* as given by the producer; 0: none */
    char *name;
    bool will_notify_on_start, will_notify_on_stop, handles_clear, no_flush;
    uint8_t *descriptor; /* serialized, for QueryServiceState */
    size_t descriptor_len;
};

struct service_producer {
    struct service *service;
    struct ipc_peer *peer;
    uint16_t id;
    char *name, *sdk_version;
    struct ipc_call commands; /* the open GetAsyncCommand */
    struct shm_region shm;    /* p NULL until the first setup; emulated producers have none */
    uint32_t page_size;
    uint32_t page_hint, size_hint;
    int given_fd; /* shared memory that the producer brought, until the first setup; -1 */
    bool initialized, emulated, tracing_set_up, scraping, scrape_at_end;
    bool whole_known;   /* its chunks tell which packets are whole, at any moment */
    bool keeps_lengths; /* … and lengths that it may not have sent */
    bool tells_end;     /* it says when it has handed over everything and ends … */
    bool finished;      /* … and has said so */
    bool reads_more;    /* it holds more than what is in its memory */
    /* of other machines: */
    uint64_t connected_ns, commit_ns; /* when it came, and handed something over last */
    bool returns;                     /* a session waits to hear of it again */
    uint64_t whole_until_ns;          /* BOOTTIME there: all that was written before has come; 0: it does not tell */
    VEC(struct registered_source) sources;
    struct u64map writers;         /* writer id → buffer id (global) */
    struct u64map allowed_buffers; /* global ids this producer may write to */
};

/* ---- producer_port.c ---- */
extern const struct ipc_service_desc *const service_producer_desc;
void producer_port_invoke(void *ctx, unsigned method, struct ipc_call call, struct slice args);
void producer_port_disconnected(void *ctx, struct ipc_peer *peer);
/* Sends an async command: `field` of GetAsyncCommandResponse with `body`. */
void producer_send_command(struct service_producer *p, unsigned field, struct slice body, int fd);
/* The shared memory of the producer, made for the session's config on the first call. */
void producer_setup_tracing(struct service_producer *p, const Mrd__TraceConfig *config);

/* ---- commit.c ---- */
void commit_data(struct service_producer *p, struct slice request);
/* Copies what producers have not committed; for the session's buffers only. Those that hand over everything with a
 * flush would only fill the ring with half-full chunks: they do not allow it. */
void commit_scrape(struct service_producer *p, struct session *s);
/* The producer is gone: takes what it has left in its memory for the session, and counts what cannot be taken. */
void commit_take_over(struct service_producer *p, struct session *s);

#endif
