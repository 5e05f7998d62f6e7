/* Reads numbers in the byte order of a file. */
#include "importer/trace_dat/dat_file.h"

static bool take(struct dat_cursor *c, void *to, unsigned size)
{
    if ((size_t)(c->end - c->p) < size) {
        c->bad = true;
        c->p = c->end;
        return false;
    }
    memcpy(to, c->p, size);
    c->p += size;
    return true;
}

uint16_t dat_u16(struct dat_cursor *c)
{
    uint16_t v;
    return !take(c, &v, sizeof v) ? 0 : c->big ? __builtin_bswap16(v) : v;
}

uint32_t dat_u32(struct dat_cursor *c)
{
    uint32_t v;
    return !take(c, &v, sizeof v) ? 0 : c->big ? __builtin_bswap32(v) : v;
}

uint64_t dat_u64(struct dat_cursor *c)
{
    uint64_t v;
    return !take(c, &v, sizeof v) ? 0 : c->big ? __builtin_bswap64(v) : v;
}

struct slice dat_bytes(struct dat_cursor *c, uint64_t n)
{
    if (n > (size_t)(c->end - c->p)) {
        c->bad = true;
        n = (uint64_t)(c->end - c->p);
    }
    struct slice s = slice_of(c->p, (size_t)n);
    c->p += n;
    return s;
}

struct slice dat_text(struct dat_cursor *c)
{
    const uint8_t *nul = c->p < c->end ? memchr(c->p, 0, (size_t)(c->end - c->p)) : NULL;
    if (!nul) {
        c->bad = true;
        return dat_bytes(c, (uint64_t)(c->end - c->p));
    }
    struct slice s = slice_of(c->p, (size_t)(nul - c->p));
    c->p = nul + 1;
    return s;
}
