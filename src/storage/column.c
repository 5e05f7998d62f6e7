/* Packs columns: sealed chunks, changes of packed values, summaries. */
#include "storage/column_codes.h"

#include "base/alloc.h"
#include "base/vectorised.h"

struct span {
    int64_t min, max; /* min > max: no value */
    uint32_t nulls;
    bool sorted;
    bool whole; /* doubles: every one is a whole number that fits 53 bits, and no negative zero */
};

/* One pass as if no value were NULL. */
VECTORISED static void scan_plain(const int64_t *v, uint32_t n, struct span *s)
{
    int64_t min = v[0], max = v[0];
    uint64_t falls = 0;
    UNROLLED_4
    for (uint32_t i = 1; i < n; i++) {
        min = v[i] < min ? v[i] : min;
        max = v[i] > max ? v[i] : max;
        falls += v[i] < v[i - 1];
    }
    *s = (struct span){.min = min, .max = max, .sorted = !falls};
}

/* NULL is the least of all words (INT64_MIN, or 0 among string ids), so that the minimum tells whether there is one. */
static bool scan_without_nulls(const int64_t *v, uint32_t n, int64_t null, struct span *s)
{
    if (!n)
        return false;
    scan_plain(v, n, s);
    return s->min > null;
}

/* Masks instead of branches, counts as wide as the words: so that the compiler finds vector code for it. */
VECTORISED static void scan_nullable(const int64_t *v, uint32_t n, int64_t null, struct span *s)
{
    int64_t min = INT64_MAX, max = INT64_MIN;
    int64_t nulls = 0, falls = 0;
    UNROLLED_4
    for (uint32_t i = 0; i < n; i++) {
        int64_t word = v[i], is_null = -(int64_t)(word == null);
        int64_t lo = (word & ~is_null) | (INT64_MAX & is_null);
        int64_t hi = (word & ~is_null) | (INT64_MIN & is_null);
        nulls -= is_null;
        min = lo < min ? lo : min;
        max = hi > max ? hi : max;
    }
    UNROLLED_4
    for (uint32_t i = 1; i < n; i++)
        falls -= -(int64_t)(v[i] < v[i - 1]);
    *s = (struct span){.min = min, .max = max, .nulls = (uint32_t)nulls, .sorted = !falls && !nulls};
}

static void scan_ints(const int64_t *v, uint32_t n, int64_t null, struct span *s)
{
    if (!scan_without_nulls(v, n, null, s))
        scan_nullable(v, n, null, s);
}

/* Many columns hold one value (mostly NULL) for long stretches: seen before anything else is computed. */
VECTORISED static bool is_uniform(const int64_t *v)
{
    for (uint32_t i = 0; i < COL_CHUNK_ROWS; i += 64) {
        int64_t differ = 0;
        for (uint32_t k = 0; k < 64; k++)
            differ |= v[i + k] ^ v[0];
        if (differ)
            return false;
    }
    return true;
}

static bool is_whole(int64_t word)
{
    double d = column_f64(word);
    return d >= -9007199254740992.0 && d <= 9007199254740992.0 && d == (double)(int64_t)d && word != INT64_MIN;
}

static void scan_each_double(const int64_t *v, uint32_t n, struct span *s)
{
    *s = (struct span){.min = INT64_MAX, .max = INT64_MIN, .sorted = true, .whole = true};
    for (uint32_t i = 0; i < n; i++) {
        if (v[i] == COL_NULL_F64) {
            s->nulls++;
            continue;
        }
        int64_t order = column_f64_order(v[i]);
        if (order < s->max)
            s->sorted = false;
        if (order < s->min)
            s->min = order;
        if (order > s->max)
            s->max = order;
        s->whole = s->whole && is_whole(v[i]);
    }
    if (s->nulls)
        s->sorted = s->whole = false;
}

/* The same in vectors, as long as every value is a whole number of few bits; false when one is not. */
VECTORISED static bool scan_whole_doubles(const int64_t *v, uint32_t n, struct span *s)
{
    const double few = 0x1p50, rounds = 0x1.8p52; /* the sum of both has no bits for fractions */
    int64_t min = INT64_MAX, max = INT64_MIN, falls = 0, other = 0;
    for (uint32_t i = 0; i < n; i++) {
        double d = column_f64(v[i]);
        int64_t order = v[i] ^ (-(int64_t)(v[i] < 0) & INT64_MAX);
        min = order < min ? order : min;
        max = order > max ? order : max;
        other |= -(int64_t)(v[i] == INT64_MIN) | -(int64_t) !(d >= -few) | -(int64_t) !(d <= few) |
                 -(int64_t)(d + rounds - rounds != d);
    }
    for (uint32_t i = 1; i < n; i++)
        falls |= -(int64_t)(column_f64(v[i]) < column_f64(v[i - 1]));
    *s = (struct span){.min = min, .max = max, .sorted = !falls, .whole = true};
    return !other;
}

static void scan_doubles(const int64_t *v, uint32_t n, struct span *s)
{
    enum { FEW = 64 }; /* of other numbers, the first are of them, too */
    struct span begin;
    if (!scan_whole_doubles(v, n < FEW ? n : FEW, &begin) || !scan_whole_doubles(v, n, s))
        scan_each_double(v, n, s);
}

static void scan(const int64_t *v, uint32_t n, enum col_type type, struct span *s)
{
    if (type == COL_F64)
        scan_doubles(v, n, s);
    else
        scan_ints(v, n, column_null(type), s);
}

#define PACK(name, type)                                                                                               \
    VECTORISED static void name(const int64_t *v, type *out, int64_t base)                                             \
    {                                                                                                                  \
        for (uint32_t i = 0; i < COL_CHUNK_ROWS; i++)                                                                  \
            out[i] = (type)((uint64_t)v[i] - (uint64_t)base);                                                          \
    }
PACK(pack_u8, uint8_t)
PACK(pack_u16, uint16_t)
PACK(pack_u32, uint32_t)

#define PACK_NULLS(name, type)                                                                                         \
    VECTORISED static void name(const int64_t *v, type *out, int64_t base)                                             \
    {                                                                                                                  \
        for (uint32_t i = 0; i < COL_CHUNK_ROWS; i++)                                                                  \
            out[i] = (type)(((uint64_t)v[i] - (uint64_t)base) | -(uint64_t)(v[i] == COL_NULL)); /* NULL: all ones */   \
    }
PACK_NULLS(pack_u8n, uint8_t)
PACK_NULLS(pack_u16n, uint16_t)
PACK_NULLS(pack_u32n, uint32_t)

uint32_t col_chunk_width(uint8_t kind)
{
    static const uint8_t widths[CHUNK_KINDS] = {
        [CHUNK_CONST] = 0, [CHUNK_U8] = 1,   [CHUNK_U16] = 2, [CHUNK_U32] = 4,  [CHUNK_RAW] = 8, [CHUNK_U8N] = 1,
        [CHUNK_U16N] = 2,  [CHUNK_U32N] = 4, [CHUNK_U8F] = 1, [CHUNK_U16F] = 2, [CHUNK_U32F] = 4};
    return widths[kind];
}

enum packing {
    PACK_BYTES,
    PACK_SETTLES, /* of a column of settles */
    PACK_STEADY,  /* of one that is steady, too */
};

/* Packs COL_CHUNK_ROWS words into *c (whose old data is not touched). `v` is scratch: doubles may be rewritten in it.
 */
static bool pack(int64_t *v, enum col_type type, struct col_chunk *c, struct spill *spill, enum packing how)
{
    struct span s;
    bool uniform = is_uniform(v);
    if (!uniform && how >= PACK_SETTLES && column_pack_sequence(v, type, c))
        return true;
    if (!uniform && how == PACK_STEADY && column_pack_blocks(v, type, c, spill))
        return true;
    scan(v, uniform ? 1 : COL_CHUNK_ROWS, type, &s);
    if (uniform && s.nulls)
        s.nulls = COL_CHUNK_ROWS;
    *c = (struct col_chunk){.base = v[0], .min = s.min, .max = s.max, .has_null = s.nulls > 0, .sorted = s.sorted};
    if (s.nulls == COL_CHUNK_ROWS || (s.nulls == 0 && s.min == s.max)) {
        c->kind = CHUNK_CONST;
        return true;
    }
    int64_t min = s.min, max = s.max;
    bool packable = type != COL_F64 || s.whole;
    bool nulls = s.nulls > 0 && type != COL_STR; /* a string's NULL is id 0, a value like any other */
    if (type == COL_STR && s.nulls)
        min = 0;
    if (type == COL_F64 && s.whole) {
        for (uint32_t i = 0; i < COL_CHUNK_ROWS; i++)
            v[i] = (int64_t)column_f64(v[i]);
        min = (int64_t)column_f64(column_f64_order(s.min)); /* back from what they are ordered by */
        max = (int64_t)column_f64(column_f64_order(s.max));
    }
    uint64_t range = (uint64_t)max - (uint64_t)min + (nulls ? 1 : 0);
    unsigned width = !packable || range > UINT32_MAX || range < (nulls ? 1u : 0u) ? 8
                     : range > UINT16_MAX                                         ? 4
                     : range > UINT8_MAX                                          ? 2
                                                                                  : 1;
    c->data = column_codes_alloc(spill, (size_t)width * COL_CHUNK_ROWS);
    if (!c->data)
        return false;
    if (width == 8) {
        if (type == COL_F64 && s.whole)
            for (uint32_t i = 0; i < COL_CHUNK_ROWS; i++)
                v[i] = column_f64_word((double)v[i]);
        c->kind = CHUNK_RAW;
        memcpy(c->data, v, 8u * COL_CHUNK_ROWS);
        return true;
    }
    c->base = min;
    if (nulls)
        width == 1 ? pack_u8n(v, c->data, min) : width == 2 ? pack_u16n(v, c->data, min) : pack_u32n(v, c->data, min);
    else
        width == 1 ? pack_u8(v, c->data, min) : width == 2 ? pack_u16(v, c->data, min) : pack_u32(v, c->data, min);
    uint8_t narrowest = nulls ? CHUNK_U8N : type == COL_F64 ? CHUNK_U8F : CHUNK_U8;
    c->kind = (uint8_t)(narrowest + (width == 1 ? 0 : width == 2 ? 1 : 2));
    return true;
}

bool column_pack(int64_t *v, uint32_t n, enum col_type type, struct col_chunk *k)
{
    for (uint32_t i = n; i < COL_CHUNK_ROWS; i++) /* repeating a value changes neither range nor order */
        v[i] = v[n - 1];
    return pack(v, type, k, NULL, PACK_BYTES);
}

static bool reserve_chunk(struct column *c)
{
    if (c->n_chunks < c->cap_chunks)
        return true;
    uint32_t cap = c->cap_chunks ? c->cap_chunks * 2 : 4;
    struct col_chunk *grown = mem_realloc(c->chunks, cap * sizeof *grown);
    if (!grown)
        return false;
    c->chunks = grown;
    c->cap_chunks = cap;
    return true;
}

bool column_seal(struct column *c)
{
    if (!reserve_chunk(c))
        return false;
    enum packing how = !c->settles ? PACK_BYTES : c->steady ? PACK_STEADY : PACK_SETTLES;
    if (!pack(c->tail, c->type, &c->chunks[c->n_chunks], c->spill, how))
        return false;
    c->n_chunks++;
    if (c->settles)
        column_settle(c);
    return true;
}

bool column_append_chunk(struct column *c, int64_t word)
{
    if (!reserve_chunk(c))
        return false;
    bool is_null = word == column_null(c->type);
    int64_t order = column_order(c->type, word);
    c->chunks[c->n_chunks++] = (struct col_chunk){.kind = CHUNK_CONST,
                                                  .base = word,
                                                  .min = is_null ? INT64_MAX : order,
                                                  .max = is_null ? INT64_MIN : order,
                                                  .has_null = is_null,
                                                  .sorted = !is_null};
    return true;
}

#define UNPACK(name, type)                                                                                             \
    VECTORISED static void name(const type *v, uint32_t n, int64_t base, int64_t *out)                                 \
    {                                                                                                                  \
        for (uint32_t i = 0; i < n; i++)                                                                               \
            out[i] = base + v[i];                                                                                      \
    }
UNPACK(unpack_u8, uint8_t)
UNPACK(unpack_u16, uint16_t)
UNPACK(unpack_u32, uint32_t)

#define UNPACK_NULLS(name, type)                                                                                       \
    VECTORISED static void name(const type *v, uint32_t n, int64_t base, int64_t *out)                                 \
    {                                                                                                                  \
        for (uint32_t i = 0; i < n; i++)                                                                               \
            out[i] = v[i] == (type)-1 ? COL_NULL : base + v[i];                                                        \
    }
UNPACK_NULLS(unpack_u8n, uint8_t)
UNPACK_NULLS(unpack_u16n, uint16_t)
UNPACK_NULLS(unpack_u32n, uint32_t)

static void unpack_chunk(const struct col_chunk *k, const void *data, uint32_t at, uint32_t n, int64_t *out)
{
    switch (k->kind) {
    case CHUNK_U8:
        unpack_u8((const uint8_t *)data + at, n, k->base, out);
        break;
    case CHUNK_U16:
        unpack_u16((const uint16_t *)data + at, n, k->base, out);
        break;
    case CHUNK_U32:
        unpack_u32((const uint32_t *)data + at, n, k->base, out);
        break;
    case CHUNK_U8N:
        unpack_u8n((const uint8_t *)data + at, n, k->base, out);
        break;
    case CHUNK_U16N:
        unpack_u16n((const uint16_t *)data + at, n, k->base, out);
        break;
    case CHUNK_U32N:
        unpack_u32n((const uint32_t *)data + at, n, k->base, out);
        break;
    case CHUNK_RAW:
        memcpy(out, (const int64_t *)data + at, n * sizeof *out);
        break;
    case CHUNK_BLOCKS:
        col_blocks_unpack(data, k->base, k->zero_null ? 0 : COL_NULL, at, n, out);
        break;
    default:
        for (uint32_t i = 0; i < n; i++)
            out[i] = col_chunk_get(k, data, at + i);
    }
}

void col_chunk_unpack(const struct col_chunk *k, const void *codes, uint32_t n, int64_t *out)
{
    unpack_chunk(k, codes, 0, n, out);
}

void column_unpack(const struct column *c, uint32_t first, uint32_t n, int64_t *out)
{
    uint32_t chunk = first >> COL_CHUNK_SHIFT, at = first & COL_CHUNK_MASK;
    if (chunk >= c->n_chunks) {
        memcpy(out, c->tail + at, n * sizeof *out);
        return;
    }
    const struct col_chunk *k = column_chunk(c, chunk);
    unpack_chunk(k, column_codes(c, k), at, n, out);
}

/* Writes the word in place when the chunk's width holds it. */
static bool set_in_place(struct col_chunk *k, uint32_t i, int64_t word, int64_t null)
{
    if (k->kind == CHUNK_CONST)
        return k->base == word;
    if (k->kind == CHUNK_RAW) {
        ((int64_t *)k->data)[i] = word;
        return true;
    }
    if (k->kind == CHUNK_BLOCKS)
        return false;
    if (k->kind >= CHUNK_U8F) {
        if (!is_whole(word))
            return false;
        word = (int64_t)column_f64(word);
    }
    bool nullable = k->kind >= CHUNK_U8N && k->kind <= CHUNK_U32N;
    uint32_t width = col_chunk_width(k->kind);
    uint64_t highest = (1ull << (8 * width)) - 1;
    uint64_t code = (uint64_t)word - (uint64_t)k->base;
    if (nullable && word == null)
        code = highest;
    else if (code > highest - (nullable ? 1 : 0) || word < k->base)
        return false;
    switch (width) {
    case 1:
        ((uint8_t *)k->data)[i] = (uint8_t)code;
        break;
    case 2:
        ((uint16_t *)k->data)[i] = (uint16_t)code;
        break;
    default:
        ((uint32_t *)k->data)[i] = (uint32_t)code;
    }
    return true;
}

bool column_set_sealed(struct column *c, uint32_t row, int64_t word)
{
    uint32_t chunk = row >> COL_CHUNK_SHIFT, i = row & COL_CHUNK_MASK;
    struct col_chunk *k = &c->chunks[chunk];
    int64_t null = column_null(c->type);
    if (set_in_place(k, i, word, null)) {
        int64_t order = column_order(c->type, word);
        if (word == null) {
            k->has_null = true;
        } else if (k->min > k->max) {
            k->min = k->max = order;
        } else {
            k->min = order < k->min ? order : k->min;
            k->max = order > k->max ? order : k->max;
        }
        k->sorted = k->sorted && k->kind == CHUNK_CONST;
        return true;
    }
    int64_t *v = mem_alloc(COL_CHUNK_ROWS * sizeof *v);
    struct col_chunk wider;
    if (!v)
        return false;
    column_unpack(c, chunk << COL_CHUNK_SHIFT, COL_CHUNK_ROWS, v);
    v[i] = word;
    bool ok = pack(v, c->type, &wider, c->spill, PACK_BYTES);
    mem_free(v);
    if (!ok)
        return false;
    column_codes_free(c->spill, k);
    *k = wider;
    return true;
}

void column_init(struct column *c, enum col_type type)
{
    *c = (struct column){.type = (uint8_t)type, .sorted = true, .min = INT64_MAX, .max = INT64_MIN};
    c->summary = (struct col_chunk){.min = INT64_MAX, .max = INT64_MIN, .sorted = true};
}

void column_summarize(struct column *c, uint32_t tail_n)
{
    struct span s;
    scan(c->tail, tail_n, c->type, &s);
    c->summary = (struct col_chunk){.min = s.min, .max = s.max, .has_null = s.nulls > 0, .sorted = s.sorted};
    c->has_null = s.nulls > 0;
    c->sorted = s.sorted;
    c->min = s.min;
    c->max = s.max;
    const struct col_chunk *before = NULL;
    for (uint32_t i = 0; i < c->n_chunks; i++) {
        const struct col_chunk *k = &c->chunks[i];
        c->has_null |= k->has_null;
        c->min = k->min < c->min ? k->min : c->min;
        c->max = k->max > c->max ? k->max : c->max;
        c->sorted = c->sorted && k->sorted && (!before || before->max <= k->min);
        before = k;
    }
    if (before && tail_n)
        c->sorted = c->sorted && before->max <= s.min;
}

void column_retype(struct column *c, enum col_type type, uint32_t tail_n)
{
    c->type = type;
    for (uint32_t i = 0; i < c->n_chunks; i++)
        c->chunks[i].base = column_null(type);
    for (uint32_t i = 0; i < tail_n; i++)
        c->tail[i] = column_null(type);
}

void column_clear(struct column *c)
{
    for (uint32_t i = 0; !c->map && i < c->n_chunks; i++)
        column_codes_free(c->spill, &c->chunks[i]);
    c->n_chunks = 0;
    c->settled = 0;
}

void column_free(struct column *c)
{
    column_clear(c);
    if (!c->map) {
        mem_free(c->chunks);
        mem_free(c->tail);
    }
    *c = (struct column){.type = c->type};
}
