/* The packet sequences of one machine: incremental state, generations, interned messages. */
#ifndef MERIDIAN_IMPORTER_CORE_SEQUENCE_H
#define MERIDIAN_IMPORTER_CORE_SEQUENCE_H

#include "importer/core/packet.h"

enum { SEQUENCES_RECENT = 32 };

struct sequences {
    struct machine_ctx *m;
    struct sequences *older;                   /* of the traces read before; queued events refer to their generations */
    uint32_t input;                            /* serial of the trace they belong to */
    uint32_t clock_file;                       /* of its builtin clocks */
    struct u64map by_id;                       /* trusted_packet_sequence_id -> struct sequence * */
    struct sequence *recent[SEQUENCES_RECENT]; /* by id: writers take turns in a file */
    struct arena arena;                        /* sequences, generations, copies of bytes that are not stable */
    VEC(struct interned *)
    tables;                 /* to free */
    uint32_t default_clock; /* of packets that name none; 0: their timestamps are trace time */
    int64_t latest_ts;      /* of this machine's packets so far */

    bool streams_into_file; /* TraceConfig: write_into_file with a period that is meant to drain the buffers */
};

struct sequences *sequences_open(struct machine_ctx *m);
void sequences_close(struct sequences *s);
/* Counts the losses that no TraceStats counted: a killed service writes none, and an earlier one does not know them. */
void sequences_finish(struct sequences *s);

/* The machine's sequences in the trace that is being read: a new set when another trace has begun. NULL when out of
 * memory. */
struct sequences *machine_sequences(struct machine_ctx *m);

/* Has a packet of the sequence been seen? */
bool sequences_has(const struct sequences *s, uint32_t id);

/* The sequence of an id, made (with a first, empty generation) when new. NULL when out of memory. */
struct sequence *sequences_find(struct sequences *s, uint32_t id);
static inline struct sequence *sequences_get(struct sequences *s, uint32_t id)
{
    struct sequence *recent = s->recent[id % SEQUENCES_RECENT];
    return recent && recent->id == id ? recent : sequences_find(s, id);
}

/* Starts a new generation without interned data and defaults; the state is valid. False when out of memory. */
bool sequence_clear(struct sequences *s, struct sequence *seq);
/* Packets were lost: what is interned is not to be trusted until the next clear. */
void sequence_lost(struct sequence *seq);
/* Starts a new generation that shares the interned data and has these defaults. */
bool sequence_set_defaults(struct sequences *s, struct sequence *seq, struct slice defaults);
/* Adds the messages of an InternedData. The first bytes given for an iid stay. */
bool sequence_intern(struct sequences *s, struct sequence *seq, struct slice interned_data);

#endif
