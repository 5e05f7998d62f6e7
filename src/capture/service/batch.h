/* Packets on their way out of the service: the bytes of a trace file, and where each packet lies in them. */
#ifndef MERIDIAN_CAPTURE_SERVICE_BATCH_H
#define MERIDIAN_CAPTURE_SERVICE_BATCH_H

#include "base/error.h"
#include "base/vec.h"
#include "wire/pb_writer.h"

/* Where a packet's bytes lie. */
struct batch_packet {
    size_t at, len;
};

struct batch {
    struct pb_writer bytes; /* 0x0a, length, packet, … */
    VEC(struct batch_packet) packets;
};

/* Adds one packet: its pieces, then `tail`. */
void batch_add(struct batch *b, const struct slice *pieces, size_t n, struct slice tail);
void batch_clear(struct batch *b);
void batch_free(struct batch *b);

enum batch_compression { BATCH_PLAIN, BATCH_DEFLATE, BATCH_ZSTD };

/* Replaces the packets by packets that hold them compressed, each of at most about 512 KiB. */
int batch_compress(struct batch *b, enum batch_compression how, int level, struct error *err);

#endif
