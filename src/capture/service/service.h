/* The tracing service: producers on one or more sockets, consumers on another, sessions in between. */
#ifndef MERIDIAN_CAPTURE_SERVICE_SERVICE_H
#define MERIDIAN_CAPTURE_SERVICE_SERVICE_H

#include "base/error.h"
#include "capture/ipc/guard.h"

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#define SERVICE_MAX_SOCKETS 8

struct service;

struct service_options {
    const char *producer_sockets[SERVICE_MAX_SOCKETS];
    unsigned n_producer_sockets;
    const char *consumer_socket;
    bool relay_endpoint[SERVICE_MAX_SOCKETS]; /* machines may relay their producers to that producer socket */
    /* for relay endpoints that are not of the file system: */
    const char *relay_tls;          /* directory of our keys; NULL: no TLS */
    struct ipc_guard_options guard; /* limits of each machine */
    unsigned silent_ms;             /* after which it counts as gone; 0: 30 s */
    unsigned half_message_ms;       /* after which a message that was begun ends its connection; 0: 30 s */
};

/* Listens on all sockets. */
int service_open(struct service **out, uv_loop_t *loop, const struct service_options *o, struct error *err);

/* Closes sockets and sessions; the loop must run on to free everything. */
void service_close(struct service *svc);

#endif
