/* Writes Thrift's compact protocol. */
#include "export/thrift.h"

void thrift_bytes(struct thrift *t, const void *bytes, size_t n)
{
    if (t->failed || !vec_reserve(&t->out, t->out.n + n)) {
        t->failed = true;
        return;
    }
    if (n)
        memcpy(t->out.p + t->out.n, bytes, n);
    t->out.n += n;
}

void thrift_varint(struct thrift *t, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (uint8_t)(v | 0x80);
    bytes[n++] = (uint8_t)v;
    thrift_bytes(t, bytes, n);
}

static uint64_t zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static void field(struct thrift *t, int number, enum thrift_type type)
{
    int *last = &t->last[t->depth];
    uint8_t head = (uint8_t)type;
    if (number - *last <= 15) {
        head |= (uint8_t)((number - *last) << 4);
        thrift_bytes(t, &head, 1);
    } else {
        thrift_bytes(t, &head, 1);
        thrift_varint(t, zigzag(number));
    }
    *last = number;
}

void thrift_begin(struct thrift *t)
{
    t->last[++t->depth] = 0;
}

void thrift_end(struct thrift *t)
{
    thrift_bytes(t, "", 1);
    t->depth--;
}

void thrift_i32(struct thrift *t, int number, int32_t v)
{
    field(t, number, THRIFT_I32);
    thrift_varint(t, zigzag(v));
}

void thrift_i64(struct thrift *t, int number, int64_t v)
{
    field(t, number, THRIFT_I64);
    thrift_varint(t, zigzag(v));
}

void thrift_binary(struct thrift *t, int number, const void *bytes, size_t n)
{
    field(t, number, THRIFT_BINARY);
    thrift_varint(t, n);
    thrift_bytes(t, bytes, n);
}

void thrift_struct(struct thrift *t, int number)
{
    field(t, number, THRIFT_STRUCT);
    thrift_begin(t);
}

void thrift_list(struct thrift *t, int number, enum thrift_type of, size_t n)
{
    field(t, number, THRIFT_LIST);
    uint8_t head = (uint8_t)((n < 15 ? n : 15) << 4 | of);
    thrift_bytes(t, &head, 1);
    if (n >= 15)
        thrift_varint(t, n);
}

void thrift_element_i32(struct thrift *t, int32_t v)
{
    thrift_varint(t, zigzag(v));
}

void thrift_element_text(struct thrift *t, const char *text)
{
    thrift_varint(t, strlen(text));
    thrift_bytes(t, text, strlen(text));
}
