/* The string pool: interning by hash, dense ids. */
#include "base/strpool.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/probe.h"

#include <stdarg.h>
#include <stdio.h>

uint32_t strpool_hash(const void *text, size_t len)
{
    return (uint32_t)hash_bytes(text, len);
}

/* As strpool_hash() while there is no seed. */
static uint32_t own_hash(const struct strpool *s, const void *text, size_t len, uint32_t hash)
{
    return s->seed ? (uint32_t)hash_bytes_seeded(text, len, s->seed) : hash;
}

static uint32_t *find_slot(const struct strpool *s, const void *text, size_t len, uint32_t hash)
{
    uint32_t at;
    probe_each(at, hash, s->slot_cap, s->slots[at])
    {
        const struct strpool_entry *e = &s->entries[s->slots[at]];
        if (e->hash == hash && e->len == len && (len == 0 || memcmp(e->text, text, len) == 0))
            break;
    }
    return &s->slots[at];
}

static void place_all(struct strpool *s)
{
    for (uint32_t i = 1; i <= s->n - s->n_base; i++) {
        uint32_t at;
        probe_free(at, s->entries[i].hash, s->slot_cap, s->slots[at]);
        s->slots[at] = i;
    }
}

/* Strings that crowd get other places, which nobody can foresee. */
static void reseed(struct strpool *s)
{
    s->seed = hash_secret();
    for (uint32_t i = 1; i <= s->n - s->n_base; i++)
        s->entries[i].hash = own_hash(s, s->entries[i].text, s->entries[i].len, 0);
    memset(s->slots, 0, s->slot_cap * sizeof *s->slots);
    place_all(s);
}

static bool grow(struct strpool *s)
{
    uint32_t cap = s->cap ? s->cap * 2 : 256;
    if (cap > UINT32_MAX / 4)
        return false;
    struct strpool_entry *entries = mem_realloc(s->entries, cap * sizeof *entries);
    if (!entries)
        return false;
    s->entries = entries;
    uint32_t slot_cap = cap * 2;
    uint32_t *slots = mem_zalloc(slot_cap * sizeof *slots);
    if (!slots)
        return false;
    mem_free(s->slots);
    s->slots = slots;
    s->slot_cap = slot_cap;
    s->cap = cap;
    place_all(s);
    return true;
}

void strpool_set_base(struct strpool *s, struct strpool_base base, uint32_t n, bool has_nul)
{
    s->base = base;
    s->n_base = s->n = n;
    s->has_nul = has_nul;
}

struct slice strpool_base_view(const struct strpool *s, strid id)
{
    return id && id <= s->n_base ? s->base.view(s->base.ctx, id) : slice_of("", 0);
}

static strid find_in_base(const struct strpool *s, const void *text, size_t len, uint32_t hash)
{
    return s->n_base ? s->base.find(s->base.ctx, text, len, hash) : 0;
}

strid strpool_intern(struct strpool *s, const void *text, size_t len)
{
    if (s->n - s->n_base + 1 >= s->cap && (s->n >= UINT32_MAX / 4 || !grow(s))) {
        s->failed = true;
        return 0;
    }
    uint32_t hash = strpool_hash(text, len);
    strid of_base = find_in_base(s, text, len, hash);
    if (of_base)
        return of_base;
    hash = own_hash(s, text, len, hash);
    uint32_t *slot = find_slot(s, text, len, hash);
    if (*slot)
        return s->n_base + *slot;
    if (!s->seed && (((uint32_t)(slot - s->slots) - hash) & (s->slot_cap - 1)) >= HASH_WALK_MAX) {
        reseed(s);
        hash = own_hash(s, text, len, hash);
        slot = find_slot(s, text, len, hash);
    }
    char *copy = len < UINT32_MAX ? arena_strndup(&s->bytes, text, len) : NULL;
    if (!copy) {
        s->failed = true;
        return 0;
    }
    strid id = ++s->n;
    uint32_t at = id - s->n_base;
    s->has_nul = s->has_nul || (len && memchr(text, 0, len));
    s->entries[at] = (struct strpool_entry){copy, (uint32_t)len, hash};
    *slot = at;
    return id;
}

strid strpool_intern_str(struct strpool *s, const char *text)
{
    return strpool_intern(s, text, strlen(text));
}

strid strpool_printf(struct strpool *s, const char *fmt, ...)
{
    char small[256];
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    strid id = 0;
    if (n >= 0 && (size_t)n < sizeof small) {
        id = strpool_intern(s, small, (size_t)n);
    } else if (n >= 0) {
        char *big = mem_alloc((size_t)n + 1);
        if (big) {
            vsnprintf(big, (size_t)n + 1, fmt, again);
            id = strpool_intern(s, big, (size_t)n);
        } else {
            s->failed = true;
        }
        mem_free(big);
    }
    va_end(again);
    return id;
}

strid strpool_find(const struct strpool *s, const void *text, size_t len)
{
    if (!s->n)
        return 0;
    uint32_t hash = strpool_hash(text, len);
    strid of_base = find_in_base(s, text, len, hash);
    uint32_t at = of_base || s->n == s->n_base ? 0 : *find_slot(s, text, len, own_hash(s, text, len, hash));
    return of_base ? of_base : at ? s->n_base + at : 0;
}

void strpool_free(struct strpool *s)
{
    arena_free(&s->bytes);
    mem_free(s->entries);
    mem_free(s->slots);
    *s = (struct strpool){0};
}
