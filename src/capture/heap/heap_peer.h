/* The processes that have loaded the library: they connect when they begin, and stay until they end. A data source
 * samples those that it wants. A process may send and write anything; who it is, the kernel says. */
#ifndef MERIDIAN_CAPTURE_HEAP_HEAP_PEER_H
#define MERIDIAN_CAPTURE_HEAP_HEAP_PEER_H

#include "base/vec.h"
#include "capture/heap/heap_book.h"
#include "capture/heap/heap_reader.h"

#include <uv.h>

enum {
    HEAP_PEERS_MAX = 2048,
    HEAP_PEERS_OF_USER_MAX = 1024, /* of one user who is not root */
};
#define HEAP_RINGS_MAX_BYTES (UINT64_C(2) << 30) /* of all */

/* What a data source knows of a process. */
struct heap_profile {
    struct heap_book book;
    uint32_t first_generation; /* records of others are of another session */
    uint64_t interval;
    bool from_startup;
    bool broken; /* its ring holds what is none */
    bool tells_broken;
    int64_t start_ns; /* MONOTONIC_COARSE */
    /* since the last dump */
    uint64_t samples, errors, unwind_ns, lost, blocked_us;
    /* what the ring has told of so far */
    uint64_t seen_lost, seen_blocked_us;
};

struct heap_user;

struct heap_peer {
    int socket;                /* -1: it was closed at the other end */
    int first[HEAP_HELLO_FDS]; /* what goes with the first hello: the control, and the ring or -1; -1: it was sent */
    int32_t pid;
    uint32_t uid;
    uint64_t began; /* perf_process_began() */
    struct heap_control *control;
    struct heap_reader ring;
    struct heap_user *user; /* who samples it; NULL: nobody */
    struct heap_profile profile;
};

/* A data source, as processes come and go. */
struct heap_user {
    void (*came)(struct heap_user *u, struct heap_peer *p);
    /* The process has ended, or is another program from now on (`next`, which came() has not seen): what it has written
     * is still there. */
    void (*left)(struct heap_user *u, struct heap_peer *p, struct heap_peer *next);
    /* The process has waited for us, and gone on without: only its number and its beginning are known. */
    void (*missed)(struct heap_user *u, const struct heap_peer *p);
};

/* A connection that was accepted, and has not been looked at. */
struct heap_caller {
    int socket;
    int32_t pid;
    uint32_t uid;
};

enum { HEAP_MISSED = 64 };

struct heap_hub {
    int listening;
    uv_loop_t *loop;
    uv_poll_t *accept;
    uv_timer_t *watch;
    VEC(struct heap_peer *)
    peers;
    VEC(struct heap_user *)
    users;
    VEC(struct heap_caller)
    callers;                     /* one of each process */
    uint64_t ring_bytes;         /* of all peers */
    int32_t missed[HEAP_MISSED]; /* processes that were told to be missed, by the last digits of their numbers */
};

/* Listens on a socket (NULL: that of the environment, or the usual one) for processes: those of all users when we are
 * root, else our own. Before the sandbox. */
int heap_hub_listen(struct heap_hub *h, const char *address, struct error *err);
int heap_hub_start(struct heap_hub *h, uv_loop_t *loop, struct error *err);
void heap_hub_stop(struct heap_hub *h); /* its handles; then the loop turns once more */
void heap_hub_close(struct heap_hub *h);

/* Looks for processes that have ended; it does so by itself ten times a second. */
void heap_hub_look(struct heap_hub *h);

bool heap_hub_add_user(struct heap_hub *h, struct heap_user *u);
void heap_hub_remove_user(struct heap_hub *h, struct heap_user *u);

/* Begins to sample. */
struct heap_start {
    uint64_t interval, ring_bytes, block_us;
    bool block;
};
int heap_peer_start(struct heap_hub *h, struct heap_peer *p, const struct heap_start *s, struct error *err);
void heap_peer_set_interval(struct heap_peer *p, uint64_t interval);
void heap_peer_stop(struct heap_peer *p);

#endif
