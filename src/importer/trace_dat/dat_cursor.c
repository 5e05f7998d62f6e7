/* Owns reading numbers in the byte order of a file. */
#include "importer/trace_dat/dat_file.h"

static uint64_t number(struct dat_cursor *c, unsigned size)
{
    uint64_t v = 0;
    if ((size_t)(c->end - c->p) < size) {
        c->bad = true;
        c->p = c->end;
        return 0;
    }
    for (unsigned i = 0; i < size; i++)
        v = v << 8 | c->p[c->big ? i : size - 1 - i];
    c->p += size;
    return v;
}

uint16_t dat_u16(struct dat_cursor *c)
{
    return (uint16_t)number(c, 2);
}

uint32_t dat_u32(struct dat_cursor *c)
{
    return (uint32_t)number(c, 4);
}

uint64_t dat_u64(struct dat_cursor *c)
{
    return number(c, 8);
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
