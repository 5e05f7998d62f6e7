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
    uint32_t hash; /* low half of hash_bytes */
};

struct strpool {
    struct arena bytes;
    struct strpool_entry *entries; /* [1..n] */
    uint32_t n;
    uint32_t cap;
    uint32_t *slots; /* hash index: entry ids, 0 = free; a power of two */
    uint32_t slot_cap;
    bool has_nul; /* some string has a NUL byte inside */
    bool failed;
};

strid strpool_intern(struct strpool *s, const void *text, size_t len);
strid strpool_intern_str(struct strpool *s, const char *text);
strid strpool_printf(struct strpool *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The id of a string that is there already, else 0. */
strid strpool_find(const struct strpool *s, const void *text, size_t len);

static inline struct slice strpool_view(const struct strpool *s, strid id)
{
    return id ? slice_of(s->entries[id].text, s->entries[id].len) : slice_of("", 0);
}

/* NUL-terminated; NULL for id 0. Strings with NUL bytes inside look shorter this way. */
static inline const char *strpool_cstr(const struct strpool *s, strid id)
{
    return id ? s->entries[id].text : NULL;
}

void strpool_free(struct strpool *s);

#endif
