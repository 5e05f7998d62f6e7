/* The tracing service as a whole, and its parts:
 *
 *   service.c       life of the service, ids, counters      producer_port.c  what producers ask for
 *   commit.c        chunks and patches into the buffers     consumer_port.c  what consumers ask for
 *   tracing_session.c the state machine of a session        session_check.c  which configs are refused
 *   flush.c         flushes and their acknowledgements       read.c           which packets go out, in which order
 *   write_file.c    sessions that write a file              trigger.c        start, stop and clone by trigger
 *   clone.c         read-only copies                        stats.c          TraceStats
 *   relay_port.c    machines that relay their producers     concurrent.c     what other sessions do meanwhile
 *   clock_order.c   which comparisons readers can follow
 *   relay_losses.c  what broken links cost                   absence.c        from when to when a machine was away
 *   session_ring.c  one ring, or one for each machine
 *   priority.c      the service's own priority               problems.c       what could not be recorded, and why
 *
 * Everything runs on one loop. A session points to data source instances, an instance to its producer; when a producer
 * goes, its instances go from every session. */
#ifndef MERIDIAN_CAPTURE_SERVICE_STATE_H
#define MERIDIAN_CAPTURE_SERVICE_STATE_H

#include "base/log.h"
#include "base/u64map.h"
#include "base/vec.h"
#include "capture/service/batch.h"
#include "capture/service/relay.h"
#include "capture/service/service.h"

struct service_consumer;
struct session_ring;

/* When a session of this name began last: the guardrail against starting it again and again. */
struct named_start {
    uint64_t name_hash, at_ns;
};

struct trigger_record {
    uint64_t ts_ns;
    uint64_t name_hash;
};

struct service {
    uv_loop_t *loop;
    struct service_options o;
    struct ipc_host *producer_hosts[SERVICE_MAX_SOCKETS];
    unsigned n_producer_hosts;
    struct ipc_host *consumer_host;
    struct tls_keys *tls;    /* of links to other machines; NULL: none */
    struct ipc_guard *guard; /* NULL: no limits */
    uint32_t uid;
    int32_t pid;
    char machine_name[128];
    VEC(struct service_producer *) producers;
    VEC(struct service_consumer *) consumers;
    VEC(struct service_machine) machines;
    struct clock_source clock_source; /* of this machine, for comparisons with others */
    VEC(struct session *) sessions;
    struct u64map buffers; /* global id → struct session_buffer's buffer (as a number) */
    uint16_t last_producer_id, last_buffer_id;
    uint64_t producers_seen, last_instance_id, last_session_id, last_flush_id;
    bool lockdown;
    VEC(struct trigger_record) trigger_history;
    VEC(struct named_start) named_starts;
    unsigned boost_rank; /* of the priority that we run with; 0: the usual */
    int usual_niceness;
    struct pb_writer scratch;
    struct batch batch; /* of the read pass under way */
    struct log_limit log_limit;
    bool closing;
};

/* ---- service.c ---- */
struct service_producer *service_find_producer(struct service *svc, uint16_t id);
uint16_t service_new_buffer_id(struct service *svc); /* 0: none left */
struct session_ring *service_find_buffer(struct service *svc, uint64_t global_id);

#endif
