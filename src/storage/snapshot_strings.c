/* The string pool in a snapshot: written, and read in place, checked in blocks when they are first used. */
#include "base/hash.h"
#include "base/probe.h"
#include "storage/snapshot_file.h"
#include "storage/snapshot_writer.h"

/* ---- writing ---- */

/* The sum of a block of strings: of what describes them, and of their text. */
static uint64_t block_sum(const struct snapshot_string *strings, size_t n, const uint8_t *text, size_t len)
{
    struct checksum sum = checksum_of(strings, n * sizeof *strings, 0);
    checksum_add(&sum, checksum_of(text, len, 0));
    return sum.low;
}

struct string_sums {
    VEC(uint8_t) text; /* of one block */
    VEC(struct snapshot_string) strings;
    VEC(uint64_t) sums;
    uint32_t *slots;
    uint32_t slot_cap;
};

static uint32_t seeded_hash(const void *text, size_t len, uint32_t seed)
{
    return seed ? (uint32_t)hash_bytes_seeded(text, len, hash_u64(seed)) : strpool_hash(text, len);
}

/* Puts all strings into the index. False: they crowd, as those of a file that was made for it do (HASH_WALK_MAX). */
static bool index_strings(struct string_sums *b, const struct strpool *s, uint32_t seed)
{
    memset(b->slots, 0, (size_t)b->slot_cap * sizeof *b->slots);
    for (uint32_t id = 1; id <= s->n; id++) {
        struct slice text = strpool_view(s, id);
        uint32_t at, hash = seeded_hash(text.p, text.len, seed);
        probe_free(at, hash, b->slot_cap, b->slots[at]);
        if (!seed && ((at - hash) & (b->slot_cap - 1)) >= HASH_WALK_MAX)
            return false;
        b->slots[at] = id;
        b->strings.p[id - 1] = (struct snapshot_string){0, (uint32_t)text.len, hash};
    }
    return true;
}

/* Text goes out block by block; what describes the strings is kept until all text is there. */
static void write_text(struct snapshot_writer *w, struct string_sums *b)
{
    const struct strpool *s = &w->st->strings;
    uint64_t at = 0;
    snapshot_begin(w, SNAPSHOT_STRING_TEXT);
    for (uint32_t first = 1; first <= s->n && !w->rc; first += SNAPSHOT_BLOCK) {
        uint32_t n = s->n - first + 1 < SNAPSHOT_BLOCK ? s->n - first + 1 : SNAPSHOT_BLOCK;
        vec_clear(&b->text);
        for (uint32_t i = 0; i < n; i++) {
            struct slice text = strpool_view(s, first + i);
            if (!vec_reserve(&b->text, b->text.n + text.len + 1)) {
                snapshot_no_memory(w);
                return;
            }
            memcpy(b->text.p + b->text.n, text.p, text.len);
            b->text.n += text.len;
            b->text.p[b->text.n++] = 0;
            b->strings.p[first + i - 1].at = at;
            at += text.len + 1;
        }
        if (!vec_push(&b->sums, block_sum(b->strings.p + first - 1, n, b->text.p, b->text.n)))
            snapshot_no_memory(w);
        snapshot_put(w, b->text.p, b->text.n);
    }
    snapshot_end(w, SNAPSHOT_STRING_TEXT);
}

static void write_slots(struct snapshot_writer *w, struct string_sums *b)
{
    vec_clear(&b->sums);
    for (uint32_t i = 0; i < b->slot_cap; i += SNAPSHOT_BLOCK)
        if (!vec_push(&b->sums, checksum64(b->slots + i, SNAPSHOT_BLOCK * sizeof *b->slots)))
            snapshot_no_memory(w);
    snapshot_begin(w, SNAPSHOT_SLOTS);
    snapshot_put(w, b->slots, (size_t)b->slot_cap * sizeof *b->slots);
    snapshot_end(w, SNAPSHOT_SLOTS);
    snapshot_put_whole(w, SNAPSHOT_SLOT_SUMS, b->sums.p, b->sums.n * sizeof *b->sums.p);
}

void snapshot_write_strings(struct snapshot_writer *w)
{
    uint32_t n = w->st->strings.n;
    struct string_sums b = {.slot_cap = SNAPSHOT_BLOCK};
    while (b.slot_cap / 3 * 2 < n && b.slot_cap < 1u << 31)
        b.slot_cap *= 2;
    b.slots = mem_zalloc((size_t)b.slot_cap * sizeof *b.slots);
    if (!b.slots || n >= b.slot_cap || !vec_reserve(&b.strings, n)) {
        snapshot_no_memory(w);
    } else {
        b.strings.n = n;
        if (!index_strings(&b, &w->st->strings, 0)) {
            w->trailer.string_seed = (uint32_t)hash_u64(hash_secret() >> 1) | 1;
            index_strings(&b, &w->st->strings, w->trailer.string_seed);
        }
        write_text(w, &b);
        snapshot_begin(w, SNAPSHOT_STRINGS);
        snapshot_put(w, b.strings.p, b.strings.n * sizeof *b.strings.p);
        snapshot_end(w, SNAPSHOT_STRINGS);
        snapshot_put_whole(w, SNAPSHOT_STRING_SUMS, b.sums.p, b.sums.n * sizeof *b.sums.p);
        write_slots(w, &b);
        w->trailer.n_strings = n;
    }
    vec_free(&b.text);
    vec_free(&b.strings);
    vec_free(&b.sums);
    mem_free(b.slots);
}

/* ---- reading ---- */

static bool block_is_good(const struct snapshot *s, uint32_t block, uint64_t *text_bytes)
{
    uint32_t first = block * SNAPSHOT_BLOCK, n = s->n_strings - first;
    n = n < SNAPSHOT_BLOCK ? n : SNAPSHOT_BLOCK;
    const struct snapshot_string *e = s->strings + first;
    uint64_t from = e->at, at = from;
    for (uint32_t i = 0; i < n; i++) {
        if (e[i].at != at || at >= s->text_len || e[i].len >= s->text_len - at || s->text[at + e[i].len] != 0)
            return false;
        at += (uint64_t)e[i].len + 1;
    }
    *text_bytes = at - from;
    return block_sum(e, n, s->text + from, at - from) == s->string_sums[block];
}

static bool check_block(struct snapshot *s, uint32_t block)
{
    uint64_t bytes;
    if (__atomic_load_n(&s->strings_checked[block], __ATOMIC_ACQUIRE))
        return true;
    bool good = block_is_good(s, block, &bytes);
    if (good && !__atomic_exchange_n(&s->strings_checked[block], 1, __ATOMIC_ACQ_REL))
        good = __atomic_add_fetch(&s->text_checked, bytes, __ATOMIC_RELAXED) <= s->text_len;
    if (!good)
        snapshot_note_damage(s, "strings");
    return good;
}

static struct slice view(void *ctx, strid id)
{
    struct snapshot *s = ctx;
    if (id - 1 >= s->n_strings || !check_block(s, (id - 1) / SNAPSHOT_BLOCK))
        return slice_of("", 0);
    const struct snapshot_string *e = &s->strings[id - 1];
    return slice_of(s->text + e->at, e->len);
}

static bool check_slots(struct snapshot *s, uint32_t block)
{
    if (__atomic_load_n(&s->slots_checked[block], __ATOMIC_ACQUIRE))
        return true;
    if (checksum64(s->slots + (size_t)block * SNAPSHOT_BLOCK, SNAPSHOT_BLOCK * sizeof *s->slots) !=
        s->slot_sums[block]) {
        snapshot_note_damage(s, "index of strings");
        return false;
    }
    __atomic_store_n(&s->slots_checked[block], 1, __ATOMIC_RELEASE);
    return true;
}

/* A file may say that no slot is free: the walk ends after all of them. */
static strid find(void *ctx, const void *text, size_t len, uint32_t hash)
{
    struct snapshot *s = ctx;
    hash = s->string_seed ? seeded_hash(text, len, s->string_seed) : hash;
    uint32_t at = hash & (s->slot_cap - 1);
    for (uint32_t i = 0; i < s->slot_cap; i++, at = (at + 1) & (s->slot_cap - 1)) {
        uint32_t id;
        if (!check_slots(s, at / SNAPSHOT_BLOCK) || !(id = s->slots[at]))
            return 0;
        if (id > s->n_strings) {
            snapshot_note_damage(s, "index of strings");
            return 0;
        }
        if (s->strings[id - 1].hash != hash)
            continue;
        struct slice found = view(s, id);
        if (found.len == len && (!len || memcmp(found.p, text, len) == 0))
            return id;
    }
    return 0;
}

int snapshot_open_strings(struct snapshot *s, const struct snapshot_trailer *t)
{
    uint64_t n, n_sums, n_slots, n_slot_sums, blocks = ((uint64_t)t->n_strings + SNAPSHOT_BLOCK - 1) / SNAPSHOT_BLOCK;
    s->strings = snapshot_section_at(s, SNAPSHOT_STRINGS, &n);
    s->text = snapshot_section_at(s, SNAPSHOT_STRING_TEXT, &s->text_len);
    s->string_sums = snapshot_section_at(s, SNAPSHOT_STRING_SUMS, &n_sums);
    s->slots = snapshot_section_at(s, SNAPSHOT_SLOTS, &n_slots);
    s->slot_sums = snapshot_section_at(s, SNAPSHOT_SLOT_SUMS, &n_slot_sums);
    s->n_strings = t->n_strings;
    if (n != t->n_strings || n_sums != blocks || n_slots > UINT32_MAX || n_slots < SNAPSHOT_BLOCK ||
        (n_slots & (n_slots - 1)) || n_slot_sums != n_slots / SNAPSHOT_BLOCK)
        return -MRD_EFORMAT;
    s->slot_cap = (uint32_t)n_slots;
    s->string_seed = t->string_seed;
    s->strings_checked = mem_zalloc((size_t)blocks + 1);
    s->slots_checked = mem_zalloc((size_t)n_slot_sums + 1);
    return s->strings_checked && s->slots_checked ? 0 : -MRD_ENOMEM;
}

void snapshot_use_strings(struct snapshot *s, struct strpool *pool, bool has_nul)
{
    strpool_set_base(pool, (struct strpool_base){view, find, s}, s->n_strings, has_nul);
}
