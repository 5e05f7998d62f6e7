/* Texts that the tables hold in another form than the trace. */
#include "importer/core/text_forms.h"

#include "base/utf8.h"

#include <nettle/base64.h>

/* Interns n bytes of an allocated buffer and frees it; NULL: out of memory. */
static strid intern_buffer(struct importer *im, char *text, size_t n)
{
    if (!text) {
        im->failed = true;
        return 0;
    }
    strid s = strpool_intern(&im->st->strings, text, n);
    mem_free(text);
    return s;
}

strid import_base64(struct importer *im, struct slice bytes)
{
    if (!bytes.len)
        return import_str(im, "");
    char *text = mem_alloc(BASE64_ENCODE_RAW_LENGTH(bytes.len) + 1);
    if (text)
        base64_encode_raw(text, bytes.len, bytes.p);
    return intern_buffer(im, text, BASE64_ENCODE_RAW_LENGTH(bytes.len));
}

strid import_latin1(struct importer *im, struct slice text)
{
    enum { MOST = 2 /* bytes of UTF-8 for one of Latin-1 */ };
    char *out = mem_alloc(MOST * text.len + 1);
    size_t n = 0;
    for (size_t i = 0; out && i < text.len; i++)
        n += utf8_put(out + n, text.p[i]);
    return intern_buffer(im, out, n);
}

strid import_utf16(struct importer *im, struct slice text, bool big_endian)
{
    enum { MOST = 3 /* bytes of UTF-8 for one unit */, UNKNOWN = 0xfffd };
    size_t units = text.len / 2, n = 0;
    char *out = mem_alloc(MOST * (units + 1));
    for (size_t i = 0; out && i < units; i++) {
        const uint8_t *at = text.p + 2 * i;
        uint32_t c = big_endian ? (uint32_t)at[0] << 8 | at[1] : (uint32_t)at[1] << 8 | at[0];
        if (c >= 0xd800 && c < 0xdc00 && i + 1 < units) {
            uint32_t low = big_endian ? (uint32_t)at[2] << 8 | at[3] : (uint32_t)at[3] << 8 | at[2];
            if (low >= 0xdc00 && low < 0xe000) {
                c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
                i++;
            }
        }
        n += utf8_put(out + n, c >= 0xd800 && c < 0xe000 ? UNKNOWN : c);
    }
    if (out && text.len % 2) /* half a unit */
        n += utf8_put(out + n, UNKNOWN);
    return intern_buffer(im, out, n);
}

strid import_kept(struct importer *im, struct u64map *kept, struct slice text)
{
    enum { LONG = 256 }; /* bytes; shorter ones are hashed as fast as looked up */
    bool added = false;
    if (text.len < LONG)
        return import_slice(im, text);
    uint64_t *id = u64map_put(kept, (uint64_t)(uintptr_t)text.p, &added);
    if (!id) {
        im->failed = true;
        return 0;
    }
    if (added || strpool_view(&im->st->strings, (strid)*id).len != text.len)
        *id = import_slice(im, text);
    return (strid)*id;
}
