/* Contents of arrays of plain values: kept as strings of their type and their bytes, and hashed. */
#include "importer/hprof/hprof_private.h"

enum { BLOCK = 8, SHIFT = 47 };
static const uint64_t multiplier = 0xc6a4a7935bd1e995u, seed = 0xe17a1465u;

static uint64_t mixed(uint64_t h)
{
    h ^= h >> SHIFT;
    return h * multiplier;
}

/* MurmurHash64A, which arrays of other importers are known by. */
static uint64_t murmur(const uint8_t *p, size_t len)
{
    uint64_t h = seed ^ len * multiplier;
    for (; len >= BLOCK; len -= BLOCK, p += BLOCK) {
        uint64_t block;
        memcpy(&block, p, BLOCK);
        h = (h ^ mixed(block * multiplier)) * multiplier;
    }
    for (size_t i = 0; i < len; i++)
        h ^= (uint64_t)p[i] << 8 * i;
    h = len ? h * multiplier : h;
    h = mixed(h);
    return h ^ h >> SHIFT;
}

struct hprof_array hprof_keep_array(struct hprof *h, unsigned type, const uint8_t *p, uint64_t n, size_t size)
{
    size_t len = (size_t)(n * size);
    uint8_t *kept = len ? mem_alloc(len + 1) : NULL;
    if (!kept) {
        h->im->failed |= len != 0;
        return (struct hprof_array){COL_NULL, COL_NULL};
    }
    kept[0] = (uint8_t)type;
    for (size_t i = 0; i < len; i += size) /* as numbers of this machine: the file's are big-endian */
        for (size_t k = 0; k < size; k++)
            kept[1 + i + k] = p[i + size - 1 - k];
    strid id = strpool_intern(&h->im->st->strings, kept, len + 1);
    struct hprof_array a = {id ? (int64_t)id : COL_NULL, (int64_t)murmur(kept + 1, len)};
    mem_free(kept);
    return a;
}
