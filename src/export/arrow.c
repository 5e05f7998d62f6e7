/* Arrow's IPC, as a stream and as a file: a schema, record batches, and texts as dictionaries that batches add to.
 *
 * Texts that repeat are dictionary-encoded with codes of the whole table; each batch is preceded by what is new in its
 * dictionaries (isDelta). Texts that hardly repeat are plain. Compression: none. The messages are those of Schema.fbs,
 * Message.fbs and File.fbs of Arrow 1.0 (metadata version V5). */
#include "export/arrow.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/probe.h"
#include "base/vec.h"
#include "export/flatbuffer.h"

enum { METADATA_V5 = 4, HEADER_SCHEMA = 1, HEADER_DICTIONARY = 2, HEADER_RECORDS = 3 };
enum { TYPE_INT = 2, TYPE_FLOATING = 3, TYPE_BINARY = 4, TYPE_UTF8 = 5, PRECISION_DOUBLE = 2 };
enum { MESSAGE_VERSION, MESSAGE_HEADER_TYPE, MESSAGE_HEADER, MESSAGE_BODY };
enum { SCHEMA_ENDIANNESS, SCHEMA_FIELDS };
enum { FIELD_NAME, FIELD_NULLABLE, FIELD_TYPE_TYPE, FIELD_TYPE, FIELD_DICTIONARY, FIELD_CHILDREN };
enum { INT_WIDTH, INT_SIGNED };
enum { ENCODING_ID, ENCODING_INDEX };
enum { BATCH_LENGTH, BATCH_NODES, BATCH_BUFFERS };
enum { DICTIONARY_ID, DICTIONARY_DATA, DICTIONARY_DELTA };
enum { FOOTER_VERSION, FOOTER_SCHEMA, FOOTER_DICTIONARIES, FOOTER_RECORDS };

/* Where a message of the file is, as File.fbs has it. */
struct block_entry {
    uint64_t offset;
    uint64_t metadata_bytes; /* the upper half is padding */
    uint64_t body_bytes;
};

/* The texts of a column so far, by their bytes. */
struct dictionary {
    struct arena bytes;
    VEC(struct export_text)
    texts;
    uint32_t *slots; /* number plus 1; 0: free */
    size_t n_slots;
    uint64_t secret; /* of the hashes of texts: nobody knows which belong into one slot */
    size_t written;
    VEC(uint32_t)
    codes; /* of this block's dictionary: the code in the whole table */
};

struct arrow {
    struct flatbuffer fb;
    struct dictionary *dictionaries; /* by column */
    bool file;
    VEC(struct block_entry)
    dictionary_blocks, record_blocks;
    VEC(uint64_t)
    nodes, buffers; /* of the batch being described */
    uint64_t body;
    uint8_t *scratch; /* of one column: EXPORT_BLOCK_ROWS numbers of 4 bytes, and one */
};

static int no_memory(struct error *err)
{
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

static bool has_dictionary(const struct export_column *c)
{
    return c->kind == EXPORT_TEXT && !c->distinct;
}

static uint64_t padded(uint64_t n)
{
    return (n + 7) & ~7ull;
}

static void put_padding(struct export_buffer *out, uint64_t n)
{
    static const uint8_t zeros[8];
    export_put(out, zeros, padded(n) - n);
}

/* ---- headers ---- */

static fb_place int_type(struct flatbuffer *fb, unsigned bits)
{
    fb_table(fb);
    fb_field(fb, INT_WIDTH, bits, 4);
    fb_field(fb, INT_SIGNED, 1, 1);
    return fb_table_end(fb);
}

static fb_place column_type(struct flatbuffer *fb, enum export_kind kind)
{
    if (kind == EXPORT_INT64)
        return int_type(fb, 64);
    fb_table(fb);
    if (kind == EXPORT_DOUBLE)
        fb_field(fb, 0, PRECISION_DOUBLE, 2);
    return fb_table_end(fb);
}

static fb_place column_field(struct flatbuffer *fb, const struct export_column *c, size_t id)
{
    static const uint8_t types[] = {[EXPORT_INT64] = TYPE_INT,
                                    [EXPORT_DOUBLE] = TYPE_FLOATING,
                                    [EXPORT_TEXT] = TYPE_UTF8,
                                    [EXPORT_BYTES] = TYPE_BINARY};
    fb_place name = fb_text(fb, c->name), type = column_type(fb, c->kind), encoding = 0, children;
    if (has_dictionary(c)) {
        fb_place index = int_type(fb, 32);
        fb_table(fb);
        fb_field(fb, ENCODING_ID, id, 8);
        fb_child(fb, ENCODING_INDEX, index);
        encoding = fb_table_end(fb);
    }
    children = fb_places(fb, NULL, 0);
    fb_table(fb);
    fb_child(fb, FIELD_NAME, name);
    fb_field(fb, FIELD_NULLABLE, c->nullable, 1);
    fb_field(fb, FIELD_TYPE_TYPE, types[c->kind], 1);
    fb_child(fb, FIELD_TYPE, type);
    fb_child(fb, FIELD_DICTIONARY, encoding);
    fb_child(fb, FIELD_CHILDREN, children);
    return fb_table_end(fb);
}

static fb_place schema_table(struct flatbuffer *fb, const struct export_schema *s)
{
    fb_place *fields = mem_alloc((s->count + 1) * sizeof *fields);
    if (!fields) {
        fb->failed = true;
        return 0;
    }
    for (size_t i = 0; i < s->count; i++)
        fields[i] = column_field(fb, &s->columns[i], i);
    fb_place list = fb_places(fb, fields, s->count);
    mem_free(fields);
    fb_table(fb);
    fb_child(fb, SCHEMA_FIELDS, list);
    return fb_table_end(fb);
}

/* The message's head with what it is, and its length: what the body comes behind. Adds to `blocks` where it is. */
static int put_message(struct export_writer *w, unsigned type, fb_place header, void *blocks, struct error *err)
{
    struct arrow *a = w->state;
    fb_table(&a->fb);
    fb_field(&a->fb, MESSAGE_VERSION, METADATA_V5, 2);
    fb_field(&a->fb, MESSAGE_HEADER_TYPE, type, 1);
    fb_child(&a->fb, MESSAGE_HEADER, header);
    fb_field(&a->fb, MESSAGE_BODY, a->body, 8);
    fb_finish(&a->fb, fb_table_end(&a->fb));
    if (a->fb.failed)
        return no_memory(err);
    VEC(struct block_entry) *list = blocks;
    const uint64_t size = padded(a->fb.n);
    if (list && !vec_push(list, (struct block_entry){w->out->total, size + 8, a->body}))
        return no_memory(err);
    export_put(w->out, "\xff\xff\xff\xff", 4);
    uint32_t length = (uint32_t)size;
    export_put(w->out, &length, sizeof length);
    export_put(w->out, fb_bytes(&a->fb), a->fb.n);
    put_padding(w->out, a->fb.n);
    return 0;
}

/* ---- bodies ---- */

static bool add_buffer(struct arrow *a, uint64_t size)
{
    bool ok = vec_push(&a->buffers, a->body) && vec_push(&a->buffers, size);
    a->body += padded(size);
    return ok;
}

static bool add_node(struct arrow *a, uint64_t rows, uint64_t nulls)
{
    return vec_push(&a->nodes, rows) && vec_push(&a->nodes, nulls);
}

static fb_place batch_table(struct arrow *a, uint64_t rows)
{
    fb_place buffers = fb_structs(&a->fb, a->buffers.p, a->buffers.n / 2, 2);
    fb_place nodes = fb_structs(&a->fb, a->nodes.p, a->nodes.n / 2, 2);
    fb_table(&a->fb);
    fb_field(&a->fb, BATCH_LENGTH, rows, 8);
    fb_child(&a->fb, BATCH_NODES, nodes);
    fb_child(&a->fb, BATCH_BUFFERS, buffers);
    return fb_table_end(&a->fb);
}

static void begin_batch(struct arrow *a)
{
    fb_clear(&a->fb);
    vec_clear(&a->nodes);
    vec_clear(&a->buffers);
    a->body = 0;
}

static uint64_t count_nulls(const struct export_vector *v, size_t rows)
{
    uint64_t n = 0;
    for (size_t i = 0; v->null && i < rows; i++)
        n += v->null[i] != 0;
    return n;
}

static uint64_t text_bytes(const struct export_vector *v, size_t rows)
{
    uint64_t n = 0;
    for (size_t i = 0; i < rows; i++)
        if (!v->null || !v->null[i])
            n += v->dictionary[v->codes[i]].size;
    return n;
}

static bool describe_column(struct arrow *a, const struct export_column *c, const struct export_vector *v, size_t rows)
{
    const uint64_t nulls = count_nulls(v, rows);
    bool ok = add_node(a, rows, nulls) && add_buffer(a, nulls ? (rows + 7) / 8 : 0);
    if (c->kind == EXPORT_INT64 || c->kind == EXPORT_DOUBLE)
        return ok && add_buffer(a, 8 * rows);
    if (has_dictionary(c))
        return ok && add_buffer(a, 4 * rows);
    return ok && add_buffer(a, 4 * (rows + 1)) && add_buffer(a, text_bytes(v, rows));
}

/* A bit a row: 1 when there is a value. */
static void put_validity(struct export_writer *w, const struct export_vector *v, size_t rows)
{
    struct arrow *a = w->state;
    const size_t n = (rows + 7) / 8;
    if (!count_nulls(v, rows))
        return;
    memset(a->scratch, 0, n);
    for (size_t i = 0; i < rows; i++)
        a->scratch[i / 8] |= (uint8_t)(!v->null[i] << i % 8);
    export_put(w->out, a->scratch, n);
    put_padding(w->out, n);
}

static void put_plain_texts(struct export_writer *w, const struct export_vector *v, size_t rows)
{
    struct arrow *a = w->state;
    uint32_t at = 0, *offsets = (uint32_t *)(void *)a->scratch;
    for (size_t i = 0; i < rows; i++) {
        offsets[i] = at;
        if (!v->null || !v->null[i])
            at += v->dictionary[v->codes[i]].size;
    }
    offsets[rows] = at;
    export_put(w->out, offsets, 4 * (rows + 1));
    put_padding(w->out, 4 * (rows + 1));
    for (size_t i = 0; i < rows; i++)
        if (!v->null || !v->null[i])
            export_put(w->out, v->dictionary[v->codes[i]].bytes, v->dictionary[v->codes[i]].size);
    put_padding(w->out, at);
}

static void put_column(struct export_writer *w, size_t i, const struct export_vector *v, size_t rows)
{
    struct arrow *a = w->state;
    const struct export_column *c = &w->schema->columns[i];
    put_validity(w, v, rows);
    if (c->kind == EXPORT_INT64) {
        export_put(w->out, v->ints, 8 * rows);
    } else if (c->kind == EXPORT_DOUBLE) {
        export_put(w->out, v->doubles, 8 * rows);
    } else if (has_dictionary(c)) {
        uint32_t *codes = (uint32_t *)(void *)a->scratch;
        for (size_t k = 0; k < rows; k++)
            codes[k] = v->null && v->null[k] ? 0 : a->dictionaries[i].codes.p[v->codes[k]];
        export_put(w->out, codes, 4 * rows);
        put_padding(w->out, 4 * rows);
    } else {
        put_plain_texts(w, v, rows);
    }
}

/* ---- dictionaries ---- */

static bool grow_slots(struct dictionary *d)
{
    size_t n = d->n_slots ? 2 * d->n_slots : 64, slot;
    uint32_t *slots = mem_zalloc(n * sizeof *slots);
    if (!slots)
        return false;
    d->secret = hash_secret();
    for (size_t i = 0; i < d->texts.n; i++) {
        probe_free(slot, (size_t)hash_bytes_seeded(d->texts.p[i].bytes, d->texts.p[i].size, d->secret), n,
                   slots[slot] != 0);
        slots[slot] = (uint32_t)i + 1;
    }
    mem_free(d->slots);
    d->slots = slots;
    d->n_slots = n;
    return true;
}

/* The number of a text in the whole table. False when out of memory. */
static bool find_text(struct dictionary *d, struct export_text t, uint32_t *number)
{
    size_t slot;
    if (2 * (d->texts.n + 1) > d->n_slots && !grow_slots(d))
        return false;
    probe_each(slot, (size_t)hash_bytes_seeded(t.bytes, t.size, d->secret), d->n_slots, d->slots[slot] != 0)
    {
        struct export_text known = d->texts.p[d->slots[slot] - 1];
        if (known.size == t.size && (t.size == 0 || memcmp(known.bytes, t.bytes, t.size) == 0))
            break;
    }
    if (d->slots[slot] == 0) {
        const char *copy = arena_strndup(&d->bytes, t.bytes, t.size);
        if (!copy || !vec_push(&d->texts, (struct export_text){copy, t.size}))
            return false;
        d->slots[slot] = (uint32_t)d->texts.n;
    }
    *number = d->slots[slot] - 1;
    return true;
}

/* Writes the texts that are new since the last time; the first time even when there are none. */
static int put_dictionary(struct export_writer *w, size_t column, bool first, struct error *err)
{
    struct arrow *a = w->state;
    struct dictionary *d = &a->dictionaries[column];
    const size_t n = d->texts.n - d->written;
    uint64_t bytes = 0;
    if (n == 0 && !first)
        return 0;
    for (size_t i = d->written; i < d->texts.n; i++)
        bytes += d->texts.p[i].size;
    begin_batch(a);
    if (!add_node(a, n, 0) || !add_buffer(a, 0) || !add_buffer(a, 4 * (n + 1)) || !add_buffer(a, bytes))
        return no_memory(err);
    fb_place batch = batch_table(a, n);
    fb_table(&a->fb);
    fb_field(&a->fb, DICTIONARY_ID, column, 8);
    fb_child(&a->fb, DICTIONARY_DATA, batch);
    fb_field(&a->fb, DICTIONARY_DELTA, !first, 1);
    int rc = put_message(w, HEADER_DICTIONARY, fb_table_end(&a->fb), &a->dictionary_blocks, err);
    uint32_t at = 0;
    for (size_t i = d->written; i < d->texts.n; i++) {
        export_put(w->out, &at, sizeof at);
        at += d->texts.p[i].size;
    }
    export_put(w->out, &at, sizeof at);
    put_padding(w->out, 4 * (n + 1));
    for (size_t i = d->written; i < d->texts.n; i++)
        export_put(w->out, d->texts.p[i].bytes, d->texts.p[i].size);
    put_padding(w->out, bytes);
    d->written = d->texts.n;
    return rc;
}

static int learn_texts(struct arrow *a, size_t column, const struct export_vector *v, struct error *err)
{
    struct dictionary *d = &a->dictionaries[column];
    vec_clear(&d->codes);
    for (uint32_t i = 0; i < v->dictionary_size; i++) {
        uint32_t number;
        if (!find_text(d, v->dictionary[i], &number) || !vec_push(&d->codes, number))
            return no_memory(err);
    }
    return 0;
}

/* ---- a table ---- */

static const char magic[8] = "ARROW1";

static int begin(struct export_writer *w, bool file, struct error *err)
{
    struct arrow *a = w->state = mem_zalloc(sizeof *a);
    if (!a)
        return no_memory(err);
    a->file = file;
    a->scratch = mem_alloc(4 * (EXPORT_BLOCK_ROWS + 1));
    a->dictionaries = mem_zalloc((w->schema->count + 1) * sizeof *a->dictionaries);
    if (!a->scratch || !a->dictionaries)
        return no_memory(err);
    if (file)
        export_put(w->out, magic, sizeof magic);
    begin_batch(a);
    return put_message(w, HEADER_SCHEMA, schema_table(&a->fb, w->schema), NULL, err);
}

int export_arrow_begin(struct export_writer *w, struct error *err)
{
    return begin(w, true, err);
}

int export_arrow_stream_begin(struct export_writer *w, struct error *err)
{
    return begin(w, false, err);
}

int export_arrow_block(struct export_writer *w, const struct export_block *block, struct error *err)
{
    struct arrow *a = w->state;
    int rc = 0;
    const bool first = a->record_blocks.n == 0;
    for (size_t i = 0; i < w->schema->count && rc == 0; i++) {
        if (!has_dictionary(&w->schema->columns[i]))
            continue;
        rc = learn_texts(a, i, &block->columns[i], err);
        if (rc == 0)
            rc = put_dictionary(w, i, first, err);
    }
    if (rc < 0)
        return rc;
    begin_batch(a);
    for (size_t i = 0; i < w->schema->count; i++)
        if (w->schema->columns[i].distinct && text_bytes(&block->columns[i], block->rows) > INT32_MAX)
            return error_set(err, -MRD_ELIMIT,
                             "%s: 65,536 texts of %s take more than 2 GiB, which Arrow has no room for; use native",
                             w->schema->table, w->schema->columns[i].name);
    for (size_t i = 0; i < w->schema->count; i++)
        if (!describe_column(a, &w->schema->columns[i], &block->columns[i], block->rows))
            return no_memory(err);
    rc = put_message(w, HEADER_RECORDS, batch_table(a, block->rows), &a->record_blocks, err);
    for (size_t i = 0; i < w->schema->count && rc == 0; i++)
        put_column(w, i, &block->columns[i], block->rows);
    return rc;
}

static fb_place block_list(struct flatbuffer *fb, const struct block_entry *entries, size_t n)
{
    return fb_structs(fb, n ? &entries->offset : NULL, n, 3);
}

int export_arrow_end(struct export_writer *w, struct error *err)
{
    struct arrow *a = w->state;
    export_put(w->out, "\xff\xff\xff\xff\0\0\0\0", 8);
    if (!a->file)
        return 0;
    fb_clear(&a->fb);
    fb_place schema = schema_table(&a->fb, w->schema);
    fb_place records = block_list(&a->fb, a->record_blocks.p, a->record_blocks.n);
    fb_place dictionaries = block_list(&a->fb, a->dictionary_blocks.p, a->dictionary_blocks.n);
    fb_table(&a->fb);
    fb_field(&a->fb, FOOTER_VERSION, METADATA_V5, 2);
    fb_child(&a->fb, FOOTER_SCHEMA, schema);
    fb_child(&a->fb, FOOTER_DICTIONARIES, dictionaries);
    fb_child(&a->fb, FOOTER_RECORDS, records);
    fb_finish(&a->fb, fb_table_end(&a->fb));
    if (a->fb.failed)
        return no_memory(err);
    uint32_t size = (uint32_t)a->fb.n;
    export_put(w->out, fb_bytes(&a->fb), a->fb.n);
    export_put(w->out, &size, sizeof size);
    export_put(w->out, magic, 6);
    return 0;
}

void export_arrow_free(struct export_writer *w)
{
    struct arrow *a = w->state;
    if (!a)
        return;
    for (size_t i = 0; a->dictionaries && i < w->schema->count; i++) {
        arena_free(&a->dictionaries[i].bytes);
        vec_free(&a->dictionaries[i].texts);
        vec_free(&a->dictionaries[i].codes);
        mem_free(a->dictionaries[i].slots);
    }
    mem_free(a->dictionaries);
    vec_free(&a->dictionary_blocks);
    vec_free(&a->record_blocks);
    vec_free(&a->nodes);
    vec_free(&a->buffers);
    mem_free(a->scratch);
    fb_free(&a->fb);
    mem_free(a);
    w->state = NULL;
}
