/* Packets that a host sent and received, out of the events packet_sent and packet_received of its ftrace bundles (the
 * recorder's capture/probes/ftrace/packet_events.h): what relates separate recordings. */
#ifndef MERIDIAN_IMPORTER_FTRACE_PACKET_HEADERS_H
#define MERIDIAN_IMPORTER_FTRACE_PACKET_HEADERS_H

#include "importer/sync/match.h"

enum { PACKET_HEADER_WORDS = 10, PACKET_HEADER_NUMBERS = 3 + PACKET_HEADER_WORDS };

/* What the descriptors of a trace say about the two events, by enum packet_direction. A zeroed one knows nothing yet.
 */
struct packet_headers {
    struct packet_event {
        uint32_t id;                             /* field number in FtraceEvent; 0: not described yet */
        uint32_t numbers[PACKET_HEADER_NUMBERS]; /* of its fields, in the order of names in packet_headers.c */
    } events[2];
    uint64_t other_clocks; /* events that were left out because their clock cannot be told from the bundle */
};

/* Returns non-zero to stop. boot_ns is a time of BOOTTIME. */
typedef int (*packet_headers_fn)(void *ctx, enum packet_direction direction, int64_t boot_ns, struct packet_key key);

/* Every TCP packet of an FtraceEventBundle, as they stand there. What fn returned last. */
int packet_headers_bundle(struct packet_headers *h, struct slice bundle, packet_headers_fn fn, void *ctx);

#endif
