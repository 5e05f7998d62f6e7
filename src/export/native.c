/* Writes blocks in ClickHouse's Native format. */
#include "export/native.h"

enum {
    SHARED_DICTIONARIES_WITH_ADDITIONAL_KEYS = 1, /* version of LowCardinality's keys */
    HAS_ADDITIONAL_KEYS = 0x200,                  /* the dictionary is in the block */
};

static const char *const plain_types[] = {
    [EXPORT_INT64] = "Int64", [EXPORT_DOUBLE] = "Float64", [EXPORT_TEXT] = "String", [EXPORT_BYTES] = "String"};
static const char *const nullable_types[] = {[EXPORT_INT64] = "Nullable(Int64)",
                                             [EXPORT_DOUBLE] = "Nullable(Float64)",
                                             [EXPORT_TEXT] = "Nullable(String)",
                                             [EXPORT_BYTES] = "Nullable(String)"};

static bool by_dictionary(const struct export_column *c, bool low_cardinality)
{
    return low_cardinality && c->kind == EXPORT_TEXT && !c->distinct;
}

const char *native_type(const struct export_column *c, bool low_cardinality)
{
    if (by_dictionary(c, low_cardinality))
        return c->nullable ? "LowCardinality(Nullable(String))" : "LowCardinality(String)";
    return c->nullable ? nullable_types[c->kind] : plain_types[c->kind];
}

static void put_nulls(struct export_buffer *b, const struct export_vector *v, size_t rows)
{
    static const uint8_t none[4096];
    for (size_t done = 0; v->null == NULL && done < rows;) {
        size_t part = rows - done < sizeof none ? rows - done : sizeof none;
        export_put(b, none, part);
        done += part;
    }
    if (v->null)
        export_put(b, v->null, rows);
}

static void put_texts(struct export_buffer *b, const struct export_vector *v, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        if (v->null && v->null[i]) {
            export_put_u8(b, 0);
            continue;
        }
        const struct export_text *t = &v->dictionary[v->codes[i]];
        export_put_counted(b, t->bytes, t->size);
    }
}

/* Numbers of keys in as few bytes as they need. A block has at most EXPORT_BLOCK_ROWS keys, and NULL. */
static void put_codes(struct export_buffer *b, const struct export_vector *v, size_t rows, unsigned shift,
                      unsigned width)
{
    union {
        uint8_t one[1024];
        uint16_t two[1024];
        uint32_t four[1024];
    } part;
    for (size_t done = 0; done < rows;) {
        const size_t n = rows - done < 1024 ? rows - done : 1024;
        for (size_t i = 0; i < n; i++) {
            uint32_t code = v->null && v->null[done + i] ? 0 : v->codes[done + i] + shift;
            if (width == 0)
                part.one[i] = (uint8_t)code;
            else if (width == 1)
                part.two[i] = (uint16_t)code;
            else
                part.four[i] = code;
        }
        export_put(b, &part, n << width);
        done += n;
    }
}

/* A version, the kind of numbers, the keys, and a number for each row. Of a column that may be NULL the first key
 * stands for it, the second for the empty text. */
static void put_low_cardinality(struct export_buffer *b, const struct export_column *c, const struct export_vector *v,
                                size_t rows)
{
    const unsigned shift = c->nullable ? 2 : 1;
    const uint64_t keys = (uint64_t)v->dictionary_size + shift;
    const unsigned width = keys <= UINT8_MAX + 1u ? 0 : keys <= UINT16_MAX + 1u ? 1 : 2;
    export_put_u64(b, SHARED_DICTIONARIES_WITH_ADDITIONAL_KEYS);
    export_put_u64(b, HAS_ADDITIONAL_KEYS | width);
    export_put_u64(b, keys);
    for (unsigned i = 0; i < shift; i++)
        export_put_u8(b, 0);
    for (uint32_t i = 0; i < v->dictionary_size; i++)
        export_put_counted(b, v->dictionary[i].bytes, v->dictionary[i].size);
    export_put_u64(b, rows);
    put_codes(b, v, rows, shift, width);
}

static void put_column(struct export_buffer *b, const struct export_column *c, const struct export_vector *v,
                       size_t rows, bool low_cardinality)
{
    const char *type = native_type(c, low_cardinality);
    export_put_counted(b, c->name, strlen(c->name));
    export_put_counted(b, type, strlen(type));
    if (rows == 0)
        return;
    if (by_dictionary(c, low_cardinality)) {
        put_low_cardinality(b, c, v, rows);
        return;
    }
    if (c->nullable)
        put_nulls(b, v, rows);
    if (c->kind == EXPORT_INT64)
        export_put(b, v->ints, rows * sizeof *v->ints);
    else if (c->kind == EXPORT_DOUBLE)
        export_put(b, v->doubles, rows * sizeof *v->doubles);
    else
        put_texts(b, v, rows);
}

void native_put_block(struct export_buffer *b, const struct export_schema *schema, const struct export_block *block,
                      bool low_cardinality)
{
    export_put_varint(b, schema->count);
    export_put_varint(b, block->rows);
    for (size_t i = 0; i < schema->count; i++)
        put_column(b, &schema->columns[i], &block->columns[i], block->rows, low_cardinality);
}
