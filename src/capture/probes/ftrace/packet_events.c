/* The definitions of the event probes that record packet headers. */
#include "capture/probes/ftrace/packet_events.h"

#include "capture/probes/ftrace/btf.h"

#include <stdio.h>

enum { WORDS = 10 /* of 8 bytes: 14 of Ethernet, 40 of IPv6 and 20 of TCP need 74 */ };

const char *const packet_headers_events[PACKET_HEADERS_EVENTS] = {"packet_sent", "packet_received"};
static const char *const sources[PACKET_HEADERS_EVENTS] = {"net/net_dev_queue", "net/netif_receive_skb"};

/* Numbers that the reader needs to find the network header among the bytes. */
static const char *const members[] = {"head", "data", "network_header"};
enum { DATA = 1, MEMBERS = sizeof members / sizeof *members };

int packet_headers_command(struct slice btf, unsigned event, char command[PACKET_HEADERS_COMMAND_BYTES],
                           struct error *err)
{
    uint32_t offsets[MEMBERS];
    for (int i = 0; i < MEMBERS; i++) {
        int rc = btf_member_offset(btf, "sk_buff", members[i], &offsets[i], err);
        if (rc)
            return rc;
    }
    int n = snprintf(command, PACKET_HEADERS_COMMAND_BYTES, "e:" PACKET_HEADERS_GROUP "/%s %s",
                     packet_headers_events[event], sources[event]);
    for (int i = 0; i < MEMBERS; i++)
        n += snprintf(command + n, (size_t)(PACKET_HEADERS_COMMAND_BYTES - n), " %s=+%u($skbaddr):x16", members[i],
                      offsets[i]);
    for (int i = 0; i < WORDS && n < PACKET_HEADERS_COMMAND_BYTES; i++)
        n += snprintf(command + n, (size_t)(PACKET_HEADERS_COMMAND_BYTES - n), " b%d=+%d(+%u($skbaddr)):x64", i, i * 8,
                      offsets[DATA]);
    return n < PACKET_HEADERS_COMMAND_BYTES ? 0 : error_set(err, -MRD_ELIMIT, "the definition is too long");
}
