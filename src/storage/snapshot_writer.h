/* Shared by the files that write a snapshot: the bytes as they go out, and the headers of chunks. For
 * snapshot_write*.c only. */
#ifndef MERIDIAN_STORAGE_SNAPSHOT_WRITER_H
#define MERIDIAN_STORAGE_SNAPSHOT_WRITER_H

#include "base/u64map.h"
#include "base/vec.h"
#include "storage/snapshot.h"
#include "storage/snapshot_format.h"

struct snapshot_writer {
    struct storage *st;
    const struct snapshot_sink *sink;
    struct error *err;
    int rc; /* the first failure; nothing is written after it */
    uint64_t at;
    struct snapshot_trailer trailer;
    VEC(struct col_chunk) chunks;
    VEC(uint64_t) sums;
    VEC(struct snapshot_column) columns;
    VEC(struct snapshot_table) tables;
    VEC(struct snapshot_shape) shapes;
    VEC(struct snapshot_key) keys;
    int64_t words[COL_CHUNK_ROWS]; /* scratch, as the next two */
    int64_t unpacked[COL_CHUNK_ROWS];
    uint8_t blocks[COL_BLOCKS_MAX_BYTES] __attribute__((aligned(8)));
};

void snapshot_put(struct snapshot_writer *w, const void *bytes, size_t len);
void snapshot_no_memory(struct snapshot_writer *w);
void snapshot_begin(struct snapshot_writer *w, enum snapshot_section section);
void snapshot_end(struct snapshot_writer *w, enum snapshot_section section);
/* A section that has one sum. */
void snapshot_put_whole(struct snapshot_writer *w, enum snapshot_section section, const void *bytes, size_t len);

/* The codes of the first n rows of a chunk, packed more tightly where that is possible; *k gets their place, *sum their
 * sum. */
void snapshot_put_chunk(struct snapshot_writer *w, struct col_chunk *k, const void *codes, uint32_t n,
                        enum col_type type, uint64_t *sum);

/* Sets of args as columns, in the section DATA: fills columns, shapes, keys and the figures of the trailer. Strings
 * that come out of them are interned. */
void snapshot_write_args(struct snapshot_writer *w);

/* The sections of the string pool. */
void snapshot_write_strings(struct snapshot_writer *w);

#endif
