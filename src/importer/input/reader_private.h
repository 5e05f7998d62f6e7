/* Shared by the files of importer/input and importer/merge only. */
#ifndef MERIDIAN_IMPORTER_INPUT_READER_PRIVATE_H
#define MERIDIAN_IMPORTER_INPUT_READER_PRIVATE_H

#include "base/file.h"
#include "importer/input/archive.h"
#include "importer/input/format_reader.h"
#include "importer/input/inflate_pool.h"
#include "importer/input/stream.h"

enum {
    UUID_BYTES = 4096, /* what the uuid of a trace without one is made from */
};

/* A part of a mapped file: its pages are given back once it has been tokenized, but for the first ones, and once it has
 * been parsed; who looks at it later gets them from the page cache. Without this a load would take the file's size in
 * memory. */
struct piece {
    uint64_t epoch;
    struct slice bytes;
};

/* A mapped proto trace that waits until it is known what else is loaded: separate recordings are related before the
 * first of them is read. */
struct pending_trace {
    struct slice bytes;
    const char *name; /* of the file, without its ending; in the arena */
    uint32_t serial;
    uint32_t clock_file;
    uint32_t recording; /* its number among the recordings, when there are several */
    uint32_t machine;   /* row of the machine that its packets belong to when they name none */
    bool still_written; /* when it was opened, somebody had it open for writing */
};

/* A reader of another format, and what it was opened as. */
struct open_format {
    const struct format_reader *format;
    void *self;
};

struct reader {
    struct importer *im;
    const struct reader_merging *merging;
    const struct format_reader *const *formats; /* other than packets; NULL at the end */
    VEC(struct open_format)
    others; /* the files read by them so far */
    VEC(struct pending_trace)
    pending;
    size_t n_read; /* of them */
    struct arena names;
    VEC(struct piece)
    pieces;            /* by epoch */
    size_t next_piece; /* the first that has not been parsed as a whole */
    VEC(struct mapped_file)
    maps;
    struct blocks blocks;
    struct block *kept;        /* being filled with packets that are made out of others; NULL: none yet */
    struct proto_stream made;  /* packets that readers of other formats make */
    struct proto_stream inner; /* where compressed packets come out */
    struct inflater *inflaters[2];
    struct inflate_pool *pool; /* NULL: none is wanted or needed */
    struct slice ahead;        /* of the mapped trace: what has not been looked at for packets to decompress ahead */
    struct stream fed;         /* of reader_feed() */
    bool feeding;
    uint64_t total_bytes;
    uint64_t packed_bytes;    /* of all files and feeds */
    uint64_t taken_bytes;     /* of them, those that have been looked at */
    uint64_t payload_bytes;   /* of the compressed packets in them, as they stand */
    uint64_t unpacked_bytes;  /* and unpacked */
    bool refused;             /* they came to more than a trace's */
    uint8_t head[UUID_BYTES]; /* of the trace being read, for its uuid */
    size_t head_len;
    archive_members members; /* of archives: they are read in place */
    bool has_manifest;
    uint32_t inputs; /* traces begun so far */
};

/* Notes bytes of the trace being read, for its size and uuid. */
void reader_note_bytes(struct reader *r, struct slice bytes);

/* Reads a proto trace in memory that stays until the end. `mapped`: it is a file's, and its pages can be given back. */
void reader_read_proto(struct reader *r, struct slice bytes, bool mapped);

/* Another trace begins. */
void reader_begin_input(struct reader *r, struct trace_input input);

/* Decompresses all of a gzip or zstd file; *out is mem_alloc()ed, also when an error says that there is no more than
 * that. `room` is how much may still be unpacked, less what this takes. */
int reader_inflate_all(enum trace_format format, struct slice in, uint8_t **out, size_t *len, uint64_t *room,
                       struct error *err);

#endif
