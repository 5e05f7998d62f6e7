/* Collects packets, and compresses them. */
#include "capture/service/batch.h"

#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <zlib.h>
#include <zstd.h>

/* A compressed packet must be readable in one piece by everybody; more goes into the next one. */
#define MAX_RAW (512u * 1024)

void batch_add(struct batch *b, const struct slice *pieces, size_t n, struct slice tail)
{
    size_t len = tail.len;
    for (size_t i = 0; i < n; i++)
        len += pieces[i].len;
    struct pb_writer *w = &b->bytes;
    size_t before = w->n;
    pb_put_raw_varint(w, TRACE_PACKET << 3 | PB_BYTES);
    pb_put_raw_varint(w, len);
    size_t at = w->n;
    for (size_t i = 0; i < n; i++)
        pb_put_raw(w, pieces[i].p, pieces[i].len);
    pb_put_raw(w, tail.p, tail.len);
    if (w->failed || !vec_push(&b->packets, (struct batch_packet){at, len}))
        w->n = before; /* out of memory: `failed` stays for who looks */
}

void batch_clear(struct batch *b)
{
    pb_writer_clear(&b->bytes);
    b->bytes.failed = false;
    vec_clear(&b->packets);
}

void batch_free(struct batch *b)
{
    pb_writer_free(&b->bytes);
    vec_free(&b->packets);
}

static int squeeze(struct slice raw, enum batch_compression how, int level, uint8_t **out, size_t *len)
{
    if (how == BATCH_DEFLATE) {
        uLongf n = compressBound((uLong)raw.len);
        *out = mem_alloc(n);
        if (!*out)
            return -MRD_ENOMEM;
        if (compress2(*out, &n, raw.p, (uLong)raw.len, 6) != Z_OK)
            return -MRD_EIO;
        *len = n;
        return 0;
    }
    size_t n = ZSTD_compressBound(raw.len);
    *out = mem_alloc(n);
    if (!*out)
        return -MRD_ENOMEM;
    *len = ZSTD_compress(*out, n, raw.p, raw.len, level);
    return ZSTD_isError(*len) ? -MRD_EIO : 0;
}

int batch_compress(struct batch *b, enum batch_compression how, int level, struct error *err)
{
    uint32_t field = how == BATCH_DEFLATE ? TRACE_PACKET_COMPRESSED_PACKETS : TRACE_PACKET_ZSTD_COMPRESSED_PACKETS;
    struct batch out = {0};
    int rc = 0;
    for (size_t i = 0; i < b->packets.n && !rc;) {
        size_t start = i ? b->packets.p[i - 1].at + b->packets.p[i - 1].len : 0, end = start;
        do
            end = b->packets.p[i].at + b->packets.p[i].len;
        while (++i < b->packets.n && b->packets.p[i].at + b->packets.p[i].len - start <= MAX_RAW);
        uint8_t *z = NULL;
        size_t len = 0;
        rc = squeeze(slice_of(b->bytes.p + start, end - start), how, level, &z, &len);
        if (!rc) {
            uint8_t head[16];
            size_t n = pb_encode_varint(head, field << 3 | PB_BYTES);
            n += pb_encode_varint(head + n, len);
            struct slice pieces[] = {slice_of(head, n), slice_of(z, len)};
            batch_add(&out, pieces, 2, slice_of(NULL, 0));
        }
        mem_free(z);
    }
    if (rc || out.bytes.failed) { /* keep them as they are: nothing is lost */
        batch_free(&out);
        return error_set(err, rc ? rc : -MRD_ENOMEM, "cannot compress the packets");
    }
    batch_free(b);
    *b = out;
    return 0;
}
