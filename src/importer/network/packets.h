/* TCP packets that machines sent and received: rows of network_packet, an instant for each that carries bytes, and an
 * arrow from machine to machine for each that arrived. */
#ifndef MERIDIAN_IMPORTER_NETWORK_PACKETS_H
#define MERIDIAN_IMPORTER_NETWORK_PACKETS_H

#include "importer/core/context.h"
#include "importer/sync/match.h"

/* Flags of a TCP header, the lowest bits of its 13th byte. */
enum { TCP_FLAG_SYN = 2 };

/* What the headers of a packet say. Addresses are 4 or 16 bytes in network order; views. */
struct tcp_packet {
    struct slice source, destination;
    uint16_t source_port, destination_port;
    uint32_t seq, ack;
    uint16_t flags;
    uint16_t ip_id;  /* 0: IPv6 */
    uint32_t length; /* bytes that it carries */
    uint32_t frame;  /* with all headers, as the kernel's events count them (len) */
};

/* A packet as a machine saw it. */
struct packet_seen {
    struct machine_ctx *m;
    int64_t ts;
    uint32_t utid, ucpu;
    enum packet_direction direction;
    struct tcp_packet tcp;
};

/* Adds a row, and an instant when bytes came along. In order of time. */
void network_packet_seen(const struct packet_seen *p);

/* At the end, when all packets are known: finds for each packet the one at the other end, and draws the arrows. */
void network_packets_match(struct importer *im);

#endif
