/* Writes a loaded trace as a snapshot: the chunks of all columns, then what is known about them. */
#include "storage/snapshot.h"

#include "base/hash.h"
#include "storage/snapshot_writer.h"

#include <stdlib.h>

void snapshot_no_memory(struct snapshot_writer *w)
{
    if (!w->rc)
        w->rc = error_set(w->err, -MRD_ENOMEM, "out of memory");
}

void snapshot_put(struct snapshot_writer *w, const void *bytes, size_t len)
{
    if (!w->rc && len)
        w->rc = w->sink->write(w->sink->ctx, bytes, len, w->err);
    w->at += len;
}

static void align(struct snapshot_writer *w, size_t to)
{
    static const uint8_t zeros[SNAPSHOT_ALIGN];
    snapshot_put(w, zeros, -w->at & (to - 1));
}

void snapshot_begin(struct snapshot_writer *w, enum snapshot_section section)
{
    align(w, SNAPSHOT_ALIGN);
    w->trailer.sections[section].offset = w->at;
}

void snapshot_end(struct snapshot_writer *w, enum snapshot_section section)
{
    w->trailer.sections[section].len = w->at - w->trailer.sections[section].offset;
}

void snapshot_put_whole(struct snapshot_writer *w, enum snapshot_section section, const void *bytes, size_t len)
{
    snapshot_begin(w, section);
    snapshot_put(w, bytes, len);
    snapshot_end(w, section);
    w->trailer.sections[section].sum = checksum64(bytes, len);
}

/* The chunk as blocks in w->blocks, when that takes less than nine tenths of its codes: *k and *codes become those. */
static void pack_blocks(struct snapshot_writer *w, struct col_chunk *k, const void **codes, uint32_t n,
                        enum col_type type)
{
    bool floats = type == COL_F64 || (k->kind >= CHUNK_U8F && k->kind <= CHUNK_U32F);
    size_t plain = col_chunk_width(k->kind) * (size_t)n;
    if (!plain || floats || k->kind == CHUNK_BLOCKS || k->min > k->max ||
        (uint64_t)k->max - (uint64_t)k->min >= UINT32_MAX)
        return;
    int64_t null = column_null(type);
    col_chunk_unpack(k, *codes, n, w->unpacked);
    int64_t least = INT64_MAX, last = w->unpacked[n - 1];
    for (uint32_t i = 0; i < n; i++)
        least = w->unpacked[i] != null && w->unpacked[i] < least ? w->unpacked[i] : least;
    for (uint32_t i = n; i < COL_CHUNK_ROWS; i++)
        w->unpacked[i] = last;
    if (least != k->min) /* values were changed since it was packed: the header does not say what is there now */
        return;
    size_t len = col_blocks_pack(w->unpacked, least, null, w->blocks);
    if (len * 10 > plain * 9)
        return;
    k->kind = CHUNK_BLOCKS;
    k->base = least;
    k->zero_null = type == COL_STR;
    k->bytes = (uint32_t)len;
    *codes = w->blocks;
}

void snapshot_put_chunk(struct snapshot_writer *w, struct col_chunk *k, const void *codes, uint32_t n,
                        enum col_type type, uint64_t *sum)
{
    pack_blocks(w, k, &codes, n, type);
    size_t len = col_chunk_bytes(k, n);
    struct col_chunk clean; /* no stray bytes in the holes: equal traces make equal files */
    memset(&clean, 0, sizeof clean);
    clean.base = k->base;
    clean.min = k->min;
    clean.max = k->max;
    clean.kind = k->kind;
    clean.has_null = k->has_null;
    clean.sorted = k->sorted;
    clean.zero_null = k->zero_null;
    clean.bytes = k->bytes;
    *sum = checksum64(codes, len);
    if (len) {
        align(w, sizeof(int64_t));
        clean.at = (uintptr_t)w->at;
        snapshot_put(w, codes, len);
    }
    *k = clean;
}

static void keep_chunk(struct snapshot_writer *w, struct col_chunk k, const void *codes, uint32_t n, enum col_type type)
{
    uint64_t sum;
    snapshot_put_chunk(w, &k, codes, n, type, &sum);
    if (!vec_push(&w->chunks, k) || !vec_push(&w->sums, sum))
        snapshot_no_memory(w);
}

static void write_column(struct snapshot_writer *w, const struct table *t, const struct column *c)
{
    uint64_t first = w->chunks.n;
    uint32_t rows = 0;
    for (uint32_t i = 0; i < c->n_chunks && !w->rc; i++) {
        const struct col_chunk *k = column_chunk(c, i);
        uint32_t n = t->n_rows - rows < COL_CHUNK_ROWS ? t->n_rows - rows : COL_CHUNK_ROWS;
        keep_chunk(w, *k, column_codes(c, k), n, (enum col_type)c->type);
        rows += n;
    }
    if (rows < t->n_rows && !w->rc) {
        uint32_t n = t->n_rows - rows;
        struct col_chunk k;
        column_unpack(c, rows, n, w->words);
        if (column_pack(w->words, n, (enum col_type)c->type, &k)) {
            void *codes = k.data;
            keep_chunk(w, k, codes, n, (enum col_type)c->type);
            mem_free(codes);
        } else {
            snapshot_no_memory(w);
        }
    }
    struct snapshot_column column = {.first_chunk = first,
                                     .n_chunks = (uint32_t)(w->chunks.n - first),
                                     .type = c->type,
                                     .has_null = c->has_null,
                                     .sorted = c->sorted,
                                     .min = c->min,
                                     .max = c->max};
    if (!vec_push(&w->columns, column))
        snapshot_no_memory(w);
}

static void write_tables(struct snapshot_writer *w)
{
    for (uint32_t i = 0; i < T_COUNT && !w->rc; i++) {
        const struct table *t = &w->st->t[i];
        if (!t->n_rows)
            continue;
        struct snapshot_table record = {i, t->n_rows, (uint32_t)w->columns.n, t->def->n_columns};
        if (!vec_push(&w->tables, record))
            snapshot_no_memory(w);
        for (uint32_t c = 0; c < t->def->n_columns; c++)
            write_column(w, t, &t->columns[c]);
    }
    w->trailer.n_table_columns = (uint32_t)w->columns.n;
}

static int by_slot_key(const void *a, const void *b)
{
    uint64_t x = ((const struct u64map_slot *)a)->key, y = ((const struct u64map_slot *)b)->key;
    return (x > y) - (x < y);
}

static void write_stats(struct snapshot_writer *w)
{
    const struct stats *s = &w->st->stats;
    VEC(struct u64map_slot) indexed = {0};
    size_t it = 0;
    for (const struct u64map_slot *slot; (slot = u64map_next(&s->indexed, &it));)
        if (!vec_push(&indexed, *slot))
            snapshot_no_memory(w);
    if (indexed.n) /* not in the order of a hash: equal traces make equal files */
        qsort(indexed.p, indexed.n, sizeof *indexed.p, by_slot_key);
    snapshot_put_whole(w, SNAPSHOT_STATS, s->single.p, s->single.n * sizeof *s->single.p);
    snapshot_put_whole(w, SNAPSHOT_STATS_INDEXED, indexed.p, indexed.n * sizeof *indexed.p);
    vec_free(&indexed);
}

static void write_data(struct snapshot_writer *w)
{
    static const uint8_t spare[SNAPSHOT_SPARE];
    snapshot_begin(w, SNAPSHOT_DATA);
    write_tables(w);
    snapshot_write_args(w);
    snapshot_put(w, spare, sizeof spare);
    snapshot_end(w, SNAPSHOT_DATA);
}

static void write_sections(struct snapshot_writer *w, const struct snapshot_info *info)
{
    const struct args *a = &w->st->args;
    struct snapshot_head head = {SNAPSHOT_MAGIC, SNAPSHOT_VERSION, SNAPSHOT_ORDER};
    snapshot_put(w, &head, sizeof head);
    write_data(w);
    snapshot_write_strings(w);
    snapshot_put_whole(w, SNAPSHOT_CHUNKS, w->chunks.p, w->chunks.n * sizeof *w->chunks.p);
    snapshot_put_whole(w, SNAPSHOT_CHUNK_SUMS, w->sums.p, w->sums.n * sizeof *w->sums.p);
    snapshot_put_whole(w, SNAPSHOT_COLUMNS, w->columns.p, w->columns.n * sizeof *w->columns.p);
    snapshot_put_whole(w, SNAPSHOT_TABLES, w->tables.p, w->tables.n * sizeof *w->tables.p);
    snapshot_put_whole(w, SNAPSHOT_SHAPES, w->shapes.p, w->shapes.n * sizeof *w->shapes.p);
    snapshot_put_whole(w, SNAPSHOT_KEYS, w->keys.p, w->keys.n * sizeof *w->keys.p);
    snapshot_put_whole(w, SNAPSHOT_NUMBERS, a->numbers,
                       a->numbers ? ((size_t)a->n_numbers + 1) * sizeof *a->numbers : 0);
    write_stats(w);
    snapshot_put_whole(w, SNAPSHOT_VIDEO, w->st->video_data.p, w->st->video_data.n * sizeof *w->st->video_data.p);
    snapshot_put_whole(w, SNAPSHOT_CLOCKS, info->clocks.p, info->clocks.len);
    snapshot_put_whole(w, SNAPSHOT_INFO, info->text.p, info->text.len);
    align(w, SNAPSHOT_ALIGN);
}

static void write_trailer(struct snapshot_writer *w, const struct snapshot_info *info)
{
    struct snapshot_trailer *t = &w->trailer;
    t->file_bytes = w->at + sizeof *t;
    t->schema = snapshot_schema();
    t->options = info->options;
    t->source[0] = info->source.low;
    t->source[1] = info->source.high;
    t->source_bytes = info->source_bytes;
    t->trace_start_ns = w->st->trace_start_ns;
    t->trace_end_ns = w->st->trace_end_ns;
    t->has_nul = w->st->strings.has_nul;
    memcpy(t->magic, SNAPSHOT_MAGIC, sizeof t->magic);
    t->sum = checksum64(t, offsetof(struct snapshot_trailer, sum));
    snapshot_put(w, t, sizeof *t);
}

int snapshot_write(struct storage *st, const struct snapshot_info *info, const struct snapshot_sink *sink,
                   struct error *err)
{
    struct snapshot_writer *w = mem_zalloc(sizeof *w);
    if (!w)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    w->st = st;
    w->sink = sink;
    w->err = err;
    write_sections(w, info);
    write_trailer(w, info);
    int rc = w->rc;
    const char *damage = storage_damage(st); /* of the snapshot that is being copied */
    if (!rc && damage)
        rc = error_set(err, -MRD_EFORMAT, "the snapshot is damaged (%s)", damage);
    if (!rc && storage_failed(st))
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    vec_free(&w->chunks);
    vec_free(&w->sums);
    vec_free(&w->columns);
    vec_free(&w->tables);
    vec_free(&w->shapes);
    vec_free(&w->keys);
    mem_free(w);
    return rc;
}

/* Names and types, in their order: what a row number, a column number or a stat's number in the file means. And how
 * strings are hashed, which the index of strings goes by. */
uint64_t snapshot_schema(void)
{
    struct checksum sum = {0};
    for (int i = 0; i < T_COUNT; i++) {
        const struct table_def *d = &table_defs[i];
        checksum_add(&sum, checksum_of(d->name, strlen(d->name), 1));
        for (uint32_t c = 0; c < d->n_columns; c++) {
            uint8_t kind[] = {d->columns[c].type, d->columns[c].flags};
            checksum_add(&sum, checksum_of(d->columns[c].name, strlen(d->columns[c].name), 2));
            checksum_add(&sum, checksum_of(kind, sizeof kind, 3));
        }
    }
    for (int i = 0; i < STAT_COUNT; i++)
        checksum_add(&sum, checksum_of(stat_defs[i].name, strlen(stat_defs[i].name), 4));
    uint32_t more[] = {CHUNK_KINDS, ARG_TYPE_COUNT, sizeof(struct snapshot_trailer),
                       strpool_hash("how strings are hashed: by a seed", 32)};
    checksum_add(&sum, checksum_of(more, sizeof more, 5));
    return sum.low;
}
