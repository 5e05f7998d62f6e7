/* One end of a connection that speaks frames, on a libuv loop.
 *
 * Reading: whole frames are handed to the owner one by one; a frame over IPC_FRAME_MAX ends the connection. At most one
 * buffer is read per turn of the loop, so that a peer that floods does not starve the others.
 * Writing never blocks: what the socket does not take is queued. A queue that makes no progress for `send_timeout_ms`,
 * or grows over `queue_max_bytes`, ends the connection; so does a frame that has begun and does not go on: a slow peer
 * costs memory for a while, never time. (Perfetto's service blocks instead, which is why it can wait no longer than 10
 * ms for a producer.) */
#ifndef MERIDIAN_CAPTURE_IPC_CONN_H
#define MERIDIAN_CAPTURE_IPC_CONN_H

#include "base/slice.h"
#include "capture/ipc/halves.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct ipc_conn;

struct ipc_conn_ops {
    void (*connected)(void *ctx); /* a connect that was under way is done; may be NULL */
    void (*frame)(void *ctx, struct slice bytes);
    void (*closed)(void *ctx, const char *why); /* once; the connection is gone after it. Not after ipc_conn_close() */
    void (*drained)(void *ctx);                 /* the queue is empty again; may be NULL */
};

struct ipc_conn_limits {
    unsigned send_timeout_ms;
    size_t queue_max_bytes;
    unsigned half_frame_ms; /* without a byte of a frame that has begun; 0: 30 s */
    struct ipc_halves
        *halves;   /* what frames that have begun may hold, of many connections; NULL: no bound but their own */
    uint64_t user; /* whose share of that it is */
};

/* Takes `fd` over (also on failure). `connecting`: a non-blocking connect is under way. NULL when out of memory. */
struct ipc_conn *ipc_conn_new(uv_loop_t *loop, int fd, bool connecting, const struct ipc_conn_ops *ops,
                              const struct ipc_conn_limits *limits, void *ctx);

/* Queues one frame (its bytes are copied, the length is put in front) and tries to write at once. `fd` (or -1) goes
 * with the first byte; it is duplicated, the caller keeps its own. False when the frame is too large or memory is out:
 * then nothing is sent. A dead socket is reported by `closed` later, never from inside this call. */
bool ipc_conn_send(struct ipc_conn *c, struct slice frame, int fd);

/* Bytes that wait in the queue. */
size_t ipc_conn_queued(const struct ipc_conn *c);

/* Writes the queue out, waiting up to `timeout_ms` for the peer; false when it is not empty then. */
bool ipc_conn_drain(struct ipc_conn *c, unsigned timeout_ms);

/* Reads nothing while paused: the other side is held back by its socket. */
void ipc_conn_pause(struct ipc_conn *c, bool paused);
bool ipc_conn_is_paused(const struct ipc_conn *c);

/* The last descriptor received, or -1; it then belongs to the caller. */
int ipc_conn_take_fd(struct ipc_conn *c);

/* Bytes of a frame that began and is not whole. */
size_t ipc_conn_unfinished(const struct ipc_conn *c);

/* Has the kernel note when bytes arrive (TCP); how long ago it took the last ones that were read, 0 when it cannot
 * tell. */
void ipc_conn_time_receipts(struct ipc_conn *c);
uint64_t ipc_conn_receipt_age_ns(const struct ipc_conn *c);

int ipc_conn_fd(const struct ipc_conn *c);

/* Ends the connection without a callback. Safe inside callbacks. NULL is fine. */
void ipc_conn_close(struct ipc_conn *c);

#endif
