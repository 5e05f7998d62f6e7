/* The rows of a source by their keys: by number where those lie close together, in order where they have one, by hash
 * else. */
#include "base/bisect.h"
#include "base/vectorised.h"
#include "sql/plan/join_private.h"

#include <string.h>

enum { FAR = 16 }; /* rows ahead, to fetch memory for */

void key_index_free(struct key_index *h)
{
    mem_free(h->slots);
    mem_free(h->direct);
    mem_free(h->next);
    mem_free(h->rows);
    mem_free(h->passes);
    mem_free(h->keys);
    *h = (struct key_index){0};
}

bool run_alloc_rows(struct run *r, uint32_t **out, uint64_t n)
{
    if (!run_alloc(r, (n + 1) * sizeof **out))
        return false;
    *out = mem_alloc((n + 1) * sizeof **out);
    if (!*out)
        r->rc = SQLITE_NOMEM;
    return *out != NULL;
}

/* ---- by hash ---- */

static inline uint64_t hash_key(const int64_t *key, uint32_t n_keys)
{
    uint64_t h = (uint64_t)key[0] * 0x9e3779b97f4a7c15ull;
    for (uint32_t k = 1; k < n_keys; k++)
        h = (h ^ (h >> 29) ^ (uint64_t)key[k]) * 0x9e3779b97f4a7c15ull;
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
    return h ^ h >> 32;
}

static bool grow_array(struct run *r, void **p, uint64_t size)
{
    void *bigger = run_alloc(r, size / 2) ? mem_realloc(*p, size) : NULL;
    if (!bigger) {
        r->rc = r->rc ? r->rc : SQLITE_NOMEM;
        return false;
    }
    *p = bigger;
    return true;
}

bool key_index_room(struct run *r, const struct plan_step *step, struct key_index *h, uint32_t n)
{
    if (h->n + n <= h->cap)
        return true;
    h->cap = h->cap ? h->cap * 2 : 4 * BATCH;
    return grow_array(r, (void **)&h->rows, (uint64_t)h->cap * sizeof *h->rows) &&
           grow_array(r, (void **)&h->keys, ((uint64_t)h->cap * step->n_keys + 1) * sizeof *h->keys);
}

static bool reserve_slots(struct run *r, struct key_index *h)
{
    uint32_t slots = 64, cap = h->n;
    bool ok = run_alloc_rows(r, &h->next, cap);
    while (slots < cap * 2ull && slots < 1u << 30)
        slots *= 2;
    h->mask = slots - 1;
    ok = ok && run_alloc(r, slots * sizeof *h->slots);
    h->slots = ok ? mem_zalloc(slots * sizeof *h->slots) : NULL;
    if (ok && !h->slots)
        r->rc = SQLITE_NOMEM;
    return h->slots != NULL;
}

/* The slot of a key: of its first row, or a free one. */
static inline uint64_t *hash_find(const struct key_index *h, uint32_t n_keys, const int64_t *key, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & h->mask;
    uint64_t tag = hash >> 32;
    for (;; at = (at + 1) & h->mask) {
        uint64_t slot = h->slots[at];
        if (!slot)
            return &h->slots[at];
        if (slot >> 32 != tag)
            continue;
        const int64_t *there = h->keys + (size_t)((uint32_t)slot - 1) * n_keys;
        bool same = true;
        for (uint32_t k = 0; k < n_keys; k++)
            same &= there[k] == key[k];
        if (same)
            return &h->slots[at];
    }
}

/* From the last row to the first, each in front of those of its key: they stand ascending then. */
static void link_rows(struct run *r, const struct plan_step *step, struct key_index *h)
{
    uint32_t n_keys = step->n_keys;
    for (uint32_t i = h->n; i-- > 0 && !(i % BATCH == 0 && run_stopped(r));) {
        if (!n_keys) {
            h->next[i] = (uint32_t)h->slots[0];
            h->slots[0] = i + 1;
            continue;
        }
        if (i >= FAR)
            __builtin_prefetch(&h->slots[(uint32_t)hash_key(h->keys + (size_t)(i - FAR) * n_keys, n_keys) & h->mask],
                               1);
        const int64_t *key = h->keys + (size_t)i * n_keys;
        uint64_t hash = hash_key(key, n_keys), *slot = hash_find(h, n_keys, key, hash);
        h->next[i] = (uint32_t)*slot;
        *slot = hash >> 32 << 32 | (i + 1);
    }
}

void key_index_fetch(const struct key_index *h, uint32_t n_keys, const int64_t *keys, uint32_t i, uint32_t n)
{
    if (i + FAR < n)
        __builtin_prefetch(&h->slots[(uint32_t)hash_key(keys + (size_t)(i + FAR) * n_keys, n_keys) & h->mask]);
    if (i + FAR / 2 < n) {
        uint64_t slot = h->slots[(uint32_t)hash_key(keys + (size_t)(i + FAR / 2) * n_keys, n_keys) & h->mask];
        if (slot)
            __builtin_prefetch(h->keys + (size_t)((uint32_t)slot - 1) * n_keys);
    }
}

/* ---- in order ---- */

/* The key by which the rows ascend as they stand (times, most often); -1: none. Of several keys, one that alone tells
 * most rows apart. */
static int find_order(const struct key_index *h, uint32_t n_keys)
{
    for (uint32_t k = 0; k < n_keys; k++) {
        uint32_t i = 1, runs = 1;
        for (; i < h->n; i++) {
            int64_t before = h->keys[(size_t)(i - 1) * n_keys + k], word = h->keys[(size_t)i * n_keys + k];
            if (word < before)
                break;
            runs += word != before;
        }
        if (i >= h->n && h->n && (n_keys == 1 || runs * 8ull >= h->n))
            return (int)k;
    }
    return -1;
}

/* The first place whose key is not below the word, from where the last one was: rows often come in the same order. */
static uint32_t seek(struct key_index *h, uint32_t n_keys, int64_t word)
{
    const int64_t *keys = h->keys + h->sorted_by;
    uint32_t lo = 0, hi = h->n, step = 1, at = h->at;
    h->looked++;
    if (at < h->n && keys[(size_t)at * n_keys] < word) {
        for (lo = at + 1; step < h->n - at; step *= 2) {
            if (keys[(size_t)(at + step) * n_keys] >= word) {
                hi = at + step;
                break;
            }
            lo = at + step + 1;
        }
    } else {
        for (hi = at; step <= at; step *= 2) {
            if (keys[(size_t)(at - step) * n_keys] < word) {
                lo = at - step + 1;
                break;
            }
            hi = at - step;
        }
    }
    h->jumped += step;
    BISECT_RANGE(lo, hi, mid, keys[(size_t)mid * n_keys] < word);
    return h->at = lo;
}

/* ---- by number ---- */

enum { DIRECT_LEAST = 4096, DIRECT_PER_ROW = 4 };

/* Makes h->direct where the keys lie close together. False: r->rc. */
static bool number_keys(struct run *r, struct key_index *h)
{
    int64_t min = INT64_MAX, max = INT64_MIN;
    for (uint32_t i = 0; i < h->n; i++) {
        min = h->keys[i] < min ? h->keys[i] : min;
        max = h->keys[i] > max ? h->keys[i] : max;
    }
    uint64_t width = h->n ? (uint64_t)max - (uint64_t)min : 0;
    if (width >= DIRECT_LEAST + (uint64_t)h->n * DIRECT_PER_ROW)
        return true;
    if (!run_alloc_rows(r, &h->next, h->n) || !run_alloc(r, (width + 2) * sizeof *h->direct))
        return false;
    h->direct = mem_zalloc((width + 2) * sizeof *h->direct);
    if (!h->direct) {
        r->rc = SQLITE_NOMEM;
        return false;
    }
    h->base = h->n ? min : 0;
    h->width = h->n ? width + 1 : 0;
    h->unique = true;
    for (uint32_t i = h->n; i-- > 0;) { /* each in front of those of its key */
        uint32_t *first = &h->direct[(uint64_t)h->keys[i] - (uint64_t)h->base];
        h->unique &= *first == 0;
        h->next[i] = *first;
        *first = i + 1;
    }
    return true;
}

/* ---- any ---- */

bool key_index_finish(struct run *r, const struct plan_step *step, struct key_index *h)
{
    if (step->n_keys == 1 && !number_keys(r, h))
        return false;
    if (h->direct) {
        h->sorted_by = -1;
        return true;
    }
    h->sorted_by = step->n_ranges ? -1 : find_order(h, step->n_keys);
    if (h->sorted_by < 0 && reserve_slots(r, h))
        link_rows(r, step, h);
    return !r->rc;
}

enum { FEW_STEPS = 64, ENOUGH_LOOKS = 4 * BATCH };

void key_index_adapt(struct run *r, const struct plan_step *s, struct key_index *h)
{
    if (h->sorted_by < 0 || h->looked < ENOUGH_LOOKS || h->jumped < h->looked * FEW_STEPS)
        return;
    h->sorted_by = -1;
    if (reserve_slots(r, h))
        link_rows(r, s, h);
}

/* The first place, + 1, that may have the key; 0: none. */
static uint32_t first_place(struct key_index *h, uint32_t n_keys, const int64_t *key)
{
    if (!n_keys)
        return (uint32_t)h->slots[0];
    if (h->direct) {
        uint64_t at = (uint64_t)key[0] - (uint64_t)h->base;
        return at < h->width ? h->direct[at] : 0;
    }
    if (h->sorted_by < 0)
        return (uint32_t)*hash_find(h, n_keys, key, hash_key(key, n_keys));
    uint32_t at = seek(h, n_keys, key[h->sorted_by]);
    return at < h->n ? at + 1 : 0;
}

/* The place itself or the next, + 1, that has the key; 0: none. */
static uint32_t next_place(const struct key_index *h, uint32_t n_keys, const int64_t *key, uint32_t place)
{
    for (; h->sorted_by >= 0 && place; place = place < h->n ? place + 1 : 0) {
        const int64_t *there = h->keys + (size_t)(place - 1) * n_keys;
        if (there[h->sorted_by] != key[h->sorted_by])
            return 0;
        bool same = true;
        for (uint32_t k = 0; k < n_keys; k++)
            same &= there[k] == key[k];
        if (same)
            break;
    }
    return place;
}

uint32_t key_index_first(struct key_index *h, uint32_t n_keys, const int64_t *key)
{
    return next_place(h, n_keys, key, first_place(h, n_keys, key));
}

uint32_t key_index_next(const struct key_index *h, uint32_t n_keys, const int64_t *key, uint32_t place)
{
    if (h->sorted_by < 0)
        return h->next[place - 1];
    return next_place(h, n_keys, key, place < h->n ? place + 1 : 0);
}

/* ---- by row number ---- */

bool key_index_pass(struct run *r, const struct plan_step *step, struct key_index *h)
{
    struct scan scan;
    uint32_t rows[BATCH + 8], n, n_rows = r->tables[step->source]->n_rows;
    if (!step->n_tests)
        return true;
    if (!run_alloc(r, n_rows) || !(h->passes = mem_zalloc((size_t)n_rows + 1))) {
        r->rc = r->rc ? r->rc : SQLITE_NOMEM;
        return false;
    }
    scan_open(r, step, &scan);
    while (scan_next(r, &scan, step->source, rows, &n)) {
        h->n += n;
        for (uint32_t i = 0; i < n; i++)
            h->passes[rows[i]] = 1;
    }
    scan_close(&scan);
    return !r->rc;
}

VECTORISED static bool are_below(const int64_t *keys, uint32_t n, uint64_t end)
{
    uint64_t beyond = 0;
    for (uint32_t i = 0; i < n; i++)
        beyond |= (uint64_t)keys[i] >= end;
    return !beyond;
}

/* Without branches, since nobody can foresee them. */
uint32_t key_index_partners(const struct key_index *h, const int64_t *keys, uint32_t n, uint32_t n_rows,
                            uint32_t *found)
{
    static const uint8_t passes = 1;
    const uint8_t *all = h->passes ? h->passes : &passes;
    uint32_t n_found = 0;
    if (!h->passes && are_below(keys, n, n_rows)) {
        for (; n_found < n; n_found++)
            found[n_found] = n_found;
        return n;
    }
    for (uint32_t i = 0; i < n; i++) {
        bool there = (uint64_t)keys[i] < n_rows;
        found[n_found] = i;
        n_found += there & all[there && h->passes ? keys[i] : 0];
    }
    return n_found;
}
