/* The 64-bit hash map. */
#include "base/u64map.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/probe.h"

#include <string.h>

/* What stands in `used` of a key that is there: bits of its hash that do not choose the slot. Of a large map the slots
 * are far away, and most that hold another key are known by this. */
static inline uint8_t tag_of(uint64_t hash)
{
    return (uint8_t)(hash >> 56) | 1;
}

static inline uint64_t hash_of(const struct u64map *m, uint64_t key)
{
    return hash_u64(key ^ m->seed);
}

static bool rehash(struct u64map *m, size_t capacity, uint64_t seed)
{
    struct u64map bigger = {.capacity = capacity, .n = m->n, .seed = seed};
    bigger.slots = mem_alloc(capacity * sizeof *bigger.slots);
    bigger.used = mem_zalloc(capacity);
    if (!bigger.slots || !bigger.used) {
        u64map_free(&bigger);
        return false;
    }
    for (size_t i = 0; i < m->capacity; i++) {
        if (!m->used[i])
            continue;
        size_t at;
        uint64_t hash = hash_of(&bigger, m->slots[i].key);
        probe_free(at, hash, capacity, bigger.used[at]);
        bigger.used[at] = tag_of(hash);
        bigger.slots[at] = m->slots[i];
    }
    u64map_free(m);
    *m = bigger;
    return true;
}

/* Flag and slot are on different cache lines: both are asked for at once. (Measured: a third of the time of call stacks
 * was spent waiting for one after the other.) */
static inline uint64_t ask_for(const struct u64map *m, uint64_t key)
{
    uint64_t hash = hash_of(m, key);
    __builtin_prefetch(&m->slots[hash & (m->capacity - 1)]);
    return hash;
}

void u64map_ahead(const struct u64map *m, uint64_t key)
{
    if (m->capacity)
        __builtin_prefetch(&m->used[ask_for(m, key) & (m->capacity - 1)]);
}

uint64_t *u64map_get(const struct u64map *m, uint64_t key)
{
    if (!m->n)
        return NULL;
    size_t at;
    uint64_t hash = ask_for(m, key);
    probe_each(at, hash, m->capacity, m->used[at])
    {
        if (m->used[at] == tag_of(hash) && m->slots[at].key == key)
            return &m->slots[at].value;
    }
    return NULL;
}

uint64_t *u64map_put(struct u64map *m, uint64_t key, bool *added)
{
    if (m->n * 4 >= m->capacity * 3 && !rehash(m, m->capacity ? m->capacity * 2 : 16, m->seed))
        return NULL;
    size_t at;
    uint64_t hash = ask_for(m, key);
    probe_each(at, hash, m->capacity, m->used[at])
    {
        if (m->used[at] == tag_of(hash) && m->slots[at].key == key) {
            if (added)
                *added = false;
            return &m->slots[at].value;
        }
    }
    if (((at - hash) & (m->capacity - 1)) >= HASH_WALK_MAX && !m->seed && rehash(m, m->capacity, hash_secret())) {
        hash = hash_of(m, key);
        probe_free(at, hash, m->capacity, m->used[at]);
    }
    m->used[at] = tag_of(hash);
    m->slots[at] = (struct u64map_slot){key, 0};
    m->n++;
    if (added)
        *added = true;
    return &m->slots[at].value;
}

bool u64map_set(struct u64map *m, uint64_t key, uint64_t value)
{
    uint64_t *v = u64map_put(m, key, NULL);
    if (!v)
        return false;
    *v = value;
    return true;
}

bool u64map_del(struct u64map *m, uint64_t key)
{
    uint64_t *v = u64map_get(m, key);
    if (!v)
        return false;
    size_t hole = (size_t)((struct u64map_slot *)((char *)v - offsetof(struct u64map_slot, value)) - m->slots);
    size_t at, mask = m->capacity - 1;
    /* Move later entries of the run back so that no probe meets a gap before its key. */
    probe_each(at, hole + 1, m->capacity, m->used[at])
    {
        size_t home = hash_of(m, m->slots[at].key) & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            m->slots[hole] = m->slots[at];
            m->used[hole] = m->used[at];
            hole = at;
        }
    }
    m->used[hole] = 0;
    m->n--;
    return true;
}

struct u64map_slot *u64map_next(const struct u64map *m, size_t *it)
{
    while (*it < m->capacity) {
        size_t at = (*it)++;
        if (m->used[at])
            return &m->slots[at];
    }
    return NULL;
}

void u64map_clear(struct u64map *m)
{
    if (m->used)
        memset(m->used, 0, m->capacity);
    m->n = 0;
}

void u64map_free(struct u64map *m)
{
    mem_free(m->slots);
    mem_free(m->used);
    *m = (struct u64map){0};
}
