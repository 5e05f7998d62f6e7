/* Finds the receive that belongs to a send, among the packets that several hosts have seen.
 *
 * A packet is known by what its headers say. The first send of a key and the first receive of it on another host are
 * one message: the earliest send precedes every copy's arrival, so the pair is sound even when the packet was sent
 * again. A matched key is retired for a while (by the host's own clock), so that a later copy cannot pair with the
 * wrong partner; a key that is sent or received by a second host on its way cannot be ordered and yields nothing.
 *
 * Hosts may be fed one after the other or interleaved; each host's events come in its own time order. Memory: an entry
 * per packet without partner, and per matched one of the last minutes. */
#ifndef MERIDIAN_IMPORTER_SYNC_MATCH_H
#define MERIDIAN_IMPORTER_SYNC_MATCH_H

#include "base/slice.h"

enum packet_direction { PACKET_SENT, PACKET_RECEIVED };

/* Families never match each other: their fields come from different places of the packet. */
enum packet_family {
    PACKET_TCP,       /* addresses, ports, seq, ack, flags (9 bits), IPv4 id */
    PACKET_TCP_ADDON, /* seq, ack and a 16-bit word with the flags only */
    PACKET_PING,      /* a message of ours: an id in seq/ack */
};

struct packet_key {
    uint64_t flow; /* packet_flow() of addresses and ports in the direction of travel; 0 when the trace has none */
    uint32_t seq;
    uint32_t ack;
    uint32_t flags;
    uint16_t ip_id;
    uint16_t family; /* enum packet_family */
};

/* Addresses are 4 or 16 bytes. */
uint64_t packet_flow(struct slice source, uint16_t source_port, struct slice destination, uint16_t destination_port);

/* The flags (FIN the lowest bit, CWR the highest) of what a layout calls flags: the 9 bits of the header; its 16-bit
 * word with the data offset on top; or that of the addons, which has the offset lowest and the flags upside down above
 * it. */
uint32_t packet_tcp_flags(uint32_t word);

/* The part of a key that every layout tells: seq, ack and flags. Keys of all layouts are comparable in this form. */
struct packet_key packet_key_short(const struct packet_key *key);

/* A message: sent at send_ts on the sender's clock, received at receive_ts on the receiver's. */
typedef void (*match_fn)(void *ctx, uint32_t sender, int64_t send_ts, uint32_t receiver, int64_t receive_ts);

struct matcher;

struct match_counts {
    uint64_t sent, received;     /* events seen */
    uint64_t matched;            /* messages found */
    uint64_t duplicates;         /* copies of a packet that was seen before in this direction on this host */
    uint64_t ambiguous;          /* packets dropped because a second host sent or received the same key */
    uint64_t loopback;           /* sent and received on one host */
    uint64_t unmatched_sent;     /* still waiting */
    uint64_t unmatched_received; /* still waiting */
};

/* retire_ns: how long a matched key stays taken, on the clocks of the hosts that saw it; negative: a key is free again
 * at once, as in Trace Compass. NULL when out of memory. */
struct matcher *matcher_open(int64_t retire_ns, match_fn found, void *ctx);

/* One event. False when out of memory (the event is dropped). Hosts are small numbers. */
bool matcher_event(struct matcher *m, uint32_t host, enum packet_direction direction, int64_t ts,
                   struct packet_key key);

/* Counts of the whole run, or of one host (UINT32_MAX: all). */
struct match_counts matcher_counts(const struct matcher *m, uint32_t host);

void matcher_close(struct matcher *m);

#endif
