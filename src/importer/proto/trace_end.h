/* Tells whether a trace has its end.
 *
 * A tracing service writes last, behind all data and its own events, a packet of statistics (TraceStats); a session
 * that writes into its file says before that when it was disabled. A file whose recorder does so and that ends
 * otherwise was cut off, or is still being written. */
#ifndef MERIDIAN_IMPORTER_PROTO_TRACE_END_H
#define MERIDIAN_IMPORTER_PROTO_TRACE_END_H

#include "importer/core/packet.h"

struct trace_end {
    bool by_service;    /* a tracing service has recorded it */
    bool stats_last;    /* the last packet is its statistics */
    bool tells_life;    /* it writes events of its life */
    bool streams;       /* the session writes into its file */
    bool disabled;      /* the session has ended */
    bool cloned;        /* a clone of a session, which goes on */
    uint64_t cut_bytes; /* of a packet at the end that is not there as a whole */
};

/* The next packet of the file. `trusted` says that it has the uid that only a service writes. */
void trace_end_packet(struct trace_end *t, struct slice packet, uint32_t sequence_id, bool trusted);

/* The end of the file: counts what is missing, and is ready for the next one. */
void trace_end_file(struct trace_end *t, struct importer *im);

#endif
