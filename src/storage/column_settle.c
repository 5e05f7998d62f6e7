/* Packs chunks of a growing column into blocks, and owns the memory of codes. */
#include "storage/column_codes.h"

#include "base/alloc.h"
#include "base/spill.h"
#include "base/vectorised.h"

/* Chunks that are kept as they were packed first: what is still being changed (durations of what has not ended, states
 * of threads) is mostly there, and changing a code of whole bytes is one store. */
enum { RECENT_CHUNKS = 16 };

/* Each row one more than the row before: whole columns of a trace are so. All such chunks are of the same codes, which
 * are those of one block: they take no time to make and no memory. */
enum { SEQUENCE_BITS = 7, EIGHT_CODES = SEQUENCE_BITS /* bytes */ };
#define ONE_BY_ONE                                                                                                     \
    (UINT64_C(1) << 7 | UINT64_C(2) << 14 | UINT64_C(3) << 21 | UINT64_C(4) << 28 | UINT64_C(5) << 35 |                \
     UINT64_C(6) << 42 | UINT64_C(7) << 49)
#define EACH_ONE    UINT64_C(0x2040810204081)
#define CODES(g, i) (uint8_t)((ONE_BY_ONE + UINT64_C(8) * (g)*EACH_ONE) >> 8 * (i))
#define EIGHT(g)    CODES(g, 0), CODES(g, 1), CODES(g, 2), CODES(g, 3), CODES(g, 4), CODES(g, 5), CODES(g, 6)
#define BLOCK(b)                                                                                                       \
    {                                                                                                                  \
        .base = COL_BLOCK_ROWS * (b), .bits = SEQUENCE_BITS                                                            \
    }
#define FOUR(X, i) X(i), X((i) + 1), X((i) + 2), X((i) + 3)

static const struct {
    struct col_block blocks[COL_BLOCKS];
    uint8_t codes[COL_BLOCK_ROWS / 8 * EIGHT_CODES + COL_BLOCKS_SLACK];
} sequence = {{FOUR(BLOCK, 0), FOUR(BLOCK, 4), FOUR(BLOCK, 8), FOUR(BLOCK, 12), FOUR(BLOCK, 16), FOUR(BLOCK, 20),
               FOUR(BLOCK, 24), FOUR(BLOCK, 28)},
              {FOUR(EIGHT, 0), FOUR(EIGHT, 4), FOUR(EIGHT, 8), FOUR(EIGHT, 12)}};
_Static_assert(1 << SEQUENCE_BITS == COL_BLOCK_ROWS && COL_BLOCKS == 32, "every code of a block, and every block");

VECTORISED static bool is_sequence(const int64_t *v)
{
    for (uint32_t i = 0; i < COL_CHUNK_ROWS; i += 64) {
        int64_t differ = 0;
        for (uint32_t k = 0; k < 64; k++)
            differ |= v[i + k] ^ (v[0] + (int64_t)(i + k));
        if (differ)
            return false;
    }
    return true;
}

bool column_pack_sequence(const int64_t *v, enum col_type type, struct col_chunk *k)
{
    enum { LAST = COL_CHUNK_ROWS - 1 };
    if (type == COL_STR || type == COL_F64 || v[0] == COL_NULL || v[0] > INT64_MAX - LAST || !is_sequence(v))
        return false;
    *k = (struct col_chunk){.at = (uintptr_t)&sequence,
                            .base = v[0],
                            .min = v[0],
                            .max = v[0] + LAST,
                            .sorted = true,
                            .kind = CHUNK_BLOCKS,
                            .bytes = sizeof sequence - COL_BLOCKS_SLACK};
    return true;
}

/* Of blocks, how many bytes are in memory: reading the last code may touch what is behind it. */
static size_t bytes_of(const struct col_chunk *k)
{
    if (k->at == (uintptr_t)&sequence)
        return 0;
    size_t bytes = col_chunk_bytes(k, COL_CHUNK_ROWS);
    return k->kind == CHUNK_BLOCKS ? bytes + COL_BLOCKS_SLACK : bytes;
}

void *column_codes_alloc(struct spill *spill, size_t bytes)
{
    return spill ? spill_alloc(spill, bytes) : mem_alloc(bytes);
}

void column_codes_free(struct spill *spill, const struct col_chunk *k)
{
    if (k->at == (uintptr_t)&sequence)
        return;
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

/* Blocks that were packed, in memory of their own. NULL when there is none. */
static void *keep_blocks(struct spill *spill, const uint8_t *blocks, size_t len)
{
    uint8_t *codes = column_codes_alloc(spill, len + COL_BLOCKS_SLACK);
    if (codes) {
        memcpy(codes, blocks, len);
        memset(codes + len, 0, COL_BLOCKS_SLACK);
    }
    return codes;
}

bool column_pack_blocks(const int64_t *v, enum col_type type, struct col_chunk *k, struct spill *spill)
{
    uint8_t blocks[COL_BLOCKS_MAX_BYTES + COL_BLOCKS_SLACK] __attribute__((aligned(8)));
    struct col_words w;
    size_t len = type != COL_F64 ? col_blocks_pack_words(v, column_null(type), &w, blocks) : 0;
    void *codes = len ? keep_blocks(spill, blocks, len) : NULL;
    if (!codes)
        return false;
    *k = (struct col_chunk){.data = codes,
                            .base = w.least,
                            .min = w.least,
                            .max = w.most,
                            .sorted = w.sorted,
                            .kind = CHUNK_BLOCKS,
                            .zero_null = type == COL_STR,
                            .bytes = (uint32_t)len};
    return true;
}

static void settle_chunk(struct column *c, struct col_chunk *k)
{
    uint8_t blocks[COL_BLOCKS_MAX_BYTES + COL_BLOCKS_SLACK] __attribute__((aligned(8)));
    uint32_t width = col_chunk_width(k->kind);
    size_t plain = (size_t)width * COL_CHUNK_ROWS;
    if (!can_settle(k))
        return;
    size_t len = col_blocks_pack_codes(k->data, width, k->kind >= CHUNK_U8N, COL_BLOCKS_WORTH(plain), blocks);
    void *codes = len ? keep_blocks(c->spill, blocks, len) : NULL;
    if (!codes) /* no memory for it: the chunk is as good as before */
        return;
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
