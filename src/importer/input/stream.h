/* One stream of trace bytes of any format that can be read front to back: sniffed, decompressed if need be, tokenized.
 *
 * A proto stream keeps its bytes in blocks; a packet that ends in the next piece of input is moved to a new block. */
#ifndef MERIDIAN_IMPORTER_INPUT_STREAM_H
#define MERIDIAN_IMPORTER_INPUT_STREAM_H

#include "importer/input/blocks.h"
#include "importer/input/format.h"
#include "importer/input/reader.h"
#include "wire/inflate.h"

/* Packets on their way into blocks and on to the proto reader. */
struct proto_stream {
    struct importer *im;
    struct blocks *blocks;
    struct block *block; /* being filled */
    size_t start;        /* bytes of it that are used up */
    int64_t offset;      /* of the byte at `start` in the file, -1 for what was inside something else */
};

/* Room for at least 64 KiB; NULL when out of memory. */
uint8_t *proto_stream_room(struct proto_stream *s, size_t *room);
/* `n` bytes have been put there: reads the whole packets among them. */
void proto_stream_commit(struct proto_stream *s, size_t n);
/* An incomplete packet at the end is given up. */
void proto_stream_end(struct proto_stream *s);

struct stream {
    struct importer *im;
    struct blocks *blocks;
    uint8_t head[FORMAT_LOOKAHEAD];
    size_t head_len;
    enum trace_format format; /* FORMAT_UNKNOWN until sniffed */
    bool sniffed;
    unsigned depth;               /* of compression inside compression */
    uint64_t bytes;               /* seen so far */
    uint64_t unpacked_from;       /* of them, those that the inflater has taken */
    const uint64_t *source_bytes; /* of the file that all this comes out of: `unpacked_from` of the outermost stream */
    uint32_t file;                /* row of trace_file */
    struct proto_stream proto;
    struct inflater *inflater;
    struct stream *inner; /* what comes out of the inflater */
    uint8_t *scratch;
    const struct format_reader *other; /* than packets; NULL: the stream is none of them */
    void *other_self;
    VEC(uint8_t)
    held; /* an archive, or a format that is read as a whole */
};

/* `parent`: row of trace_file of what this is inside of, or UINT32_MAX; `name` 0 for none. */
void stream_open(struct stream *s, struct importer *im, struct blocks *blocks, unsigned depth, uint32_t parent,
                 strid name);
int stream_write(struct stream *s, struct slice bytes, struct error *err);
int stream_end(struct stream *s, struct error *err);
void stream_close(struct stream *s);

/* A row of trace_file, and the trace_type that goes with it. */
uint32_t trace_file_add(struct importer *im, uint32_t parent, strid name, enum trace_format format, int64_t size);

#endif
