/* Packets become rows and instants. */
#include "importer/network/packets.h"

#include "importer/track/slice_tracker.h"
#include "importer/track/track_tracker.h"

#include <arpa/inet.h>
#include <stdio.h>

enum { IPV4_BYTES = 4, IPV6_BYTES = 16 };

static const char *address_text(struct slice address, char text[INET6_ADDRSTRLEN])
{
    int family = address.len == IPV4_BYTES ? AF_INET : AF_INET6;
    if ((address.len != IPV4_BYTES && address.len != IPV6_BYTES) ||
        !inet_ntop(family, address.p, text, INET6_ADDRSTRLEN))
        *text = 0;
    return text;
}

/* ADDRESS:PORT, as [ADDRESS]:PORT for IPv6. */
static int endpoint(char *to, size_t room, const char *address, unsigned port)
{
    return snprintf(to, room, strchr(address, ':') ? "[%s]:%u" : "%s:%u", address, port);
}

static uint32_t instant(const struct packet_seen *p, const char *source, const char *destination)
{
    enum { ROOM = 2 * INET6_ADDRSTRLEN + 64 };
    char name[ROOM];
    struct importer *im = p->m->im;
    static const struct track_spec spec = {
        .type = "network_packets",
        .event_type = TRACK_SLICE,
        .parent = UINT32_MAX,
        .description = "TCP packets with bytes; arrows go to where they arrived.",
    };
    struct track_spec named = spec;
    named.name = import_str(im, "Network packets");
    uint32_t track = track_intern(im->tracks, p->m->id, &named);
    if (track == UINT32_MAX)
        return SLICE_NONE;
    int n = snprintf(name, sizeof name, "%s ", p->direction == PACKET_SENT ? "send" : "receive");
    n += endpoint(name + n, sizeof name - (size_t)n, source, p->tcp.source_port);
    n += snprintf(name + n, sizeof name - (size_t)n, " > ");
    n += endpoint(name + n, sizeof name - (size_t)n, destination, p->tcp.destination_port);
    struct arg_list args = {0};
    arg_list_int(&im->st->args, &args, "length", p->tcp.length);
    uint32_t slice =
        slice_scoped(im->slices, p->m->id, p->ts, track, 0, strpool_intern(&im->st->strings, name, (size_t)n), 0,
                     args_intern(&im->st->args, args.p, args.n));
    arg_list_free(&args);
    return slice;
}

void network_packet_seen(const struct packet_seen *p)
{
    char source[INET6_ADDRSTRLEN], destination[INET6_ADDRSTRLEN];
    struct importer *im = p->m->im;
    address_text(p->tcp.source, source);
    address_text(p->tcp.destination, destination);
    uint32_t slice = p->tcp.length ? instant(p, source, destination) : SLICE_NONE;
    network_packet_insert(im->st, &(struct network_packet_row){
                                      .ts = p->ts,
                                      .machine_id = p->m->id,
                                      .direction = import_str(im, p->direction == PACKET_SENT ? "send" : "receive"),
                                      .source = import_str(im, source),
                                      .source_port = p->tcp.source_port,
                                      .destination = import_str(im, destination),
                                      .destination_port = p->tcp.destination_port,
                                      .sequence = p->tcp.seq,
                                      .acknowledged = p->tcp.ack,
                                      .flags = p->tcp.flags,
                                      .length = p->tcp.length,
                                      .frame_length = p->tcp.frame,
                                      .utid = p->utid,
                                      .ucpu = p->ucpu,
                                      .slice_id = slice == SLICE_NONE ? COL_NULL : slice,
                                      .peer_id = COL_NULL,
                                      .repeated = 0});
}
