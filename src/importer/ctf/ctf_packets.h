/* Which CTF events tell that a packet was sent or received, and where its headers stand: rows, one a layout. */
#ifndef MERIDIAN_IMPORTER_CTF_CTF_PACKETS_H
#define MERIDIAN_IMPORTER_CTF_CTF_PACKETS_H

#include "importer/ctf/ctf_stream.h"
#include "importer/network/packets.h"
#include "importer/sync/match.h"

/* For each event class of a trace: how to find a packet in it; NULL for most. Indexed by ctf_event_class.index. */
struct ctf_packet_layout;

const struct ctf_packet_layout *ctf_packet_layout_of(const struct ctf_event_class *class);

/* The packet of an event of that layout; false when it carries none that can be matched (UDP, no TCP header …). */
bool ctf_packet_of(const struct ctf_packet_layout *layout, const struct ctf_event *e, enum packet_direction *direction,
                   struct packet_key *key);

/* What the headers of a packet say, for network_packet_seen(); false when there is none of TCP or it has no addresses.
 * `room` holds the addresses that `tcp` is views of. */
struct ctf_packet_room {
    uint8_t source[16], destination[16];
};
bool ctf_packet_tcp(const struct ctf_packet_layout *layout, const ctf_items *fields, struct packet_seen *out,
                    struct ctf_packet_room *room);

#endif
