/* Which place has a key: a table of hashes for lookups. */
#include "sql/plan/lookup_private.h"

#include <string.h>

enum {
    AHEAD = 16, /* keys whose slots are being fetched while one is looked at */
    FIRST_ROOM = 64,
    DIRECT_LEAST = 4096,
    DIRECT_PER_ROW = 4
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
    mem_free(k->direct);
    *k = (struct lookup_keys){0};
}

bool lookup_keys_number(struct run *r, struct lookup_keys *k, const struct column *c, uint32_t n)
{
    uint64_t width = c->min > c->max ? 0 : (uint64_t)c->max - (uint64_t)c->min;
    if (k->n_keys != 1 || c->type == COL_F64 || width >= DIRECT_LEAST + (uint64_t)n * DIRECT_PER_ROW)
        return true;
    if (!run_alloc(r, (width + 1) * sizeof *k->direct))
        return false;
    k->direct = mem_zalloc((width + 1) * sizeof *k->direct);
    if (!k->direct) {
        r->rc = SQLITE_NOMEM;
        return false;
    }
    k->base = c->min;
    k->width = width + 1;
    return true;
}

/* The place + 1 of a key that lies among others; NULL: it lies outside. */
static uint32_t *find_number(const struct lookup_keys *k, int64_t key)
{
    uint64_t number = (uint64_t)key - (uint64_t)k->base;
    return number < k->width ? &k->direct[number] : NULL;
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
    if (k->direct) {
        const uint32_t *place = find_number(k, *key);
        return place ? *place : 0;
    }
    return !k->n ? 0 : (uint32_t)*find(k, key, hash_of(key, k->n_keys));
}

/* Twice as much room as before. */
static bool grow(struct run *r, struct lookup_keys *k)
{
    uint32_t n = k->n_keys, cap = k->cap ? 2 * k->cap : FIRST_ROOM;
    int64_t *keys = lookup_alloc(r, (uint64_t)cap * n, sizeof *keys);
    uint64_t *slots = keys && !k->direct ? lookup_alloc(r, 2ull * cap, sizeof *slots) : NULL;
    if (!keys || (!slots && !k->direct)) {
        mem_free(keys);
        return false;
    }
    if (k->n)
        memcpy(keys, k->keys, (size_t)k->n * n * sizeof *keys);
    mem_free(k->keys);
    k->keys = keys;
    k->cap = cap;
    if (k->direct)
        return true;
    memset(slots, 0, 2 * (size_t)cap * sizeof *slots);
    mem_free(k->slots);
    k->slots = slots;
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
    uint32_t *number = k->direct ? find_number(k, *key) : NULL;
    if (k->direct) {
        if (!number) { /* the column says otherwise of its values */
            r->rc = r->rc ? r->rc : RUN_GAVE_UP;
            return 0;
        }
        if (!*number) {
            k->keys[k->n] = *key;
            *number = ++k->n;
        }
        return *number;
    }
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
    if (i + AHEAD >= n || !k->n_keys || !k->n || k->direct)
        return;
    for (uint32_t c = 0; c < k->n_keys; c++)
        key[c] = words[c][i + AHEAD];
    __builtin_prefetch(&k->slots[(uint32_t)hash_of(key, k->n_keys) & k->mask], 1);
}
