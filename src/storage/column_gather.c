/* Words of a column by row numbers, in any order. */
#include "storage/column.h"

#include "base/vectorised.h"

VECTORISED static bool is_run(const uint32_t *rows, uint32_t n)
{
    uint32_t differ = 0;
    for (uint32_t i = 0; i < n; i++)
        differ |= rows[i] ^ (rows[0] + i);
    return !differ;
}

/* The rows from i on that lie in chunk `chunk`. */
#define GATHER_RUN(expression)                                                                                         \
    do {                                                                                                               \
        uint32_t at = rows[i] & COL_CHUNK_MASK;                                                                        \
        out[i] = (expression);                                                                                         \
    } while (++i < n && rows[i] >> COL_CHUNK_SHIFT == chunk)

/* ---- rows in no order ---- */

/* Are most rows of another chunk than the one before? A few of them tell. */
static bool are_scattered(const uint32_t *rows, uint32_t n)
{
    enum { LOOKED_AT = 16 };
    if (n <= LOOKED_AT)
        return false;
    uint32_t changes = 0, step = (n - 1) / LOOKED_AT;
    for (uint32_t i = 0; i < LOOKED_AT; i++)
        changes += rows[i * step] >> COL_CHUNK_SHIFT != rows[i * step + 1] >> COL_CHUNK_SHIFT;
    return changes > LOOKED_AT / 4;
}

/* How codes of a kind are read without asking which kind it is: of what width, and which one is NULL (a number that no
 * code of the kind is, where there is none). CHUNK_CONST has codes of no bits. */
struct codes {
    uint64_t mask, null;
    uint8_t shift; /* of the row to bytes */
    bool plain;    /* can be read so */
};

#define CODES(bits, null, shift)                                                                                       \
    {                                                                                                                  \
        UINT64_MAX >> (64 - (bits)), null, shift, true                                                                 \
    }
static const struct codes kinds[CHUNK_KINDS] = {
    [CHUNK_CONST] = {0, 1, 0, true},         [CHUNK_U8] = CODES(8, UINT64_MAX, 0),
    [CHUNK_U16] = CODES(16, UINT64_MAX, 1),  [CHUNK_U32] = CODES(32, UINT64_MAX, 2),
    [CHUNK_U8N] = CODES(8, UINT8_MAX, 0),    [CHUNK_U16N] = CODES(16, UINT16_MAX, 1),
    [CHUNK_U32N] = CODES(32, UINT32_MAX, 2),
};

/* Each row is a miss of the cache; as many as can be are under way at once, since no branch waits for a word that has
 * not come yet. Codes are read by whole words, of which every chunk has some. */
static void gather_scattered(const struct column *c, const uint32_t *rows, uint32_t n, int64_t *out)
{
    static const uint64_t no_codes[1];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t chunk = rows[i] >> COL_CHUNK_SHIFT, at = rows[i] & COL_CHUNK_MASK;
        if (__builtin_expect(chunk >= c->n_chunks, 0)) {
            out[i] = c->tail[at];
            continue;
        }
        const struct col_chunk *k = column_chunk(c, chunk);
        const struct codes *how = &kinds[k->kind];
        const void *data = column_codes(c, k);
        if (k->kind == CHUNK_BLOCKS) {
            out[i] = col_block_get(data, k->base, at, k->zero_null ? 0 : COL_NULL);
            continue;
        }
        if (__builtin_expect(!how->plain, 0)) {
            out[i] = col_chunk_get(k, data, at);
            continue;
        }
        size_t byte = k->kind == CHUNK_CONST ? 0 : (size_t)at << how->shift;
        uint64_t word;
        memcpy(&word, (const char *)(k->kind == CHUNK_CONST ? no_codes : data) + (byte & ~(size_t)7), sizeof word);
        uint64_t code = word >> (byte & 7) * 8 & how->mask;
        out[i] = code == how->null ? COL_NULL : (int64_t)((uint64_t)k->base + code);
    }
}

void column_gather(const struct column *c, const uint32_t *rows, uint32_t n, int64_t *out)
{
    if (are_scattered(rows, n)) {
        gather_scattered(c, rows, n, out);
        return;
    }
    if (n > 8 && rows[n - 1] - rows[0] == n - 1 && is_run(rows, n)) {
        for (uint32_t i = 0; i < n;) {
            uint32_t room = COL_CHUNK_ROWS - (rows[i] & COL_CHUNK_MASK), take = n - i < room ? n - i : room;
            column_unpack(c, rows[i], take, out + i);
            i += take;
        }
        return;
    }
    for (uint32_t i = 0; i < n;) {
        uint32_t chunk = rows[i] >> COL_CHUNK_SHIFT;
        if (chunk >= c->n_chunks) {
            GATHER_RUN(c->tail[at]);
            continue;
        }
        const struct col_chunk *k = column_chunk(c, chunk);
        const void *data = column_codes(c, k);
        int64_t base = k->base;
        switch (k->kind) {
        case CHUNK_U8:
            GATHER_RUN(base + ((const uint8_t *)data)[at]);
            break;
        case CHUNK_U16:
            GATHER_RUN(base + ((const uint16_t *)data)[at]);
            break;
        case CHUNK_U32:
            GATHER_RUN(base + ((const uint32_t *)data)[at]);
            break;
        case CHUNK_RAW:
            GATHER_RUN(((const int64_t *)data)[at]);
            break;
        case CHUNK_U8N:
            GATHER_RUN(((const uint8_t *)data)[at] == UINT8_MAX ? COL_NULL : base + ((const uint8_t *)data)[at]);
            break;
        case CHUNK_U16N:
            GATHER_RUN(((const uint16_t *)data)[at] == UINT16_MAX ? COL_NULL : base + ((const uint16_t *)data)[at]);
            break;
        case CHUNK_U32N:
            GATHER_RUN(((const uint32_t *)data)[at] == UINT32_MAX ? COL_NULL : base + ((const uint32_t *)data)[at]);
            break;
        case CHUNK_BLOCKS: {
            int64_t null = k->zero_null ? 0 : COL_NULL;
            GATHER_RUN(col_block_get(data, base, at, null));
            break;
        }
        default:
            GATHER_RUN(col_chunk_get(k, data, at));
        }
    }
}
