/* Makes the sums of a changed snapshot right again, so that what stands in it is looked at and not its sums. */
#ifndef MERIDIAN_TEST_FUZZ_SNAPSHOT_RESEAL_H
#define MERIDIAN_TEST_FUZZ_SNAPSHOT_RESEAL_H

#include "base/checksum.h"
#include "base/u64map.h"
#include "storage/snapshot.h"
#include "storage/snapshot_format.h"

static const bool reseal_whole[SNAPSHOT_SECTION_COUNT] = {
#define X(name, type, whole) whole,
    SNAPSHOT_SECTIONS(X)
#undef X
};

/* A section, as long as the file has it. */
static uint8_t *reseal_section(uint8_t *file, size_t len, struct snapshot_trailer *t, int section, size_t *n)
{
    const struct snapshot_place *p = &t->sections[section];
    bool there = p->offset % 8 == 0 && p->offset <= len && p->len <= len - p->offset; /* others are refused */
    *n = there ? (size_t)p->len : 0;
    return file + (*n ? p->offset : 0);
}

static void reseal_chunks(uint8_t *file, size_t len, struct snapshot_trailer *t)
{
    size_t n_chunks, n_sums, n_columns, n_tables;
    struct col_chunk *chunks = (void *)reseal_section(file, len, t, SNAPSHOT_CHUNKS, &n_chunks);
    uint64_t *sums = (void *)reseal_section(file, len, t, SNAPSHOT_CHUNK_SUMS, &n_sums);
    struct snapshot_column *columns = (void *)reseal_section(file, len, t, SNAPSHOT_COLUMNS, &n_columns);
    struct snapshot_table *tables = (void *)reseal_section(file, len, t, SNAPSHOT_TABLES, &n_tables);
    n_chunks /= sizeof *chunks;
    n_columns /= sizeof *columns;
    n_tables /= sizeof *tables;
    for (size_t i = 0; i < n_tables; i++)
        for (uint32_t c = 0; c < tables[i].n_columns && (size_t)tables[i].first_column + c < n_columns; c++) {
            const struct snapshot_column *column = &columns[tables[i].first_column + c];
            for (uint32_t k = 0;
                 k < column->n_chunks && column->first_chunk + k < n_chunks && column->first_chunk + k < n_sums / 8;
                 k++) {
                const struct col_chunk *chunk = &chunks[column->first_chunk + k];
                uint32_t rows = k + 1 < column->n_chunks ? COL_CHUNK_ROWS : tables[i].n_rows - k * COL_CHUNK_ROWS;
                if (chunk->kind >= CHUNK_KINDS || rows > COL_CHUNK_ROWS)
                    continue;
                size_t bytes = col_chunk_bytes(chunk, rows);
                if (chunk->at <= len && bytes <= len - chunk->at)
                    sums[column->first_chunk + k] = checksum64(file + chunk->at, bytes);
            }
        }
}

static void snapshot_reseal(uint8_t *file, size_t len)
{
    if (len < sizeof(struct snapshot_trailer) || len % 8)
        return;
    struct snapshot_trailer *t = (void *)(file + len - sizeof *t);
    reseal_chunks(file, len, t);
    for (int i = 0; i < SNAPSHOT_SECTION_COUNT; i++) {
        size_t n;
        const uint8_t *p = reseal_section(file, len, t, i, &n);
        if (reseal_whole[i])
            t->sections[i].sum = checksum64(p, n);
    }
    t->file_bytes = len;
    t->schema = snapshot_schema();
    t->sum = checksum64(t, offsetof(struct snapshot_trailer, sum));
}

#endif
