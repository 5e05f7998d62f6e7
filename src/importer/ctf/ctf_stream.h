/* One stream file of a CTF trace: packets, and the events in them with their times. */
#ifndef MERIDIAN_IMPORTER_CTF_CTF_STREAM_H
#define MERIDIAN_IMPORTER_CTF_CTF_STREAM_H

#include "importer/ctf/ctf_decode.h"
#include "importer/ctf/ctf_header.h"

struct ctf_event {
    const struct ctf_event_class *class;
    const struct ctf_stream_class *stream;
    int64_t ts_ns;     /* on the trace's clock: offset + cycles, in ns */
    uint32_t cpu;      /* cpu_id of the packet, 0 when it has none */
    ctf_items context; /* stream and event context together */
    ctf_items fields;
};

struct ctf_losses {
    uint64_t events_discarded; /* what the tracer says it could not store */
    uint64_t packets_lost;     /* gaps in packet_seq_num */
    uint64_t packets_damaged;  /* the rest of a packet that could not be read */
    uint64_t bytes_damaged;    /* behind what could be read as packets */
};

/* What a stream has said of its losses so far; all of its files go on with the same. */
struct ctf_counters {
    bool has_seq, has_discarded;
    uint64_t last_seq, last_discarded;
};

/* How far an event reaches behind its header, when that is always as far. */
struct ctf_reach {
    const struct ctf_event_class *class; /* NULL: none yet */
    uint64_t bits;                       /* from where they are aligned; 0: that differs */
    uint32_t align;
};
enum { CTF_REACHES = 64 /* by the low bits of the id; the first that comes stays */ };

struct ctf_stream {
    const struct ctf_metadata *m;
    struct slice file;
    uint64_t packet_at; /* byte offset of the current packet, file.len at the end */
    uint64_t packet_bytes;
    const struct ctf_stream_class *class;
    struct ctf_reader r;
    const struct ctf_clock *clock;
    uint64_t cycles;                 /* the clock as of the last event */
    const struct ctf_clock *base_of; /* `base_ns` is of this clock, when it has one: what its cycles are added to */
    bool has_base;
    int64_t base_ns;
    uint32_t cpu;
    uint64_t contents_at; /* bit position behind the header of the last event */
    bool in_packet;
    struct ctf_counters counters;
    bool has_instance;
    uint64_t instance; /* the stream's number in its trace, as the last packet has it */
    ctf_items scratch;
    struct ctf_header header; /* of `class` */
    struct ctf_reach reaches[CTF_REACHES];
    bool passes;            /* over contexts and fields: nobody asks for them */
    struct ctf_event event; /* reused for every event */
    struct ctf_losses losses;
};

/* The file's bytes must outlive the stream. -MRD_ENOMEM. */
int ctf_stream_open(struct ctf_stream *s, const struct ctf_metadata *m, struct slice file);

/* The next event, or NULL at the end. What it points to lasts until the next call. Damage is counted in losses; reading
 * goes on at the next packet where its place is known. */
const struct ctf_event *ctf_stream_next(struct ctf_stream *s);

void ctf_stream_close(struct ctf_stream *s);

/* ns of a clock reading: offset_s * 1e9 + (offset + cycles) * 1e9 / freq, saturated. */
int64_t ctf_clock_ns(const struct ctf_clock *c, uint64_t cycles);

#endif
