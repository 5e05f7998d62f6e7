/* FNV-1a, 64 bits: the hash that formats and protocols name (machine ids, trace uuids, SQL's hash()). Unlike hash.h its
 * values are fixed. */
#ifndef MERIDIAN_BASE_FNV_H
#define MERIDIAN_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV1A_BASIS 0xcbf29ce484222325u

/* Goes on with `h` (FNV1A_BASIS to begin) over `n` bytes. */
static inline uint64_t fnv1a(uint64_t h, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

#endif
