/* Collects bytes and hands them to a sink. */
#include "export/buffer.h"

void export_buffer_begin(struct export_buffer *b, const struct export_sink *sink)
{
    b->sink = *sink;
    b->total = 0;
    b->n = 0;
    b->rc = 0;
    b->err = (struct error){0};
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

void export_put_slowly(struct export_buffer *b, const void *bytes, size_t n)
{
    hand_on(b, b->bytes, b->n);
    b->n = 0;
    b->total += n;
    if (n >= EXPORT_BUFFER_BYTES / 2) {
        hand_on(b, bytes, n);
        return;
    }
    memcpy(b->bytes, bytes, n);
    b->n = n;
}
