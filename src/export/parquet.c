/* Parquet: a row group for each block, in it a chunk for each column: a page of a dictionary when that gains, and a
 * page of data, compressed with zstd. Texts that repeat and doubles of few values are numbers into a dictionary,
 * integers are differences (DELTA_BINARY_PACKED), the rest plain; statistics of every chunk.
 *
 * Numbers of fields are those of parquet.thrift (format 2.9). */
#include "export/parquet.h"

#include "base/alloc.h"
#include "export/parquet_encode.h"
#include "export/thrift.h"

#include <zstd.h>

enum { TYPE_INT64 = 2, TYPE_DOUBLE = 5, TYPE_BYTE_ARRAY = 6 };
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3, ENCODING_DELTA = 5, ENCODING_RLE_DICTIONARY = 8 };
enum { CODEC_ZSTD = 6, PAGE_DATA = 0, PAGE_DICTIONARY = 2, CONVERTED_UTF8 = 0 };
enum { REQUIRED = 0, OPTIONAL = 1 };
enum {
    SCHEMA_TYPE = 1,
    SCHEMA_REPETITION = 3,
    SCHEMA_NAME = 4,
    SCHEMA_CHILDREN = 5,
    SCHEMA_CONVERTED = 6,
    SCHEMA_LOGICAL = 10
};
enum { LOGICAL_STRING = 1 };
enum { PAGE_TYPE = 1, PAGE_SIZE = 2, PAGE_COMPRESSED = 3, PAGE_OF_DATA = 5, PAGE_OF_DICTIONARY = 7 };
enum { DATA_VALUES = 1, DATA_ENCODING = 2, DATA_DEFINITIONS = 3, DATA_REPETITIONS = 4 };
enum { DICTIONARY_VALUES = 1, DICTIONARY_ENCODING = 2 };
enum {
    FILE_VERSION = 1,
    FILE_SCHEMA = 2,
    FILE_ROWS = 3,
    FILE_GROUPS = 4,
    FILE_MADE_BY = 6,
    FILE_ORDERS = 7,
    ORDER_OF_TYPE = 1
};
enum { GROUP_COLUMNS = 1, GROUP_BYTES = 2, GROUP_ROWS = 3 };
enum { CHUNK_OFFSET = 2, CHUNK_META = 3 };
enum {
    META_TYPE = 1,
    META_ENCODINGS = 2,
    META_PATH = 3,
    META_CODEC = 4,
    META_VALUES = 5,
    META_BYTES = 6,
    META_COMPRESSED = 7,
    META_DATA_AT = 9,
    META_DICTIONARY_AT = 11,
    META_STATISTICS = 12,
};
enum { STATISTICS_NULLS = 3, STATISTICS_MAX = 5, STATISTICS_MIN = 6 };
enum { ZSTD_LEVEL = 1, LONGEST_STATISTIC = 64 };

struct parquet {
    struct parquet_bytes page; /* as it is before compression */
    struct thrift head;        /* of a page */
    struct thrift groups;      /* the row groups so far, for the end of the file */
    size_t n_groups;
    uint64_t rows;
    uint8_t *packed;
    size_t packed_cap;
    ZSTD_CCtx *zstd;
    int64_t *present; /* the integers of a column that are there */
    uint32_t *codes;
};

/* What is told of a chunk. */
struct chunk {
    uint64_t at, dictionary_at; /* 0: there is none */
    uint64_t bytes, compressed;
    uint64_t nulls;
    int encoding;
};

static int no_memory(struct error *err)
{
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

static int value_type(enum export_kind kind)
{
    return kind == EXPORT_INT64 ? TYPE_INT64 : kind == EXPORT_DOUBLE ? TYPE_DOUBLE : TYPE_BYTE_ARRAY;
}

int export_parquet_begin(struct export_writer *w, struct error *err)
{
    struct parquet *p = w->state = mem_zalloc(sizeof *p);
    if (!p)
        return no_memory(err);
    p->zstd = ZSTD_createCCtx();
    p->present = mem_alloc(EXPORT_BLOCK_ROWS * sizeof *p->present);
    p->codes = mem_alloc(EXPORT_BLOCK_ROWS * sizeof *p->codes);
    if (!p->zstd || !p->present || !p->codes)
        return no_memory(err);
    export_put(w->out, "PAR1", 4);
    return 0;
}

/* ---- pages ---- */

static int compress(struct parquet *p, size_t *size, struct error *err)
{
    const size_t bound = ZSTD_compressBound(p->page.out.n);
    if (bound > p->packed_cap) {
        mem_free(p->packed);
        p->packed_cap = 0;
        p->packed = mem_alloc(bound);
        if (!p->packed)
            return no_memory(err);
        p->packed_cap = bound;
    }
    *size = ZSTD_compressCCtx(p->zstd, p->packed, bound, p->page.out.p, p->page.out.n, ZSTD_LEVEL);
    return ZSTD_isError(*size) ? no_memory(err) : 0;
}

static void describe_page(struct thrift *t, bool dictionary, size_t values, int encoding)
{
    if (dictionary) {
        thrift_struct(t, PAGE_OF_DICTIONARY);
        thrift_i32(t, DICTIONARY_VALUES, (int32_t)values);
        thrift_i32(t, DICTIONARY_ENCODING, ENCODING_PLAIN);
    } else {
        thrift_struct(t, PAGE_OF_DATA);
        thrift_i32(t, DATA_VALUES, (int32_t)values);
        thrift_i32(t, DATA_ENCODING, encoding);
        thrift_i32(t, DATA_DEFINITIONS, ENCODING_RLE);
        thrift_i32(t, DATA_REPETITIONS, ENCODING_RLE);
    }
    thrift_end(t);
}

/* Writes p->page with its header. */
static int put_page(struct export_writer *w, struct chunk *c, bool dictionary, size_t values, struct error *err)
{
    struct parquet *p = w->state;
    struct thrift *t = &p->head;
    size_t size = 0;
    if (p->page.failed)
        return no_memory(err);
    if (p->page.out.n > INT32_MAX)
        return error_set(err, -MRD_ELIMIT, "%s: a page of more than 2 GiB, which Parquet has no room for; use native",
                         w->schema->table);
    int rc = compress(p, &size, err);
    if (rc < 0)
        return rc;
    vec_clear(&t->out);
    thrift_begin(t);
    thrift_i32(t, PAGE_TYPE, dictionary ? PAGE_DICTIONARY : PAGE_DATA);
    thrift_i32(t, PAGE_SIZE, (int32_t)p->page.out.n);
    thrift_i32(t, PAGE_COMPRESSED, (int32_t)size);
    describe_page(t, dictionary, values, c->encoding);
    thrift_end(t);
    if (t->failed)
        return no_memory(err);
    *(dictionary ? &c->dictionary_at : &c->at) = w->out->total;
    c->bytes += t->out.n + p->page.out.n;
    c->compressed += t->out.n + size;
    export_put(w->out, t->out.p, t->out.n);
    export_put(w->out, p->packed, size);
    return 0;
}

/* Definition levels: 1 where there is a value, with their length in front. */
static void put_levels(struct parquet *p, const struct export_vector *v, size_t rows)
{
    const size_t at = p->page.out.n;
    uint32_t length = 0;
    parquet_put(&p->page, &length, sizeof length);
    for (size_t i = 0; i < rows; i++)
        p->codes[i] = !(v->null && v->null[i]);
    parquet_put_hybrid(&p->page, p->codes, rows, 1);
    if (p->page.failed)
        return;
    length = (uint32_t)(p->page.out.n - at - sizeof length);
    memcpy(p->page.out.p + at, &length, sizeof length);
}

static void put_text(struct parquet *p, const struct export_text *t)
{
    parquet_put(&p->page, &t->size, sizeof t->size);
    parquet_put(&p->page, t->bytes, t->size);
}

static int put_dictionary(struct export_writer *w, struct chunk *c, const struct export_vector *v, struct error *err)
{
    struct parquet *p = w->state;
    vec_clear(&p->page.out);
    for (uint32_t i = 0; i < v->dictionary_size; i++)
        put_text(p, &v->dictionary[i]);
    return put_page(w, c, true, v->dictionary_size, err);
}

static void put_codes(struct parquet *p, const struct export_vector *v, size_t rows)
{
    size_t n = 0;
    uint8_t width = (uint8_t)parquet_width(v->dictionary_size ? v->dictionary_size - 1 : 0);
    for (size_t i = 0; i < rows; i++)
        if (!v->null || !v->null[i])
            p->codes[n++] = v->codes[i];
    parquet_put(&p->page, &width, 1);
    parquet_put_hybrid(&p->page, p->codes, n, width);
}

static void put_values(struct parquet *p, const struct export_column *c, const struct export_vector *v, size_t rows)
{
    size_t n = 0;
    if (c->kind == EXPORT_INT64) {
        for (size_t i = 0; i < rows; i++)
            if (!v->null || !v->null[i])
                p->present[n++] = v->ints[i];
        parquet_put_deltas(&p->page, p->present, n);
        return;
    }
    for (size_t i = 0; i < rows; i++) {
        if (v->null && v->null[i])
            continue;
        if (c->kind == EXPORT_DOUBLE)
            parquet_put(&p->page, &v->doubles[i], sizeof *v->doubles);
        else
            put_text(p, &v->dictionary[v->codes[i]]);
    }
}

/* ---- what is told of a chunk ---- */

static bool text_less(const struct export_text *a, const struct export_text *b)
{
    const uint32_t n = a->size < b->size ? a->size : b->size;
    const int c = n ? memcmp(a->bytes, b->bytes, n) : 0;
    return c < 0 || (c == 0 && a->size < b->size);
}

static void put_text_statistics(struct thrift *t, const struct export_vector *v)
{
    const struct export_text *least = v->dictionary, *most = v->dictionary;
    for (uint32_t i = 1; i < v->dictionary_size; i++) {
        if (text_less(&v->dictionary[i], least))
            least = &v->dictionary[i];
        if (text_less(most, &v->dictionary[i]))
            most = &v->dictionary[i];
    }
    if (v->dictionary_size == 0 || least->size > LONGEST_STATISTIC || most->size > LONGEST_STATISTIC)
        return;
    thrift_binary(t, STATISTICS_MAX, most->bytes, most->size);
    thrift_binary(t, STATISTICS_MIN, least->bytes, least->size);
}

static void put_int_statistics(struct thrift *t, const struct export_vector *v, size_t rows)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (size_t i = 0; i < rows; i++) {
        if (v->null && v->null[i])
            continue;
        least = v->ints[i] < least ? v->ints[i] : least;
        most = v->ints[i] > most ? v->ints[i] : most;
    }
    if (least > most)
        return;
    thrift_binary(t, STATISTICS_MAX, &most, sizeof most);
    thrift_binary(t, STATISTICS_MIN, &least, sizeof least);
}

/* A zero counts as -0 below and +0 above, since readers may not tell them apart. There is no NaN in our columns. */
static void put_double_statistics(struct thrift *t, const struct export_vector *v, size_t rows)
{
    double least = 0, most = 0;
    bool any = false;
    for (size_t i = 0; i < rows; i++) {
        if (v->null && v->null[i])
            continue;
        least = !any || v->doubles[i] < least ? v->doubles[i] : least;
        most = !any || v->doubles[i] > most ? v->doubles[i] : most;
        any = true;
    }
    if (!any)
        return;
    least = least == 0 ? -0.0 : least;
    most = most == 0 ? 0.0 : most;
    thrift_binary(t, STATISTICS_MAX, &most, sizeof most);
    thrift_binary(t, STATISTICS_MIN, &least, sizeof least);
}

static void put_statistics(struct thrift *t, const struct export_column *column, const struct chunk *c,
                           const struct export_vector *v, size_t rows)
{
    thrift_struct(t, META_STATISTICS);
    thrift_i64(t, STATISTICS_NULLS, (int64_t)c->nulls);
    if (column->kind == EXPORT_INT64)
        put_int_statistics(t, v, rows);
    else if (column->kind == EXPORT_DOUBLE)
        put_double_statistics(t, v, rows);
    else
        put_text_statistics(t, v);
    thrift_end(t);
}

static void put_chunk_meta(struct thrift *t, const struct export_column *column, const struct chunk *c,
                           const struct export_vector *v, size_t rows)
{
    const bool dictionary = c->dictionary_at != 0;
    thrift_begin(t);
    thrift_i64(t, CHUNK_OFFSET, (int64_t)(dictionary ? c->dictionary_at : c->at));
    thrift_struct(t, CHUNK_META);
    thrift_i32(t, META_TYPE, value_type(column->kind));
    thrift_list(t, META_ENCODINGS, THRIFT_I32, dictionary ? 3 : 2);
    thrift_element_i32(t, ENCODING_RLE);
    if (dictionary)
        thrift_element_i32(t, ENCODING_PLAIN);
    thrift_element_i32(t, c->encoding);
    thrift_list(t, META_PATH, THRIFT_BINARY, 1);
    thrift_element_text(t, column->name);
    thrift_i32(t, META_CODEC, CODEC_ZSTD);
    thrift_i64(t, META_VALUES, (int64_t)rows);
    thrift_i64(t, META_BYTES, (int64_t)c->bytes);
    thrift_i64(t, META_COMPRESSED, (int64_t)c->compressed);
    thrift_i64(t, META_DATA_AT, (int64_t)c->at);
    if (dictionary)
        thrift_i64(t, META_DICTIONARY_AT, (int64_t)c->dictionary_at);
    put_statistics(t, column, c, v, rows);
    thrift_end(t);
    thrift_end(t);
}

static int put_chunk(struct export_writer *w, size_t i, const struct export_vector *v, size_t rows, uint64_t *bytes,
                     struct error *err)
{
    struct parquet *p = w->state;
    const struct export_column *column = &w->schema->columns[i];
    const bool text = column->kind == EXPORT_TEXT || column->kind == EXPORT_BYTES;
    const bool dictionary = text && 2 * (uint64_t)v->dictionary_size <= rows;
    struct chunk c = {.encoding = dictionary                     ? ENCODING_RLE_DICTIONARY
                                  : column->kind == EXPORT_INT64 ? ENCODING_DELTA
                                                                 : ENCODING_PLAIN};
    for (size_t k = 0; v->null && k < rows; k++)
        c.nulls += v->null[k] != 0;
    int rc = dictionary ? put_dictionary(w, &c, v, err) : 0;
    if (rc < 0)
        return rc;
    vec_clear(&p->page.out);
    if (column->nullable)
        put_levels(p, v, rows);
    if (dictionary)
        put_codes(p, v, rows);
    else
        put_values(p, column, v, rows);
    rc = put_page(w, &c, false, rows, err);
    if (rc == 0)
        put_chunk_meta(&p->groups, column, &c, v, rows);
    *bytes += c.bytes;
    return rc;
}

int export_parquet_block(struct export_writer *w, const struct export_block *block, struct error *err)
{
    struct parquet *p = w->state;
    uint64_t bytes = 0;
    int rc = 0;
    thrift_begin(&p->groups);
    thrift_list(&p->groups, GROUP_COLUMNS, THRIFT_STRUCT, w->schema->count);
    for (size_t i = 0; i < w->schema->count && rc == 0; i++)
        rc = put_chunk(w, i, &block->columns[i], block->rows, &bytes, err);
    thrift_i64(&p->groups, GROUP_BYTES, (int64_t)bytes);
    thrift_i64(&p->groups, GROUP_ROWS, (int64_t)block->rows);
    thrift_end(&p->groups);
    p->rows += block->rows;
    p->n_groups++;
    return rc == 0 && p->groups.failed ? no_memory(err) : rc;
}

/* ---- the end ---- */

static void put_schema(struct thrift *t, const struct export_schema *s)
{
    thrift_list(t, FILE_SCHEMA, THRIFT_STRUCT, s->count + 1);
    thrift_begin(t);
    thrift_binary(t, SCHEMA_NAME, s->table, strlen(s->table));
    thrift_i32(t, SCHEMA_CHILDREN, (int32_t)s->count);
    thrift_end(t);
    for (size_t i = 0; i < s->count; i++) {
        const struct export_column *c = &s->columns[i];
        thrift_begin(t);
        thrift_i32(t, SCHEMA_TYPE, value_type(c->kind));
        thrift_i32(t, SCHEMA_REPETITION, c->nullable ? OPTIONAL : REQUIRED);
        thrift_binary(t, SCHEMA_NAME, c->name, strlen(c->name));
        if (c->kind == EXPORT_TEXT) {
            thrift_i32(t, SCHEMA_CONVERTED, CONVERTED_UTF8);
            thrift_struct(t, SCHEMA_LOGICAL);
            thrift_struct(t, LOGICAL_STRING);
            thrift_end(t);
            thrift_end(t);
        }
        thrift_end(t);
    }
}

int export_parquet_end(struct export_writer *w, struct error *err)
{
    struct parquet *p = w->state;
    struct thrift *t = &p->head;
    vec_clear(&t->out);
    thrift_begin(t);
    thrift_i32(t, FILE_VERSION, 2);
    put_schema(t, w->schema);
    thrift_i64(t, FILE_ROWS, (int64_t)p->rows);
    thrift_list(t, FILE_GROUPS, THRIFT_STRUCT, p->n_groups);
    thrift_bytes(t, p->groups.out.p, p->groups.out.n);
    thrift_binary(t, FILE_MADE_BY, "Meridian", 8);
    thrift_list(t, FILE_ORDERS, THRIFT_STRUCT, w->schema->count); /* without it readers pass over the statistics */
    for (size_t i = 0; i < w->schema->count; i++) {
        thrift_begin(t);
        thrift_struct(t, ORDER_OF_TYPE);
        thrift_end(t);
        thrift_end(t);
    }
    thrift_end(t);
    if (t->failed)
        return no_memory(err);
    uint32_t size = (uint32_t)t->out.n;
    export_put(w->out, t->out.p, t->out.n);
    export_put(w->out, &size, sizeof size);
    export_put(w->out, "PAR1", 4);
    return 0;
}

void export_parquet_free(struct export_writer *w)
{
    struct parquet *p = w->state;
    if (!p)
        return;
    ZSTD_freeCCtx(p->zstd);
    vec_free(&p->page.out);
    vec_free(&p->head.out);
    vec_free(&p->groups.out);
    mem_free(p->packed);
    mem_free(p->present);
    mem_free(p->codes);
    mem_free(p);
    w->state = NULL;
}
