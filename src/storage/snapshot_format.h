/* The layout of a snapshot file. For snapshot_*.c only; docs/snapshots.md says what it is for.
 *
 *     head      16 bytes: magic, version, byte order
 *     sections  each aligned to 64 bytes, in the order they were written
 *     trailer   struct snapshot_trailer, at the very end: a file that was cut has none
 *
 * Everything is used where it lies in the mapped file: integers in the machine's byte order, places as offsets from the
 * beginning of the file (column chunks) or of a section. Small sections and those with the headers of chunks are
 * summed as a whole and checked when the file is opened; chunks and blocks of strings have sums of their own, checked
 * when they are first read. */
#ifndef MERIDIAN_STORAGE_SNAPSHOT_FORMAT_H
#define MERIDIAN_STORAGE_SNAPSHOT_FORMAT_H

#include "storage/column.h"

#include <assert.h>

#define SNAPSHOT_MAGIC "MRDNSNAP"

enum {
    SNAPSHOT_VERSION = 1,
    SNAPSHOT_ORDER = 0x01020304,
    SNAPSHOT_ALIGN = 64,
    SNAPSHOT_BLOCK = 1024, /* strings, or slots of their index, that have one sum */
    SNAPSHOT_SPARE =
        8 * COL_CHUNK_ROWS, /* bytes behind the last chunk: a row that is not there reads nonsense, no more */
    SNAPSHOT_GENERIC = 0,   /* the shape of sets whose values lie one after the other */
};

/* X(name, type of its elements, 1: summed as a whole) */
#define SNAPSHOT_SECTIONS(X)                                                                                           \
    X(DATA, uint8_t, 0)                     /* codes of chunks */                                                      \
    X(CHUNKS, struct col_chunk, 1)          /* of all columns, one after the other */                                  \
    X(CHUNK_SUMS, uint64_t, 1)              /* of the codes of each */                                                 \
    X(COLUMNS, struct snapshot_column, 1)   /* of tables, then of sets of args, then of shapes */                      \
    X(TABLES, struct snapshot_table, 1)     /* those with rows */                                                      \
    X(STRINGS, struct snapshot_string, 0)   /* by id, from 1 */                                                        \
    X(STRING_TEXT, uint8_t, 0)              /* each with a NUL behind it */                                            \
    X(STRING_SUMS, uint64_t, 1)             /* of SNAPSHOT_BLOCK strings and their text */                             \
    X(SLOTS, uint32_t, 0)                   /* hash index over the strings: ids, 0 is free; a power of two */          \
    X(SLOT_SUMS, uint64_t, 1)               /* of SNAPSHOT_BLOCK slots */                                              \
    X(SHAPES, struct snapshot_shape, 1)     /* of sets of args, from shape 1 on */                                     \
    X(KEYS, struct snapshot_key, 1)         /* of shapes */                                                            \
    X(NUMBERS, uint32_t, 1)                 /* args.numbers, when there are */                                         \
    X(STATS, int64_t, 1)                    /* stats.single */                                                         \
    X(STATS_INDEXED, struct u64map_slot, 1) /* stats.indexed */                                                        \
    X(VIDEO, uint32_t, 1)                   /* video_data */                                                           \
    X(CLOCKS, uint8_t, 1)                   /* what the importer wants back; its own format */                         \
    X(INFO, uint8_t, 1)                     /* text: where it came from */

enum snapshot_section {
#define X(name, type, whole) SNAPSHOT_##name,
    SNAPSHOT_SECTIONS(X)
#undef X
        SNAPSHOT_SECTION_COUNT
};

struct snapshot_head {
    char magic[8];
    uint32_t version;
    uint32_t order;
};

struct snapshot_place {
    uint64_t offset;
    uint64_t len; /* bytes */
    uint64_t sum; /* 0: its parts have sums */
};

struct snapshot_trailer {
    uint64_t file_bytes; /* with the trailer */
    uint64_t schema;     /* hash of what the program that wrote it knows of tables and stats */
    uint64_t options;    /* hash of the options of the import */
    uint64_t source[2];  /* sum of the bytes it was made of; 0, 0: unknown (a pipe) */
    uint64_t source_bytes;
    int64_t trace_start_ns;
    int64_t trace_end_ns;
    uint32_t n_strings;
    uint32_t n_sets;        /* of args, as queries know them */
    uint32_t n_all_sets;    /* with those that hold the defaults of others */
    uint32_t n_arg_columns; /* columns from here on are of args: SNAPSHOT_SET_COLUMNS, SNAPSHOT_VALUE_COLUMNS, shapes */
    uint32_t n_values;      /* of generic sets */
    uint32_t n_table_columns;
    uint32_t has_nul;     /* strpool.has_nul */
    uint32_t string_seed; /* of the hashes of strings; 0: they are those of strpool_hash() */
    struct snapshot_place sections[SNAPSHOT_SECTION_COUNT];
    uint64_t sum; /* of all before it */
    char magic[8];
};

struct snapshot_column {
    uint64_t first_chunk;
    uint32_t n_chunks;
    uint8_t type; /* enum col_type */
    uint8_t has_null;
    uint8_t sorted;
    uint8_t unused;
    int64_t min, max;
};

struct snapshot_table {
    uint32_t table; /* enum table_id: the schema's hash vouches for it */
    uint32_t n_rows;
    uint32_t first_column; /* its columns in COLUMNS */
    uint32_t n_columns;
};

struct snapshot_string {
    uint64_t at; /* in STRING_TEXT */
    uint32_t len;
    uint32_t hash;
};

/* Sets with the same keys and types: a column of values for each key. */
struct snapshot_shape {
    uint32_t first_key; /* in KEYS; its columns in COLUMNS have the same place among those of shapes */
    uint32_t n_keys;
    uint32_t n_rows;
};

struct snapshot_key {
    uint32_t flat_key;
    uint32_t key;
    uint32_t type; /* enum arg_type */
};

/* Columns of sets, by set. */
enum {
    SNAPSHOT_SET_SHAPE,    /* shape, SNAPSHOT_GENERIC is values one after the other */
    SNAPSHOT_SET_ROW,      /* row of the shape, or the first value */
    SNAPSHOT_SET_LEN,      /* values; of generic ones */
    SNAPSHOT_SET_DEFAULTS, /* the set with its defaults (ARGS_WITH_DEFAULTS), 1 + its number; 0: it has none */
    SNAPSHOT_SET_COLUMNS
};

/* Columns of values of generic sets. */
enum { SNAPSHOT_VALUE_FLAT_KEY, SNAPSHOT_VALUE_KEY, SNAPSHOT_VALUE_TYPE, SNAPSHOT_VALUE_WORD, SNAPSHOT_VALUE_COLUMNS };

static_assert(sizeof(void *) == 8, "chunks lie in the file as they do in memory");
static_assert(sizeof(struct col_chunk) == 40, "chunks lie in the file as they do in memory");
static_assert(sizeof(struct snapshot_column) == 32, "no holes");

#endif
