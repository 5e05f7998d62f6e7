/* Collects bytes and hands them to a sink. */
#include "export/buffer.h"

void export_buffer_begin(struct export_buffer *b, const struct export_sink *sink, uint8_t *bytes)
{
    *b = (struct export_buffer){.sink = *sink, .bytes = bytes};
}

static void hand_on(struct export_buffer *b, const void *bytes, size_t n)
{
    if (b->rc == 0 && n)
        b->rc = b->sink.write(b->sink.self, bytes, n, &b->err);
}

int export_buffer_flush(struct export_buffer *b, struct error *err)
{
    hand_on(b, b->bytes, b->n);
    b->n = 0;
    return b->rc == 0 ? 0 : error_set(err, b->rc, "%s", b->err.text);
}

static void put_pieces(struct export_buffer *b, const uint8_t *bytes, size_t n)
{
    while (n && b->rc == 0) {
        const size_t room = EXPORT_BUFFER_BYTES - b->n, part = n < room ? n : room;
        memcpy(b->bytes + b->n, bytes, part);
        b->n += part;
        bytes += part;
        n -= part;
        if (b->n == EXPORT_BUFFER_BYTES) {
            hand_on(b, b->bytes, b->n);
            b->n = 0;
        }
    }
}

void export_put_slowly(struct export_buffer *b, const void *bytes, size_t n)
{
    b->total += n;
    if (b->kept || n < EXPORT_BUFFER_BYTES / 2) {
        put_pieces(b, bytes, n);
        return;
    }
    hand_on(b, b->bytes, b->n);
    b->n = 0;
    hand_on(b, bytes, n);
}
