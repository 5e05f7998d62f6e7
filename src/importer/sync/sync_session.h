/* Synchronising recordings after the fact: packets of all hosts in, relations of their clocks out, and what SQL shows
 * of it.
 *
 * Used by every source of packet events (CTF, ftrace). Hosts are numbered by the caller. */
#ifndef MERIDIAN_IMPORTER_SYNC_SYNC_SESSION_H
#define MERIDIAN_IMPORTER_SYNC_SYNC_SESSION_H

#include "importer/sync/match.h"
#include "importer/sync/network.h"
#include "storage/storage.h"

struct sync_packet_event {
    int64_t ts; /* on the host's own clock */
    struct packet_key key;
    uint32_t host;
    uint8_t direction; /* enum packet_direction */
};

struct sync_session {
    VEC(struct sync_packet_event)
    events;
    struct sync_network network;
    struct matcher *matcher;
    uint32_t n_hosts;
    int rc; /* first failure inside callbacks */
};

/* One packet as a host saw it; in that host's time order. */
int sync_session_packet(struct sync_session *s, uint32_t host, enum packet_direction direction, int64_t ts,
                        struct packet_key key);

/* Matches, solves, grows the tree. `reference`: a host or SYNC_NO_HOST. */
int sync_session_solve(struct sync_session *s, uint32_t n_hosts, enum sync_method method, struct sync_limits limits,
                       int reference);

/* Fills clock_sync_pair and clock_sync_point. machines[host] is the row of `machine`. */
void sync_session_write(const struct sync_session *s, struct storage *st, const uint32_t *machines);

void sync_session_free(struct sync_session *s);

#endif
