/* Connects to the host, plainly or with TLS. */
#include "capture/relay/uplink.h"

#include "capture/ipc/addr.h"

#include <stdio.h>

enum { LINES_PER_SECOND = 5 };

bool relay_may_say(struct log_limit *log)
{
    unsigned dropped;
    bool may = log_allowed(log, LINES_PER_SECOND, &dropped);
    if (may && dropped)
        fprintf(stderr, "traced_relay: %u similar lines were suppressed\n", dropped);
    return may;
}

static void on_closed(void *ctx, struct tls_link *l, const char *why)
{
    (void)l;
    if (why && relay_may_say(ctx))
        fprintf(stderr, "traced_relay: TLS with the host: %s\n", why);
}

int relay_uplink_connect(const struct relay_uplink *u, bool *in_progress, struct error *err)
{
    static const struct tls_link_ops ops = {.closed = on_closed};
    struct ipc_addr addr;
    struct tls_link *link;
    int plain, fd = ipc_addr_connect(u->host, in_progress, &addr, err);
    if (fd < 0 || !u->keys)
        return fd;
    *in_progress = false;
    int rc = tls_link_open(&link, u->loop, u->keys, fd, false, &ops, u->log, &plain, err);
    return rc ? rc : plain;
}
