/* The serving end of the IPC protocol: a listening socket, its peers, and the services exposed on it.
 *
 * Ownership: the host owns its peers; a peer lives until its `disconnected` has returned. What a service attaches to a
 * peer with ipc_peer_set_data() is the service's own. */
#ifndef MERIDIAN_CAPTURE_IPC_HOST_H
#define MERIDIAN_CAPTURE_IPC_HOST_H

#include "base/error.h"
#include "capture/ipc/conn.h"
#include "capture/ipc/guard.h"
#include "capture/ipc/ports.h"
#include "capture/ipc/tls.h"

#define IPC_HOST_MAX_SERVICES 2

struct ipc_host;
struct ipc_peer;

/* A request that may be answered now or later, once or (streams) many times. Copy it to keep it; it is void after the
 * peer has disconnected. */
struct ipc_call {
    struct ipc_peer *peer; /* NULL: no request is open */
    uint64_t request_id;
    bool drop_reply; /* replies are swallowed */
};

/* Who is at the other end. */
struct ipc_identity {
    uint32_t uid;
    int32_t pid;            /* -1 unknown */
    uint32_t machine_id;    /* 0: this machine */
    char machine_name[128]; /* of a remote peer; "" otherwise */
    bool local;             /* AF_UNIX: the kernel vouches for uid and pid, shared memory works */
    bool frozen;            /* identity can no longer change: a service is bound or an identity was given */
};

/* One service on a host. Callbacks run on the loop. */
struct ipc_service {
    const struct ipc_service_desc *desc;
    void *ctx;
    /* A valid method was called (0-based index). Arguments view the frame: copy what is kept. A handler that cannot
     * serve the call answers with success=false. */
    void (*invoke)(void *ctx, unsigned method, struct ipc_call call, struct slice args);
    /* The peer is gone (only for peers that were bound to this service). */
    void (*disconnected)(void *ctx, struct ipc_peer *peer);
};

struct ipc_host_options {
    const struct ipc_service *services; /* n_services, copied */
    unsigned n_services;
    struct ipc_conn_limits limits;
    const char *log_name; /* "producer socket": for the log; constant */
    unsigned max_peers;   /* 0: no limit */
    unsigned silent_ms;   /* as in ipc_addr_notice_death(); 0: as it is */
    /* for sockets that other machines reach; both may be NULL, and outlive the host */
    struct tls_keys *tls;    /* only who has a certificate gets in */
    struct ipc_guard *guard; /* limits of each machine */
};

/* Listens on `address`. The host closes with ipc_host_close(); loop-run afterwards frees it. */
int ipc_host_open(struct ipc_host **out, uv_loop_t *loop, const char *address, const struct ipc_host_options *o,
                  struct error *err);
void ipc_host_close(struct ipc_host *h);

/* True when the listening socket is AF_UNIX. */
bool ipc_host_is_local(const struct ipc_host *h);

/* Answers a call; `fd` or -1 goes with the frame. Without effect when the peer is NULL or the call drops its replies.
 */
void ipc_reply(const struct ipc_call *call, bool success, bool has_more, struct slice reply, int fd);

const struct ipc_identity *ipc_peer_identity(const struct ipc_peer *p);
struct ipc_host *ipc_peer_host(const struct ipc_peer *p);
const char *ipc_peer_name(const struct ipc_peer *p); /* for the log */
void *ipc_peer_data(const struct ipc_peer *p, const struct ipc_service_desc *service);
void ipc_peer_set_data(struct ipc_peer *p, const struct ipc_service_desc *service, void *data);
int ipc_peer_take_fd(struct ipc_peer *p); /* the last descriptor the peer sent, or -1; the caller's */
size_t ipc_peer_queued(const struct ipc_peer *p);
bool ipc_peer_is_paused(const struct ipc_peer *p); /* nothing is read from it for now */
/* Bytes of a request that was cut; in `disconnected` too. */
size_t ipc_peer_unfinished(const struct ipc_peer *p);
/* Called whenever the queue of unsent bytes runs empty; NULL removes it. */
void ipc_peer_on_drained(struct ipc_peer *p, void (*fn)(void *ctx), void *ctx);
/* As ipc_conn_time_receipts() and ipc_conn_receipt_age_ns(), for the call being handled. */
void ipc_peer_time_receipts(struct ipc_peer *p);
uint64_t ipc_peer_receipt_age_ns(const struct ipc_peer *p);
/* Ends the connection (with the `disconnected` callbacks, from the loop). */
void ipc_peer_kick(struct ipc_peer *p, const char *why);

#endif
