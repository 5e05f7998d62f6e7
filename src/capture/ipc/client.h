/* The calling end of the IPC protocol: one connection bound to one service. */
#ifndef MERIDIAN_CAPTURE_IPC_CLIENT_H
#define MERIDIAN_CAPTURE_IPC_CLIENT_H

#include "base/error.h"
#include "capture/ipc/conn.h"
#include "capture/ipc/ports.h"

struct ipc_client;

struct ipc_client_ops {
    void (*bound)(void *ctx); /* the service answered: methods can be invoked (they could be queued before, too) */
    /* The connection is over: could not connect, refused, or lost. Open requests get no answer any more. Called once,
     * from the loop; the owner still calls ipc_client_close(). */
    void (*disconnected)(void *ctx, const char *why);
    void (*drained)(void *ctx); /* the queue of unsent bytes is empty again; may be NULL */
};

/* An answer: `reply` (a view) holds the bytes when `success`; more answers follow when `has_more`. */
typedef void (*ipc_reply_fn)(void *ctx, bool success, bool has_more, struct slice reply);

/* Connects to `address`. `identity` (may be NULL) is a frame sent ahead of everything, see ipc_put_peer_identity().
 * Fails only for what is wrong now (bad address, no memory); the rest comes through `disconnected`. */
int ipc_client_open(struct ipc_client **out, uv_loop_t *loop, const char *address,
                    const struct ipc_service_desc *service, const struct slice *identity,
                    const struct ipc_client_ops *ops, void *ctx, struct error *err);

/* The same over a socket (taken over, also on failure); `connecting`: its connect is under way. */
int ipc_client_attach(struct ipc_client **out, uv_loop_t *loop, int fd, bool connecting,
                      const struct ipc_service_desc *service, const struct slice *identity,
                      const struct ipc_client_ops *ops, void *ctx, struct error *err);

/* Calls method `method` (0-based index of the service's list). `fn` NULL drops the reply. False when the arguments do
 * not fit a frame, memory is out, or the service does not have the method. Before `bound` calls are refused too. */
bool ipc_client_invoke(struct ipc_client *c, unsigned method, struct slice args, int fd, ipc_reply_fn fn, void *ctx);

/* As ipc_conn_drain(). */
bool ipc_client_drain(struct ipc_client *c, unsigned timeout_ms);
size_t ipc_client_queued(const struct ipc_client *c);
int ipc_client_take_fd(struct ipc_client *c);
bool ipc_client_has_method(const struct ipc_client *c, unsigned method);
/* As ipc_conn_time_receipts() and ipc_conn_receipt_age_ns(), for the answer that is being handed out. */
void ipc_client_time_receipts(struct ipc_client *c);
uint64_t ipc_client_receipt_age_ns(const struct ipc_client *c);
int ipc_client_socket(const struct ipc_client *c);

/* Largest arguments that fit one frame. */
#define IPC_ARGS_MAX (128u * 1024 - 64)

/* Ends the connection without callbacks; safe inside callbacks; NULL is fine. */
void ipc_client_close(struct ipc_client *c);

#endif
