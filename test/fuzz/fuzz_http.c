/* HTTP: any bytes parse as a head or are refused, alike in one piece and in pieces; what was read stays inside them. */
#include "rpc/form.h"
#include "rpc/http.h"

#include "fuzz.h"

#include <stdlib.h>

static void touch(struct slice s)
{
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < s.len; i++)
        sum = (uint8_t)(sum + s.p[i]);
}

/* The body of a chunked stream given in pieces of `step` bytes: its length, or -1 when it is broken. */
static long take_chunks(struct slice in, size_t step)
{
    struct http_chunks c = {0};
    long body = 0;
    while (in.len) {
        struct slice piece = slice_of(in.p, in.len < step ? in.len : step), data;
        in.p += piece.len;
        in.len -= piece.len;
        while (piece.len) {
            switch (http_chunks_next(&c, &piece, &data)) {
            case HTTP_CHUNKS_DATA:
                touch(data);
                body += (long)data.len;
                break;
            case HTTP_CHUNKS_BROKEN:
                return -1;
            case HTTP_CHUNKS_END:
                return body;
            case HTTP_CHUNKS_MORE:
                break;
            }
        }
    }
    return body;
}

static void read_arguments(struct slice query)
{
    struct slice name, value;
    while (form_next(&query, &name, &value)) {
        char *text = malloc(value.len + 1);
        int64_t n = text ? form_decode(value, text) : -1;
        touch(name);
        if (n > (int64_t)value.len || (n >= 0 && strlen(text) != (size_t)n))
            abort();
        free(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_request r, again;
    struct slice bytes = slice_of(data, size);
    int len = http_parse_head(bytes, &r);
    if (len > 0) {
        touch(r.path);
        read_arguments(r.query);
        touch(r.origin);
        touch(r.websocket_key);
        touch(r.websocket_version);
        if ((size_t)len > size || http_parse_head(slice_of(data, (size_t)len), &again) != len ||
            http_parse_head(slice_of(data, (size_t)len - 1), &again) > 0)
            abort();
        char head[HTTP_MAX_RESPONSE_HEAD];
        struct http_response response = {
            .status = 200, .type = "x", .length = HTTP_CHUNKED, .origin = r.origin, .preflight = true};
        if (http_write_head(&response, head, sizeof head) >= sizeof head)
            abort();
        bytes = slice_of(data + len, size - (size_t)len);
    }
    if (take_chunks(bytes, 1) != take_chunks(bytes, size + 1))
        abort();
    return 0;
}
