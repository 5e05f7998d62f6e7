/* Which place has a key: a table of hashes for lookups. */
#include "sql/plan/lookup_private.h"

#include <string.h>

enum {
    AHEAD = 16, /* keys whose slots are being fetched while one is looked at */
    FIRST_ROOM = 64
};

void *lookup_alloc(struct run *r, uint64_t n, size_t size)
{
    void *p = run_alloc(r, n * size) ? mem_alloc((n + 1) * size) : NULL;
    if (!p && !r->rc)
        r->rc = SQLITE_NOMEM;
    return p;
}

void lookup_keys_free(struct lookup_keys *k)
{
    mem_free(k->keys);
    mem_free(k->slots);
    *k = (struct lookup_keys){0};
}

static uint64_t hash_of(const int64_t *key, uint32_t n)
{
    uint64_t h = 0;
    for (uint32_t k = 0; k < n; k++) {
        h = (h ^ (uint64_t)key[k]) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 32;
        h *= 0xd6e8feb86659fd93ull;
        h ^= h >> 29;
    }
    return h;
}

/* The slot of a key: of the place that has it, or a free one. */
static uint64_t *find(const struct lookup_keys *k, const int64_t *key, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & k->mask, n = k->n_keys;
    while (k->slots[at] && (k->slots[at] >> 32 != hash >> 32 ||
                            memcmp(k->keys + (uint64_t)((uint32_t)k->slots[at] - 1) * n, key, n * sizeof *key) != 0))
        at = (at + 1) & k->mask;
    return &k->slots[at];
}

uint32_t lookup_keys_find(const struct lookup_keys *k, const int64_t *key)
{
    return !k->n ? 0 : (uint32_t)*find(k, key, hash_of(key, k->n_keys));
}

/* Twice as much room as before. */
static bool grow(struct run *r, struct lookup_keys *k)
{
    uint32_t n = k->n_keys, cap = k->cap ? 2 * k->cap : FIRST_ROOM;
    int64_t *keys = lookup_alloc(r, (uint64_t)cap * n, sizeof *keys);
    uint64_t *slots = keys ? lookup_alloc(r, 2ull * cap, sizeof *slots) : NULL;
    if (!slots) {
        mem_free(keys);
        return false;
    }
    if (k->n)
        memcpy(keys, k->keys, (size_t)k->n * n * sizeof *keys);
    memset(slots, 0, 2 * (size_t)cap * sizeof *slots);
    mem_free(k->keys);
    mem_free(k->slots);
    k->keys = keys;
    k->slots = slots;
    k->cap = cap;
    k->mask = 2 * cap - 1;
    for (uint32_t i = 0; i < k->n; i++) {
        uint64_t hash = hash_of(keys + (size_t)i * n, n);
        *find(k, keys + (size_t)i * n, hash) = (hash >> 32 << 32) | (i + 1);
    }
    return true;
}

uint32_t lookup_keys_add(struct run *r, struct lookup_keys *k, const int64_t *key)
{
    if (k->n == k->cap && !grow(r, k))
        return 0;
    uint64_t hash = hash_of(key, k->n_keys), *slot = find(k, key, hash);
    if (!*slot) {
        memcpy(k->keys + (uint64_t)k->n * k->n_keys, key, k->n_keys * sizeof *key);
        *slot = (hash >> 32 << 32) | ++k->n;
    }
    return (uint32_t)*slot;
}

void lookup_keys_fetch(const struct lookup_keys *k, const int64_t *const *words, uint32_t i, uint32_t n)
{
    int64_t key[PLAN_MAX_KEYS];
    if (i + AHEAD >= n || !k->n_keys || !k->n)
        return;
    for (uint32_t c = 0; c < k->n_keys; c++)
        key[c] = words[c][i + AHEAD];
    __builtin_prefetch(&k->slots[(uint32_t)hash_of(key, k->n_keys) & k->mask], 1);
}
