/* Rows on their way out of Meridian, a block of columns at a time: what reads tables and queries makes blocks
 * (export/source.h), and what writes a format (Native, RowBinary, Arrow, Parquet, CSV, JSON lines) takes them.
 *
 * A block holds at most EXPORT_BLOCK_ROWS rows of all columns of its schema. Its memory belongs to whoever made it and
 * is good until the next block is asked for, so that what is held at a time is a block, however large the table. */
#ifndef MERIDIAN_EXPORT_BLOCK_H
#define MERIDIAN_EXPORT_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT_BLOCK_ROWS 65536

enum export_kind {
    EXPORT_INT64,
    EXPORT_DOUBLE,
    EXPORT_TEXT, /* UTF-8; bytes that are not are replaced before they come here */
    EXPORT_BYTES,
};

struct export_column {
    const char *name;
    enum export_kind kind;
    bool nullable; /* false: no block of this table holds a NULL in it */
    bool distinct; /* of text: hardly two rows have the same, so that a dictionary gains nothing */
};

/* A table's columns; the same for all its blocks. */
struct export_schema {
    const char *table;
    const struct export_column *columns;
    size_t count;
};

struct export_text {
    const char *bytes; /* no NUL at the end */
    uint32_t size;
};

/* The values of one column of one block. */
struct export_vector {
    const uint8_t *null; /* a byte a row, not 0: NULL (the value beside it is 0); NULL: none is */
    const int64_t *ints;
    const double *doubles;
    const uint32_t *codes; /* of text and bytes: each row's place in `dictionary`; in order of first mention */
    const struct export_text *dictionary;
    uint32_t dictionary_size;
};

struct export_block {
    size_t rows;
    const struct export_vector *columns; /* as many as the schema has */
};

#endif
