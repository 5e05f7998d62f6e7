/* Connections to the host, with TLS when there are keys. */
#ifndef MERIDIAN_CAPTURE_RELAY_UPLINK_H
#define MERIDIAN_CAPTURE_RELAY_UPLINK_H

#include "base/log.h"
#include "capture/ipc/tls.h"

struct relay_uplink {
    uv_loop_t *loop;
    const char *host;
    struct tls_keys *keys; /* NULL: plain */
    struct log_limit *log; /* of what anybody can make us say; shared */
};

/* True when a line may be written: there are peers that could make us write without end. */
bool relay_may_say(struct log_limit *log);

/* A non-blocking socket to the host; *in_progress when its connect is not done. With TLS it is a local one, which ends
 * when the host cannot be reached or trusted: why is told on standard error. Negative -MRD_E… on failure. */
int relay_uplink_connect(const struct relay_uplink *u, bool *in_progress, struct error *err);

#endif
