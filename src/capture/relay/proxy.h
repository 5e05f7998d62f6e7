/* Forwards local producers to the host: each connection accepted on the producer socket gets a connection of its own to
 * the host, which begins with a frame that says who the producer is; after it bytes are moved both ways, unread.
 * What a side does not take at once waits in a pipe of a fixed size, and stops the other one; nothing piles up. (One
 * buffer for all connections stays in the processor's cache: a byte costs half of what splicing costs, measured by
 * test/bench/bench_relay.py.) */
#ifndef MERIDIAN_CAPTURE_RELAY_PROXY_H
#define MERIDIAN_CAPTURE_RELAY_PROXY_H

#include "capture/relay/uplink.h"

#include <stdint.h>
#include <uv.h>

enum { RELAY_WINDOW_BYTES = 128 * 1024, RELAY_MAX_CONNECTIONS = 4096 };

struct relay_proxy;

struct relay_proxy_options {
    const char *listen;       /* the local producer socket */
    struct relay_uplink host; /* where to forward to */
    const char *machine_id_hint;
    const char *machine_name;
    unsigned max_connections;                /* 0: RELAY_MAX_CONNECTIONS */
    void (*lost)(void *ctx, uint64_t bytes); /* taken from a producer and not handed over; may be NULL */
    void *ctx;
};

/* Listens and forwards until relay_proxy_close(). The options' texts must outlive the proxy. */
int relay_proxy_open(struct relay_proxy **out, uv_loop_t *loop, const struct relay_proxy_options *options,
                     struct error *err);
/* Ends every connection: what producers have said so far is still handed over, as long as the host takes it. Run the
 * loop afterwards to free it. NULL is fine. */
void relay_proxy_close(struct relay_proxy *p);

#endif
