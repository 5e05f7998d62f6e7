/* Reads numbers in the byte order of a file. */
#include "importer/trace_dat/dat_file.h"

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
