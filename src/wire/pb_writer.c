/* The growable protobuf writer. */
#include "wire/pb_writer.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "wire/pb_cursor.h"

static uint8_t *room(struct pb_writer *w, size_t len)
{
    if (w->failed || (w->n + len > w->cap && !vec_reserve_((void **)&w->p, &w->cap, 1, w->n + len))) {
        w->failed = true;
        return NULL;
    }
    return w->p ? w->p + w->n : NULL; /* NULL: nothing was there, nothing comes */
}

size_t pb_encode_varint(uint8_t *p, uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        p[n++] = (uint8_t)(value | 0x80);
    p[n++] = (uint8_t)value;
    return n;
}

void pb_put_raw_varint(struct pb_writer *w, uint64_t value)
{
    uint8_t *p = room(w, 10);
    if (p)
        w->n += pb_encode_varint(p, value);
}

void pb_put_raw(struct pb_writer *w, const void *bytes, size_t len)
{
    uint8_t *p = room(w, len);
    if (p && len) {
        memcpy(p, bytes, len);
        w->n += len;
    }
}

static void put_tag(struct pb_writer *w, uint32_t id, enum pb_wire wire)
{
    pb_put_raw_varint(w, (uint64_t)id << 3 | wire);
}

void pb_put_varint(struct pb_writer *w, uint32_t id, uint64_t value)
{
    put_tag(w, id, PB_VARINT);
    pb_put_raw_varint(w, value);
}

void pb_put_fixed64(struct pb_writer *w, uint32_t id, uint64_t value)
{
    put_tag(w, id, PB_FIXED64);
    pb_put_raw(w, &value, 8);
}

void pb_put_fixed32(struct pb_writer *w, uint32_t id, uint32_t value)
{
    put_tag(w, id, PB_FIXED32);
    pb_put_raw(w, &value, 4);
}

void pb_put_double(struct pb_writer *w, uint32_t id, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, 8);
    pb_put_fixed64(w, id, bits);
}

void pb_put_bytes(struct pb_writer *w, uint32_t id, const void *p, size_t len)
{
    put_tag(w, id, PB_BYTES);
    pb_put_raw_varint(w, len);
    pb_put_raw(w, p, len);
}

void pb_put_str(struct pb_writer *w, uint32_t id, const char *text)
{
    pb_put_bytes(w, id, text, strlen(text));
}

/* The bytes of `text` as UTF-8 (`w` NULL: nowhere); how many they are. */
static size_t mend(struct pb_writer *w, const char *text, size_t len)
{
    static const char replacement[] = "\xef\xbf\xbd";
    size_t n = 0;
    while (len) {
        size_t good = utf8_prefix(text, len), bad = good < len;
        if (w)
            pb_put_raw(w, text, good);
        if (w && bad)
            pb_put_raw(w, replacement, sizeof replacement - 1);
        n += good + bad * (sizeof replacement - 1);
        text += good + bad;
        len -= good + bad;
    }
    return n;
}

void pb_put_text(struct pb_writer *w, uint32_t id, struct slice text)
{
    put_tag(w, id, PB_BYTES);
    pb_put_raw_varint(w, mend(NULL, (const char *)text.p, text.len));
    mend(w, (const char *)text.p, text.len);
}

size_t pb_begin(struct pb_writer *w, uint32_t id)
{
    put_tag(w, id, PB_BYTES);
    uint8_t *p = room(w, 4);
    if (!p)
        return 0;
    w->n += 4;
    return w->n;
}

void pb_end(struct pb_writer *w, size_t mark)
{
    if (w->failed)
        return;
    size_t len = w->n - mark;
    if (len >= 1u << 28) {
        w->failed = true;
        return;
    }
    uint8_t *p = w->p + mark - 4;
    for (int i = 0; i < 3; i++)
        p[i] = (uint8_t)(len >> (7 * i) | 0x80);
    p[3] = (uint8_t)(len >> 21);
}

void pb_writer_free(struct pb_writer *w)
{
    mem_free(w->p);
    *w = (struct pb_writer){0};
}
