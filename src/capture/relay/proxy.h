/* Forwards local producers to the host: each connection accepted on the producer socket gets a connection of its own to
 * the host, which begins with a frame that says who the producer is; after it bytes are moved both ways, unread,
 * through a pipe of a fixed size per direction (spliced: they never enter this process). A side that does not take its
 * bytes stops the other one; nothing piles up. */
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
    void (*lost)(void *ctx, uint64_t bytes); /* taken from a producer and not handed over; may be NULL */
    void *ctx;
};

struct relay_proxy_counts {
    uint64_t accepted;
    uint64_t refused; /* the host could not be reached, or too many connections */
    uint64_t open;
    uint64_t bytes_up, bytes_down; /* to the host, from the host */
};

/* Listens and forwards until relay_proxy_close(). The options' texts must outlive the proxy. */
int relay_proxy_open(struct relay_proxy **out, uv_loop_t *loop, const struct relay_proxy_options *options,
                     struct error *err);
void relay_proxy_counts(const struct relay_proxy *p, struct relay_proxy_counts *counts);

/* Ends every connection; run the loop afterwards to free it. NULL is fine. */
void relay_proxy_close(struct relay_proxy *p);

#endif
