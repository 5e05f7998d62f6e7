/* One pass over the fields of a TracePacket: what comes before its handlers. */
#ifndef MERIDIAN_IMPORTER_PROTO_PACKET_SCAN_H
#define MERIDIAN_IMPORTER_PROTO_PACKET_SCAN_H

#include "wire/pb_cursor.h"

enum {
    PACKET_DIRECT_FIELDS = 1024, /* fields with a place of their own in the handler index */
    PACKET_MAX_HANDLED = 8,      /* handled fields in one packet: almost always one */

    PACKET_SERVICE_SEQUENCE = 1, /* on which a service writes its own packets */

    PACKET_FLAG_CLEARED = 1, /* of sequence_flags */
    PACKET_FLAG_NEEDS_STATE = 2,
};

/* Which fields of a packet have handlers. */
struct packet_fields {
    uint8_t handler[PACKET_DIRECT_FIELDS]; /* the first one's number, 0: none */
    unsigned first_early;                  /* handlers from here on are called before the packet's time is known */
};

/* What one pass over a packet finds. */
struct packet_scan {
    uint64_t timestamp;
    uint32_t clock_id;
    uint32_t sequence_id;
    uint32_t flags;
    uint32_t dropped;
    uint32_t machine_id;
    uint32_t trusted_uid;
    uint32_t trusted_pid;
    bool trusted_uid_given;
    bool has_timestamp;
    bool cleared;
    bool first_on_sequence;
    bool sync_marker;
    bool track_event;
    bool chrome; /* a packet of Chrome's first recorders */
    bool bad;
    bool plain; /* one field that has a handler, on a sequence; not of the service; nothing that changes what others
                   mean */
    uint8_t n_handled;
    bool zstd;
    bool has_rare;
    /* From here on only what is said to be there is written. */
    struct packet_rare {
        struct slice clock_snapshot, trace_stats, remote_clock_sync, service_event, defaults, interned, attributes;
        struct slice compressed;
        struct pb_field early; /* p NULL: none */
    } rare;
    const uint8_t *first_handled; /* its tag */
    struct pb_field handled[PACKET_MAX_HANDLED];
};

void packet_scan_read(const struct packet_fields *fields, struct slice bytes, struct packet_scan *s);

#endif
