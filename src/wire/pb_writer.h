/* Writes protobuf messages into a growable buffer.
 *
 * Nested messages are opened with a four-byte length that is filled in at close (a redundant varint, as every reader
 * accepts), so nothing moves. A zeroed struct is an empty writer. Out of memory latches `failed`; test it once at the
 * end. For zero-copy writing into shared-memory chunks see capture/shm. */
#ifndef MERIDIAN_WIRE_PB_WRITER_H
#define MERIDIAN_WIRE_PB_WRITER_H

#include "base/slice.h"

struct pb_writer {
    uint8_t *p;
    size_t n;
    size_t cap;
    bool failed;
};

void pb_put_varint(struct pb_writer *w, uint32_t id, uint64_t value);
static inline void pb_put_i64(struct pb_writer *w, uint32_t id, int64_t v)
{
    pb_put_varint(w, id, (uint64_t)v);
}
void pb_put_fixed64(struct pb_writer *w, uint32_t id, uint64_t value);
void pb_put_fixed32(struct pb_writer *w, uint32_t id, uint32_t value);
void pb_put_double(struct pb_writer *w, uint32_t id, double value);
void pb_put_bytes(struct pb_writer *w, uint32_t id, const void *p, size_t len);
void pb_put_str(struct pb_writer *w, uint32_t id, const char *text);
/* A string field of bytes from anywhere: strict readers refuse a whole message for one string that is not UTF-8, so
 * what is not becomes U+FFFD. */
void pb_put_text(struct pb_writer *w, uint32_t id, struct slice text);

/* A bare varint, for packed fields: open the field with pb_begin(), put values, pb_end(). */
void pb_put_raw_varint(struct pb_writer *w, uint64_t value);
void pb_put_raw(struct pb_writer *w, const void *p, size_t len);

/* Opens field `id` as a nested message; the mark goes to pb_end(). At most 2^28 - 1 bytes inside. */
size_t pb_begin(struct pb_writer *w, uint32_t id);
void pb_end(struct pb_writer *w, size_t mark);

/* Writes a varint at p (room for 10 bytes); returns its length. */
size_t pb_encode_varint(uint8_t *p, uint64_t value);

static inline struct slice pb_written(const struct pb_writer *w)
{
    return slice_of(w->p, w->n);
}
static inline void pb_writer_clear(struct pb_writer *w)
{
    w->n = 0;
}
void pb_writer_free(struct pb_writer *w);

#endif
