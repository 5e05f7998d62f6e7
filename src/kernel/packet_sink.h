/* Where a data source puts its packets: one function, so that a test can stand in for the shared memory. */
#ifndef MERIDIAN_KERNEL_PACKET_SINK_H
#define MERIDIAN_KERNEL_PACKET_SINK_H

#include "base/slice.h"

struct packet_sink {
    /* Takes one whole TracePacket, given as `n` pieces that follow each other; the pieces are not kept. */
    void (*write)(void *ctx, const struct slice *pieces, size_t n);
    void *ctx;
    /* Packets that were taken and lost since, because the memory was full. NULL: none is ever lost. */
    uint64_t (*lost)(void *ctx);
};

static inline void packet_sink_write(const struct packet_sink *s, struct slice packet)
{
    s->write(s->ctx, &packet, 1);
}

#endif
