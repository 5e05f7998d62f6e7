/* One TracePacket on its way: sequences, incremental state, and the table of packet handlers.
 *
 * Reading has two stages. Tokenizing sees packets in file order: it resolves the timestamp, may split a packet into
 * events of its own queues (ftrace bundles, track events), and pushes to the sorter. Parsing sees them in time order
 * and fills tables. A handler is a row {field number of TracePacket, tokenize, parse} in the table of its folder;
 * adding a packet type is one file and one row. */
#ifndef MERIDIAN_IMPORTER_CORE_PACKET_H
#define MERIDIAN_IMPORTER_CORE_PACKET_H

#include "importer/core/clock_id.h"
#include "importer/core/context.h"
#include "wire/pb_cursor.h"

/* The incremental state of a sequence as it was when a packet was tokenized. A clear or new defaults make a new
 * generation; queued events refer to theirs by index (generations live as long as the import). */
struct seq_generation {
    uint32_t index; /* in sequences; what sort events carry */
    struct machine_ctx *machine;
    struct sequence *seq;
    struct slice defaults;     /* TracePacketDefaults bytes; empty when none */
    struct interned *interned; /* shared between generations until the next clear */
    uint32_t input;            /* serial of the trace it belongs to */
    uint32_t clock_file;       /* of its builtin clocks */
    uint32_t state;            /* number of its incremental state; unique in the import */
    uint32_t default_clock;    /* defaults.timestamp_clock_id, 0 when not given */
    void *track_event;         /* module state of this generation (importer/track_event), NULL until made */
};

enum { PACKET_LOSS_CAUSES = 8 /* bits 1..8 of previous_packet_dropped: read gap, chunk corrupted, … */ };

struct sequence {
    uint32_t id;                /* trusted_packet_sequence_id */
    bool seen;                  /* a packet has come */
    bool valid;                 /* incremental state is valid */
    bool begun;                 /* its first packet has come */
    uint32_t clears;            /* of the incremental state so far */
    struct seq_generation *gen; /* current */
    void *track_event;          /* module state that lives across generations */

    bool has_thread; /* a ThreadDescriptor or TrackDescriptor says which thread writes it */
    int64_t pid, tid;

    /* Counted for the stats of the buffer that trace_stats names for this sequence. */
    uint32_t losses;      /* packets that say that something before them is missing, but for the first */
    uint32_t losses_told; /* of those, the ones that the stats have */
    uint32_t loss_causes[PACKET_LOSS_CAUSES];
    uint32_t needing;         /* packets that need incremental state */
    uint32_t needing_skipped; /* of those, the ones that came without it being valid */
};

/* Interned messages: the bytes of InternedData field `field` with iid `iid` valid in this generation; empty when
 * unknown. The view includes the whole entry message (iid and payload fields). O(1). */
struct slice interned_find(const struct seq_generation *g, uint32_t field, uint64_t iid);

/* As interned_find() for entries whose payload is one string/bytes field (EventName.name etc.): the strid, 0 when
 * unknown. `payload_field` is the number of that field inside the entry. Remembered, so that a second look-up costs a
 * hash probe. */
strid interned_string(struct seq_generation *g, uint32_t field, uint64_t iid, uint32_t payload_field);

struct packet {
    struct machine_ctx *m;
    struct seq_generation *gen; /* never NULL; sequence 0 has one too */
    int64_t ts;                 /* trace time, ns */
    struct slice field;         /* payload of the field the handler is registered for */
    uint32_t field_id;
    int64_t byte_offset; /* of the packet in the file, -1 when inside compressed data */

    /* While it is tokenized; a packet that is parsed is not looked through again. */
    bool has_ts;          /* the packet had a timestamp of its own */
    struct slice bytes;   /* the whole TracePacket */
    uint32_t trusted_pid; /* TracePacket.trusted_pid, 0 when absent */
    uint32_t trusted_uid;
};

/* What is wrong with a packet that is tokenized: counted, and noted with where in the file it is and, unless `key` is
 * NULL, a number. */
static inline void packet_log(const struct packet *p, enum stat_key stat, const char *key, uint64_t value)
{
    import_log_number(p->m, stat, COL_NULL, p->byte_offset, key, value);
}

/* The same with the packet's sequence. */
static inline void packet_log_sequence(const struct packet *p, enum stat_key stat)
{
    packet_log(p, stat, "packet_sequence_id", p->gen->seq->id);
}

enum tokenize_result {
    TOKENIZE_PUSH, /* the framework pushes the whole packet to the generic queue; parse() is called in time order */
    TOKENIZE_DONE, /* the handler has dealt with it (pushed events of its own, or used it up) */
};

/* The generation that a queued event refers to. */
struct seq_generation *generation_at(const struct importer *im, uint32_t index);

/* A clock as the graph knows it: builtin, of the packet's sequence (64..127), or custom; on the packet's machine. */
struct clock_id packet_clock(const struct packet *p, uint32_t clock);

struct packet_handler {
    uint32_t field_id; /* of TracePacket */
    const char *name;
    /* In file order; NULL means TOKENIZE_PUSH. */
    enum tokenize_result (*tokenize)(struct packet *p);
    /* In time order; NULL when tokenize never pushes. */
    void (*parse)(struct packet *p);
};

#endif
