/* Checks what a snapshot says of its columns: headers of chunks when it is opened, codes when they are first read. */
#include "base/vectorised.h"
#include "storage/snapshot_file.h"

/* ---- codes ---- */

#define CODE_RANGE(name, type)                                                                                         \
    VECTORISED static void name(const type *v, uint32_t n, uint64_t *least, uint64_t *most)                            \
    {                                                                                                                  \
        type lo = v[0], hi = v[0];                                                                                     \
        for (uint32_t i = 1; i < n; i++) {                                                                             \
            lo = v[i] < lo ? v[i] : lo;                                                                                \
            hi = v[i] > hi ? v[i] : hi;                                                                                \
        }                                                                                                              \
        *least = lo;                                                                                                   \
        *most = hi;                                                                                                    \
    }
CODE_RANGE(range_u8, uint8_t)
CODE_RANGE(range_u16, uint16_t)
CODE_RANGE(range_u32, uint32_t)

static bool is_float_kind(uint8_t kind)
{
    return kind >= CHUNK_U8F && kind <= CHUNK_U32F;
}

/* Where a whole double stands among all. */
static int64_t order_of_whole(int64_t v)
{
    return column_f64_order(column_f64_word((double)v));
}

/* Words of their own width: each within the range that the header names, or NULL where it says that there are. */
static bool raw_is_good(const struct col_chunk *k, const int64_t *v, uint32_t n, enum col_type type)
{
    int64_t null = column_null(type);
    for (uint32_t i = 0; i < n; i++) {
        int64_t order = column_order(type, v[i]);
        if (v[i] == null ? !k->has_null : order < k->min || order > k->max)
            return false;
    }
    return true;
}

/* Whether the codes stand for words within the range of the header. Sizes of arrays and rows of other tables are made
 * of words: whoever has seen the header trusts it. */
static bool codes_are_good(const struct col_chunk *k, const void *codes, uint32_t n, enum col_type type)
{
    uint64_t least, most;
    if (k->kind == CHUNK_CONST)
        return true;
    if (k->kind == CHUNK_RAW)
        return raw_is_good(k, codes, n, type);
    if (k->kind == CHUNK_BLOCKS) {
        bool nulls;
        return col_blocks_check(codes, k->bytes, n, (uint64_t)k->max - (uint64_t)k->min, &nulls) &&
               (!nulls || k->has_null);
    }
    uint32_t width = col_chunk_width(k->kind);
    if (width == sizeof(uint8_t))
        range_u8(codes, n, &least, &most);
    else if (width == sizeof(uint16_t))
        range_u16(codes, n, &least, &most);
    else
        range_u32(codes, n, &least, &most);
    if (is_float_kind(k->kind))
        return order_of_whole(k->base + (int64_t)least) >= k->min && order_of_whole(k->base + (int64_t)most) <= k->max;
    bool nullable = k->kind >= CHUNK_U8N && k->kind <= CHUNK_U32N;
    uint64_t highest = (1ull << (8 * col_chunk_width(k->kind))) - 1;
    if (nullable && most == highest) {
        if (!k->has_null)
            return false;
        most = 0; /* the largest but NULL: bounded by what a header's base may be (header_is_good()) */
        for (uint32_t i = 0; i < n; i++) {
            uint64_t code = k->kind == CHUNK_U8N    ? ((const uint8_t *)codes)[i]
                            : k->kind == CHUNK_U16N ? ((const uint16_t *)codes)[i]
                                                    : ((const uint32_t *)codes)[i];
            most = code != highest && code > most ? code : most;
        }
    }
    if (type == COL_STR && k->base == 0 && least == 0) /* NULL */
        return k->has_null && (int64_t)most <= (k->min > k->max ? 0 : k->max);
    if (nullable && least == highest) /* all NULL */
        return true;
    return k->min <= k->max && most <= (uint64_t)k->max - (uint64_t)k->base;
}

static uint32_t rows_of_chunk(const struct snapshot *s, const struct column *c, uint32_t chunk)
{
    return chunk + 1 < c->n_chunks ? COL_CHUNK_ROWS : s->last_rows[c->chunks + chunk - s->chunks];
}

void snapshot_check_chunk(struct column_source *source, const struct column *c, uint32_t chunk)
{
    struct snapshot *s = (struct snapshot *)source;
    const struct col_chunk *k = &c->chunks[chunk];
    size_t at = (size_t)(k - s->chunks);
    uint32_t n = rows_of_chunk(s, c, chunk);
    const void *codes = column_codes(c, k);
    if (checksum64(codes, col_chunk_bytes(k, n)) != s->chunk_sums[at] ||
        !codes_are_good(k, codes, n, (enum col_type)c->type))
        snapshot_note_damage(s, "rows of tables");
    __atomic_store_n(&s->checked[at], 1, __ATOMIC_RELEASE);
}

/* ---- headers ---- */

/* The range that words of a type may have. */
static bool in_range(const struct snapshot *s, int64_t lo, int64_t hi, enum col_type type)
{
    switch (type) {
    case COL_STR:
        return lo >= 0 && hi <= (int64_t)s->n_strings;
    case COL_U32:
        return lo >= 0 && hi <= UINT32_MAX;
    case COL_I32:
        return lo >= INT32_MIN && hi <= INT32_MAX;
    default:
        return true;
    }
}

/* A header whose codes may all be 0: that is what damaged data reads as. */
static bool header_is_good(const struct snapshot *s, const struct col_chunk *k, uint32_t rows, enum col_type type)
{
    enum { WHOLE_BITS = 53 };
    const struct snapshot_place *data = &s->trailer->sections[SNAPSHOT_DATA];
    uint8_t flags[3]; /* a bool that is neither would be undefined */
    memcpy(&flags[0], &k->has_null, 1);
    memcpy(&flags[1], &k->sorted, 1);
    memcpy(&flags[2], &k->zero_null, 1);
    if (k->kind >= CHUNK_KINDS || flags[0] > 1 || flags[1] > 1 || flags[2] > 1 ||
        (is_float_kind(k->kind) && type != COL_F64))
        return false;
    bool empty = k->min > k->max;
    if (!empty && !in_range(s, k->min, k->max, type))
        return false;
    if (k->kind == CHUNK_CONST) {
        int64_t order = column_order(type, k->base);
        return k->base == column_null(type) ? k->has_null : !empty && order >= k->min && order <= k->max;
    }
    uint64_t len = col_chunk_bytes(k, rows), end = data->offset + data->len - SNAPSHOT_SPARE;
    if (k->at % 8 || k->at < data->offset || k->at > end || len > end - k->at)
        return false;
    if (k->kind == CHUNK_RAW) /* integers that codes would hold have codes: 0 need not be among these */
        return !empty && (type == COL_F64 || (uint64_t)k->max - (uint64_t)k->min >= UINT32_MAX);
    if (k->kind == CHUNK_BLOCKS)
        return !empty && type != COL_F64 && k->zero_null == (type == COL_STR) && k->base == k->min &&
               (uint64_t)k->max - (uint64_t)k->min < UINT32_MAX;
    if (type == COL_F64)
        return is_float_kind(k->kind) && k->base >= -(INT64_C(1) << WHOLE_BITS) &&
               k->base <= INT64_C(1) << WHOLE_BITS && order_of_whole(k->base) == k->min;
    if (type == COL_STR && k->has_null && k->base == 0)
        return true;
    return empty ? k->base == 0 : k->base == k->min;
}

bool snapshot_column_is_good(const struct snapshot *s, const struct snapshot_column *c, uint32_t rows,
                             enum col_type type)
{
    uint64_t chunks = ((uint64_t)rows + COL_CHUNK_ROWS - 1) / COL_CHUNK_ROWS;
    if (c->type != type || c->n_chunks != chunks || c->first_chunk > s->n_chunks ||
        chunks > s->n_chunks - c->first_chunk || c->has_null > 1 || c->sorted > 1 ||
        (c->min <= c->max && !in_range(s, c->min, c->max, type)))
        return false;
    for (uint64_t i = 0; i < chunks; i++) {
        const struct col_chunk *k = &s->chunks[c->first_chunk + i];
        uint32_t n = i + 1 < chunks ? COL_CHUNK_ROWS : rows - (uint32_t)(i * COL_CHUNK_ROWS);
        if (!header_is_good(s, k, n, type) || (k->has_null && !c->has_null) ||
            (k->min <= k->max && (k->min < c->min || k->max > c->max)))
            return false;
        if (i + 1 == chunks)
            s->last_rows[c->first_chunk + i] = (uint16_t)n;
    }
    return true;
}
