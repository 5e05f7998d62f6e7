/* The messages of a host's peers that have begun and are not whole, under one bound of memory. Over it the user who
 * holds most loses the message that began longest ago, with its connection: a crowd that begins messages and does not
 * go on pushes out itself. */
#ifndef MERIDIAN_CAPTURE_IPC_HALVES_H
#define MERIDIAN_CAPTURE_IPC_HALVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct half_user;

/* One connection's. Zero it before use, but for `drop` and `user_id`. */
struct ipc_half {
    struct ipc_half *next, *prev; /* by the time when it began */
    struct half_user *user;
    uint64_t user_id; /* whose memory it is */
    size_t bytes;     /* 0: it is in no list */
    void (*drop)(struct ipc_half *v);
};

/* Zero it before use, but for `max`. */
struct ipc_halves {
    struct ipc_half *oldest, *newest;
    struct half_user *users; /* those that hold any */
    size_t bytes, max;
};

/* `v` holds so many bytes now; `anew`: of a message that has only now begun. 0 takes it out. Others are dropped (their
 * `drop` is called, and takes them out) until there is room. False when it is `v` that has to go. */
bool ipc_half_hold(struct ipc_halves *h, struct ipc_half *v, size_t bytes, bool anew);

#endif
