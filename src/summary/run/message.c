/* Packs with what protobuf-c knows of a message. */
#include "summary/run/message.h"

#include "base/alloc.h"

#include <string.h>

bool message_pack(const ProtobufCMessage *m, uint8_t **bytes, size_t *n)
{
    *n = protobuf_c_message_get_packed_size(m);
    *bytes = mem_alloc(*n ? *n : 1);
    if (*bytes)
        protobuf_c_message_pack(m, *bytes);
    return *bytes != NULL;
}

bool message_compare(const ProtobufCMessage *a, const ProtobufCMessage *b, bool *same)
{
    uint8_t *x = NULL, *y = NULL;
    size_t n, m;
    *same = protobuf_c_message_get_packed_size(a) == protobuf_c_message_get_packed_size(b);
    if (!*same)
        return true;
    bool packed = message_pack(a, &x, &n) && message_pack(b, &y, &m);
    *same = packed && n == m && memcmp(x, y, n) == 0;
    mem_free(x);
    mem_free(y);
    return packed;
}
