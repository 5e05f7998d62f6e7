/* An open snapshot, as the files that read it share it. For snapshot_*.c only. */
#ifndef MERIDIAN_STORAGE_SNAPSHOT_FILE_H
#define MERIDIAN_STORAGE_SNAPSHOT_FILE_H

#include "base/map_guard.h"
#include "base/u64map.h"
#include "storage/snapshot.h"
#include "storage/snapshot_format.h"

#include <stdatomic.h>

struct snapshot {
    struct column_source source; /* first: columns know the snapshot by it */
    const uint8_t *map;
    size_t len;
    void *own;               /* the mapping when it is ours */
    struct map_guard *guard; /* of the mapping when it is not */
    const struct snapshot_trailer *trailer;
    struct strpool *pool;

    const struct col_chunk *chunks;
    const uint64_t *chunk_sums;
    uint64_t n_chunks;
    uint8_t *checked;    /* by chunk */
    uint16_t *last_rows; /* by chunk: its rows, where it is the last of its column */

    const struct snapshot_string *strings; /* [id - 1] */
    uint32_t n_strings;
    const uint8_t *text;
    uint64_t text_len;
    const uint64_t *string_sums;
    uint8_t *strings_checked; /* by block */
    uint64_t text_checked;    /* bytes that those have; no byte is of two blocks */
    const uint32_t *slots;
    uint32_t slot_cap;
    uint32_t string_seed;
    const uint64_t *slot_sums;
    uint8_t *slots_checked; /* by block */

    const struct snapshot_column *columns;
    uint64_t n_columns;
    const struct snapshot_shape *shapes;
    uint64_t n_shapes;
    const struct snapshot_key *keys;
    uint64_t n_keys;
    struct column set[SNAPSHOT_SET_COLUMNS];
    struct column value[SNAPSHOT_VALUE_COLUMNS];

    _Atomic(const char *) damage; /* what is damaged */
};

/* Where a section is, and how many elements it has; what does not fit was found before. */
const void *snapshot_section_at(const struct snapshot *s, enum snapshot_section section, uint64_t *n);

/* Answers are not to be trusted from now on. */
void snapshot_note_damage(struct snapshot *s, const char *what);

/* As column_source.check: a chunk that is going to be read for the first time. */
void snapshot_check_chunk(struct column_source *source, const struct column *c, uint32_t chunk);

/* A column of the file, which snapshot_column_is_good() has seen. */
void snapshot_column_of(struct snapshot *s, const struct snapshot_column *record, struct column *c);

int snapshot_open_strings(struct snapshot *s, const struct snapshot_trailer *t);
void snapshot_use_strings(struct snapshot *s, struct strpool *pool, bool has_nul);

/* Checks what describes sets of args; then the sets can be read. -MRD_EFORMAT. */
int snapshot_open_args(struct snapshot *s, const struct snapshot_trailer *t);
void snapshot_use_args(struct snapshot *s, struct args *args);

/* Whether a column's chunks hold `rows` rows and are what headers may be. */
bool snapshot_column_is_good(const struct snapshot *s, const struct snapshot_column *c, uint32_t rows,
                             enum col_type type);

#endif
