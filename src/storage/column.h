/* One column of a table: values in chunks of 4,096 rows, each packed to the width its values need.
 *
 * Every value is one 64-bit word: integers as they are, doubles by their bits, strings by their strid. Rows are
 * appended to an unpacked tail; when the tail holds a whole chunk it is sealed: values become differences to the
 * chunk's minimum in 0, 1, 2, 4 or 8 bytes (0 when all are equal). A sealed value can still be changed; the chunk is
 * widened when the new value does not fit. Each chunk knows its minimum and maximum, so a scan can pass over it without
 * reading it.
 *
 * NULL is a word of its own: COL_NULL for integers (INT64_MIN cannot be stored as a number), COL_NULL_F64 (one NaN) for
 * doubles, 0 for strings. */
#ifndef MERIDIAN_STORAGE_COLUMN_H
#define MERIDIAN_STORAGE_COLUMN_H

#include "base/strpool.h"
#include "storage/column_blocks.h"

enum { COL_CHUNK_SHIFT = 12, COL_CHUNK_ROWS = 1 << COL_CHUNK_SHIFT, COL_CHUNK_MASK = COL_CHUNK_ROWS - 1 };

#define COL_NULL     INT64_MIN
#define COL_NULL_F64 0x7ffc6d72646e756cLL

enum col_type {
    COL_U32,
    COL_I32,
    COL_I64,
    COL_F64,
    COL_STR,
};

/* How a sealed chunk keeps its values. N: the highest code is NULL. F: doubles that are whole numbers, kept as such. */
enum col_chunk_kind {
    CHUNK_CONST, /* every value is `base` */
    CHUNK_U8,
    CHUNK_U16,
    CHUNK_U32,
    CHUNK_RAW, /* 8 bytes, NULL by its word */
    CHUNK_U8N,
    CHUNK_U16N,
    CHUNK_U32N,
    CHUNK_U8F,
    CHUNK_U16F,
    CHUNK_U32F,
    CHUNK_BLOCKS, /* column_blocks.h; of `bytes` bytes, in mapped columns and in those that settle */
    CHUNK_KINDS,
};

struct col_chunk {
    union {
        void *data;   /* COL_CHUNK_ROWS codes; NULL for CHUNK_CONST */
        uintptr_t at; /* of a mapped column: where they are, counted from column.map */
    };
    int64_t base; /* what code 0 stands for */
    int64_t min;  /* smallest and largest value that is not NULL, by numeric order (strings: by id); min > max when */
    int64_t max;  /* all are NULL. For doubles: words that order as the doubles do (column_f64_order()). */
    uint8_t kind; /* enum col_chunk_kind */
    bool has_null;
    bool sorted;    /* non-decreasing and without NULL, by the order of min/max */
    bool zero_null; /* NULL is 0 (strings), not COL_NULL; of CHUNK_BLOCKS, and the next one, too */
    uint32_t bytes; /* of the codes */
};

struct column;

/* What a mapped column's chunks are checked by before they are read. */
struct column_source {
    /* Checks the codes of a chunk and notes that in column.checked. What cannot be trusted reads as other values of the
     * column from then on, and the source knows that. */
    void (*check)(struct column_source *s, const struct column *c, uint32_t chunk);
};

/* A column whose chunks are part of a mapped file: `map` is added to their `at`, nothing is ever added or changed, and
 * the last chunk holds all rows there are (chunks may be more than n_rows / COL_CHUNK_ROWS). */
struct column {
    struct col_chunk *chunks; /* sealed */
    uint32_t n_chunks;
    uint32_t cap_chunks;
    int64_t *tail;            /* the rows behind the last sealed chunk, unpacked; length is the table's business */
    struct col_chunk summary; /* of the tail (min, max, has_null, sorted), valid after table_finalize() */
    uint8_t type;             /* enum col_type */
    bool has_null;            /* anywhere; valid after table_finalize() */
    bool settles;             /* the tables of a trace: chunks that new rows have left behind become CHUNK_BLOCKS */
    bool steady;              /* those too, and rows are hardly ever changed: chunks are CHUNK_BLOCKS from the first */
    uint32_t settled;         /* chunks that were looked at for that */
    bool sorted;              /* whole column is non-decreasing without NULL; valid after table_finalize() */
    int64_t min, max;         /* of the whole column, as in col_chunk; valid after table_finalize() */
    uintptr_t map;            /* where the mapped file begins; 0: chunks are in memory of their own */
    uint8_t *checked;         /* of a mapped column, by chunk: it may be read. NULL: all may */
    struct column_source *source;
    struct spill *spill; /* where chunks go when memory is scarce; NULL: nowhere */
};

/* The greatest value less the least; 0 when all are NULL. */
static inline uint64_t column_width(const struct column *c)
{
    return c->min > c->max ? 0 : (uint64_t)c->max - (uint64_t)c->min;
}

static inline int64_t column_null(enum col_type type)
{
    return type == COL_STR ? 0 : type == COL_F64 ? COL_NULL_F64 : COL_NULL;
}

/* Every NaN is NULL, as for SQLite. */
static inline int64_t column_f64_word(double d)
{
    int64_t w;
    memcpy(&w, &d, 8);
    return d == d ? w : COL_NULL_F64;
}

static inline double column_f64(int64_t word)
{
    double d;
    memcpy(&d, &word, 8);
    return d;
}

/* A word that compares as the double does (negative ones are flipped). */
static inline int64_t column_f64_order(int64_t word)
{
    return word < 0 ? word ^ INT64_MAX : word;
}

/* What rows of a column are ordered by. */
static inline int64_t column_order(enum col_type type, int64_t word)
{
    return type == COL_F64 ? column_f64_order(word) : word;
}

/* A sealed chunk that is going to be read. */
static inline const struct col_chunk *column_chunk(const struct column *c, uint32_t chunk)
{
    if (__builtin_expect(c->checked && !__atomic_load_n(&c->checked[chunk], __ATOMIC_ACQUIRE), 0))
        c->source->check(c->source, c, chunk);
    return &c->chunks[chunk];
}

/* Its codes. */
static inline const void *column_codes(const struct column *c, const struct col_chunk *k)
{
    return (const void *)(c->map + k->at);
}

/* The word of row i of a chunk with these codes. */
static inline int64_t col_chunk_get(const struct col_chunk *c, const void *data, uint32_t i)
{
    switch (c->kind) {
    case CHUNK_CONST:
        return c->base;
    case CHUNK_U8:
        return c->base + ((const uint8_t *)data)[i];
    case CHUNK_U16:
        return c->base + ((const uint16_t *)data)[i];
    case CHUNK_U32:
        return c->base + ((const uint32_t *)data)[i];
    case CHUNK_U8N: {
        uint8_t v = ((const uint8_t *)data)[i];
        return v == UINT8_MAX ? COL_NULL : c->base + v;
    }
    case CHUNK_U16N: {
        uint16_t v = ((const uint16_t *)data)[i];
        return v == UINT16_MAX ? COL_NULL : c->base + v;
    }
    case CHUNK_U32N: {
        uint32_t v = ((const uint32_t *)data)[i];
        return v == UINT32_MAX ? COL_NULL : c->base + v;
    }
    case CHUNK_U8F:
        return column_f64_word((double)(c->base + ((const uint8_t *)data)[i]));
    case CHUNK_U16F:
        return column_f64_word((double)(c->base + ((const uint16_t *)data)[i]));
    case CHUNK_U32F:
        return column_f64_word((double)(c->base + ((const uint32_t *)data)[i]));
    case CHUNK_BLOCKS:
        return col_block_get(data, c->base, i, c->zero_null ? 0 : COL_NULL);
    default:
        return ((const int64_t *)data)[i];
    }
}

/* The word of a row, which must exist. */
static inline int64_t column_get(const struct column *c, uint32_t row)
{
    uint32_t chunk = row >> COL_CHUNK_SHIFT;
    if (chunk >= c->n_chunks)
        return c->tail[row & COL_CHUNK_MASK];
    const struct col_chunk *k = column_chunk(c, chunk);
    return col_chunk_get(k, column_codes(c, k), row & COL_CHUNK_MASK);
}

/* As column_set() for a row of a sealed chunk. */
bool column_set_sealed(struct column *c, uint32_t row, int64_t word);

/* Changes the word of a row, which must exist. False when out of memory (the old value stays). */
static inline bool column_set(struct column *c, uint32_t row, int64_t word)
{
    if (row >> COL_CHUNK_SHIFT < c->n_chunks)
        return column_set_sealed(c, row, word);
    c->tail[row & COL_CHUNK_MASK] = word;
    return true;
}

/* Unpacks `n` rows of one chunk, from `first` on, into out. [first, first + n) must lie within one chunk. */
void column_unpack(const struct column *c, uint32_t first, uint32_t n, int64_t *out);

/* The words of any rows, in the order given. Rows that follow each other in one chunk are the cheap case. */
void column_gather(const struct column *c, const uint32_t *rows, uint32_t n, int64_t *out);

/* Packs `n` words (1 .. COL_CHUNK_ROWS) as the chunk they would make, into memory of its own (*k is not freed). The
 * words from n on are written over, and doubles may be: `v` has room for COL_CHUNK_ROWS. False when out of memory. */
bool column_pack(int64_t *v, uint32_t n, enum col_type type, struct col_chunk *k);

/* Bytes of a code of a kind of chunk; 0 for CHUNK_CONST and CHUNK_BLOCKS. The kinds are 0 .. CHUNK_KINDS - 1. */
uint32_t col_chunk_width(uint8_t kind);

/* Bytes of the codes of a chunk of n rows. */
static inline size_t col_chunk_bytes(const struct col_chunk *k, uint32_t n)
{
    return k->kind == CHUNK_BLOCKS ? k->bytes : (size_t)col_chunk_width(k->kind) * n;
}

/* The first n words of a chunk with these codes. */
void col_chunk_unpack(const struct col_chunk *k, const void *codes, uint32_t n, int64_t *out);

/* Packs the full tail into a new chunk. False when out of memory. The tail's memory is kept for the next rows. */
bool column_seal(struct column *c);

/* A chunk more, of COL_CHUNK_ROWS times `word`; the tail must be empty. False when out of memory. */
bool column_append_chunk(struct column *c, int64_t word);

/* An empty column, with the summary of one. */
void column_init(struct column *c, enum col_type type);

/* Fills summary, has_null and sorted; `tail_n` rows stand in the tail. */
void column_summarize(struct column *c, uint32_t tail_n);

/* Gives a column that holds only NULLs (tail_n in the tail) another type. */
void column_retype(struct column *c, enum col_type type, uint32_t tail_n);

/* Drops the sealed chunks; the tail's memory is kept. */
void column_clear(struct column *c);

size_t column_memory(const struct column *c);
void column_free(struct column *c);

#endif
