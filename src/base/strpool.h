/* The string pool: every distinct string once, known by a small dense number.
 *
 * Id 0 is "no string" (SQL NULL); the empty string has an id of its own. Strings are copied in, NUL-terminated, and
 * live as long as the pool; views handed out stay valid. When memory runs out the functions return 0 and latch
 * `failed`. */
#ifndef MERIDIAN_BASE_STRPOOL_H
#define MERIDIAN_BASE_STRPOOL_H

#include "base/arena.h"
#include "base/slice.h"

typedef uint32_t strid;

struct strpool_entry {
    const char *text; /* NUL-terminated */
    uint32_t len;
    uint32_t hash; /* low half of hash_bytes_seeded */
};

/* The first strings of a pool may be somewhere else, in a mapped file for instance: ids 1 .. n_base are those. */
struct strpool_base {
    /* The string of an id in 1 .. n_base, NUL-terminated. */
    struct slice (*view)(void *ctx, strid id);
    /* The id of a string, 0 when it is none of them. */
    strid (*find)(void *ctx, const void *text, size_t len, uint32_t hash);
    void *ctx;
};

struct strpool {
    struct arena bytes;
    struct strpool_entry *entries; /* [1..n - n_base], ids from n_base + 1 on */
    uint32_t n_base;               /* 0: there is no base */
    uint32_t n;                    /* with those of the base */
    uint32_t cap;
    uint32_t *slots; /* hash index: indices of entries, 0 = free; a power of two */
    uint32_t slot_cap;
    uint64_t seed; /* 0 until strings crowd (HASH_WALK_MAX) */
    bool has_nul;  /* some string has a NUL byte inside */
    bool failed;
    struct strpool_base base;
};

/* Gives an empty pool a base of `n` strings. */
void strpool_set_base(struct strpool *s, struct strpool_base base, uint32_t n, bool has_nul);

strid strpool_intern(struct strpool *s, const void *text, size_t len);
strid strpool_intern_str(struct strpool *s, const char *text);
strid strpool_printf(struct strpool *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The id of a string that is there already, else 0. */
strid strpool_find(const struct strpool *s, const void *text, size_t len);

struct slice strpool_base_view(const struct strpool *s, strid id);

/* An id of the base and "no string" take one and the same branch: a pool without a base pays nothing for it. */
static inline struct slice strpool_view(const struct strpool *s, strid id)
{
    if (__builtin_expect(id <= s->n_base || id > s->n, 0)) /* beyond n: what a damaged base names */
        return strpool_base_view(s, id);
    return slice_of(s->entries[id - s->n_base].text, s->entries[id - s->n_base].len);
}

/* NUL-terminated; "" for id 0 as for the empty string. Strings with NUL bytes inside look shorter this way. */
static inline const char *strpool_cstr(const struct strpool *s, strid id)
{
    return (const char *)strpool_view(s, id).p;
}

/* The hash by which a string is found, as a base is to compute it. */
uint32_t strpool_hash(const void *text, size_t len);

void strpool_free(struct strpool *s);

#endif
