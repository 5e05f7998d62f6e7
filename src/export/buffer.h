/* Small writes on their way to a sink: bytes are collected and handed on in pieces. The first failure stays, and
 * nothing is written after it.
 *
 * A sink may keep the pieces: it then puts another one in the place of `bytes` each time. */
#ifndef MERIDIAN_EXPORT_BUFFER_H
#define MERIDIAN_EXPORT_BUFFER_H

#include "export/sink.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { EXPORT_BUFFER_BYTES = 1 << 16 };

struct export_buffer {
    struct export_sink sink;
    uint64_t total; /* bytes put so far */
    size_t n;
    uint8_t *bytes; /* EXPORT_BUFFER_BYTES */
    bool kept;      /* by the sink: all bytes come to it in such pieces; else what is large comes as it is */
    int rc;
    struct error err;
};

/* All that comes from here on goes to the sink. `bytes`: room for a piece. */
void export_buffer_begin(struct export_buffer *b, const struct export_sink *sink, uint8_t *bytes);

/* Hands on what is there; 0 or the first failure, with its text in `err`. */
int export_buffer_flush(struct export_buffer *b, struct error *err);

/* What does not fit. */
void export_put_slowly(struct export_buffer *b, const void *bytes, size_t n);

static inline void export_put(struct export_buffer *b, const void *bytes, size_t n)
{
    if (n > EXPORT_BUFFER_BYTES - b->n) {
        export_put_slowly(b, bytes, n);
        return;
    }
    if (n)
        memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
    b->total += n;
}

static inline void export_put_u8(struct export_buffer *b, uint8_t v)
{
    export_put(b, &v, 1);
}

/* Numbers are written as this machine has them, which is with the lowest byte first on all that we run on. */
static inline void export_put_u64(struct export_buffer *b, uint64_t v)
{
    export_put(b, &v, sizeof v);
}

/* LEB128: 7 bits a byte, the lowest first. */
static inline void export_put_varint(struct export_buffer *b, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (uint8_t)(v | 0x80);
    bytes[n++] = (uint8_t)v;
    export_put(b, bytes, n);
}

/* A text with its length in front of it, as a varint. */
static inline void export_put_counted(struct export_buffer *b, const void *bytes, size_t n)
{
    export_put_varint(b, n);
    export_put(b, bytes, n);
}

#endif
