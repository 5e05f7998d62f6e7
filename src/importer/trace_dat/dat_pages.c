/* Finds the pages of a file. */
#include "importer/trace_dat/dat_pages.h"

enum { MAX_CHUNK = 256 << 20, MAX_RATIO = 1000, CHUNK_COUNT = 4 };

/* Counts bytes of data; false, and the data are cut, when no file of this size holds so many: those that are not
 * compressed lie in it once. */
static bool within_limit(struct dat_pages *p, uint64_t bytes, unsigned ratio)
{
    *p->total += bytes;
    bool fits = *p->total / ratio <= p->file->bytes.len;
    p->truncated |= !fits;
    return fits;
}

void dat_pages_open(struct dat_pages *p, const struct dat_file *f, const struct dat_buffer *b,
                    const struct dat_cpu *cpu, uint64_t *total)
{
    *p = (struct dat_pages){.file = f, .page_size = b->page_size, .total = total};
    if (!cpu->size)
        return;
    if (cpu->offset >= f->bytes.len) {
        p->truncated = true;
        return;
    }
    /* of compressed data the table does not count the number of chunks at their head */
    uint64_t left = f->bytes.len - cpu->offset, size = cpu->size < left ? cpu->size : left;
    p->truncated = size < cpu->size;
    if (b->compressed)
        size = left - size < CHUNK_COUNT ? left : size + CHUNK_COUNT;
    struct slice data = slice_of(f->bytes.p + cpu->offset, (size_t)size);
    if (!b->compressed) {
        if (within_limit(p, data.len, 1))
            p->rest = data;
        return;
    }
    p->chunks = (struct dat_cursor){data.p, data.p + data.len, f->big, false};
    p->n_chunks = dat_u32(&p->chunks);
    p->inflater = inflater_open(f->compression == DAT_ZSTD ? INFLATE_ZSTD : INFLATE_DEFLATE);
    p->failed = !p->inflater;
}

static bool next_chunk(struct dat_pages *p)
{
    if (!p->n_chunks)
        return false;
    p->n_chunks--;
    uint32_t packed = dat_u32(&p->chunks), plain = dat_u32(&p->chunks);
    struct slice data = dat_bytes(&p->chunks, packed);
    bool fits = within_limit(p, plain, MAX_RATIO);
    if (p->chunks.bad || plain > MAX_CHUNK || !fits) {
        p->truncated = true;
        p->n_chunks = 0;
        if (!data.len || plain > MAX_CHUNK || !fits)
            return false;
    }
    if (plain > p->chunk_cap) {
        uint8_t *grown = mem_realloc(p->chunk, plain);
        if (!grown) {
            p->failed = true;
            return false;
        }
        p->chunk = grown;
        p->chunk_cap = plain;
    }
    size_t written = 0;
    inflater_reset(p->inflater);
    int rc = inflater_run(p->inflater, &data, p->chunk, plain, &written, NULL);
    p->failed |= rc == -MRD_ENOMEM;
    p->truncated |= written != plain;
    p->rest = slice_of(p->chunk, written);
    return true;
}

bool dat_pages_next(struct dat_pages *p, struct slice *page)
{
    while (!p->failed && p->rest.len < p->page_size) {
        if (p->rest.len) {
            p->truncated = true;
            *page = p->rest;
            p->rest.len = 0;
            return true;
        }
        if (!next_chunk(p))
            return false;
    }
    if (p->failed)
        return false;
    *page = slice_of(p->rest.p, p->page_size);
    p->rest = slice_of(p->rest.p + p->page_size, p->rest.len - p->page_size);
    return true;
}

void dat_pages_close(struct dat_pages *p)
{
    inflater_close(p->inflater);
    mem_free(p->chunk);
}
