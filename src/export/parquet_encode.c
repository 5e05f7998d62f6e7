/* Encodes values as Parquet has them: the hybrid of runs and bits, and differences. */
#include "export/parquet_encode.h"

enum { BLOCK = 128, MINIBLOCKS = 4, MINIBLOCK = BLOCK / MINIBLOCKS, SHORTEST_RUN = 16 };

void parquet_put(struct parquet_bytes *b, const void *bytes, size_t n)
{
    if (b->failed || !vec_reserve(&b->out, b->out.n + n)) {
        b->failed = true;
        return;
    }
    if (n)
        memcpy(b->out.p + b->out.n, bytes, n);
    b->out.n += n;
}

void parquet_put_varint(struct parquet_bytes *b, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (uint8_t)(v | 0x80);
    bytes[n++] = (uint8_t)v;
    parquet_put(b, bytes, n);
}

unsigned parquet_width(uint64_t max)
{
    return max ? 64 - (unsigned)__builtin_clzll(max) : 0;
}

/* Values of `width` bits one behind the other, the lowest bit first. */
struct packer {
    struct parquet_bytes *to;
    __uint128_t bits;
    unsigned n;
};

static void pack(struct packer *p, uint64_t value, unsigned width)
{
    p->bits |= (__uint128_t)value << p->n;
    p->n += width;
    uint8_t bytes[16];
    size_t whole = p->n / 8;
    for (size_t i = 0; i < whole; i++) {
        bytes[i] = (uint8_t)p->bits;
        p->bits >>= 8;
    }
    p->n -= (unsigned)(8 * whole);
    parquet_put(p->to, bytes, whole);
}

static size_t run_length(const uint32_t *values, size_t n)
{
    size_t run = 1;
    while (run < n && values[run] == values[0])
        run++;
    return run;
}

static void put_groups(struct parquet_bytes *b, const uint32_t *values, size_t n, unsigned width)
{
    struct packer p = {.to = b};
    size_t groups = (n + 7) / 8;
    parquet_put_varint(b, groups << 1 | 1);
    for (size_t i = 0; i < groups * 8; i++)
        pack(&p, i < n ? values[i] : 0, width);
}

void parquet_put_hybrid(struct parquet_bytes *b, const uint32_t *values, size_t n, unsigned width)
{
    size_t at = 0, pending = 0; /* values[at - pending, at) wait to be packed; a multiple of 8 but at the end */
    while (at < n) {
        size_t run = run_length(values + at, n - at);
        size_t fill = pending % 8 ? 8 - pending % 8 : 0; /* of the run, to complete the group before it */
        if (run < SHORTEST_RUN + fill) {
            at += run;
            pending += run;
            continue;
        }
        at += fill;
        pending += fill;
        run -= fill;
        if (pending)
            put_groups(b, values + at - pending, pending, width);
        pending = 0;
        parquet_put_varint(b, run << 1);
        parquet_put(b, &values[at], (width + 7) / 8);
        at += run;
    }
    if (pending)
        put_groups(b, values + at - pending, pending, width);
}

static uint64_t zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

/* A block: the least difference, the width of each part, and the parts that have values. */
static void put_delta_block(struct parquet_bytes *b, const int64_t *deltas, size_t n)
{
    int64_t least = deltas[0];
    uint8_t widths[MINIBLOCKS] = {0};
    for (size_t i = 1; i < n; i++)
        least = deltas[i] < least ? deltas[i] : least;
    for (size_t i = 0; i < n; i++) {
        unsigned width = parquet_width((uint64_t)deltas[i] - (uint64_t)least);
        if (width > widths[i / MINIBLOCK])
            widths[i / MINIBLOCK] = (uint8_t)width;
    }
    parquet_put_varint(b, zigzag(least));
    parquet_put(b, widths, sizeof widths);
    for (size_t part = 0; part * MINIBLOCK < n; part++) {
        struct packer p = {.to = b};
        for (size_t i = part * MINIBLOCK; i < (part + 1) * MINIBLOCK; i++)
            pack(&p, i < n ? (uint64_t)deltas[i] - (uint64_t)least : 0, widths[part]);
    }
}

void parquet_put_deltas(struct parquet_bytes *b, const int64_t *values, size_t n)
{
    int64_t deltas[BLOCK];
    parquet_put_varint(b, BLOCK);
    parquet_put_varint(b, MINIBLOCKS);
    parquet_put_varint(b, n);
    parquet_put_varint(b, zigzag(n ? values[0] : 0));
    for (size_t at = 1; at < n;) {
        size_t part = n - at < BLOCK ? n - at : BLOCK;
        for (size_t i = 0; i < part; i++) /* differences wrap around, as readers add them */
            deltas[i] = (int64_t)((uint64_t)values[at + i] - (uint64_t)values[at + i - 1]);
        put_delta_block(b, deltas, part);
        at += part;
    }
}
