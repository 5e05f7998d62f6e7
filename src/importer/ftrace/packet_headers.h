/* Packets that a host sent and received, out of the events packet_sent and packet_received of its ftrace bundles (the
 * recorder's capture/probes/ftrace/packet_events.h): what relates separate recordings. */
#ifndef MERIDIAN_IMPORTER_FTRACE_PACKET_HEADERS_H
#define MERIDIAN_IMPORTER_FTRACE_PACKET_HEADERS_H

#include "importer/network/packets.h"
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

/* Takes the descriptor (a DescriptorProto) of event `id` when it is one of the two and has every field. */
void packet_headers_describe(struct packet_headers *h, uint32_t id, struct slice descriptor);

/* Whether an event is one of the two: *direction tells which. */
bool packet_headers_know(const struct packet_headers *h, uint32_t id, enum packet_direction *direction);

/* The bytes that an event recorded of a packet: what packet_headers_tcp() returns has views of them. */
struct packet_bytes {
    uint8_t bytes[PACKET_HEADER_WORDS * 8];
    unsigned network_header; /* where that begins */
};
void packet_headers_read(const struct packet_event *e, struct slice payload, struct packet_bytes *out);

/* The headers of a TCP packet; false when it is none, or a later fragment. */
bool packet_headers_tcp(const struct packet_bytes *b, struct tcp_packet *out);

/* Returns non-zero to stop. boot_ns is a time of BOOTTIME. */
typedef int (*packet_headers_fn)(void *ctx, enum packet_direction direction, int64_t boot_ns, struct packet_key key);

/* Every TCP packet of an FtraceEventBundle, as they stand there. What fn returned last. */
int packet_headers_bundle(struct packet_headers *h, struct slice bundle, packet_headers_fn fn, void *ctx);

#endif
