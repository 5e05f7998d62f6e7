/* A trace as an application's SDK writes it: sequences with incremental state, interned names, nested slices with
 * annotations, counters, flows. Deterministic: the same options give the same bytes. */
#ifndef MERIDIAN_TEST_SDK_TRACE_H
#define MERIDIAN_TEST_SDK_TRACE_H

#include "wire/pb_writer.h"

struct sdk_trace_options {
    uint64_t events;      /* track events in all */
    uint32_t sequences;   /* threads that write */
    uint32_t clear_every; /* events of a sequence between two clears of its state */
};

enum sdk_packet_flags {
    SDK_CLEARS = 1,  /* the state is cleared by this packet */
    SDK_NEEDS = 2,   /* the packet cannot be read without the state */
    SDK_INTERNS = 4, /* it adds to the state */
    SDK_EVENT = 8,   /* a track event */
};

/* Gets each packet (the bytes of a TracePacket) in file order. */
typedef void (*sdk_packet_fn)(void *ctx, struct slice packet, uint32_t sequence, unsigned flags, uint64_t ts);

/* False when out of memory. */
bool sdk_trace_write(const struct sdk_trace_options *o, sdk_packet_fn fn, void *ctx);

#endif
