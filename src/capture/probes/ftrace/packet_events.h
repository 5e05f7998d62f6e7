/* Events that record the headers of packets as they are sent and received (`packet_headers: true`), so that recordings
 * of several machines can be related by the packets that they exchanged.
 *
 * The kernel's own network events carry no headers. Two event probes read them through the events' pointer to the
 * packet: the first bytes from skb->data on, and where skb->head, skb->data and the network header lie (the lower 16
 * bits: enough for the distance, and no address of the kernel gets out). The reader is importer/ftrace/packet_headers.c. */
#ifndef MERIDIAN_CAPTURE_PROBES_FTRACE_PACKET_EVENTS_H
#define MERIDIAN_CAPTURE_PROBES_FTRACE_PACKET_EVENTS_H

#include "base/error.h"
#include "base/slice.h"

#define PACKET_HEADERS_GROUP "meridian"

enum { PACKET_HEADERS_EVENTS = 2, PACKET_HEADERS_COMMAND_BYTES = 1024 };

/* Names of the events, in the group above. */
extern const char *const packet_headers_events[PACKET_HEADERS_EVENTS];

/* The line that makes an event when appended to tracefs' `dynamic_events`. Offsets come from `btf`, the kernel's
 * description of its types. -MRD_EFORMAT, -MRD_ENOTFOUND, -MRD_ENOMEM. */
int packet_headers_command(struct slice btf, unsigned event, char command[PACKET_HEADERS_COMMAND_BYTES],
                           struct error *err);

#endif
