/* A view of bytes that somebody else owns. */
#ifndef MERIDIAN_BASE_SLICE_H
#define MERIDIAN_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const uint8_t *p; /* may be NULL when len is 0 */
    size_t len;
};

static inline struct slice slice_of(const void *p, size_t len)
{
    return (struct slice){p, len};
}

static inline struct slice slice_str(const char *s)
{
    return (struct slice){(const uint8_t *)s, strlen(s)};
}

static inline bool slice_eq(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

static inline bool slice_eq_str(struct slice a, const char *s)
{
    return slice_eq(a, slice_str(s));
}

/* The order of bytes: below, at or above 0. */
static inline int slice_cmp(struct slice a, struct slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.len > b.len) - (a.len < b.len);
}

static inline bool slice_starts(struct slice a, const char *prefix)
{
    size_t n = strlen(prefix);
    return a.len >= n && memcmp(a.p, prefix, n) == 0;
}

#endif
