/* Walks the packets of a trace in file order: machines, sequences, clocks, and the hand-over to packet handlers. */
#ifndef MERIDIAN_IMPORTER_PROTO_TRACE_READER_H
#define MERIDIAN_IMPORTER_PROTO_TRACE_READER_H

#include "importer/core/packet.h"
#include "importer/sort/sorter.h"

struct proto_reader;

/* `n` tables of handlers, each ended by field_id 0. Handlers of the `n_early` early ones are called before the packet's
 * time is known and its sequence's state is looked at, and end the packet. NULL when out of memory. */
struct proto_reader *proto_reader_open(struct importer *im, const struct packet_handler *const *tables, size_t n,
                                       const struct packet_handler *const *early, size_t n_early);
void proto_reader_close(struct proto_reader *r);

/* Called for compressed packets: decompresses `payload` and hands what comes out to proto_reader_packets() with
 * byte_offset -1. Owned by importer/input. */
typedef void (*proto_inflate_fn)(void *ctx, struct slice payload, bool zstd);
void proto_reader_on_compressed(struct proto_reader *r, proto_inflate_fn inflate, void *ctx);

/* Called for packets that are made out of others (states of ProtoVM): a copy of `bytes` that lives until what is pushed
 * while the sorter's epoch is that of the copy has been parsed. The epoch is set. NULL when out of memory. */
typedef const uint8_t *(*proto_keep_fn)(void *ctx, struct slice bytes);
void proto_reader_on_made(struct proto_reader *r, proto_keep_fn keep, void *ctx);

/* Reads the whole packets in `bytes`, which is at `byte_offset` of the file (-1: not in the file itself). Returns how
 * many bytes were used up: an incomplete field at the end stays. Damaged framing is an import error; what follows it is
 * skipped. `bytes` must live until what was pushed has been parsed. */
size_t proto_reader_packets(struct proto_reader *r, struct slice bytes, int64_t byte_offset);

/* A file that is in memory as a whole is going to be read: when a remote machine turns up in it, all rounds between its
 * clock and the host's are looked for before anything of that machine is converted. */
void proto_reader_begin_file(struct proto_reader *r, struct slice file);

/* Damage was found: the rest of the file cannot be read. */
bool proto_reader_damaged(const struct proto_reader *r);

/* True when a packet waits for a clock: its bytes must stay until proto_reader_finish_file(). */
bool proto_reader_has_deferred(const struct proto_reader *r);

/* So many bytes at the end of the file, or of a compressed packet, are no whole packet. */
void proto_reader_note_tail(struct proto_reader *r, uint64_t bytes);

/* The end of a file: packets that waited for a clock are tried again. */
void proto_reader_finish_file(struct proto_reader *r);

/* Gives a machine its queue of packets. False when out of memory. */
bool proto_machine_open(struct machine_ctx *m);

/* What the recording tells of itself: trace_config, trace_uuid, trigger, … */
extern const struct packet_handler proto_packet_handlers[];

#endif
