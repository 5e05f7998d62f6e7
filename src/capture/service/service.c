/* Life of the service: sockets, ids, the lists of producers and sessions. */
#include "capture/service/producers.h"
#include "capture/service/relay.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"

#include "base/log.h"
#include "capture/common/machine.h"
#include "capture/ipc/addr.h"

#include <sys/resource.h>
#include <unistd.h>

/* Producers and consumers may be slow for this long, with this much unsent, before they are dropped. */
#define SEND_TIMEOUT_MS    10000
#define PRODUCER_QUEUE_MAX (4u << 20)
#define CONSUMER_QUEUE_MAX (64u << 20)
#define LAST_WRITES_MS     (FILE_STALL_MS + 5000)

const struct ipc_service_desc *const service_producer_desc = &ipc_producer_port;

struct service_producer *service_find_producer(struct service *svc, uint16_t id)
{
    for (size_t i = 0; i < svc->producers.n; i++)
        if (svc->producers.p[i]->id == id)
            return svc->producers.p[i];
    return NULL;
}

uint16_t service_new_buffer_id(struct service *svc)
{
    for (unsigned i = 0; i < UINT16_MAX; i++) {
        svc->last_buffer_id = svc->last_buffer_id == UINT16_MAX ? 1 : (uint16_t)(svc->last_buffer_id + 1);
        if (!u64map_get(&svc->buffers, svc->last_buffer_id))
            return svc->last_buffer_id;
    }
    return 0;
}

struct session_ring *service_find_buffer(struct service *svc, uint64_t global_id)
{
    uint64_t *p = u64map_get(&svc->buffers, global_id);
    return p ? (struct session_ring *)(uintptr_t)*p : NULL;
}

/* What relay endpoints ask of other machines. */
static int set_up_guard(struct service *svc, struct error *err)
{
    const struct service_options *o = &svc->o;
    if (o->relay_tls) {
        int rc = tls_keys_load(&svc->tls, o->relay_tls, err);
        if (rc)
            return rc;
    }
    if (!o->relay_tls && !o->guard.allow && !o->guard.max_connections && !o->guard.max_bytes_per_s)
        return 0;
    svc->guard = ipc_guard_new(svc->loop, &o->guard);
    return svc->guard ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
}

static int open_producer_socket(struct service *svc, unsigned i, const struct ipc_service *services, struct error *err)
{
    const struct service_options *o = &svc->o;
    const char *address = o->producer_sockets[i];
    struct ipc_host_options po = {.services = services,
                                  .n_services = o->relay_endpoint[i] ? 2 : 1,
                                  .limits = {.send_timeout_ms = SEND_TIMEOUT_MS,
                                             .queue_max_bytes = PRODUCER_QUEUE_MAX,
                                             .half_frame_ms = o->half_message_ms},
                                  .log_name = "producer socket",
                                  .max_peers = UINT16_MAX,
                                  .silent_ms = o->silent_ms};
    struct ipc_addr addr;
    int rc = ipc_addr_parse(&addr, address, err);
    if (!rc && o->relay_endpoint[i] && addr.family != AF_UNIX) {
        po.tls = svc->tls;
        po.guard = svc->guard;
    }
    if (!rc)
        rc = ipc_host_open(&svc->producer_hosts[i], svc->loop, address, &po, err);
    if (!rc && !po.tls && ipc_addr_is_exposed(&addr))
        log_line("traced: warning: anyone who can connect to %s can send events and read configs; --relay-tls lets "
                 "only machines with "
                 "a certificate in",
                 address);
    svc->n_producer_hosts += rc == 0;
    return rc;
}

int service_open(struct service **out, uv_loop_t *loop, const struct service_options *o, struct error *err)
{
    struct service *svc = mem_zalloc(sizeof *svc);
    if (!svc)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    svc->loop = loop;
    svc->o = *o;
    svc->uid = geteuid();
    svc->pid = getpid();
    clock_source_open(&svc->clock_source);
    svc->usual_niceness = getpriority(PRIO_PROCESS, 0);
    machine_name(svc->machine_name, sizeof svc->machine_name);
    struct ipc_service producer[2] = {
        {.desc = &ipc_producer_port,
         .ctx = svc,
         .invoke = producer_port_invoke,
         .disconnected = producer_port_disconnected},
        {.desc = &ipc_relay_port, .ctx = svc, .invoke = relay_port_invoke, .disconnected = relay_port_disconnected}};
    int rc = set_up_guard(svc, err);
    for (unsigned i = 0; i < o->n_producer_sockets && !rc; i++)
        rc = open_producer_socket(svc, i, producer, err);
    struct ipc_service consumer = {.desc = &ipc_consumer_port,
                                   .ctx = svc,
                                   .invoke = consumer_port_invoke,
                                   .disconnected = consumer_port_disconnected};
    struct ipc_host_options co = {.services = &consumer,
                                  .n_services = 1,
                                  .limits = {.send_timeout_ms = SEND_TIMEOUT_MS,
                                             .queue_max_bytes = CONSUMER_QUEUE_MAX,
                                             .half_frame_ms = o->half_message_ms},
                                  .log_name = "consumer socket",
                                  .max_peers = 4096};
    if (!rc)
        rc = ipc_host_open(&svc->consumer_host, loop, o->consumer_socket, &co, err);
    if (rc) {
        service_close(svc);
        return rc;
    }
    *out = svc;
    return 0;
}

/* Files get the time to be written; those that take nothing are left as they are. */
static void end_sessions(struct service *svc)
{
    uint64_t until = uv_hrtime() + (uint64_t)LAST_WRITES_MS * 1000000;
    for (size_t i = svc->sessions.n; i-- > 0;)
        session_free(svc->sessions.p[i]);
    while (svc->sessions.n && uv_hrtime() < until) {
        uv_run(svc->loop, UV_RUN_NOWAIT);
        uv_sleep(1);
    }
    while (svc->sessions.n) {
        struct session *s = svc->sessions.p[svc->sessions.n - 1];
        session_abandon_file(s);
        session_ended(s);
    }
}

void service_close(struct service *svc)
{
    if (!svc || svc->closing)
        return;
    svc->closing = true;
    ipc_host_close(svc->consumer_host);
    for (unsigned i = 0; i < svc->n_producer_hosts; i++)
        ipc_host_close(svc->producer_hosts[i]);
    ipc_guard_close(svc->guard);
    tls_keys_free(svc->tls);
    end_sessions(svc);
    uv_run(svc->loop, UV_RUN_NOWAIT); /* close callbacks; they no longer need the service */
    u64map_free(&svc->buffers);
    vec_free(&svc->producers);
    vec_free(&svc->consumers);
    relay_free_machines(svc);
    clock_source_close(&svc->clock_source);
    vec_free(&svc->sessions);
    vec_free(&svc->trigger_history);
    vec_free(&svc->named_starts);
    pb_writer_free(&svc->scratch);
    batch_free(&svc->batch);
    mem_free(svc);
}
