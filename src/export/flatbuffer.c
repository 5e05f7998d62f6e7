/* Builds flatbuffers from the end to the front. */
#include "export/flatbuffer.h"

#include "base/alloc.h"

#include <string.h>

void fb_clear(struct flatbuffer *b)
{
    b->n = 0;
    b->aligned = 8;
}

void fb_free(struct flatbuffer *b)
{
    mem_free(b->bytes);
    *b = (struct flatbuffer){0};
}

const uint8_t *fb_bytes(const struct flatbuffer *b)
{
    return b->bytes + b->cap - b->n;
}

static bool room(struct flatbuffer *b, size_t more)
{
    if (b->failed || more > UINT32_MAX / 4 || b->n + more > UINT32_MAX / 4) {
        b->failed = true;
        return false;
    }
    if (b->n + more <= b->cap)
        return true;
    size_t cap = b->cap ? b->cap : 1024;
    while (cap < b->n + more)
        cap *= 2;
    uint8_t *bytes = mem_alloc(cap);
    if (!bytes) {
        b->failed = true;
        return false;
    }
    if (b->n)
        memcpy(bytes + cap - b->n, fb_bytes(b), b->n);
    mem_free(b->bytes);
    b->bytes = bytes;
    b->cap = cap;
    return true;
}

static void push(struct flatbuffer *b, const void *bytes, size_t n)
{
    if (!room(b, n))
        return;
    b->n += n;
    if (n)
        memcpy(b->bytes + b->cap - b->n, bytes, n);
}

/* Zeros, so that after `more` bytes the place is a multiple of `alignment`. */
static void pad(struct flatbuffer *b, size_t alignment, size_t more)
{
    static const uint8_t zeros[8];
    if (alignment > b->aligned)
        b->aligned = alignment;
    push(b, zeros, (alignment - (b->n + more) % alignment) % alignment);
}

static void push_u32(struct flatbuffer *b, uint32_t v)
{
    push(b, &v, sizeof v);
}

fb_place fb_text(struct flatbuffer *b, const char *text)
{
    static const char end[1];
    size_t n = strlen(text);
    pad(b, 4, n + 1);
    push(b, end, 1);
    push(b, text, n);
    push_u32(b, (uint32_t)n);
    return (fb_place)b->n;
}

/* A reference is the distance from where it stands. */
static void push_place(struct flatbuffer *b, fb_place place)
{
    push_u32(b, (uint32_t)(b->n + 4 - place));
}

fb_place fb_places(struct flatbuffer *b, const fb_place *places, size_t n)
{
    pad(b, 4, 0);
    for (size_t i = n; i-- > 0;)
        push_place(b, places[i]);
    push_u32(b, (uint32_t)n);
    return (fb_place)b->n;
}

fb_place fb_structs(struct flatbuffer *b, const uint64_t *values, size_t n, size_t words)
{
    pad(b, 8, 0);
    push(b, values, n * words * sizeof *values);
    push_u32(b, (uint32_t)n);
    return (fb_place)b->n;
}

void fb_table(struct flatbuffer *b)
{
    memset(b->fields, 0, sizeof b->fields);
}

void fb_field(struct flatbuffer *b, unsigned field, uint64_t value, unsigned size)
{
    b->fields[field].value = value;
    b->fields[field].size = (uint8_t)size;
    b->fields[field].place = false;
}

void fb_child(struct flatbuffer *b, unsigned field, fb_place place)
{
    if (!place)
        return;
    fb_field(b, field, place, 4);
    b->fields[field].place = true;
}

/* The fields, the widest at the end; in front of them the distance to the list of where each is, which comes before. */
fb_place fb_table_end(struct flatbuffer *b)
{
    uint32_t at[FB_MAX_FIELDS] = {0};
    unsigned n_fields = 0;
    for (unsigned size = 8; size > 0; size /= 2) {
        for (unsigned i = 0; i < FB_MAX_FIELDS; i++) {
            if (b->fields[i].size != size)
                continue;
            pad(b, size, size);
            if (b->fields[i].place)
                push_place(b, (fb_place)b->fields[i].value);
            else
                push(b, &b->fields[i].value, size);
            at[i] = (uint32_t)b->n;
            n_fields = i + 1 > n_fields ? i + 1 : n_fields;
        }
    }
    const size_t list_bytes = 4 + 2 * (size_t)n_fields;
    pad(b, 4, 4);
    push_u32(b, 0);
    const fb_place table = (fb_place)b->n;
    uint32_t end = table;
    for (unsigned i = 0; i < n_fields; i++) /* the table's size: to the end of its first field in the buffer */
        if (at[i] && at[i] - b->fields[i].size < end)
            end = at[i] - b->fields[i].size;
    pad(b, 2, list_bytes);
    for (unsigned i = n_fields; i-- > 0;) {
        uint16_t from_table = at[i] ? (uint16_t)(table - at[i]) : 0;
        push(b, &from_table, sizeof from_table);
    }
    uint16_t table_bytes = (uint16_t)(table - end), bytes = (uint16_t)list_bytes;
    push(b, &table_bytes, sizeof table_bytes);
    push(b, &bytes, sizeof bytes);
    int32_t distance = (int32_t)(b->n - table);
    if (!b->failed)
        memcpy(b->bytes + b->cap - table, &distance, sizeof distance);
    return table;
}

void fb_finish(struct flatbuffer *b, fb_place root)
{
    pad(b, b->aligned, 4);
    push_place(b, root);
}
