/* Packs chunks of a growing column into blocks, and owns the memory of codes. */
#include "storage/column_codes.h"

#include "base/alloc.h"
#include "base/spill.h"

/* Chunks that are kept as they were packed first: what is still being changed (durations of what has not ended, states
 * of threads) is mostly there, and changing a code of whole bytes is one store. */
enum { RECENT_CHUNKS = 16 };

/* Of blocks, how many bytes are in memory: reading the last code may touch what is behind it. */
static size_t bytes_of(const struct col_chunk *k)
{
    size_t bytes = col_chunk_bytes(k, COL_CHUNK_ROWS);
    return k->kind == CHUNK_BLOCKS ? bytes + COL_BLOCKS_SLACK : bytes;
}

void *column_codes_alloc(struct spill *spill, size_t bytes)
{
    return spill ? spill_alloc(spill, bytes) : mem_alloc(bytes);
}

void column_codes_free(struct spill *spill, const struct col_chunk *k)
{
    if (spill)
        spill_free(spill, k->data, bytes_of(k));
    else
        mem_free(k->data);
}

/* Whether blocks can say what the chunk says: whole numbers above its least value, NULL told by its highest code. A
 * NULL string has a code of its own below the others. */
static bool can_settle(const struct col_chunk *k)
{
    bool whole = (k->kind >= CHUNK_U8 && k->kind <= CHUNK_U32) || (k->kind >= CHUNK_U8N && k->kind <= CHUNK_U32N);
    return whole && k->min <= k->max && k->base == k->min && (uint64_t)k->max - (uint64_t)k->min < UINT32_MAX;
}

/* Takes what is gained to be worth the while of reading bits when it is a quarter. */
static void settle_chunk(struct column *c, struct col_chunk *k)
{
    uint8_t blocks[COL_BLOCKS_MAX_BYTES + COL_BLOCKS_SLACK] __attribute__((aligned(8)));
    uint32_t width = col_chunk_width(k->kind);
    size_t plain = (size_t)width * COL_CHUNK_ROWS;
    if (!can_settle(k))
        return;
    size_t len = col_blocks_pack_codes(k->data, width, k->kind >= CHUNK_U8N, plain / 4 * 3, blocks);
    void *codes = len ? column_codes_alloc(c->spill, len + COL_BLOCKS_SLACK) : NULL;
    if (!codes) /* no memory for it: the chunk is as good as before */
        return;
    memcpy(codes, blocks, len);
    memset((uint8_t *)codes + len, 0, COL_BLOCKS_SLACK);
    column_codes_free(c->spill, k);
    k->data = codes;
    k->kind = CHUNK_BLOCKS;
    k->bytes = (uint32_t)len;
    k->zero_null = c->type == COL_STR;
}

void column_settle(struct column *c)
{
    for (; c->settled + RECENT_CHUNKS < c->n_chunks; c->settled++)
        settle_chunk(c, &c->chunks[c->settled]);
}

size_t column_memory(const struct column *c)
{
    size_t bytes = c->cap_chunks * sizeof *c->chunks;
    for (uint32_t i = 0; i < c->n_chunks; i++)
        bytes += bytes_of(&c->chunks[i]);
    return bytes;
}
